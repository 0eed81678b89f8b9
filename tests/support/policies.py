"""Two servers under a policy, principals with different rights, and every way to ask."""

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.client import Client
from tests.support.gateway import ROOT, Gateway
from tests.support.sse_client import SseClient
from tests.support.stateless import StatelessClient

GUARDED = ROOT / "tests/servers/guarded.py"
READER, WRITER, GUEST, MEEK, BUSY, OWNER = ("r" * 20, "w" * 20, "g" * 20, "m" * 20, "b" * 20, "o" * 20)
POLICY = [
    {
        "scopes": ["read"],
        "allow": [
            f"{server}/{what}"
            for server in ("old", "new")
            for what in ("look", "prompts/open", "resources/memo://open*")
        ],
    },
    {"scopes": ["write"], "subjects": ["reader", "writer"], "allow": ["old", "new"], "deny": ["*/delete*"]},
    {"scopes": ["safe"], "allow": ["old", "new"], "readOnly": True},
    {"scopes": ["all"], "subjects": ["owner"], "allow": ["old", "new"]},
    {"scopes": ["busy"], "subjects": ["busy"], "allow": ["old", "new"], "perMinute": 3, "concurrent": 1},
]


def entry(folder: Path, name: str, *options: str, **settings: object) -> dict[str, object]:
    return {"command": sys.executable, "args": ["-I", "-S", str(GUARDED), str(folder / name), *options], **settings}


def token(name: str, secret: str, *scopes: str) -> dict[str, object]:
    return {"name": name, "hash": f"sha256:{hashlib.sha256(secret.encode()).hexdigest()}", "scopes": list(scopes)}


def content(folder: Path, **viaduct: object) -> dict[str, Any]:
    servers = {"old": entry(folder, "old", stopTimeout=0.5), "new": entry(folder, "new", "modern", stopTimeout=0.5),
               "closed": entry(folder, "closed")}  # fmt: skip
    tokens = [token("reader", READER, "read"), token("writer", WRITER, "read", "write"), token("guest", GUEST, "none"),
              token("meek", MEEK, "safe"), token("busy", BUSY, "busy"), token("owner", OWNER, "all")]  # fmt: skip
    return {
        "mcpServers": servers,
        "viaduct": {
            "auth": {"tokens": tokens},
            "policy": POLICY,
            "streams": {"streamAfter": 10},
            "catalog": {"read": "use"},
            **viaduct,
        },
    }


class Asking:
    """One way to a server: a transport, an era, a server's era."""

    def __init__(self, way: str, gateway: Gateway, secret: str) -> None:
        self.kind, server = way.split(" ")
        path = f"/servers/{server}/sse"
        self.client: Any = {
            "session": lambda: Client(gateway, server, secret),
            "implicit": lambda: Client(gateway, server, secret),
            "batch": lambda: Client(gateway, server, secret),
            "sse": lambda: SseClient(gateway, path, secret),
            "stateless": lambda: StatelessClient(gateway, server, secret),
        }[self.kind]()

    async def call(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        if self.kind == "batch":
            batch = [{"jsonrpc": "2.0", "id": 9, "method": method, "params": params or {}}]
            reply = await self.client.post(batch)
            body = await reply.json()
            return body[0] if isinstance(body, list) else body
        return await self.client.call(method, params)

    async def open(self) -> "Asking":
        if self.kind == "batch":
            await self.client.open(version="2025-03-26")
        elif self.kind in ("session", "sse"):
            await self.client.open()
        return self


async def asking(way: str, gateway: Gateway, secret: str) -> Asking:
    return await Asking(way, gateway, secret).open()


def heard(folder: Path, way: str) -> str:
    """What the server has been told, so far."""
    path = folder / way.split(" ")[1]
    return path.read_text() if path.exists() else ""
