"""How late the event loop is: what everybody waits for while one thing takes too long."""

import asyncio

from app.telemetry.tally import Timing

EVERY_SECONDS = 0.5


class LoopLag:
    """Every so often, by how much a timer was late is added to `timing`."""

    def __init__(self, timing: Timing, every: float = EVERY_SECONDS) -> None:
        self._timing = timing
        self._every = every
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """From within the loop."""
        self._arm(asyncio.get_running_loop())

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        due = loop.time() + self._every
        self._timer = loop.call_at(due, self._rung, loop, due)

    def _rung(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        self._timing.add(max(0.0, loop.time() - due))
        self._arm(loop)
