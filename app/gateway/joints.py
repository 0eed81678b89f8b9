"""Servers that are served as one: the views that clients have of them, and their seats there."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from app.core.catalog import Conflict
from app.core.conflicts import disagreement
from app.core.revival import Told
from app.gateway.cataloguer import Cataloguer
from app.gateway.common import CommonChild
from app.gateway.credentials import unbound
from app.gateway.gate import Gate
from app.gateway.joined_seat import JoinedSeat
from app.gateway.joint import Joint
from app.gateway.lasting import Holder, LastingSeat
from app.gateway.live import LiveSession
from app.gateway.settings import GatewaySettings, JointSettings, UpstreamSettings
from app.gateway.sites import Sites
from app.gateway.supervisor import Supervisor
from app.protocol.faults import InvalidRequest, Unavailable

_VIEWS_MAX = 64
"""Clients choose views by what they write into URLs."""


class Joints:
    def __init__(
        self, settings: GatewaySettings, sites: Sites, gate: Gate, supervisor: Callable[[], Supervisor]
    ) -> None:
        self.upstreams = {upstream.name: upstream for upstream in settings.joints}
        self._settings = settings
        self._sites = sites
        self._gate = gate
        self._supervisor = supervisor
        self._cataloguer = Cataloguer(settings.catalog, sites.upstreams, self._survey_child)
        sites.on_announced = self._cataloguer.announced
        self._views: OrderedDict[tuple[str, str], Joint] = OrderedDict()

    def start(self) -> None:
        """Begin to read what the servers offer, where that is not to wait until somebody wants to know."""
        if self._settings.catalog.begins == "start":
            for upstream in self.upstreams.values():
                _ = self.of(upstream).known

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

    def of(self, upstream: UpstreamSettings) -> Joint:
        """How its clients see it."""
        settings = upstream.joint
        assert settings is not None  # noqa: S101 - nobody asks for another one's
        key = upstream.name, settings.view
        joint = self._views.get(key)
        if joint is None:
            own = frozenset(server for server in settings.servers if self._sites.upstreams[server].templates)
            joint = Joint(upstream, settings, self._cataloguer, self._settings.version, own)
            self._views[key] = joint
            if len(self._views) > _VIEWS_MAX:
                self._views.popitem(last=False)
        self._views.move_to_end(key)
        return joint

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
        return JoinedSeat(self.of(upstream), mint, open_seat, live, told)

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
        bound = settings.bound.get(server)
        if bound is None or bound.site != site.name:
            raise Unavailable("the server needs what the client does not say", reason="credentials_missing")
        return bound

    def _open(
        self, settings: JointSettings, mint: Iterator[int], owner: str, server: str, holder: Holder
    ) -> LastingSeat:
        upstream = self.member(settings, server)
        self._gate.admit_member(upstream)
        take_place = partial(self._sites.of(upstream).take_place, upstream, mint, owner)
        return LastingSeat(upstream, mint, self._supervisor(), take_place, holder)

    def _survey_child(self, upstream: UpstreamSettings, on_lost: Callable[[], object]) -> CommonChild:
        site = self._sites.now(upstream.name)
        if site is None:
            raise Unavailable("the server is not configured any more", reason="unknown_server", retryable=False)
        return site.survey_child(unbound(site.upstream), on_lost)
