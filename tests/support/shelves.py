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


def library(servers: int, tools: int, **viaduct: Any) -> dict[str, Any]:
    """So many servers, each with so many tools of which as much is said as real servers say, 600 bytes. Two of them are
    `pid`, and `dream` for who can be asked for samples."""
    nouns = ("report", "ticket", "page", "file", "mail")
    names = ["pid", *(f"{verb}_{noun}" for noun in nouns for verb in VERBS)][: tools - 1]
    has: dict[str, Any] = {"about": ABOUT, "needs": "sampling", "more": ["dream"]}
    called = [f"server{number:02}" for number in range(servers)]
    return shelves(*((name, shelf(name, *names, **has)) for name in called), **viaduct)


VERBS = ("find", "read", "write", "list", "move", "count", "check", "share")
ABOUT = ". Takes what it is given and gives back what came of it, with all that there is to know." * 5
