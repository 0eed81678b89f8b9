"""A process that nobody can end, as one that hangs in the kernel, is given up and never waited for."""

import os
import signal
import time
from collections.abc import Iterator

import pytest

from app.upstreams.child import ChildLimits, Exit
from app.upstreams.watch import OURS
from tests.support.http import soon
from tests.upstreams.conftest import Run
from tests.upstreams.heard import is_alive, python, running

LIMITS = ChildLimits(close_seconds=0.1, term_seconds=0.1, kill_seconds=0.3)
SWEEP_SECONDS = 2.0
"""How long what escaped is looked for."""
STAYS = "print('ready', flush=True); import time; time.sleep(60)"


@pytest.fixture
def unkillable(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """No signal reaches anybody, and no end of a process is reported."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "killpg", lambda *_: None)
        patch.setattr(os, "waitid", lambda *_: None)
        patch.setattr(signal, "pidfd_send_signal", lambda *_: None)
        yield patch


def test_one_that_nobody_can_end_is_given_up_in_time_with_an_alarm(
    run: Run, unkillable: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        async with running(*python(STAYS), limits=LIMITS) as (child, heard):
            await heard.first()
            began = time.monotonic()
            assert await child.stop() == Exit(None, None)
            patience = LIMITS.close_seconds + LIMITS.term_seconds + LIMITS.kill_seconds
            assert patience <= time.monotonic() - began < patience + SWEEP_SECONDS + 1
            assert is_alive(child.pid)
            assert [(record.levelname, record.message) for record in caplog.records] == [
                ("ERROR", "child would not die")
            ]
            assert heard.exits == [Exit(None, None)]
            assert not child.write(b"{}\n")
            unkillable.undo()
            os.kill(child.pid, signal.SIGKILL)
            await _reaped(child.pid)
            assert heard.exits == [Exit(None, None)]

    run(work())


async def _reaped(pid: int) -> None:
    """Its number was nobody else's until it died in the end."""

    async def is_let_go() -> bool:
        return pid not in OURS

    assert await soon(is_let_go, 5)
    assert not is_alive(pid)


def test_until_it_dies_its_number_stays_its_own(run: Run, unkillable: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with running(*python(STAYS), limits=LIMITS) as (child, heard):
            await heard.first()
            await child.stop()
            assert child.pid in OURS
            unkillable.undo()
            child.kill()
            await _reaped(child.pid)

    run(work())
