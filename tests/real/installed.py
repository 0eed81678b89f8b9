"""What `tests/real/install` laid into the cache: real servers to put behind the gateway, and official clients."""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".cache" / "real"
NODE = CACHE / "node"

Json = dict[str, Any]


@dataclass(frozen=True)
class Client:
    """An official client, as the command that drives it."""

    name: str
    command: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


MCP1 = Client("python-1.x", (str(CACHE / "mcp1/bin/python"), str(HERE / "clients/mcp1.py")))
MCP2 = Client("python-2.x", (sys.executable, str(HERE / "clients/mcp2.py")))
SDK = Client("typescript-1.x", (str(NODE), str(HERE / "clients/sdk.mjs")))
CLIENT = Client("typescript-2.x", (str(NODE), str(HERE / "clients/client.mjs")))
CLIENTS = (MCP1, MCP2, SDK, CLIENT)


@dataclass(frozen=True)
class Visitor:
    """A client that knows both eras, in the mode by which it chooses one, and with a token of its own."""

    client: Client
    mode: str

    @property
    def is_stateless(self) -> bool:
        """Whether it speaks that revision where the gateway does."""
        return self.mode != "legacy"

    @property
    def token(self) -> str:
        return f"a-token-of-{self}-and-of-nobody-else"

    def __str__(self) -> str:
        return f"{self.client}-{self.mode}"


VISITORS = tuple(Visitor(client, mode) for client in (MCP2, CLIENT) for mode in ("legacy", "auto", "2026-07-28"))


def servers(folder: Path) -> Json:
    """As `mcpServers`: five of the registries, each with what it works on under `folder`, and three of ours."""
    return {
        "everything": _npm("everything"),
        "filesystem": _npm("filesystem", str(folder / "files")),
        "memory": _npm("memory") | {"env": {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}},
        "time": _pypi("time", "--local-timezone", "UTC"),
        "git": _pypi("git", "--repository", str(folder / "repository")),
        "rounds": {"command": sys.executable, "args": [str(HERE / "servers/modern.py"), "--modern-only"]},
        "fixture": {"command": sys.executable, "args": ["-m", "tests.conformance.fixtures.modern"]},
        "first": {"command": MCP1.command[0], "args": ["-m", "tests.conformance.fixtures.legacy"]},
    }


def ten(folder: Path) -> Json:
    """As `mcpServers`: ten of the registries, which all work in `folder`."""
    some = servers(folder)
    calc = CACHE / "node_modules/@coo-quack/calc-mcp/dist/index.js"
    entries = {name: some[name] for name in ("everything", "filesystem", "memory", "time", "git")} | {
        "thinking": _npm("sequential-thinking"),
        "calc": {"command": str(NODE), "args": [str(calc)]},
        "fetch": _pypi("fetch"),
        "sqlite": {
            "command": str(CACHE / "mcp1/bin/mcp-server-sqlite"),
            "args": ["--db-path", str(folder / "some.db")],
        },
        "excel": {
            "command": str(CACHE / "servers/bin/excel-mcp-server"),
            "args": ["stdio", "--allow-dir", str(folder)],
        },
    }
    return {name: {**entry, "cwd": str(folder)} for name, entry in entries.items()}


def require() -> None:
    """Skips where nothing, or something else, was installed; where CI says that nothing may be skipped, fails."""
    stamp = CACHE / "installed"
    if not stamp.exists() or stamp.read_bytes() != (HERE / "install").read_bytes():
        _lacking(f"{CACHE} does not hold what tests/real/install installs; run it")


def nginx() -> str:
    found = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    return found or _lacking("nginx is not here; tests/real/install installs it as root on Debian")


def _lacking(reason: str) -> NoReturn:
    if os.environ.get("VIADUCT_CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def _npm(name: str, *arguments: str) -> Json:
    script = CACHE / f"node_modules/@modelcontextprotocol/server-{name}/dist/index.js"
    return {"command": str(NODE), "args": [str(script), *arguments]}


def _pypi(name: str, *arguments: str) -> Json:
    return {"command": str(CACHE / f"servers/bin/mcp-server-{name}"), "args": list(arguments)}
