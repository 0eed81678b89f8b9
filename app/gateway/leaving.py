"""Servers that are not configured any more, or not so: what is in flight there ends, and then what is left is stopped.

    configured ──removed or changed──▶ left ──no call in flight, or no time left──▶ gone

A session goes on with a child of the server that took the place of its own, as soon as no call of it is in flight.
Where none did, or it cannot, the session ends.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from app.gateway.exchanges import Exchanges
from app.gateway.lasting import LastingSeat
from app.gateway.live import LiveSession
from app.gateway.live_exchange import LiveExchange
from app.gateway.site import Site
from app.gateway.sites import Sites
from app.protocol import stateless
from app.protocol.faults import Unavailable

log = logging.getLogger("viaduct.session")


class Leaving:
    """`gone` is told of each server of which nothing is left but children on their way out."""

    def __init__(
        self,
        sites: Sites,
        sessions: Mapping[str, LiveSession],
        exchanges: Exchanges,
        gone: Callable[[Site], object],
    ) -> None:
        self._sites = sites
        self._sessions = sessions
        self._exchanges = exchanges
        self._gone = gone

    async def see_off(self, site: Site, seconds: float) -> None:
        """Calls have so many seconds."""
        for exchange in self._exchanges_of(site):
            if exchange.asked.request.method == stateless.LISTEN:
                exchange.close()
        settled = asyncio.Event()
        self._exchanges.on_end.add(settled.set)
        try:
            async with asyncio.timeout(seconds):
                while self._is_used(site, settled.set):
                    await settled.wait()
                    settled.clear()
        except TimeoutError:
            log.warning("calls outlast the drain of a server", extra={"server": site.upstream.name})
        finally:
            self._exchanges.on_end.discard(settled.set)
            self._end(site)

    def _is_used(self, site: Site, when_quiet: Callable[[], object]) -> bool:
        """Whether a call is in flight. Sessions without one go now."""
        is_used = False
        for live in self._sessions_of(site):
            if live.is_busy:
                live.when_quiet.add(when_quiet)
                is_used = True
            else:
                self._let_go(live, site)
        parked = set(self._exchanges.parked)
        return is_used or any(each.is_busy or each in parked for each in self._exchanges_of(site))

    def _end(self, site: Site) -> None:
        for live in self._sessions_of(site):
            self._let_go(live, site)
        gone = Unavailable("the server is not configured so any more", reason="server_removed", executed="unknown")
        for exchange in self._exchanges_of(site):
            exchange.lost(gone)
        site.close()
        self._gone(site)

    def _let_go(self, live: LiveSession, site: Site) -> None:
        successor, seat = self._sites.now(live.upstream), live.seat
        if successor is None or not successor.may_succeed(site) or not isinstance(seat, LastingSeat):
            live.close("server_removed")
            return
        upstream = successor.upstream
        live.go_by(upstream)
        fault = Unavailable("the server was configured anew", reason="server_changed", executed="unknown")
        if not seat.reseat(upstream, partial(successor.take_place, upstream, seat.mint, live.owner), fault):
            live.close("server_changed")
        elif live.is_live:
            seat.wake()

    def _sessions_of(self, site: Site) -> list[LiveSession]:
        return [live for live in self._sessions.values() if live.site == site.name]

    def _exchanges_of(self, site: Site) -> Iterator[LiveExchange]:
        return iter([each for each in self._exchanges if each.asked.upstream.site == site.name])
