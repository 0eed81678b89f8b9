"""Sessions that nobody uses any more end."""

import asyncio
import time
from collections.abc import Mapping

from app.gateway.live import LiveSession
from app.gateway.settings import SessionSettings
from app.gateway.sleepers import Sleepers


class Unused:
    def __init__(self, sessions: Mapping[str, LiveSession], sleepers: Sleepers) -> None:
        self._sessions = sessions
        self._sleepers = sleepers
        self._timer: asyncio.TimerHandle | None = None
        self._limits: SessionSettings

    def look_after(self, limits: SessionSettings) -> None:
        """From now on, by these limits; from within the loop."""
        self._limits = limits
        self.close()
        pause = min(5.0, max(0.05, min(limits.idle_seconds, limits.confirm_seconds) / 10))
        self._timer = asyncio.get_running_loop().call_later(pause, self._look)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        limits, now = self._limits, asyncio.get_running_loop().time()
        self._sleepers.expire(time.time() - limits.idle_seconds)
        for live in list(self._sessions.values()):
            if live.is_live:
                live.used_at = now
            live.remember_use()
            if not live.is_confirmed and live.is_busy:
                live.opened_at = now  # Its server is still starting, or waits for its turn to.
            elif not live.is_confirmed and now - live.opened_at > limits.confirm_seconds:
                live.close("unconfirmed")
            elif now - live.used_at > limits.idle_seconds:
                live.close("idle")
        self.look_after(limits)
