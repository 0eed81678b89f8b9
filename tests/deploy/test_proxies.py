"""The files for nginx and Caddy as they are shipped, with nothing changed but addresses, in front of a real gateway."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

import httpx
import pytest

from tests.conformance.served import gateway

pytestmark = pytest.mark.registry

DEPLOY = Path(__file__).parents[2] / "deploy"
HOST = "mcp.example.com"
TOKEN = "a-token-for-the-tests-of-proxies"
HEADERS = {"Host": HOST, "Authorization": f"Bearer {TOKEN}"}
SUB_PATHS = ["", "/viaduct"]
WAIT_SECONDS = 5.0
FIRST_BYTE_SECONDS = 1.0
KEEP_ALIVE_SECONDS = 0.2
CONFIG = {
    "mcpServers": {"weather": {"command": sys.executable, "args": ["-P", "-m", "app.demo.weather"]}},
    "viaduct": {"publicUrl": f"https://{HOST}", "drain": 1, "streams": {"keepAlive": KEEP_ALIVE_SECONDS}},
}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
CURRENT = {"name": "com.example.weather/current", "arguments": {"location": "Berlin"}}

AROUND_NGINX = """
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
    include {folder}/site.conf;
}}
"""


@pytest.fixture(scope="module")
def gateway_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("gateway")
    config = folder / "viaduct.json"
    config.write_text(json.dumps(CONFIG))
    with gateway(folder, "serve", str(config), "--port", "0", "--token", TOKEN) as port:
        yield port


@pytest.fixture(scope="module", params=["nginx", "caddy"])
def client(
    request: pytest.FixtureRequest, gateway_port: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    """A client of the proxy."""
    program, lay = found(request.param), LAY[request.param]
    folder, port = tmp_path_factory.mktemp(request.param), free_port()
    with (
        running([program, *lay(folder, port, gateway_port)], folder, port),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=HEADERS, timeout=WAIT_SECONDS) as connected,
    ):
        yield connected


@pytest.mark.parametrize("prefix", SUB_PATHS)
def test_a_call_is_answered_through_a_proxy(client: httpx.Client, prefix: str) -> None:
    session = opened(client, prefix)
    called = post(client, prefix, {"id": 2, "method": "tools/call", "params": CURRENT}, session)
    assert (called.status_code, called.headers["content-type"]) == (200, "application/json")
    assert "Berlin" in called.json()["result"]["content"][0]["text"]


@pytest.mark.parametrize("prefix", SUB_PATHS)
def test_a_stream_begins_at_once_and_its_comments_are_not_held_back(client: httpx.Client, prefix: str) -> None:
    began = time.monotonic()
    with client.stream("GET", f"{prefix}/mcp", headers=opened(client, prefix)) as response:
        chunks = response.iter_raw()
        assert next(chunks).startswith(b"id: ")
        assert time.monotonic() - began < FIRST_BYTE_SECONDS
        assert list(islice(chunks, 3)) == [b":\n\n"] * 3


@pytest.mark.parametrize("prefix", SUB_PATHS)
def test_the_endpoint_of_http_sse_leads_back_through_the_proxy(client: httpx.Client, prefix: str) -> None:
    with client.stream("GET", f"{prefix}/sse") as response:
        lines = (line for line in response.iter_lines() if line and not line.startswith(":"))
        assert next(lines) == "event: endpoint"
        endpoint = response.url.join(next(lines).removeprefix("data: "))
        said = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
        assert client.post(endpoint, json=said).status_code == 202
        assert json.loads(next(lines).removeprefix("data: "))["id"] == 1


def test_a_body_as_large_as_the_gateway_takes_is_passed_on(client: httpx.Client) -> None:
    message = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": {"fill": "x" * (4 << 20)}}}
    text = json.dumps(message).replace("x" * 1024, "", 1)
    assert 1 << 20 < len(text) <= 4 << 20
    headers = {**opened(client, ""), "Content-Type": "application/json"}
    assert client.post("/mcp", content=text, headers=headers).json()["id"] == 2


def test_another_host_is_refused_by_the_gateway(client: httpx.Client, gateway_port: int) -> None:
    told = httpx.get(f"http://127.0.0.1:{gateway_port}/healthz", headers={"Host": "other.example.com"})
    assert (told.status_code, told.json()["error"]["data"]["reason"]) == (421, "wrong_host")
    assert client.get("/healthz").json() == {"status": "ok"}


def post(client: httpx.Client, prefix: str, message: dict[str, object], session: dict[str, str]) -> httpx.Response:
    return client.post(f"{prefix}/mcp", json={"jsonrpc": "2.0", **message}, headers=session)


def opened(client: httpx.Client, prefix: str) -> dict[str, str]:
    """The header of a new session."""
    answer = post(client, prefix, {"id": 1, "method": "initialize", "params": HELLO}, {})
    assert answer.status_code == 200, answer.text
    session = {"Mcp-Session-Id": answer.headers["mcp-session-id"]}
    assert post(client, prefix, {"method": "notifications/initialized"}, session).status_code == 202
    return session


def lay_nginx(folder: Path, port: int, gateway_port: int) -> list[str]:
    site = (DEPLOY / "nginx.conf").read_text()
    site = replaced(site, r"listen 443 ssl;", f"listen 127.0.0.1:{port};")
    site = replaced(site, r"ssl_certificate(_key)? .*;", "")
    site = replaced(site, r"127\.0\.0\.1:8080", f"127.0.0.1:{gateway_port}")
    (folder / "site.conf").write_text(site)
    (folder / "nginx.conf").write_text(AROUND_NGINX.format(folder=folder))
    return ["-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]


def lay_caddy(folder: Path, port: int, gateway_port: int) -> list[str]:
    site = (DEPLOY / "Caddyfile").read_text()
    site = replaced(site, rf"(?m)^{HOST} {{", f"http://{HOST}:{port} {{")
    site = replaced(site, r"127\.0\.0\.1:8080", f"127.0.0.1:{gateway_port}")
    site = f"{{\n\tadmin off\n\tdefault_bind 127.0.0.1\n}}\n{site}"
    (folder / "Caddyfile").write_text(site)
    return ["run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]


LAY: dict[str, Callable[[Path, int, int], list[str]]] = {"nginx": lay_nginx, "caddy": lay_caddy}


def replaced(text: str, pattern: str, by: str) -> str:
    changed, count = re.subn(pattern, by, text)
    assert count, f"{pattern} is not in the file any more"
    return changed


def found(name: str) -> str:
    program = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if program is not None:
        return program
    reason = f"{name} is not here; Debian's package {name} brings it"
    if os.environ.get("VIADUCT_CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def running(command: list[str], folder: Path, port: int) -> Iterator[None]:
    env = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with (folder / "stderr").open("w") as stderr:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr, env=env)
    try:
        give_up_at = time.monotonic() + WAIT_SECONDS
        while not listens(port):
            assert process.poll() is None, (folder / "stderr").read_text()
            assert time.monotonic() < give_up_at, (folder / "stderr").read_text()
            time.sleep(0.02)
        yield
    finally:
        process.terminate()
        process.wait(WAIT_SECONDS)


def listens(port: int) -> bool:
    with suppress(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port)).close()
        return True
    return False


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
