"""The gateway as its users start it, once, in front of all the servers."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conformance.served import gateway
from tests.real import installed
from tests.real.installed import VISITORS, Json, Visitor

TOKEN = "a-token-for-the-tests-of-real-servers"
SETTINGS = {"drain": 2, "streams": {"retry": 0.1}, "catalog": {"read": "use"}}
PATHS = {"http": "mcp", "stateless": "mcp", "sse": "sse"}
MODES = {"http": "legacy", "stateless": "auto", "sse": "auto"}
"""How a client that knows both eras chooses: over HTTP+SSE there is but one, which it is to find out."""


@dataclass(frozen=True)
class Served:
    port: int
    folder: Path

    def visit(self, visitor: Visitor, server: str) -> Json:
        return self.job(server, "http") | {"mode": visitor.mode, "token": visitor.token}

    def job(self, server: str, transport: str, *, base: str | None = None, path: str | None = None) -> Json:
        """Where a driver connects; `base` when not straight to the gateway."""
        base = base or f"http://127.0.0.1:{self.port}"
        url = f"{base}/servers/{server}/{path or PATHS[transport]}"
        speaks = "sse" if transport == "sse" else "http"
        return {"transport": speaks, "mode": MODES[transport], "url": url, "token": TOKEN}


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    installed.require()
    folder = tmp_path_factory.mktemp("served")
    lay_files(folder)
    config = folder / "viaduct.json"
    config.write_text(json.dumps({"mcpServers": installed.servers(folder), "viaduct": SETTINGS}))
    tokens = [
        argument for token in (TOKEN, *(visitor.token for visitor in VISITORS)) for argument in ("--token", token)
    ]
    with gateway(folder, "serve", str(config), "--port", "0", *tokens) as port:
        yield Served(port, folder)


def lay_files(folder: Path) -> None:
    """What the servers work on: two folders with a file each, and a repository with one commit."""
    for name in ("files", "granted"):
        (folder / name).mkdir()
        (folder / name / "note.txt").write_text(f"written in {name}\n")
    repository = folder / "repository"
    git = ["git", "-C", str(repository)]
    (repository).mkdir()
    (repository / "readme").write_text("first\n")
    for command in (
        ["init", "-q", "-b", "main"],
        ["config", "user.name", "Ada"],
        ["config", "user.email", "ada@example.com"],
        ["add", "readme"],
        ["commit", "-q", "-m", "Begin"],
    ):
        subprocess.run([*git, *command], check=True)
