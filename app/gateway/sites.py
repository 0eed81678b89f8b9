"""The servers that are configured now, and those that were and are still used."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import count

from app.core.succession import Succession, succession
from app.gateway.pool import Pool
from app.gateway.settings import GatewaySettings, PoolSettings, SiteName, UpstreamSettings
from app.gateway.site import Site
from app.gateway.supervisor import Supervisor
from app.protocol.faults import InvalidRequest, ShuttingDown


class Sites:
    def __init__(self, settings: GatewaySettings, supervisor: Callable[[], Supervisor]) -> None:
        self.mint: Iterator[int] = count(1)
        """Of the ids that all who share a child have in common: a session outlives its child, and may have several."""
        self.on_announced: Callable[[str], None] = _unheard
        """Told when a child of a server says that its lists are others now."""
        self._supervisor = supervisor
        self._version = settings.version
        self._editions: dict[str, int] = {}
        """Of each name that there ever was, its last server's."""
        self._leaving: dict[SiteName, Site] = {}
        self._now: dict[str, Site] = {}
        self.upstreams: Mapping[str, UpstreamSettings] = {}
        """Those that are configured now, by name."""
        self._place({server.name: server for server in settings.upstreams}, settings.pool)

    def __iter__(self) -> Iterator[Site]:
        """All, those that are left too."""
        return iter([*self._now.values(), *self._leaving.values()])

    @property
    def leaving(self) -> list[Site]:
        return list(self._leaving.values())

    def now(self, name: str) -> Site | None:
        """The server of that name that is configured now."""
        return self._now.get(name)

    def of(self, upstream: UpstreamSettings) -> Site:
        """Where these settings, perhaps filled with what is a client's, are from; as long as it is used."""
        site = self._now.get(upstream.name)
        return site if site is not None and site.name == upstream.site else self._leaving[upstream.site]

    def configured(self, name: str) -> UpstreamSettings | None:
        """The server of that name."""
        return self.upstreams.get(name)

    def has_common(self, name: str) -> bool:
        """Whether a child that all share is there."""
        site = self._now.get(name)
        return site is not None and site.has_common

    def pool_for(self, upstream: UpstreamSettings, owner: str) -> Pool:
        return self.of(upstream).pool_for(upstream, owner)

    def entered(self, upstream: UpstreamSettings) -> UpstreamSettings:
        """The server as it is for somebody new. A request may have been on its way while it was configured anew.

        Raises:
            InvalidRequest: it is not configured any more.
            ShuttingDown: it is another one, and what it needs of its client may be, too.
        """
        site = self._now.get(upstream.name)
        if site is None:
            raise InvalidRequest("this server is not configured any more", reason="unknown_server")
        if site.name == upstream.site:
            return upstream
        if upstream.templates or site.upstream.templates:
            raise ShuttingDown("the server was configured anew; try again", reason="server_changed", retry_after=1.0)
        return site.upstream

    def succeed(self, settings: GatewaySettings) -> tuple[Succession, list[Site]]:
        """From now on these servers are configured: what that changed, and the servers that are to be left."""
        following = {server.name: server for server in settings.upstreams}
        change = succession(self.upstreams, following)
        left = [self._now[name] for name in (*change.changed, *change.removed)]
        self._leaving |= {site.name: site for site in left}
        self._place(following, settings.pool)
        return change, left

    def resize(self, settings: PoolSettings) -> None:
        """From now on these numbers hold."""
        for site in self:
            site.resize(settings)

    def forget(self, site: Site) -> None:
        """Nothing of it is left."""
        self._leaving.pop(site.name, None)

    def _announced(self, name: str) -> None:
        self.on_announced(name)

    def _place(self, following: Mapping[str, UpstreamSettings], pool: PoolSettings) -> None:
        """Who stays the same stays the same object. What was counted at one is counted on at its successor."""
        former, self._now = self._now, {}
        for name, server in following.items():
            known = former.get(name)
            if known is not None and known.upstream == server:
                self._now[name] = known
                continue
            edition = self._editions[name] = self._editions.get(name, server.edition - 1) + 1
            tally = server.tally if known is None else known.upstream.tally
            fresh = replace(server, edition=edition, tally=tally)
            told = partial(self._announced, name)
            self._now[name] = Site(fresh, pool, self._supervisor, self._version, self.mint, told)
        self.upstreams = {name: site.upstream for name, site in self._now.items()}


def _unheard(_server: str) -> None:
    """Nobody cares."""
