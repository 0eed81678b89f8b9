"""A library in our process that wants to be told of the exit, too, does not come between a signal and the drain."""

import json
import os
import signal
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.cli.test_serving import HEADERS, TOKEN, _until_draining, greet, url_of
from tests.cli.viaduct import SECONDS, serving

pytest.importorskip("sse_starlette", reason="sse-starlette is not installed; the mcp SDK brings it")

FIRST = "import sse_starlette.sse as sse; import app.cli.serving"
LATER = "import app.cli.serving; import sse_starlette.sse as sse"
PROGRAM = """
import atexit, sys
{imports}
import uvicorn
from app.__main__ import main
assert uvicorn.Server.handle_exit is sse.AppStatus.handle_exit, "it has not patched uvicorn"
atexit.register(lambda: print("its handler ran:", sse.AppStatus.should_exit, file=sys.stderr))
sys.argv = ["viaduct", *sys.argv[4:]]
main()
"""
WAITING = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    if message.get("method") == "wait":
        result = {"heard": open(sys.argv[1]).read()}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.mark.parametrize("imports", [FIRST, LATER], ids=["before us", "after us"])
def test_sse_starlette_takes_no_part_in_our_exit(tmp_path: Path, imports: str) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    launcher = (sys.executable, "-c", PROGRAM.format(imports=imports))
    command = ("run", "--port", "0", "--name", "s", "--token", TOKEN, "--", sys.executable, "-c", WAITING, str(gate))
    with serving(tmp_path, *command, launcher=launcher) as gateway:
        session = greet(url_of(gateway))[1]["mcp-session-id"]
        headers = {**HEADERS, "authorization": f"Bearer {TOKEN}", "mcp-session-id": session}
        body = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "wait"}).encode()
        call = urllib.request.Request(url_of(gateway), body, headers)
        listening = urllib.request.Request(url_of(gateway), headers=headers)
        with urllib.request.urlopen(call, timeout=SECONDS) as stream, urllib.request.urlopen(listening) as other:
            gateway.process.send_signal(signal.SIGTERM)
            _until_draining(gateway)
            gate.write_text("the whole answer")
            assert b'{"heard": "the whole answer"}' in stream.read()
            other.read()
        assert gateway.process.wait(SECONDS) == 0
        assert "its handler ran: False" in gateway.log.read_text()
