"""The gateway as its users start it, once per module, in front of the five servers."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conformance.served import gateway
from tests.real import installed
from tests.real.installed import Json

TOKEN = "a-token-for-the-tests-of-real-servers"
SETTINGS = {"drain": 2, "streams": {"retry": 0.1}}
PATHS = {"http": "mcp", "sse": "sse"}


@dataclass(frozen=True)
class Served:
    port: int
    folder: Path

    def job(self, server: str, transport: str, *, base: str | None = None, path: str | None = None) -> Json:
        """Where a driver connects; `base` when not straight to the gateway."""
        base = base or f"http://127.0.0.1:{self.port}"
        url = f"{base}/servers/{server}/{path or PATHS[transport]}"
        return {"transport": transport, "url": url, "token": TOKEN}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    installed.require()
    folder = tmp_path_factory.mktemp("served")
    _lay_files(folder)
    config = folder / "viaduct.json"
    config.write_text(json.dumps({"mcpServers": installed.servers(folder), "viaduct": SETTINGS}))
    with gateway(folder, "serve", str(config), "--port", "0", "--token", TOKEN) as port:
        yield Served(port, folder)


def _lay_files(folder: Path) -> None:
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
