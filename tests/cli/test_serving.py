"""The gateway as a process: its banner, its signals, and what it leaves behind."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from app.upstreams.vigil import NAME
from tests.cli.viaduct import SECONDS, WEATHER, Serving, environment, serving

TOKEN = "a-token-for-the-tests-of-the-command"
HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
STUBBORN = """
import json, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
    elif message.get("method") == "flood":
        while True:
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * 1000}}))
while True:
    time.sleep(60)
"""


def post(url: str, body: object, token: str | None = TOKEN, **headers: str) -> tuple[int, dict[str, str], bytes]:
    sent = {**HEADERS, **headers, **({"authorization": f"Bearer {token}"} if token else {})}
    request = urllib.request.Request(url, json.dumps(body).encode(), sent)
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as reply:
            return reply.status, dict(reply.headers), reply.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers), error.read()


def greet(url: str, token: str | None = TOKEN) -> tuple[int, dict[str, str], Any]:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    status, headers, body = post(url, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}, token)
    return status, headers, json.loads(body)


def url_of(gateway: Serving, path: str = "/mcp") -> str:
    found = re.search(r"listens on (http://\S+)", gateway.banner)
    assert found is not None
    return found[1] + path


def children(pid: int) -> set[int]:
    """All but its guardian."""
    found = {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}
    return {child for child in found if NAME.encode() not in arguments(child)}


def arguments(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def test_the_banner_names_every_url_and_lines_to_paste(tmp_path: Path) -> None:
    with serving(tmp_path, "demo", "--port", "0") as gateway:
        base = url_of(gateway, "")
        [token] = set(re.findall(r"vdt_\w+_[\w-]{43}", gateway.banner))
        url = f"{base}/servers/weather/mcp"
        for line in (
            url,
            f"{base}/servers/weather/sse",
            f"{base}/mcp and {base}/sse",
            f'claude mcp add --transport http weather {url} --header "Authorization: Bearer {token}"',
        ):
            assert line in gateway.banner
        vs_code, cursor = (json.loads(found) for found in re.findall(r"^ +(\{.*\})$", gateway.banner, re.MULTILINE))
        entry = {"url": url, "headers": {"Authorization": f"Bearer {token}"}}
        assert vs_code == {"servers": {"weather": {"type": "http", **entry}}}
        assert cursor == {"mcpServers": {"weather": entry}}
        assert greet(url, token)[0] == 200
        assert greet(url, None)[0] == 401
        assert gateway.stop() == 0
        assert token not in gateway.log.read_text()


def test_a_given_token_is_let_in_and_printed_nowhere(tmp_path: Path) -> None:
    command = ("run", "--port", "0", "--name", "w", "--log-level", "debug", "--", *WEATHER)
    with serving(tmp_path, *command, env={"VIADUCT_TOKEN": f"other-token-of-length,{TOKEN}"}) as gateway:
        assert greet(url_of(gateway, "/servers/w/mcp"))[0] == 200
        assert post(url_of(gateway, f"/mcp?token={TOKEN}"), {}, None)[0] in (400, 401)
        assert gateway.stop() == 0
        assert TOKEN not in gateway.banner + gateway.log.read_text()
        assert "other-token-of-length" not in gateway.banner


def test_nobody_is_asked_where_the_operator_says_so(tmp_path: Path) -> None:
    with serving(tmp_path, "demo", "--port", "0", "--no-auth") as gateway:
        assert "Bearer" not in gateway.banner
        assert greet(url_of(gateway), None)[0] == 200
        assert gateway.stop() == 0


def test_ipv6_is_listened_on_and_spelled_with_brackets(tmp_path: Path) -> None:
    with serving(tmp_path, "demo", "--host", "::1", "--port", "0", "--token", TOKEN) as gateway:
        assert url_of(gateway).startswith("http://[::1]:")
        assert greet(url_of(gateway))[0] == 200
        assert gateway.stop() == 0


def test_a_public_url_is_what_the_banner_shows(tmp_path: Path) -> None:
    public = "https://mcp.example.com/gateway"
    with serving(tmp_path, "demo", "--port", "0", "--token", TOKEN, "--public-url", public) as gateway:
        assert f"{public}/servers/weather/mcp" in gateway.banner
        assert gateway.stop() == 0


def test_a_variable_reaches_the_server_only_where_it_was_asked_for(tmp_path: Path) -> None:
    code = (
        "import os, sys; print('SEEN', os.environ.get('A'), os.environ.get('B'), os.environ.get('C'), file=sys.stderr)"
    )
    command = ("run", "--port", "0", "--token", TOKEN, "--env", "A", "--env", "B=2=2", "--", sys.executable, "-c", code)
    with serving(tmp_path, *command, env={"A": "1", "C": "3"}) as gateway:
        greet(url_of(gateway, "/mcp"))
        assert gateway.stop() == 0
        assert "SEEN 1 2=2 None" in gateway.log.read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_with_0_and_leaves_no_child(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path, "demo", "--port", "0", "--token", TOKEN) as gateway:
        assert greet(url_of(gateway))[0] == 200
        [child] = children(gateway.process.pid)
        assert gateway.stop(number) == 0
        assert not Path(f"/proc/{child}").exists()


def stubborn(tmp_path: Path, **settings: float) -> str:
    server = {"command": sys.executable, "args": ["-c", STUBBORN], "stopTimeout": 0.2, "killTimeout": 0.2, **settings}
    path = tmp_path / "viaduct.json"
    path.write_text(json.dumps({"mcpServers": {"s": server}, "viaduct": {"drain": 0.5, "listen": "127.0.0.1:0"}}))
    return str(path)


@pytest.mark.parametrize("method", ["hang", "flood"])
def test_a_child_that_hangs_or_floods_does_not_keep_it(tmp_path: Path, method: str) -> None:
    with serving(tmp_path, "serve", stubborn(tmp_path), "--token", TOKEN) as gateway:
        session = greet(url_of(gateway))[1]["mcp-session-id"]
        [child] = children(gateway.process.pid)
        body = json.dumps({"jsonrpc": "2.0", "id": 2, "method": method})
        call = urllib.request.Request(
            url_of(gateway), body.encode(), {**HEADERS, "authorization": f"Bearer {TOKEN}", "mcp-session-id": session}
        )
        with urllib.request.urlopen(call, timeout=SECONDS) as stream:
            gateway.process.send_signal(signal.SIGTERM)
            assert b"-31006" in stream.read()
        assert gateway.process.wait(SECONDS) == 0
        assert not Path(f"/proc/{child}").exists()


def test_a_second_signal_does_not_wait_for_the_budget(tmp_path: Path) -> None:
    path = Path(stubborn(tmp_path, stopTimeout=600.0))
    path.write_text(path.read_text().replace('"drain": 0.5', '"drain": 600'))
    with serving(tmp_path, "serve", str(path), "--token", TOKEN) as gateway:
        session = greet(url_of(gateway))[1]["mcp-session-id"]
        [child] = children(gateway.process.pid)
        body = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "hang"})
        call = urllib.request.Request(
            url_of(gateway), body.encode(), {**HEADERS, "authorization": f"Bearer {TOKEN}", "mcp-session-id": session}
        )
        with urllib.request.urlopen(call, timeout=SECONDS):
            gateway.process.send_signal(signal.SIGTERM)
            _until_draining(gateway)
            assert gateway.stop() == 0
        assert not Path(f"/proc/{child}").exists()


def test_a_second_signal_while_children_are_being_stopped_kills_them(tmp_path: Path) -> None:
    path = Path(stubborn(tmp_path, stopTimeout=600.0))
    path.write_text(path.read_text().replace('"drain": 0.5', '"drain": 600'))
    with serving(tmp_path, "serve", str(path), "--token", TOKEN) as gateway:
        assert greet(url_of(gateway))[0] == 200
        [child] = children(gateway.process.pid)
        gateway.process.send_signal(signal.SIGTERM)
        _until_draining(gateway)
        assert gateway.stop() == 0
        assert "Traceback" not in gateway.log.read_text()
        assert not Path(f"/proc/{child}").exists()


def test_children_that_will_not_stop_are_killed_when_the_overtime_is_over(tmp_path: Path) -> None:
    path = Path(stubborn(tmp_path, stopTimeout=600.0))
    path.write_text(path.read_text().replace('"drain": 0.5', '"drain": 0.1, "drainOvertime": 0.2'))
    with serving(tmp_path, "serve", str(path), "--token", TOKEN) as gateway:
        assert greet(url_of(gateway))[0] == 200
        [child] = children(gateway.process.pid)
        assert gateway.stop() == 0
        assert "the drain takes too long" in gateway.log.read_text()
        assert not Path(f"/proc/{child}").exists()


def _until_draining(gateway: Serving) -> None:
    """Readiness tells; each question waits for its answer."""
    assert any(_status(url_of(gateway, "/readyz")) == 503 for _ in range(1000))


def _status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code


def test_it_ends_with_its_launcher_where_that_was_asked_for(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "app", "demo", "--port", "0", "--token", TOKEN, "--exit-with-parent"]
    launcher = f"import subprocess, sys; p = subprocess.Popen({command}); print(p.pid, flush=True); p.wait()"
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", launcher], stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=environment()
    ) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        while "Cursor" not in process.stdout.readline():
            pass
        gateway = os.pidfd_open(pid)
        process.kill()
        try:
            _ended(gateway)
        finally:
            os.close(gateway)


def _ended(pidfd: int) -> None:
    import select

    ready, _, _ = select.select([pidfd], [], [], SECONDS)
    assert ready


def test_without_anybody_to_read_its_banner_it_serves_all_the_same(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with (tmp_path / "stderr").open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "app", "demo", "--port", "0"], stdout=write, stderr=stderr, env=environment()
        )
    os.close(write)
    try:
        for _ in range(int(SECONDS / 0.05)):
            if "the banner could not be printed" in (tmp_path / "stderr").read_text():
                break
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.05)
        else:
            raise AssertionError((tmp_path / "stderr").read_text())
        process.terminate()
        assert process.wait(SECONDS) == 0
    finally:
        process.kill()
        process.wait()
