"""Behind nginx under a sub-path, with none of its settings but the two that one must write: every client works."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx
import pytest

from tests.real import installed
from tests.real.conftest import TOKEN, Served
from tests.real.driving import Step, drive, questions, texts
from tests.real.installed import CLIENT, CLIENTS, MCP2, Client
from tests.real.rounds import ROUNDS

pytestmark = [pytest.mark.registry, pytest.mark.slow]

PREFIX = "/tools/viaduct"
WAIT_SECONDS = 5.0
FORM = {
    "tool": {"name": "trigger-elicitation-request"},
    "answers": {"elicitation/create": {"action": "accept", "content": {"name": "Ada"}}},
}

CONFIGURATION = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxied;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location {prefix}/ {{ proxy_pass http://127.0.0.1:{upstream_port}/; }}
    }}
}}
"""


@pytest.fixture(scope="module")
def base(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL under which nginx shows the gateway."""
    with _nginx(tmp_path_factory.mktemp("nginx"), served.port) as port:
        yield f"http://127.0.0.1:{port}{PREFIX}"


@pytest.mark.parametrize("spelling", ["sse", "sse/"])
def test_the_endpoint_is_relative_and_leads_under_the_sub_path(base: str, spelling: str) -> None:
    url = f"{base}/servers/everything/{spelling}"
    with httpx.stream("GET", url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=WAIT_SECONDS) as response:
        assert response.status_code == 200
        lines = (line for line in response.iter_lines() if line and not line.startswith(":"))
        event, data = next(lines), next(lines)
    assert event == "event: endpoint"
    endpoint = data.removeprefix("data: ")
    reference = urlsplit(endpoint)
    assert (reference.scheme, reference.netloc) == ("", "")
    assert not reference.path.startswith("/")
    assert urlsplit(urljoin(url, endpoint)).path == f"{PREFIX}/servers/everything/messages"


@pytest.mark.parametrize("path", ["sse", "sse/", "mcp", "mcp/"])
@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_a_client_is_asked_and_answers_under_the_sub_path(served: Served, base: str, client: Client, path: str) -> None:
    job = served.job("everything", "sse" if path.startswith("sse") else "http", base=base, path=path)
    found = drive(client, job, Step("form", "ask", FORM))
    assert len(questions(found["form"], "elicitation/create")) == 1
    assert "- Name: Ada" in texts(found["form"]["result"])


@pytest.mark.parametrize("client", [MCP2, CLIENT], ids=str)
def test_a_stateless_client_misses_nothing_under_the_sub_path(served: Served, base: str, client: Client) -> None:
    found = drive(
        client,
        served.job("rounds", "stateless", base=base) | {"roots": [{"uri": "file:///srv/a"}]},
        *(step for step in ROUNDS.steps if step.name in {"all at once", "subscription", "cancel", "cancelled"}),
    )
    assert texts(found["all at once"]["result"]) == "Ada in 1 place said said to say it"
    assert found["subscription"]["updated"]["params"] == {"uri": ROUNDS.watched}
    assert [report["progress"] for report in found["cancel"]["progress"]] == [1, 2]
    assert "30 s" in texts(found["cancelled"])


@contextmanager
def _nginx(folder: Path, upstream_port: int) -> Iterator[int]:
    port = _free_port()
    configuration = folder / "nginx.conf"
    configuration.write_text(CONFIGURATION.format(folder=folder, port=port, prefix=PREFIX, upstream_port=upstream_port))
    command = [installed.nginx(), "-c", str(configuration), "-e", str(folder / "error.log")]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        _await_listener(port, process)
        yield port
    finally:
        process.terminate()
        process.communicate(timeout=WAIT_SECONDS)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _await_listener(port: int, process: "subprocess.Popen[str]") -> None:
    give_up_at = time.monotonic() + WAIT_SECONDS
    while process.poll() is None and time.monotonic() < give_up_at:
        with suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port)).close()
            return
    process.kill()
    raise AssertionError(f"nginx does not listen: {process.communicate()[1]}")
