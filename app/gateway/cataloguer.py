"""What each server offers, read from a child that is started for that and stopped again."""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from functools import partial

from app.core.inventory import Inventory
from app.gateway.common import CommonChild
from app.gateway.settings import CatalogSettings, UpstreamSettings
from app.gateway.survey import Survey
from app.protocol.faults import GatewayFault

log = logging.getLogger("viaduct.catalog")

_ABSENT = "a server's lists could not be read: it is absent where servers are one"

StartChild = Callable[[UpstreamSettings], CommonChild]
"""A child to be asked; it may raise an Unavailable or Overloaded."""


class Cataloguer:
    """Of the servers that are served as one, and of no others."""

    def __init__(
        self, settings: CatalogSettings, find: Callable[[str], UpstreamSettings | None], start: StartChild
    ) -> None:
        self.inventories: dict[str, Inventory] = {}
        self.absences: dict[str, str] = {}
        """Servers whose lists could not be read when that was last tried, and why."""
        self.version = 0
        """Another number, whenever there is news."""
        self.settings = settings
        self._find = find
        self._start = start
        self._surveys: dict[str, Survey] = {}
        self._absent: dict[str, int] = {}
        """How often in a row that was so."""
        self._read_at: dict[str, float] = {}
        self._outdated: set[str] = set()
        """Servers that changed while they were being read."""
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._watchers: dict[Callable[[], None], None] = {}
        self._waiting: set[asyncio.Event] = set()
        """Of those who wait for news."""
        self._is_closed = False

    def want(self, servers: Iterable[str]) -> None:
        """From now on, what these servers offer is to be known."""
        for server in servers:
            if not self.is_settled(server) and server not in self._surveys and server not in self._timers:
                self._survey(server)

    def is_settled(self, server: str) -> bool:
        """Whether it is known what it offers, or that this cannot be known for now."""
        return server in self.inventories or server in self._absent

    async def settle(self, servers: Collection[str]) -> None:
        """Wait until all of them are settled, for as long as that takes, or until nobody wants to know any more."""
        self.want(servers)
        await self.until(lambda: all(map(self.is_settled, servers)))

    async def until(self, claim: Callable[[], bool]) -> None:
        """Wait until it is true, as far as news can make it so, or until nobody wants to know any more."""
        news = asyncio.Event()
        self._waiting.add(news)
        try:
            while not self._is_closed and not claim():
                await news.wait()
                news.clear()
        finally:
            self._waiting.discard(news)

    def announced(self, server: str) -> None:
        """A child of it said that its lists changed: what is being read may have been read before that."""
        if server in self._surveys:
            self._outdated.add(server)
            return
        if server not in self._read_at or server in self._timers:
            return
        now = asyncio.get_running_loop().time()
        self._later(server, max(0.0, self._read_at[server] + self.settings.fresh_seconds - now))

    def adopt(self, changed: Iterable[str], removed: Iterable[str]) -> None:
        """Other servers are configured now. Of one that changed what was known holds until it is read again."""
        for server in removed:
            self._stop(server)
            self.inventories.pop(server, None)
            self._read_at.pop(server, None)
        for server in changed:
            if self._stop(server) or server in self._read_at:
                self._survey(server)
        self._news()

    def watch(self, changed: Callable[[], None]) -> None:
        self._watchers[changed] = None

    def unwatch(self, changed: Callable[[], None]) -> None:
        self._watchers.pop(changed, None)

    def close(self) -> None:
        self._is_closed = True
        for timer in self._timers.values():
            timer.cancel()
        for survey in list(self._surveys.values()):
            survey.close()
        for news in self._waiting:
            news.set()

    def _survey(self, server: str) -> None:
        self._timers.pop(server, None)
        if self._is_closed:
            return
        upstream = self._find(server)
        if upstream is None:
            return
        self._outdated.discard(server)
        survey = Survey(upstream, self.settings, partial(self._read, server), partial(self._unread, server))
        self._surveys[server] = survey
        survey.begin(self._start)

    def _read(self, server: str, inventory: Inventory) -> None:
        self._surveys.pop(server, None)
        self._absent.pop(server, None)
        self.absences.pop(server, None)
        self._read_at[server] = asyncio.get_running_loop().time()
        counts = {
            "tools": len(inventory.tools),
            "prompts": len(inventory.prompts),
            "resources": len(inventory.resources),
        }
        log.info("lists read", extra={"server": server, **counts})
        if self.inventories.get(server) != inventory:
            self.inventories[server] = inventory
            self._news()
        if server in self._outdated:
            self.announced(server)

    def _unread(self, server: str, fault: GatewayFault, known: Inventory | None = None) -> None:
        """What was known of it stays: its children may yet start. What is known in part is better than nothing."""
        self._surveys.pop(server, None)
        self.absences[server] = fault.reason
        times = self._absent[server] = self._absent.get(server, 0) + 1
        pause = min(self.settings.retry_seconds * 2 ** min(times - 1, 30), self.settings.retry_max_seconds)
        pause = max(pause, fault.retry_after or 0.0)
        event = _ABSENT if known is None else "some of a server's lists could not be read, and are empty"
        log.warning(event, extra={"server": server, "reason": fault.reason, "next_in": round(pause, 3)})
        self._later(server, pause)
        if known is not None:
            self.inventories.setdefault(server, known)
        if times == 1:
            self._news()

    def _stop(self, server: str) -> bool:
        """Look at it no more; whether somebody wanted to."""
        timer, survey = self._timers.pop(server, None), self._surveys.pop(server, None)
        was_wanted = self._absent.pop(server, None) is not None
        self.absences.pop(server, None)
        if timer is not None:
            timer.cancel()
        if survey is not None:
            survey.close()
        return was_wanted or timer is not None or survey is not None

    def _later(self, server: str, seconds: float) -> None:
        if not self._is_closed:
            self._timers[server] = asyncio.get_running_loop().call_later(seconds, self._survey, server)

    def _news(self) -> None:
        self.version += 1
        for changed in list(self._watchers):
            changed()
        for news in self._waiting:
            news.set()
