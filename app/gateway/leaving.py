"""Servers that are not configured any more, or not so: what is in flight there ends, and then what is left is stopped.

    configured ──removed or changed──▶ left ──no call in flight, or no time left──▶ gone

A session goes on with a child of the server that took the place of its own, as soon as no call of it is in flight.
Where none did, or it cannot, the session ends.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TypeAlias

from app.core.succession import Succession
from app.gateway.exchanges import Exchanges
from app.gateway.joined_seat import Member
from app.gateway.joints import Joints, JointSite
from app.gateway.lasting import LastingSeat
from app.gateway.live import LiveSession
from app.gateway.live_exchange import LiveExchange
from app.gateway.settings import GatewaySettings
from app.gateway.site import Site
from app.gateway.sites import Sites
from app.protocol import stateless
from app.protocol.faults import ShuttingDown

log = logging.getLogger("viaduct.session")


Left: TypeAlias = Site | JointSite


class Leaving:
    """`gone` is told of each server of which nothing is left but children on their way out."""

    def __init__(
        self,
        sites: Sites,
        sessions: Mapping[str, LiveSession],
        exchanges: Exchanges,
        gone: Callable[[Left], object],
        joints: Joints,
    ) -> None:
        self._joints = joints
        self._joints_left: list[JointSite] = []
        self._sites = sites
        self._sessions = sessions
        self._exchanges = exchanges
        self._gone = gone

    def __iter__(self) -> Iterator[Left]:
        """Those that are still used."""
        return iter([*self._sites.leaving, *self._joints_left])

    def rejoin(self, settings: GatewaySettings, change: Succession) -> list[JointSite]:
        """Servers are joined otherwise now; what is one no more is returned, to be seen off."""
        left = self._joints.adopt(settings, change)
        self._joints_left += left
        for live in self._sessions.values():
            if live.upstream in self._joints.upstreams:
                live.go_by(self._joints.upstreams[live.upstream])
        return left

    async def see_off(self, site: Left, seconds: float) -> None:
        """Calls have so many seconds."""
        for exchange in self._exchanges_of(site):
            if exchange.asked.request.method == stateless.LISTEN:
                exchange.close()
        settled = asyncio.Event()

        def ended(exchange: LiveExchange) -> None:
            # One of several servers may be at one of these by now. What ends elsewhere is not worth a look at all.
            if isinstance(site, JointSite) or exchange.asked.upstream.site == site.name:
                settled.set()

        self._exchanges.on_end.add(ended)
        try:
            async with asyncio.timeout(seconds):
                while self._is_used(site, settled.set):
                    await settled.wait()
                    settled.clear()
        except TimeoutError:
            log.warning("calls outlast the drain of a server", extra={"server": site.upstream.name})
        finally:
            self._exchanges.on_end.discard(ended)
            self._end(site)

    def _is_used(self, site: Left, when_quiet: Callable[[], object]) -> bool:
        """Whether a call is in flight. Sessions without one go now."""
        is_used = False
        for live in self._sessions_of(site):
            if live.is_busy:
                live.when_quiet.add(when_quiet)
                is_used = True
            else:
                self._let_go(live, site)
        for member in self._joints.members_at(site.name):
            if member.is_busy:
                member.when_quiet.add(when_quiet)
                is_used = True
            else:
                self._reseat(member, site)
        parked = set(self._exchanges.parked)
        return is_used or any(each.is_busy or each in parked for each in self._exchanges_of(site))

    def _end(self, site: Left) -> None:
        for live in self._sessions_of(site):
            self._let_go(live, site)
        for member in self._joints.members_at(site.name):
            self._reseat(member, site)
        gone = ShuttingDown("the server is not configured so any more", reason="server_removed", executed="unknown")
        for exchange in self._exchanges_of(site):
            exchange.lost(gone)
        site.close()
        if isinstance(site, JointSite):
            self._joints_left.remove(site)
        self._gone(site)

    def _let_go(self, live: LiveSession, site: Left) -> None:
        successor, seat = self._successor(site), live.seat
        if successor is None or not isinstance(seat, LastingSeat):
            live.close("server_removed")
            return
        upstream = successor.upstream
        live.go_by(upstream)
        if not seat.reseat(upstream, partial(successor.take_place, upstream, seat.mint, live.owner), _changed()):
            live.close("server_changed")
        elif live.is_live:
            seat.wake()

    def _reseat(self, member: Member, site: Left) -> None:
        """Of several servers of a session this one is another now, or none."""
        successor = self._successor(site)
        if successor is None:
            member.close(_changed())
        else:
            upstream = successor.upstream
            take_place = partial(successor.take_place, upstream, member.seat.mint, member.owner)
            member.reseat(upstream, take_place, _changed())

    def _successor(self, site: Left) -> Site | None:
        """Who takes its place, where sessions can go on there."""
        if isinstance(site, JointSite):
            return None
        successor = self._sites.now(site.upstream.name)
        return successor if successor is not None and successor.may_succeed(site) else None

    def _sessions_of(self, site: Left) -> list[LiveSession]:
        return [live for live in self._sessions.values() if live.site == site.name]

    def _exchanges_of(self, site: Left) -> Iterator[LiveExchange]:
        return iter([each for each in self._exchanges if each.asked.upstream.site == site.name])


def _changed() -> ShuttingDown:
    return ShuttingDown("the server was configured anew", reason="server_changed", executed="unknown")
