"""A fresh token, and the config entry that admits it."""

import json
import re
from datetime import UTC, datetime, timedelta

import click

from app.auth.expiry import unix_seconds
from app.auth.tokens import hash_of, mint


def entry_text(name: str, scopes: tuple[str, ...], expires: str | None) -> str:
    token = mint()
    entry: dict[str, object] = {"name": name, "hash": hash_of(token), "scopes": list(scopes) or ["*"]}
    if expires is not None:
        entry["expires"] = _until(expires)
    return f"{token}\n\nAdd this to viaduct.auth.tokens; the token itself is shown only now:\n{json.dumps(entry)}"


def _until(text: str) -> str:
    days = re.fullmatch(r"([1-9]\d{0,4})d", text)
    if days:
        return (datetime.now(UTC) + timedelta(days=int(days[1]))).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        unix_seconds(text)
    except ValueError as wrong:
        raise click.BadParameter(f"it {wrong}, or a number of days as in 90d", param_hint="--expires") from wrong
    return text
