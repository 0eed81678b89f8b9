"""What servers leave behind falls to the gateway, as it does to the first process of a container."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.test_serving import TOKEN, children, greet, post, url_of
from tests.cli.viaduct import SECONDS, Serving, environment, serving
from tests.support.gateway import eventually

FORKING = """
import json, os, signal, sys
for line in sys.stdin:
    message = json.loads(line)
    result = {}
    match message.get("method"):
        case "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        case "leave":
            middle = os.fork()
            if not middle:
                os.setsid()
                if not os.fork():
                    signal.pause()
                os._exit(0)
            os.waitpid(middle, 0)
        case "exit":
            os._exit(7)
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
FIRST = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
"""Makes what it starts the first process of a namespace of its own."""


def can_be_first() -> bool:
    return shutil.which("unshare") is not None and subprocess.run([*FIRST, "true"], check=False).returncode == 0


needs_namespaces = pytest.mark.skipif(not can_be_first(), reason="no PID namespace may be made here")


@contextmanager
def gateway_of(folder: Path, launcher: Sequence[str]) -> Iterator[tuple[Serving, int]]:
    """It, and its number as it is known out here."""
    command = ("run", "--port", "0", "--name", "s", "--token", TOKEN, "--", sys.executable, "-c", FORKING)
    with serving(folder, *command, launcher=launcher) as gateway:
        pid = gateway.process.pid
        yield gateway, one(children(pid)) if launcher else pid


def one(pids: set[int]) -> int:
    [pid] = pids
    return pid


def said(url: str, session: str, method: str) -> dict[str, object]:
    body = {"jsonrpc": "2.0", "id": 2, "method": method}
    answer: dict[str, object] = json.loads(post(url, body, **{"mcp-session-id": session})[2])
    return answer


@pytest.mark.parametrize("launcher", [(), pytest.param(FIRST, marks=needs_namespaces)], ids=["ordinary", "first"])
def test_no_zombie_stays_of_an_orphan_and_the_exit_of_a_child_is_told(tmp_path: Path, launcher: Sequence[str]) -> None:
    with gateway_of(tmp_path, launcher) as (gateway, pid):
        session = greet(url_of(gateway))[1]["mcp-session-id"]
        child = one(children(pid))
        assert said(url_of(gateway), session, "leave")["result"] == {}
        orphan = one(children(pid) - {child})
        os.kill(orphan, signal.SIGKILL)
        assert eventually(lambda: children(pid) == {child}, 5.0), children(pid)
        error = said(url_of(gateway), session, "exit")["error"]
        assert isinstance(error, dict)
        assert (error["code"], error["data"]["exitCode"], error["data"]["signal"]) == (-31002, 7, None)
        assert eventually(lambda: not children(pid), 5.0), children(pid)
        os.kill(pid, signal.SIGTERM)
        assert gateway.process.wait(SECONDS) == 0


@needs_namespaces
def test_the_first_process_stops_on_a_signal_whatever_command_it_runs(tmp_path: Path) -> None:
    config = tmp_path / "viaduct.json"
    silent = {"command": "sh", "args": ["-c", f"echo > {tmp_path}/started; exec sleep 600"]}
    config.write_text(json.dumps({"mcpServers": {"silent": silent}}))
    command = [*FIRST, sys.executable, "-m", "app", "check", str(config)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment()) as process:
        try:
            assert eventually((tmp_path / "started").exists)
            os.kill(one(children(process.pid)), signal.SIGTERM)
            assert process.wait(SECONDS) == 128 + signal.SIGTERM
        finally:
            process.kill()
