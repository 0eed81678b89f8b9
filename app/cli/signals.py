"""What a signal does while no event loop heeds it: before one runs, and after."""

import os
import signal
from collections.abc import Callable
from types import FrameType

Handler = Callable[[int, FrameType | None], object] | int | None

_before: dict[signal.Signals, Handler] = {}


def stopping() -> list[signal.Signals]:
    """Those that stop us. SIGHUP is ignored where it was ignored at the start (`nohup`)."""
    numbers = [signal.SIGTERM, signal.SIGINT]
    return numbers if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [*numbers, signal.SIGHUP]


def heed() -> None:
    """Who is stopped before he has begun, or when he is done, has nothing to do for it, and nothing went wrong."""
    for number in stopping():
        _before.setdefault(number, signal.signal(number, _end))


def heed_not() -> None:
    """For a command whose exit code says how something went. The first process has only those signals it catches."""
    for number, handler in _before.items():
        signal.signal(number, handler)
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, lambda number, _: os._exit(128 + number))


def _end(_number: int, _frame: FrameType | None) -> None:
    os._exit(0)
