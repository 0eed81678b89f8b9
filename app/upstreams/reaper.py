"""Orphans: what our children have left behind becomes ours. Its status is read, so that no zombie stays, and what
escaped the sweeps is found among it.

A child that we started ourselves is never touched: whoever started it reads its status.
"""

import asyncio
import ctypes
import logging
import os
import signal
from contextlib import suppress

from app.upstreams import proc
from app.upstreams.sweep import kill_while, run_of, run_tag
from app.upstreams.watch import OURS, PARENTS

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
    """Where all orphans are surely our children's, it kills those that no sweep can find, for they hid their tag.

    They are not where we are the first process of a container, for others may start something there, nor where we had
    children before we began: a shell that becomes us bequeaths us its own.
    """

    def __init__(self, every_seconds: float = 1.0) -> None:
        self._every_seconds = every_seconds
        self._timer: asyncio.TimerHandle | None = None
        self._kills = os.getpid() != 1 and not proc.children(os.getpid())

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(self._every_seconds, self._tick, loop)

    def stop(self) -> None:
        """For the end of the gateway: kill whatever is left, whose ever it was."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        kill_while(self._is_left)
        reap()

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        reap()
        if self._kills:
            kill_forsaken()
        self.start(loop)

    def _is_left(self, pid: int) -> bool:
        return run_of(pid) == run_tag() or (self._kills and _is_living_orphan(pid))


def reap() -> list[int]:
    """Read the status of every orphan that has ended, as far as none of our own stands before it; which they were."""
    reaped: list[int] = []
    for _ in range(_AT_ONCE):
        try:
            seen = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if seen is None or not _is_orphan(seen.si_pid, proc.status(seen.si_pid)):
                break
            os.waitid(os.P_PID, seen.si_pid, os.WEXITED | os.WNOHANG)
        except ChildProcessError:
            break
        reaped.append(seen.si_pid)
    return reaped


def kill_forsaken() -> list[int]:
    """Kill every orphan that is older than any child that lives, so that nobody's session can need it; which they were.

    Nobody can say whose the others are. Their numbers are theirs until we read their status.
    """
    orphans = [pid for pid in proc.children(os.getpid()) if pid not in OURS and _is_living_orphan(pid)]
    if not orphans:
        return []
    oldest = min((born for born in map(_born, PARENTS) if born is not None), default=None)
    forsaken = [pid for pid in orphans if oldest is None or (_born(pid) or oldest) < oldest]
    for pid in forsaken:
        log.warning("killing what a child that is gone has left behind", extra={"pid": pid})
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return forsaken


def _is_living_orphan(pid: int) -> bool:
    status = proc.status(pid)
    return status is not None and status.is_alive and status.parent == os.getpid() and _is_orphan(pid, status)


def _is_orphan(pid: int, status: proc.Status | None) -> bool:
    """Our children get sessions of their own, so one in our session was started by other code in this process."""
    return pid not in OURS and status is not None and status.session != os.getsid(0)


def _born(pid: int) -> int | None:
    status = proc.status(pid)
    return None if status is None else status.started
