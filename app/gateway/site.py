"""One configured server: what those who use it have in common, for as long as it is configured so."""

from collections.abc import Callable, Iterator
from itertools import count

from app.core.eras import Eras
from app.gateway.common import CommonChild
from app.gateway.credentials import BoundPools
from app.gateway.lasting import LastingSeat, Place
from app.gateway.pool import Pool
from app.gateway.seats import OwnChild, Share
from app.gateway.settings import PoolSettings, SiteName, UpstreamSettings
from app.gateway.supervisor import Supervisor
from app.gateway.survey import CAPABILITIES


class Site:
    """`mint` is of the ids of those who share a child; `announced` is told when a child says that its lists changed."""

    def __init__(
        self,
        upstream: UpstreamSettings,
        settings: PoolSettings,
        supervisor: Callable[[], Supervisor],
        version: str,
        mint: Iterator[int],
        announced: Callable[[], None],
    ) -> None:
        self.upstream = upstream
        self._settings = settings
        self._supervisor = supervisor
        self._version = version
        self._eras = Eras(upstream.era)
        self._mint = mint
        self._announced = announced
        self._shared: CommonChild | None = None
        self._was_shared = False
        self._pool: Pool | None = None
        self._bound_pools = BoundPools(self._new_pool, settings.groups_max)

    @property
    def name(self) -> SiteName:
        return self.upstream.site

    @property
    def has_common(self) -> bool:
        """Whether a child that all share is there."""
        return self._shared is not None

    def may_succeed(self, other: "Site") -> bool:
        """Whether a session of the other one can go on here: with another child, by what that one was told."""
        mine, others = self.upstream, other.upstream
        return mine.isolation == others.isolation and not mine.templates and not others.templates

    def mint(self) -> Iterator[int]:
        """Of the ids of a new session."""
        return self._mint if self.upstream.isolation == "shared" else count(1)

    def survey_child(self, upstream: UpstreamSettings) -> CommonChild:
        """A child to be asked what the server offers: the one that all share, or one for that alone.

        Raises:
            Unavailable, Overloaded: there is none to be had now.
        """
        supervisor = self._supervisor()
        supervisor.admit(upstream)
        supervisor.admit_child(upstream, is_there=self.has_common)
        if upstream.isolation == "shared":
            return self._shared_child(modern_client=False)
        return CommonChild(
            upstream,
            supervisor,
            self._version,
            self._eras,
            modern_client=False,
            capabilities=CAPABILITIES,
            on_lost=_unheard,
        )

    def take_place(
        self, upstream: UpstreamSettings, mint: Iterator[int], owner: str, seat: LastingSeat, *, again: bool
    ) -> Place:
        """At a fresh child; `again` where it is in place of one that died."""
        if upstream.isolation == "shared":
            return Share(self._shared_child(modern_client=False), upstream, self._version, self._eras, seat)
        return OwnChild(upstream, mint, self._supervisor(), self._version, self._eras, seat, owner=owner, again=again)

    def pool_for(self, upstream: UpstreamSettings, owner: str) -> Pool:
        """The children of stateless requests; `upstream` may be bound to a client."""
        return self._bound_pools.of(upstream, owner) if upstream.bound else self._own_pool()

    def resize(self, settings: PoolSettings) -> None:
        """From now on these numbers hold."""
        self._settings = settings
        if self._pool is not None:
            self._pool.resize(settings)
        self._bound_pools.resize(settings)

    def close(self) -> None:
        """Nobody uses it any more, or may: its children are stopped."""
        if self._pool is not None:
            self._pool.close()
        self._bound_pools.close()
        shared, self._shared = self._shared, None
        if shared is not None:
            shared.close()

    def _own_pool(self) -> Pool:
        if self._pool is None:
            self._pool = self._new_pool(self.upstream)
        return self._pool

    def _new_pool(self, upstream: UpstreamSettings) -> Pool:
        is_shared = upstream.isolation == "shared"
        shared = (lambda: self._shared_child(modern_client=True)) if is_shared else None
        return Pool(upstream, self._settings, self._supervisor(), self._version, self._eras, shared, self._announced)

    def _shared_child(self, *, modern_client: bool) -> CommonChild:
        if self._shared is None:
            self._shared = CommonChild(
                self.upstream,
                self._supervisor(),
                self._version,
                self._eras,
                modern_client=modern_client,
                on_lost=self._lost,
                mint=self._mint,
                again=self._was_shared,
                on_changed=self._own_pool().shared_changed,
            )
            self._own_pool().shared_schemas.forget()
            self._was_shared = True
        return self._shared

    def _lost(self) -> None:
        self._shared = None


def _unheard() -> None:
    """Who asks it hears of its end as a member."""
