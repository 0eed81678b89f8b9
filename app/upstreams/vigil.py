"""The guardian's whole life: it waits until the gateway is gone, kills whatever carries its tag, and ends.

It is a process of its own, which `guardian` starts, so it imports as little as it can.
"""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from app.upstreams.sweep import kill_run

NAME = "viaduct-guard"
"""How it is listed; the kernel keeps 15 characters."""
_LOOKS = 3
_PAUSE_SECONDS = 0.1
"""Nobody is in a hurry here, and nobody looks after it."""
_SECONDS_MAX = 60.0
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def keep(run: str, lifeline: int = 0) -> None:
    """`lifeline` is the end of a pipe whose other end only the gateway holds."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    with suppress(OSError):
        Path("/proc/self/comm").write_text(NAME)
    os.read(lifeline, 1)
    clear(run)


def clear(run: str) -> None:
    """Kill what carries the tag of that run, until nothing is found for a moment."""
    quiet, until = 0, time.monotonic() + _SECONDS_MAX
    while quiet < _LOOKS and time.monotonic() < until:
        quiet = 0 if kill_run(run) else quiet + 1
        time.sleep(_PAUSE_SECONDS)
