"""No event of the log crowds out the others, however often it happens: clients and servers can bring that about."""

import logging
import time
from collections.abc import Callable

WHOLE = "viaduct.payload"
"""The logger of what is logged whole on purpose, for hunting a bug."""

_OURS = ("viaduct", "app.", "uvicorn.error")
"""The loggers whose errors all pass. Another library may repeat one by the thousand, as asyncio does where there are no
descriptors left."""


class Sparing(logging.Filter):
    """`rate` records of one event pass in each second; the first that passes later says how many did not."""

    def __init__(self, rate: int, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._rate = rate
        self._clock = clock
        self._second = 0
        self._passed: dict[tuple[str, str], int] = {}
        self._suppressed: dict[tuple[str, str], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        is_our_error = record.levelno >= logging.ERROR and record.name.startswith(_OURS)
        if is_our_error or record.name == WHOLE:
            return True
        second = int(self._clock())
        if second != self._second:
            self._second, self._passed = second, {}
        event = record.name, str(record.msg)
        passed = self._passed.get(event, 0)
        if passed >= self._rate:
            self._suppressed[event] = self._suppressed.get(event, 0) + 1
            return False
        self._passed[event] = passed + 1
        if event in self._suppressed:
            record.suppressed = self._suppressed.pop(event)
        return True
