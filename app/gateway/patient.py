"""Deadlines of others: what came in time counts, also where it is our fault that it is heard too late.

A loop that was held up, by a pause of its machine, a want of CPU or one long step, finds answers and deadlines at once,
and would look at the deadlines first.
"""

import asyncio
from collections.abc import Callable

LATE_SECONDS = 0.1
"""A timer that rings later than this shows that the loop was held up;"""
HEAR_SECONDS = 0.02
"""then for so long everything that has come meanwhile is heard first."""


class PatientTimer:
    """As the handle of `loop.call_at`. Once it rang or was cancelled it knows nobody, and so keeps nobody."""

    __slots__ = ("_due", "_handle", "_loop", "_ring")

    def __init__(self, loop: asyncio.AbstractEventLoop, due: float, ring: Callable[[], object]) -> None:
        self._loop = loop
        self._due = due
        self._ring: Callable[[], object] | None = ring
        self._handle: asyncio.TimerHandle | None = loop.call_at(due, self._rung)

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = self._ring = None

    def _rung(self) -> None:
        if self._loop.time() - self._due > LATE_SECONDS:
            self._handle = self._loop.call_later(HEAR_SECONDS, self._ring_now)
        else:
            self._ring_now()

    def _ring_now(self) -> None:
        ring, self._handle, self._ring = self._ring, None, None
        if ring is not None:
            ring()
