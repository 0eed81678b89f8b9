"""All live sessions and the servers behind them: who may open one, who may use it, and when it ends."""

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from app.auth.policy import Policy
from app.auth.principal import Principal
from app.core.revival import Told
from app.core.succession import Succession
from app.core.supervision import ServerView
from app.gateway.access import Access
from app.gateway.census import taken
from app.gateway.draining import Draining
from app.gateway.exchanges import Exchanges
from app.gateway.foundlings import Begun, Foundling, Foundlings, Wish
from app.gateway.gate import Gate
from app.gateway.joined_seat import JoinedSeat
from app.gateway.joint_pool import JointPool
from app.gateway.joints import Joints
from app.gateway.judging import judge_anew
from app.gateway.lasting import LastingSeat
from app.gateway.leaving import Leaving, Left
from app.gateway.live import LiveSession, Transport
from app.gateway.opening import Opening
from app.gateway.settings import GatewaySettings, UpstreamSettings
from app.gateway.site import Site
from app.gateway.sites import Sites
from app.gateway.sleepers import Sleepers
from app.gateway.stream import Unheard
from app.gateway.supervisor import Supervisor
from app.gateway.tasks import Tasks
from app.gateway.unused import Unused
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
        self._sites = Sites(settings, lambda: self.supervisor)
        self.on_left: Callable[[UpstreamSettings], None] | None = None
        """Told when a server that is not configured any more is used no more."""
        self._gate = Gate(settings.sessions, lambda: self.supervisor, self._sites.has_common)
        joints = self._joints = Joints(settings, self._sites, self._gate, lambda: self.supervisor)
        self.disagreement, self.is_learning, self.learn = joints.disagreement, joints.is_learning, joints.learn
        self.exchanges = Exchanges(self._sites.pool_for, self._admit_exchange)
        self.exchanges.joined = JointPool(self._joints, settings.pool, self.exchanges.begin_own, self.exchanges.lease)
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
        self._leaving = Leaving(self._sites, self._sessions, self.exchanges, self._left, self._joints)
        self._tasks = Tasks()
        self._watch: Supervisor | None = None
        self._unused = Unused(self._sessions, self._sleepers)
        self._draining = Draining(self._sessions, self.exchanges)

    def start(self) -> None:
        """Begin to look after sessions; from within the loop."""
        self._unused.look_after(self.settings.sessions)
        self.supervisor.tell_protections(self.upstreams.values())
        if self._store is not None:
            self._store.start()
            self._sleepers.trim(self.settings.sessions.count_max, self.settings.sessions.per_principal_max)
        self.supervisor.keep_warm(self.upstreams.values())
        self._joints.start()
        self._tasks.spawn(sweep_forsaken_off_loop(), "sweep")

    async def stop(self) -> None:
        """End every session and wait until every child is gone."""
        self.is_draining = True
        self._unused.close()
        for live in list(self._sessions.values()):
            live.leave()
        self._foundlings.close()
        self.exchanges.close()
        self._joints.close()
        for site in self._sites:
            site.close()
        self.supervisor.close()
        await self._tasks.finish()
        if self._store is not None:
            await self._store.close()

    async def drain(self, seconds: float) -> None:
        """Take no new work, let what runs finish for so many seconds, then end every session with a last word."""
        self.is_draining = True
        log.info("draining", extra={"sessions": len(self._sessions)})
        await self._draining.wait(seconds)
        await self.stop()

    @property
    def upstreams(self) -> Mapping[str, UpstreamSettings]:
        """The servers that are configured, by name."""
        return self._sites.upstreams

    def bound(self, upstream: UpstreamSettings, said: Mapping[str, str], principal: Principal) -> UpstreamSettings:
        """The server, or the several, as this client's children are started.

        Raises:
            InvalidRequest, Denied: what they need is missing.
        """
        return self._joints.bound(upstream, said, principal)

    @property
    def joints(self) -> tuple[UpstreamSettings, ...]:
        """Several of them as one."""
        return tuple(self._joints.upstreams.values())

    @property
    def left(self) -> list[UpstreamSettings]:
        """Those that are not configured any more, or otherwise, and are still used."""
        return [left.upstream for left in self._leaving]

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
        self._draining.hurry()

    @property
    def supervisor(self) -> Supervisor:
        """Of all children; from within the loop."""
        if self._watch is None:
            self._watch = Supervisor(self.settings.supervisor, self._tasks, is_of_one=len(self.upstreams) == 1)
        return self._watch

    def census(self) -> dict[str, Census]:
        """What there is now, by server."""
        left, sessions = self.supervisor.views(site.upstream for site in self._sites.leaving), self._sessions.values()
        known = self.upstreams, self.joints, self.views(), left
        return taken(*known, sessions, self._sleepers, self.exchanges, self._joints.absences)

    def adopt(self, settings: GatewaySettings, seconds: float) -> Succession:
        """From now on it is as these settings say, from within the loop; calls at servers that are no more, or are
        others, have so many seconds. What holds for all servers together stays as it was."""
        former, self.settings = self.settings, settings
        self._gate.resize(settings.sessions)
        self._opening.settings = settings.sessions
        self._unused.look_after(settings.sessions)
        for live in self._sessions.values():
            live.settings = settings.sessions
        if former.pool != settings.pool:
            self._sites.resize(settings.pool)
            self.exchanges.joined.resize(settings.pool)
        change, left = self._sites.succeed(settings)
        fresh = [self.upstreams[name] for name in (*change.added, *change.changed)]
        self.supervisor.succeed([site.upstream for site in left], fresh, len(self.upstreams))
        for site in left:
            self._foundlings.close(site.upstream.name)
            self.access.forget(site.upstream.name)
        ends: list[Left] = [*left, *self._leaving.rejoin(settings, change)]
        for each in ends:
            self._tasks.spawn(self._leaving.see_off(each, seconds), f"leave {each.upstream.name}")
        return change

    def judge_anew(self, policy: Policy | None) -> None:
        """Another policy holds, for what is open, too."""
        judge_anew(policy, self.access, self._sessions.values(), self.exchanges)

    def _left(self, left: Left) -> None:
        if isinstance(left, Site):
            self.supervisor.forget(left.upstream)
            self._sites.forget(left)
        if self.on_left is not None and left.upstream.name not in self._joints.upstreams:
            self.on_left(left.upstream)

    # Sessions.

    def open(self, upstream: UpstreamSettings, owner: str, transport: Transport = "streamable") -> LiveSession:
        """A new session with a place at its server.

        Raises:
            ShuttingDown, Overloaded, Unavailable: and nothing was started.
        """
        upstream = self._admit(upstream, owner)
        return self._seated(upstream, owner, transport, None)[0]

    def begin(self, upstream: UpstreamSettings, owner: str, initialize: Request) -> LiveSession:
        """A new session for this `initialize`; it goes on with the start that one of the same words began in vain.

        Raises:
            ShuttingDown, Overloaded, Unavailable: and nothing was started.
        """
        upstream = self._entered(upstream)
        wish = Wish(owner, upstream.key, bytes(initialize.params or b""))
        seat = None if self.is_draining else self._foundlings.take(wish)
        if seat is None:
            self._admit(upstream, owner)
        live, place = self._seated(upstream, owner, "streamable", seat)
        if isinstance(place, LastingSeat):
            begun = self._begun[live.ident] = Begun(wish, live, place)
            live.on_forsaken = partial(begun.leave, self._foundlings)
        return live

    def delete(self, live: LiveSession) -> None:
        """Its client does not want it any more; a start that is on its way may be what it wants next."""
        begun, site = self._begun.get(live.ident), self._sites.now(live.upstream)
        is_left = site is None or site.name != live.site or self.is_draining
        if begun is None or site is None or is_left or not begun.seat.is_worth_keeping:
            live.close("deleted")
            return
        live.vacate("deleted")
        self._own(live.owner)
        seconds = site.upstream.deadlines.start + self.settings.sessions.confirm_seconds
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
    ) -> tuple[LiveSession, LastingSeat | JoinedSeat]:
        """In a seat that somebody left, or in a new one."""
        mint = self._mint(upstream) if seat is None else seat.mint
        lasts = transport == "streamable" and not is_implicit
        ident = self.access.opened(owner, upstream.name, None if seat is None else seat.leave)
        live = self._opening.fresh(ident, upstream, owner, transport, mint, lasts=lasts)
        self._sessions[live.ident] = live
        self._own(owner)
        if seat is not None:
            live.seat = seat
            seat.move(live)
            seat.awaited(is_awaited=True)
        upstream.tally.sessions_opened += 1
        log.info("session opened", extra={"server": upstream.name})
        return live, seat or self._seat(upstream, mint, live)

    def _mint(self, upstream: UpstreamSettings) -> Iterator[int]:
        return self._sites.mint if upstream.joint is not None else self._sites.of(upstream).mint()

    def _seat(
        self, upstream: UpstreamSettings, mint: Iterator[int], live: LiveSession, told: Told | None = None
    ) -> LastingSeat | JoinedSeat:
        seat: LastingSeat | JoinedSeat
        if upstream.joint is not None:
            seat = self._joints.seat(upstream, mint, live, told)
        else:
            take_place = partial(self._sites.of(upstream).take_place, upstream, mint, live.owner)
            seat = LastingSeat(upstream, mint, self.supervisor, take_place, live, told)
        live.seat = seat
        return seat

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
        upstream = self._admit(upstream, owner, is_new=False)
        self.access.session(owner, upstream.name, ident, "resumed")
        await self._sleepers.wake(ident, partial(self._take_up, ident, upstream, owner))

    def _take_up(self, ident: str, upstream: UpstreamSettings, owner: str, store: Store, saved: Saved) -> None:
        upstream = self._admit(upstream, owner, is_new=False)
        mint = self._mint(upstream)
        live = self._opening.again(ident, upstream, owner, mint, store, saved)
        live.is_confirmed = True  # Its client knows its id, whatever becomes of the request that woke it.
        self._sessions[ident] = live
        self._own(owner)
        self._seat(upstream, mint, live, saved.told)
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
        upstream = self._admit(upstream, owner)
        live, _ = self._seated(upstream, owner, "streamable", None, is_implicit=True)
        live.is_confirmed = True
        self._implicit[owner, upstream.key] = live
        revision = version or NEWEST_HANDSHAKE.date
        greeting = methods.introduction(0, "viaduct", self.settings.version, revision)
        live.ask(greeting, Unheard(), takes_json=True, takes_stream=False, permit=None)
        live.tell(Notification(methods.INITIALIZED), None)
        return live

    def _admit(self, upstream: UpstreamSettings, owner: str, *, is_new: bool = True) -> UpstreamSettings:
        """The server as it is now."""
        upstream = self._entered(upstream)
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
        return upstream

    def _entered(self, upstream: UpstreamSettings) -> UpstreamSettings:
        return (self._sites if upstream.joint is None else self._joints).entered(upstream)

    def _admit_exchange(self, upstream: UpstreamSettings) -> UpstreamSettings:
        upstream = self._entered(upstream)
        if upstream.joint is None:
            self._gate.admit_exchange(upstream)
        return upstream

    def _is_full(self, sessions: int, owned: int) -> bool:
        limits = self.settings.sessions
        return sessions >= limits.count_max or owned >= limits.per_principal_max

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
