"""Servers that are served as one: the views that clients have of them, and their seats there."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple
from weakref import WeakSet

from app.auth.principal import Principal
from app.core.catalog import Conflict
from app.core.conflicts import disagreement
from app.core.revival import Told
from app.core.succession import Succession
from app.gateway.cataloguer import Cataloguer
from app.gateway.common import CommonChild
from app.gateway.credentials import bound, unbound
from app.gateway.gate import Gate
from app.gateway.joined_seat import JoinedSeat, Member
from app.gateway.joint import Joint
from app.gateway.lasting import Holder, LastingSeat
from app.gateway.live import LiveSession
from app.gateway.searching import Searching
from app.gateway.settings import GatewaySettings, JointSettings, SiteName, UpstreamSettings, viewed
from app.gateway.sites import Sites
from app.gateway.supervisor import Supervisor
from app.protocol.faults import Denied, InvalidRequest, Unavailable
from app.protocol.jsonrpc import Message, Request

_VIEWS_MAX = 64
"""Clients choose views by what they write into URLs."""


class JointSite(NamedTuple):
    """Several servers that are not one any more, and are still used so."""

    upstream: UpstreamSettings

    @property
    def name(self) -> SiteName:
        return self.upstream.site

    def close(self) -> None:
        """They have their children each on its own."""


class Joints:
    def __init__(
        self, settings: GatewaySettings, sites: Sites, gate: Gate, supervisor: Callable[[], Supervisor]
    ) -> None:
        self.upstreams = {upstream.name: upstream for upstream in settings.joints}
        self._settings = settings
        self._sites = sites
        self._gate = gate
        self._supervisor = supervisor
        self._cataloguer = Cataloguer(settings.catalog, sites.configured, self._survey_child)
        self._searching = Searching()
        sites.on_announced = self._cataloguer.announced
        self._views: OrderedDict[tuple[str, str], Joint] = OrderedDict()
        self._used: WeakSet[Joint] = WeakSet()
        """Those, and what sessions and subscriptions hold besides."""
        self._learnt: set[str] = set()
        """Of which all is known, or that it cannot be known for now."""
        self._seats: dict[JoinedSeat, None] = {}

    def start(self) -> None:
        """Begin to read what the servers offer, where that is not to wait until somebody wants to know."""
        if self._settings.catalog.begins == "start":
            for upstream in self.upstreams.values():
                _ = self.of(upstream).known

    def is_learning(self, upstream: UpstreamSettings) -> bool:
        """Whether it is of several servers, of which not all are known yet."""
        if upstream.joint is None or upstream.name in self._learnt:
            return False
        if not self.of(upstream).known.is_whole:
            return True
        self._learnt.add(upstream.name)
        return False

    async def learn(self, upstream: UpstreamSettings, said: Message | Sequence[Message]) -> None:
        """Wait until it is known whose that is which a client asks for, but not for long."""
        messages = said if isinstance(said, Sequence) else [said]
        await self.of(upstream).learn([message for message in messages if isinstance(message, Request)])

    async def disagreement(self) -> str:
        """Where names are as the servers give them: which are taken, once all have said what they offer."""
        found: dict[str, tuple[Conflict, ...]] = {}
        for name, upstream in self.upstreams.items():
            if upstream.joint is not None and upstream.joint.naming == "none" and len(upstream.joint.servers) > 1:
                joint = self.of(upstream)
                await self._cataloguer.settle(joint.asked)
                found[name] = joint.conflicts
        return disagreement(found)

    @property
    def absences(self) -> Mapping[str, str]:
        """Servers whose lists could not be read when that was last tried, and why."""
        return self._cataloguer.absences

    def close(self) -> None:
        self._cataloguer.close()
        self._searching.close()

    def adopt(self, settings: GatewaySettings, change: Succession) -> list[JointSite]:
        """From now on they are joined so; what is one no more is returned. What was counted is counted on."""
        former, self._settings = self.upstreams, settings
        self._cataloguer.settings = settings.catalog
        self.upstreams = {upstream.name: _counted_on(upstream, former) for upstream in settings.joints}
        views, self._views = self._views, OrderedDict()
        self._learnt.clear()
        for joint in list(self._used):
            if joint.name in self.upstreams:
                upstream = viewed(self.upstreams[joint.name], *joint.settings.asked)
                joint.adopt(upstream, self._sites.upstreams)
        for joint in views.values():
            if joint.name in self.upstreams:
                self._views[joint.name, joint.settings.view] = joint
        self._cataloguer.adopt(change.changed, change.removed)
        self.start()
        return [JointSite(upstream) for name, upstream in former.items() if name not in self.upstreams]

    def of(self, upstream: UpstreamSettings) -> Joint:
        """How its clients see it."""
        settings = upstream.joint
        assert settings is not None  # noqa: S101 - nobody asks for another one's
        key = upstream.name, settings.view
        joint = self._views.get(key)
        if joint is None:
            joint = self._views[key] = Joint(
                upstream, self._cataloguer, self._searching, self._settings.version, self._sites.upstreams
            )
            self._used.add(joint)
            if len(self._views) > _VIEWS_MAX:
                self._views.popitem(last=False)
        self._views.move_to_end(key)
        return joint

    def bound(self, upstream: UpstreamSettings, said: Mapping[str, str], principal: Principal) -> UpstreamSettings:
        """It as this client's children are started; of those servers that need what it does not say it has none."""
        settings = upstream.joint
        if settings is None:
            return bound(upstream, said, principal)
        own = self.of(upstream).rules.eager
        if not own:
            return upstream
        found: dict[str, UpstreamSettings] = {}
        for server in sorted(own):
            site = self._sites.now(server)
            if site is not None:
                with suppress(InvalidRequest, Denied):
                    found[server] = bound(site.upstream, said, principal)
        digest = "".join(each.bound for each in found.values())
        return replace(upstream, joint=replace(settings, bound=found), bound=digest)

    def members_at(self, site: SiteName) -> list[Member]:
        """Who has a seat there, of those who have several."""
        return [member for seat in self._seats for member in seat.members_at(site)]

    def entered(self, upstream: UpstreamSettings) -> UpstreamSettings:
        """It, as it is for somebody new.

        Raises:
            InvalidRequest: it is not configured any more.
        """
        if upstream.name not in self.upstreams:
            raise InvalidRequest("this group is not configured any more", reason="unknown_server")
        return upstream

    def seat(self, upstream: UpstreamSettings, mint: Iterator[int], live: LiveSession, told: Told | None) -> JoinedSeat:
        assert upstream.joint is not None  # noqa: S101 - as above
        open_seat = partial(self._open, upstream.joint, mint, live.owner)
        seat = JoinedSeat(self.of(upstream), mint, open_seat, live, self._left, told)
        self._seats[seat] = None
        return seat

    def member(self, settings: JointSettings, server: str) -> UpstreamSettings:
        """One of the servers, as this client's children of it are started.

        Raises:
            Unavailable: it is not there for this client.
        """
        site = self._sites.now(server)
        if site is None:
            raise Unavailable("the server is not configured any more", reason="unknown_server", retryable=False)
        if not site.upstream.templates:
            return site.upstream
        filled = settings.bound.get(server)
        if filled is None or filled.site != site.name:
            raise Unavailable("the server needs what the client does not say", reason="credentials_missing")
        return filled

    def _left(self, seat: JoinedSeat) -> None:
        self._seats.pop(seat, None)

    def _open(
        self, settings: JointSettings, mint: Iterator[int], owner: str, server: str, holder: Holder
    ) -> LastingSeat:
        upstream = self.member(settings, server)
        self._gate.admit_member(upstream)
        take_place = partial(self._sites.of(upstream).take_place, upstream, mint, owner)
        return LastingSeat(upstream, mint, self._supervisor(), take_place, holder)

    def _survey_child(self, upstream: UpstreamSettings) -> CommonChild:
        site = self._sites.now(upstream.name)
        if site is None:
            raise Unavailable("the server is not configured any more", reason="unknown_server", retryable=False)
        return site.survey_child(unbound(site.upstream))


def _counted_on(upstream: UpstreamSettings, former: Mapping[str, UpstreamSettings]) -> UpstreamSettings:
    known = former.get(upstream.name)
    return upstream if known is None else replace(upstream, tally=known.tally)
