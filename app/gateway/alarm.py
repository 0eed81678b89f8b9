"""One timer of the loop's for many things that may fall due."""

import asyncio
from collections.abc import Callable
from types import MethodType
from weakref import WeakMethod

from app.core.deadlines import FOREVER
from app.gateway.patient import PatientTimer

_AGAIN_SECONDS = 1.0


class Alarm:
    """`ring` does what is due at the time it is told, and says when it wants to be asked again. Whose method it is is
    not kept: if his alarm knew him, only the garbage collector could end both.

    The timer is only ever moved forward: most of what is waited for comes in time, and to arm a timer for each and
    disarm it again costs more than to be woken in vain now and then.
    """

    __slots__ = ("_at", "_loop", "_ring", "_timer", "now")

    def __init__(self, ring: Callable[[float], float]) -> None:
        self._ring = WeakMethod(ring) if isinstance(ring, MethodType) else lambda: ring
        self._loop = asyncio.get_running_loop()
        self.now: Callable[[], float] = self._loop.time
        self._timer: PatientTimer | None = None
        self._at = FOREVER

    def by(self, due: float) -> None:
        """Ring no later than `due`."""
        if due < self._at:
            if self._timer is not None:
                self._timer.cancel()
            self._at = due
            self._timer = PatientTimer(self._loop, due, self._rung)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self._at = None, FOREVER

    def _rung(self) -> None:
        """A bug in what rings must not leave the others waiting for ever."""
        self._timer, self._at = None, FOREVER
        ring = self._ring()
        if ring is None:
            return
        now = self.now()
        due = now + _AGAIN_SECONDS
        try:
            due = ring(now)
        finally:
            self.by(due)
