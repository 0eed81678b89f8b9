"""A fresh token, and the config entry that admits it."""

import json
import re
import time
from datetime import UTC, datetime, timedelta

import click

from app.auth.expiry import unix_seconds
from app.auth.principal import ANONYMOUS
from app.auth.tokens import SCOPE, hash_of, mint


def entry_text(name: str, scopes: tuple[str, ...], expires: str | None) -> str:
    _check_name(name)
    _check_scopes(scopes)
    token = mint()
    entry: dict[str, object] = {"name": name, "hash": hash_of(token), "scopes": list(scopes) or ["*"]}
    if expires is not None:
        entry["expires"] = _until(expires)
    return f"{token}\n\nAdd this to viaduct.auth.tokens; the token itself is shown only now:\n{json.dumps(entry)}"


def _check_name(name: str) -> None:
    """As the config file will judge it (app.config.tree), whose libraries would take a second to load."""
    if not re.fullmatch(r"[\x20-\x7e]{1,64}", name) or name == ANONYMOUS.name:
        sentence = f"it must be 1 to 64 characters of printable ASCII, and not {ANONYMOUS.name!r}"
        raise click.BadParameter(sentence, param_hint="--name")


def _check_scopes(scopes: tuple[str, ...]) -> None:
    if not all(SCOPE.fullmatch(scope) for scope in scopes):
        sentence = "it must be one word of visible ASCII without quotes and backslashes; give --scope for each"
        raise click.BadParameter(sentence, param_hint="--scope")


def _until(text: str) -> str:
    days = re.fullmatch(r"([1-9]\d{0,4})d", text)
    if days:
        return (datetime.now(UTC) + timedelta(days=int(days[1]))).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        expires_at = unix_seconds(text)
    except ValueError as wrong:
        raise click.BadParameter(f"it {wrong}, or a number of days as in 90d", param_hint="--expires") from wrong
    if expires_at <= time.time():
        raise click.BadParameter("it must be in the future", param_hint="--expires")
    return text
