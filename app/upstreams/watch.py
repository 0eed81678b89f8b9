"""Seeing a process end, by a pidfd and never by its pipes, and keeping its number from others until it is let go.

A process that ended keeps its number, and so its group keeps its own, until its status is read. So the status is only
looked at first, and read when the group has had its last signal.
"""

import asyncio
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from signal import Signals

_POLL_SECONDS = 0.25

OURS: set[int] = set()
"""Processes that were started here and whose status nobody else may read."""

PARENTS: set[int] = set()
"""Those of them that may leave others behind."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended; neither code nor signal where that is not known, for it would not die."""

    code: int | None
    signal: int | None

    def describe(self) -> str:
        if self.signal is not None:
            return f"killed by {_name(self.signal)}"
        return "nobody could see it end" if self.code is None else f"exit code {self.code}"


class Watch:
    """`ended` is called once."""

    def __init__(
        self, process: subprocess.Popen[bytes], ended: Callable[[Exit], None], *, leaves_nothing: bool = False
    ) -> None:
        self.is_let_go = False
        self._process = process
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._pidfd = -1
        OURS.add(process.pid)
        if not leaves_nothing:
            PARENTS.add(process.pid)

    def start(self) -> None:
        try:
            self._pidfd = os.pidfd_open(self._process.pid)
        except (OSError, AttributeError):
            # No such call here, or no descriptor left for it.
            self._look_again()
            return
        self._loop.add_reader(self._pidfd, self._look)

    def let_go(self) -> None:
        """Read the status of a process that has ended: from here on its number may mean another."""
        self.is_let_go = True
        self._ended = _seen
        self._process.poll()
        OURS.discard(self._process.pid)
        PARENTS.discard(self._process.pid)

    def _look_again(self) -> None:
        self._loop.call_later(_POLL_SECONDS, self._look)

    def _look(self) -> None:
        status = self._peek()
        if status is None:
            if self._pidfd < 0:
                self._look_again()
            return
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
        self._ended(status)

    def _peek(self) -> Exit | None:
        try:
            seen = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            # Somebody else read it, or whoever started us ignores SIGCHLD.
            return Exit(None, None)
        if seen is None:
            return None
        return Exit(seen.si_status, None) if seen.si_code == os.CLD_EXITED else Exit(None, seen.si_status)


def _seen(_exit: Exit) -> None:
    """Told already."""


def _name(number: int) -> str:
    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"
