"""Servers with lists of their own, behind one gateway."""

import json
import sys
from typing import Any

from tests.support.gateway import ROOT, config

SHELF = ROOT / "tests/servers/shelf.py"


def shelf(name: str, *tools: str, settings: dict[str, Any] | None = None, **has: Any) -> dict[str, Any]:
    """The entry of a server that has these tools; `settings` are further ones of the entry."""
    said = json.dumps({"name": name, "tools": tools, **has})
    entry = {"command": sys.executable, "args": ["-I", "-S", str(SHELF), said], "stopTimeout": 0.5}
    return {**entry, **(settings or {})}


def shelves(*entries: tuple[str, dict[str, Any]], **viaduct: Any) -> dict[str, Any]:
    """A configuration of these servers, by their names, in this order."""
    return config(dict(entries), **viaduct)
