"""No zombie stays of what a child has left behind, and nobody's status is taken from whoever waits for it."""

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, os, subprocess, sys
import uvloop
from app.upstreams import reaper, watch
from app.upstreams.child import Exit
from tests.upstreams.heard import dies, running, shell

async def work():
    assert reaper.adopt_orphans()
    keeper = reaper.Reaper(0.02)
    keeper.start(asyncio.get_running_loop())
    async with running(*shell("(setsid sleep 0.1 >/dev/null & echo $!) & wait; read line; exit 7")) as (child, heard):
        orphan = int(await heard.first())
        assert dies(orphan)
        while os.path.exists(f"/proc/{orphan}"):
            await asyncio.sleep(0.01)
        child.write(b"go")
        assert await child.wait() == Exit(7, None), child.exit
    keeper.stop()
    other = subprocess.Popen(["sh", "-c", "exit 5"])
    assert dies(other.pid)
    assert (reaper.reap(), other.wait()) == ([], 5)
    ours = subprocess.Popen(["sh", "-c", "exit 6"], start_new_session=True)
    watch.OURS.add(ours.pid)
    assert dies(ours.pid)
    assert (reaper.reap(), ours.wait()) == ([], 6)
    print("well")

with asyncio.Runner(loop_factory=getattr(sys.modules[sys.argv[1]], "new_event_loop")) as runner:
    runner.run(asyncio.wait_for(work(), 10))
"""


def ran(*arguments: str) -> str:
    command = [sys.executable, "-W", "error", "-c", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_orphans_are_reaped_and_the_children_of_others_are_not(loop: str) -> None:
    assert ran(PROGRAM, loop) == "well\n"


def test_a_gateway_whose_parent_ignored_sigchld_sees_how_its_children_end() -> None:
    code = (
        "import signal, subprocess, sys; from app.upstreams import reaper\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN); reaper.adopt_orphans()\n"
        "print(subprocess.run(['sh', '-c', 'exit 7']).returncode, reaper.reap())"
    )
    assert ran(code) == "7 []\n"
