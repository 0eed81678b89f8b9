"""Waiting for what is in flight, before everything ends."""

import asyncio
import logging
from collections.abc import Mapping

from app.gateway.exchanges import Exchanges
from app.gateway.live import LiveSession
from app.gateway.live_exchange import LiveExchange

log = logging.getLogger("viaduct.session")


class Draining:
    def __init__(self, sessions: Mapping[str, LiveSession], exchanges: Exchanges) -> None:
        self._sessions = sessions
        self._exchanges = exchanges
        self._patience: asyncio.Timeout | None = None

    async def wait(self, seconds: float) -> None:
        """Until no call is in flight any more, but not longer than that."""
        settled = asyncio.Event()

        def ended(_exchange: LiveExchange) -> None:
            settled.set()

        self._exchanges.on_end.add(ended)
        try:
            async with asyncio.timeout(seconds) as self._patience:
                while self._is_busy(settled):
                    await settled.wait()
                    settled.clear()
        except TimeoutError:
            log.warning("drain budget used up", extra={"sessions": len(self._sessions)})
        finally:
            self._patience = None
            self._exchanges.on_end.discard(ended)

    def hurry(self) -> None:
        """There is no time left."""
        if self._patience is not None and not self._patience.expired():
            self._patience.reschedule(asyncio.get_running_loop().time())

    def _is_busy(self, settled: asyncio.Event) -> bool:
        busy = [live for live in self._sessions.values() if live.is_busy]
        for live in busy:
            live.when_quiet.add(settled.set)
        return bool(busy) or self._exchanges.is_busy
