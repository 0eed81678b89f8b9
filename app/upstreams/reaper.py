"""Orphans: what our children have left behind becomes ours, and its status is read so that no zombie stays.

A child that we started ourselves is never touched: whoever started it reads its status.
"""

import asyncio
import ctypes
import logging
import os
import signal

from app.upstreams import proc
from app.upstreams.watch import OURS

log = logging.getLogger("viaduct.child")

_PR_SET_CHILD_SUBREAPER = 36
_AT_ONCE = 1000


def adopt_orphans() -> bool:
    """Whether orphans of our children become ours, as all do in a container whose first process we are."""
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        # Inherited from whoever started us, it would make the kernel throw every status away.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if os.getpid() == 1:
        return True
    try:
        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


class Reaper:
    def __init__(self, every_seconds: float = 1.0) -> None:
        self._every_seconds = every_seconds
        self._timer: asyncio.TimerHandle | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(self._every_seconds, self._tick, loop)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        reap()

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        reap()
        self.start(loop)


def reap() -> list[int]:
    """Read the status of every orphan that has ended, as far as none of our own stands before it; which they were."""
    reaped: list[int] = []
    for _ in range(_AT_ONCE):
        try:
            seen = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if seen is None or not _is_orphan(seen.si_pid):
                break
            os.waitid(os.P_PID, seen.si_pid, os.WEXITED | os.WNOHANG)
        except ChildProcessError:
            break
        reaped.append(seen.si_pid)
    return reaped


def _is_orphan(pid: int) -> bool:
    """Our children get sessions of their own, so one in our session was started by other code in this process."""
    status = proc.status(pid)
    return pid not in OURS and status is not None and status.session != os.getsid(0)
