"""What a signal does while no event loop heeds it: before one runs, and after; and what a hangup means."""

import os
import signal
from collections.abc import Callable
from types import FrameType

Handler = Callable[[int, FrameType | None], object] | int | None

STOPPING = (signal.SIGTERM, signal.SIGINT)

_before: dict[signal.Signals, Handler] = {}
_is_of_terminal = False
"""Whether we were started from a terminal, and are to end with it."""


def heed() -> None:
    """Who is stopped before he has begun, or when he is done, has nothing to do for it, and nothing went wrong."""
    global _is_of_terminal  # noqa: PLW0603 - it is the process that has a terminal
    if not _before:
        _is_of_terminal = _has_terminal() and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    for number in STOPPING:
        _before.setdefault(number, signal.signal(number, _end))
    _before.setdefault(signal.SIGHUP, signal.signal(signal.SIGHUP, _hung_up))


def heed_not() -> None:
    """For a command whose exit code says how something went. The first process has only those signals it catches."""
    for number, handler in _before.items():
        signal.signal(number, handler)
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, lambda number, _: os._exit(128 + number))


def is_end_of_terminal() -> bool:
    """Whether SIGHUP came because our terminal is gone, and nobody wanted that we outlive it (`nohup`)."""
    return _is_of_terminal and not _has_terminal()


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _end(_number: int, _frame: FrameType | None) -> None:
    os._exit(0)


def _hung_up(_number: int, _frame: FrameType | None) -> None:
    """A handler, for what is ignored would be so in our children, too."""
    if is_end_of_terminal():
        os._exit(0)
