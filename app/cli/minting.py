"""A fresh token, and the config entry that admits it."""

import json
import re
from datetime import UTC, datetime, timedelta

from app.auth.tokens import hash_of, mint
from app.config.errors import ConfigError
from app.config.tree import expiry


def entry_text(name: str, scopes: tuple[str, ...], expires: str | None) -> str:
    token = mint()
    entry: dict[str, object] = {"name": name, "hash": hash_of(token), "scopes": list(scopes) or ["*"]}
    if expires is not None:
        entry["expires"] = _until(expires)
    return f"{token}\n\nAdd this to viaduct.auth.tokens; the token itself is shown only now:\n{json.dumps(entry)}"


def _until(text: str) -> str:
    days = re.fullmatch(r"(\d{1,5})d", text)
    if days:
        return (datetime.now(UTC) + timedelta(days=int(days[1]))).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        expiry(text)
    except ValueError as wrong:
        raise ConfigError(f"--expires {wrong}, or a number of days as in 90d") from wrong
    return text
