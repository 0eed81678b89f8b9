"""All live sessions and the servers behind them: who may open one, who may use it, and when it ends."""

import asyncio
import logging
import time
from collections.abc import Iterator
from functools import partial
from itertools import count

from app.core.eras import Eras
from app.core.revival import Told
from app.core.supervision import ServerView
from app.gateway.access import Access
from app.gateway.census import taken
from app.gateway.common import CommonChild
from app.gateway.credentials import BoundPools
from app.gateway.exchanges import Exchanges
from app.gateway.foundlings import Begun, Foundling, Foundlings, Wish
from app.gateway.gate import Gate
from app.gateway.lasting import LastingSeat, Place
from app.gateway.live import LiveSession, Transport
from app.gateway.opening import Opening
from app.gateway.pool import Pool
from app.gateway.seats import OwnChild, Share
from app.gateway.settings import GatewaySettings, UpstreamSettings
from app.gateway.sleepers import Sleepers
from app.gateway.stream import Unheard
from app.gateway.supervisor import Supervisor
from app.gateway.tasks import Tasks
from app.protocol import methods
from app.protocol.faults import ShuttingDown, UnknownSession
from app.protocol.jsonrpc import Notification, Request
from app.protocol.revisions import NEWEST_HANDSHAKE
from app.stores.port import Saved, Store
from app.telemetry.tally import Census
from app.upstreams.sweeper import sweep_forsaken_off_loop

log = logging.getLogger("viaduct.session")


class Gateway:
    """Built with plain values; `run` it around everything else, and it leaves no child behind."""

    def __init__(self, settings: GatewaySettings, store: Store | None = None, access: Access | None = None) -> None:
        self.settings = settings
        self.access = access or Access()
        self.upstreams = {upstream.name: upstream for upstream in settings.upstreams}
        self._gate = Gate(settings.sessions, lambda: self.supervisor, lambda name: name in self._shared)
        self.exchanges = Exchanges(self._pool_for, self._gate.admit_exchange)
        self.is_draining = False
        self._store = store
        self._opening = Opening(settings.sessions, store, self._ended)
        self._sleepers = Sleepers(store)
        self._sessions: dict[str, LiveSession] = {}
        self._owned: dict[str, int] = {}
        self._begun: dict[str, Begun] = {}
        """Of the sessions that an `initialize` opened, by their ids."""
        self._foundlings = Foundlings()
        self._implicit: dict[tuple[str, str], LiveSession] = {}
        self._shared: dict[str, CommonChild] = {}
        self._shared_before: set[str] = set()
        self._mints = {upstream.name: count(1) for upstream in settings.upstreams}
        """Of the children that are shared: a session outlives its child, and so do its ids."""
        self._pools: dict[str, Pool] = {}
        self._bound_pools = BoundPools(self._new_pool, settings.pool.groups_max)
        self._eras = {upstream.name: Eras(upstream.era) for upstream in settings.upstreams}
        self._tasks = Tasks()
        self._watch: Supervisor | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._patience: asyncio.Timeout | None = None

    def start(self) -> None:
        """Begin to look after sessions; from within the loop."""
        self._arm_sweep()
        self.supervisor.tell_protections(self.upstreams.values())
        if self._store is not None:
            self._store.start()
            self._sleepers.trim(self.settings.sessions.count_max, self.settings.sessions.per_principal_max)
        self.supervisor.keep_warm(self.upstreams.values())
        self._tasks.spawn(sweep_forsaken_off_loop(), "sweep")

    async def stop(self) -> None:
        """End every session and wait until every child is gone."""
        self.is_draining = True
        if self._sweep is not None:
            self._sweep.cancel()
        for live in list(self._sessions.values()):
            live.leave()
        self._foundlings.close()
        self.exchanges.close()
        for pool in self._pools.values():
            pool.close()
        self._bound_pools.close()
        for shared in list(self._shared.values()):
            shared.close()
        self._shared.clear()
        self.supervisor.close()
        await self._tasks.finish()
        if self._store is not None:
            await self._store.close()

    async def drain(self, seconds: float) -> None:
        """Take no new work, let what runs finish for so many seconds, then end every session with a last word."""
        self.is_draining = True
        log.info("draining", extra={"sessions": len(self._sessions)})
        try:
            async with asyncio.timeout(seconds) as self._patience:
                while self._is_busy:
                    await self._quiet()
        except TimeoutError:
            log.warning("drain budget used up", extra={"sessions": len(self._sessions)})
        finally:
            self._patience = None
        await self.stop()

    @property
    def _is_busy(self) -> bool:
        return self.exchanges.is_busy or any(live.is_busy for live in self._sessions.values())

    async def _quiet(self) -> None:
        """Until a session, or all exchanges together, have no call in flight any more."""
        settled = asyncio.Event()
        self.exchanges.on_quiet = settled.set
        for live in self._sessions.values():
            if live.is_busy:
                live.on_quiet = settled.set
        await settled.wait()

    @property
    def is_ready(self) -> bool:
        """Whether a new session would be taken, and at least one server could be started for it."""
        return not self.is_draining and any(map(self.supervisor.could_start, self.upstreams.values()))

    @property
    def is_store_failing(self) -> bool:
        return self._store is not None and self._store.is_failing

    def views(self) -> list[ServerView]:
        """How each server is, and each child of it."""
        return self.supervisor.views(self.upstreams.values())

    def hurry(self) -> None:
        """There is no time left: stop waiting, and kill what would be stopped."""
        self._tasks.hurry()
        if self._patience is not None and not self._patience.expired():
            self._patience.reschedule(asyncio.get_running_loop().time())

    @property
    def supervisor(self) -> Supervisor:
        """Of all children; from within the loop."""
        if self._watch is None:
            self._watch = Supervisor(self.settings.supervisor, self._tasks, is_of_one=len(self.upstreams) == 1)
        return self._watch

    def census(self) -> dict[str, Census]:
        """What there is now, by server."""
        return taken(self.upstreams.values(), self.views(), self._sessions.values(), self._sleepers, self.exchanges)

    # Sessions.

    def open(self, upstream: UpstreamSettings, owner: str, transport: Transport = "streamable") -> LiveSession:
        """A new session with a place at its server.

        Raises:
            ShuttingDown, Overloaded, Unavailable: and nothing was started.
        """
        self._admit(upstream, owner)
        return self._seated(upstream, owner, transport, None)[0]

    def begin(self, upstream: UpstreamSettings, owner: str, initialize: Request) -> LiveSession:
        """A new session for this `initialize`; it goes on with the start that one of the same words began in vain.

        Raises:
            ShuttingDown, Overloaded, Unavailable: and nothing was started.
        """
        wish = Wish(owner, upstream.key, bytes(initialize.params or b""))
        seat = None if self.is_draining else self._foundlings.take(wish)
        if seat is None:
            self._admit(upstream, owner)
        live, seat = self._seated(upstream, owner, "streamable", seat)
        begun = self._begun[live.ident] = Begun(wish, live, seat)
        live.on_forsaken = partial(begun.leave, self._foundlings)
        return live

    def delete(self, live: LiveSession) -> None:
        """Its client does not want it any more; a start that is on its way may be what it wants next."""
        begun = self._begun.get(live.ident)
        if begun is None or not begun.seat.is_worth_keeping or self.is_draining:
            live.close("deleted")
            return
        live.vacate("deleted")
        self._own(live.owner)
        seconds = self.upstreams[live.upstream].deadlines.start + self.settings.sessions.confirm_seconds
        foundling = Foundling(begun.seat, seconds, partial(self._found, begun.wish))
        self._foundlings.leave(begun.wish, foundling)

    def _seated(
        self,
        upstream: UpstreamSettings,
        owner: str,
        transport: Transport,
        seat: LastingSeat | None,
        *,
        is_implicit: bool = False,
    ) -> tuple[LiveSession, LastingSeat]:
        """In a seat that somebody left, or in a new one."""
        mint = self._mint(upstream) if seat is None else seat.mint
        lasts = transport == "streamable" and not is_implicit
        ident = self.access.opened(owner, upstream.name, None if seat is None else seat.leave)
        live = self._opening.fresh(ident, upstream, owner, transport, mint, lasts=lasts)
        self._sessions[live.ident] = live
        self._own(owner)
        if seat is None:
            seat = self._seat(upstream, mint, live)
        else:
            seat.move(live)
            seat.awaited(is_awaited=True)
        live.seat = seat
        upstream.tally.sessions_opened += 1
        log.info("session opened", extra={"server": upstream.name})
        return live, seat

    def _mint(self, upstream: UpstreamSettings) -> Iterator[int]:
        return self._mints[upstream.name] if upstream.isolation == "shared" else count(1)

    def _seat(
        self, upstream: UpstreamSettings, mint: Iterator[int], live: LiveSession, told: Told | None = None
    ) -> LastingSeat:
        return LastingSeat(
            upstream, mint, self.supervisor, partial(self._take_place, upstream, mint, live.owner), live, told
        )

    def is_asleep(self, ident: str, upstream: str, owner: str) -> bool:
        """Whether a gateway that is gone has left this session, and nobody has come back to it yet."""
        return ident not in self._sessions and self._sleepers.holds(ident, upstream, owner)

    async def delete_asleep(self, ident: str) -> None:
        """Its client does not want it any more."""
        await self._sleepers.delete(ident, self.settings.sessions.commit_seconds)

    async def wake(self, ident: str, upstream: UpstreamSettings, owner: str) -> None:
        """Take up such a session; who comes meanwhile waits for that, too.

        Raises:
            ShuttingDown, Overloaded, Unavailable: it sleeps on.
        """
        self._admit(upstream, owner, is_new=False)
        self.access.session(owner, upstream.name, ident, "resumed")
        await self._sleepers.wake(ident, partial(self._take_up, ident, upstream, owner))

    def _take_up(self, ident: str, upstream: UpstreamSettings, owner: str, store: Store, saved: Saved) -> None:
        self._admit(upstream, owner, is_new=False)
        mint = self._mint(upstream)
        live = self._opening.again(ident, upstream, owner, mint, store, saved)
        live.is_confirmed = True  # Its client knows its id, whatever becomes of the request that woke it.
        self._sessions[ident] = live
        self._own(owner)
        live.seat = self._seat(upstream, mint, live, saved.told)
        log.info("session taken up again", extra={"server": upstream.name})

    def find(self, ident: str, upstream: str, owner: str, transport: Transport = "streamable") -> LiveSession:
        """The session of that id, if it is the owner's, at that server and of that transport.

        Raises:
            UnknownSession: it is not, or there is none: the caller cannot tell which.
        """
        live = self._sessions.get(ident)
        if live is None or live.owner != owner or live.upstream != upstream or live.transport != transport:
            raise UnknownSession
        if not live.is_confirmed:
            live.is_confirmed = True
            self._came_back(live)
        return live

    def implicit(self, upstream: UpstreamSettings, owner: str, version: str | None) -> LiveSession:
        """The session of a client that names none: one for each owner and server, greeted by us."""
        known = self._implicit.get((owner, upstream.key))
        if known is not None:
            return known
        self._admit(upstream, owner)
        live, _ = self._seated(upstream, owner, "streamable", None, is_implicit=True)
        live.is_confirmed = True
        self._implicit[owner, upstream.key] = live
        revision = version or NEWEST_HANDSHAKE.date
        greeting = methods.introduction(0, "viaduct", self.settings.version, revision)
        live.ask(greeting, Unheard(), takes_json=True, takes_stream=False, permit=None)
        live.tell(Notification(methods.INITIALIZED), None)
        return live

    def _admit(self, upstream: UpstreamSettings, owner: str, *, is_new: bool = True) -> None:
        if self.is_draining:
            raise ShuttingDown("the gateway is shutting down", retry_after=5.0)
        sessions, owned = len(self._sessions), self._owned.get(owner, 0)
        asleep = self._sleepers.of(owner) if is_new and self._sleepers else 0
        is_full = self._is_full(sessions + len(self._sleepers), owned + asleep)
        if is_new:
            sessions += len(self._sleepers) - (1 if is_full and asleep else 0)
        self._gate.admit(upstream, owner, sessions, owned, is_new=is_new)
        if is_full and asleep:
            self._sleepers.forget_oldest_of(owner)

    def _is_full(self, sessions: int, owned: int) -> bool:
        limits = self.settings.sessions
        return sessions >= limits.count_max or owned >= limits.per_principal_max

    def _take_place(
        self, upstream: UpstreamSettings, mint: Iterator[int], owner: str, seat: LastingSeat, *, again: bool
    ) -> Place:
        """At a fresh child; `again` where it is in place of one that died."""
        version, eras = self.settings.version, self._eras[upstream.name]
        if upstream.isolation == "shared":
            return Share(self._shared_child(upstream, modern_client=False), upstream, version, eras, seat)
        return OwnChild(upstream, mint, self.supervisor, version, eras, seat, owner=owner, again=again)

    def _shared_child(self, upstream: UpstreamSettings, *, modern_client: bool) -> CommonChild:
        shared = self._shared.get(upstream.name)
        if shared is None:
            shared = CommonChild(
                upstream,
                self.supervisor,
                self.settings.version,
                self._eras[upstream.name],
                modern_client=modern_client,
                on_lost=lambda: self._shared.pop(upstream.name, None),
                mint=self._mints[upstream.name],
                again=upstream.name in self._shared_before,
                on_changed=self._pool_of(upstream.name).shared_changed,
            )
            self._pool_of(upstream.name).shared_schemas.forget()
            self._shared[upstream.name] = shared
            self._shared_before.add(upstream.name)
        return shared

    def _pool_for(self, upstream: UpstreamSettings, owner: str) -> Pool:
        return self._bound_pools.of(upstream, owner) if upstream.bound else self._pool_of(upstream.name)

    def _pool_of(self, name: str) -> Pool:
        pool = self._pools.get(name)
        if pool is None:
            pool = self._pools[name] = self._new_pool(self.upstreams[name])
        return pool

    def _new_pool(self, upstream: UpstreamSettings) -> Pool:
        settings, eras = self.settings, self._eras[upstream.name]
        is_shared = upstream.isolation == "shared"
        shared = (lambda: self._shared_child(upstream, modern_client=True)) if is_shared else None
        return Pool(upstream, settings.pool, self.supervisor, settings.version, eras, shared)

    def _ended(self, live: LiveSession) -> None:
        if self._sessions.pop(live.ident, None) is None:
            return
        self._disown(live.owner)
        self.access.session(live.owner, live.upstream, live.ident, "ended")
        live.on_forsaken = None
        begun = self._begun.pop(live.ident, None)
        if begun is not None:
            self._foundlings.forget(begun.wish, begun)
        for key in [key for key, implicit in self._implicit.items() if implicit is live]:
            del self._implicit[key]

    def _came_back(self, live: LiveSession) -> None:
        """Its client knows its id, so it waits for its server, too."""
        begun = self._begun.get(live.ident)
        if begun is not None:
            begun.seat.awaited(is_awaited=True)

    def _found(self, wish: Wish, foundling: Foundling) -> None:
        self._foundlings.forget(wish, foundling)
        self._disown(wish.owner)

    def _own(self, owner: str) -> None:
        self._owned[owner] = self._owned.get(owner, 0) + 1

    def _disown(self, owner: str) -> None:
        self._owned[owner] -= 1
        if not self._owned[owner]:
            del self._owned[owner]

    # Time.

    def _arm_sweep(self) -> None:
        limits = self.settings.sessions
        pause = min(5.0, max(0.05, min(limits.idle_seconds, limits.confirm_seconds) / 10))
        self._sweep = asyncio.get_running_loop().call_later(pause, self._end_unused)

    def _end_unused(self) -> None:
        limits, now = self.settings.sessions, asyncio.get_running_loop().time()
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
        self._arm_sweep()
