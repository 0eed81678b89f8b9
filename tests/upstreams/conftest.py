"""Every test of a process is run on asyncio's own loop and on uvloop, and leaves neither descriptor nor process."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from app.upstreams.watch import OURS

# libuv keeps a pipe for signals from its first loop on.
uvloop.new_event_loop().close()

Run = Callable[[Coroutine[Any, Any, None]], None]
SECONDS_MAX = 20


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    before = _fds()
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield lambda work: runner.run(asyncio.wait_for(work, SECONDS_MAX))
    assert _fds() == before, "descriptors were left open"
    assert not OURS, "a child was not reaped"
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def _fds() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
