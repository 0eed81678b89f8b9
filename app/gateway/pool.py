"""The children that serve stateless clients, and who has which.

Those of a server are in groups: one for each principal and set of declared capabilities, for a child of the handshake
was told these when it was greeted. A server of the stateless era is told them with every request, so there a principal
has one group.
"""

import asyncio
from collections.abc import Callable
from itertools import count

from app.core.eras import Eras
from app.core.leases import ChildNumber, Grant, Leases, Need, Start, Ticket, Wait
from app.gateway.alarm import Alarm
from app.gateway.asked import Asked, Host
from app.gateway.common import CommonChild
from app.gateway.live_exchange import LiveExchange
from app.gateway.schemas import Schemas
from app.gateway.settings import PoolSettings, UpstreamSettings
from app.gateway.spares import Spares
from app.gateway.supervisor import Supervisor
from app.protocol import methods, stateless
from app.protocol.faults import Overloaded
from app.protocol.jsonrpc import Notification
from app.protocol.stateless import Envelope

Changed = Callable[[Notification], None]


class Pool:
    """Of one server. `shared` gives the one child of a server that all share, where it is configured so."""

    def __init__(
        self,
        upstream: UpstreamSettings,
        settings: PoolSettings,
        supervisor: Supervisor,
        version: str,
        eras: Eras,
        shared: Callable[[], CommonChild] | None,
        on_changed: Callable[[], None],
    ) -> None:
        self.on_changed = on_changed
        """Told when a child says that its lists are others now."""
        self.upstream = upstream
        self.settings = settings
        self._supervisor = supervisor
        self._version = version
        self._eras = eras
        self._shared = shared
        self._groups: dict[tuple[str, bytes], _Group] = {}
        self._owned: dict[str, int] = {}
        self._fallen: dict[str, int] = {}
        """By principal, the children that were lost and have no successor yet."""
        self.shared_schemas = Schemas(settings.listing)
        self._listening: set[LiveExchange] = set()
        """To the one child that all share."""

    def lease(self, live: LiveExchange) -> None:
        """A child for the exchange, now or later; it is told which by `granted`.

        Raises:
            Overloaded: too many requests of one principal, or no room for the child; nothing has happened.
        """
        if self._shared is not None:
            live.schemas = self.shared_schemas
            if live.asked.request.method == stateless.LISTEN:
                live.lease = _Ear(self._listening, live)
            live.granted(self._shared(), is_alone=False)
        else:
            self.lease_of(live, as_modern=self._is_modern)

    def lease_of(self, live: LiveExchange, *, as_modern: bool) -> None:
        """A child of the server's own, taken to be of that era.

        Raises:
            Overloaded: as `lease`.
        """
        asked = live.asked
        owned = self._owned.get(asked.owner, 0)
        if owned >= self.settings.requests_max:
            raise Overloaded("too many requests of this principal", reason="stateless.maxRequests", retry_after=1.0)
        need = _need(asked, as_modern=as_modern)
        key = asked.owner, b"" if as_modern else asked.request.meta.told
        known_as = self._earlier(asked.owner) if as_modern and key not in self._groups else key
        known = self._groups.get(known_as)
        if known is None or known.would_start(need):
            self._admit_child(asked.owner)
        self._groups.pop(known_as, None)
        group = self._groups[key] = known or self._new_group(asked)
        self._owned[asked.owner] = owned + 1
        group.lease(live, need, as_modern=as_modern)

    def _admit_child(self, owner: str) -> None:
        """Another one of that principal's; where it has too many already, in place of one that it does not use."""
        self._supervisor.admit_child(self.upstream)
        spares = self.spares
        if spares.child_count(owner) >= self.settings.owned_max and not spares.give_up_own(owner):
            sentence = "too many children for stateless requests of this principal are in use"
            raise Overloaded(sentence, reason="stateless.maxChildrenPerPrincipal", retry_after=1.0)

    @property
    def spares(self) -> Spares:
        return self._supervisor.room.spares

    def has_spare(self) -> None:
        """A child is not used any more."""
        self._supervisor.room.has_spare()

    def resize(self, settings: PoolSettings) -> None:
        """From now on these numbers hold."""
        self.settings, self.shared_schemas.settings = settings, settings.listing
        for group in set(self._groups.values()):
            group.resize(settings)

    def close(self) -> None:
        for group in list(self._groups.values()):
            group.close()

    @property
    def is_idle(self) -> bool:
        return not self._groups

    def give_up(self) -> bool:
        """Nobody uses any of its children, and they are stopped; False where somebody does."""
        return all(group.give_up() for group in set(self._groups.values()))

    @property
    def _is_modern(self) -> bool:
        return self._eras.modern is True and self._eras.first_for(modern_client=True) == "modern"

    def _new_group(self, asked: Asked) -> "_Group":
        self._make_room(asked.owner)
        return _Group(self, asked.owner, asked.carried)

    def _earlier(self, owner: str) -> tuple[str, bytes]:
        """Of the first group that turns out to be of stateless children, the principal's other requests are too."""
        return next((key for key in self._groups if key[0] == owner), (owner, b""))

    def forget(self, group: "_Group") -> None:
        """It has no children and no requests."""
        self.spares.remove(group.number)
        self._groups = {key: other for key, other in self._groups.items() if other is not group}

    def _make_room(self, owner: str) -> None:
        """Nobody makes us keep children for ever other capabilities."""
        groups = [group for (other, _), group in self._groups.items() if other == owner]
        if len(groups) >= self.settings.groups_max and not any(group.give_up() for group in groups):
            sentence = "too many requests at once that declare other capabilities than one another"
            raise Overloaded(sentence, reason="stateless.maxCapabilitySets", retry_after=1.0)

    def fell(self, owner: str) -> None:
        """A child of that principal's was lost: the next one is in its place."""
        self._fallen[owner] = self._fallen.get(owner, 0) + 1

    def start(self, owner: str, carried: Envelope, on_lost: Callable[[], None], on_changed: Changed) -> CommonChild:
        fallen = self._fallen.pop(owner, 0)
        if fallen:
            self.upstream.tally.child_restarts += 1
        if fallen > 1:
            self._fallen[owner] = fallen - 1
        return CommonChild(
            self.upstream,
            self._supervisor,
            self._version,
            self._eras,
            modern_client=True,
            capabilities=carried.capabilities,
            client_info=carried.client_info,
            owner=owner,
            on_lost=on_lost,
            on_changed=on_changed,
        )

    def released(self, owner: str) -> None:
        owned = self._owned.pop(owner) - 1
        if owned:
            self._owned[owner] = owned

    def changed(self, owner: str, notification: Notification) -> None:
        """What one child of a principal has new, its other children may have as well."""
        self.on_changed()
        for (other, _), group in list(self._groups.items()):
            if other == owner:
                group.tell(notification)

    def shared_changed(self, notification: Notification) -> None:
        """The one child that all share has something new."""
        self.on_changed()
        self.shared_schemas.forget()
        for live in list(self._listening):
            live.changed(notification)


_ASKABLE = frozenset(methods.NEEDED_CAPABILITY.values())


_ATTRIBUTED = frozenset({Need.ALONE, Need.HOLDING})
"""Those that hear what names no request."""


def _need(asked: Asked, *, as_modern: bool) -> Need:
    """docs/adr/0006 says why."""
    method, carried = asked.request.method, asked.request.meta.carried
    if method == stateless.LISTEN:
        return Need.LISTENING
    if as_modern:
        return Need.HOLDING if carried.log_level else Need.SHARED
    may_be_asked = method in stateless.ASKING and not _ASKABLE.isdisjoint(carried.capabilities)
    return Need.ALONE if carried.log_level or may_be_asked else Need.SHARED


class _Group:
    """The alike children of one principal."""

    def __init__(self, pool: Pool, owner: str, carried: Envelope) -> None:
        self.schemas = Schemas(pool.settings.listing)
        self.owner = owner
        self._pool = pool
        self._carried = carried
        settings = pool.settings
        self._leases = Leases(settings.children_max, settings.idle_seconds)
        self._children: dict[ChildNumber, CommonChild] = {}
        self._held: dict[Ticket, _Lease] = {}
        self._tickets = count(1)
        self._alarm = Alarm(self._expire)
        self._loop = asyncio.get_running_loop()
        self.number = pool.spares.add(self)

    def lease(self, live: LiveExchange, need: Need, *, as_modern: bool) -> None:
        ticket = next(self._tickets)
        live.schemas = self.schemas
        live.lease = self._held[ticket] = _Lease(self, ticket, live, need, as_modern)
        grant = self._leases.request(ticket, need)
        if not isinstance(grant, Wait):
            self._grant(grant)

    def would_start(self, need: Need) -> bool:
        return self._leases.would_start(need)

    def renew(self, ticket: Ticket, live: LiveExchange) -> None:
        self.release(ticket, is_clean=True)
        self._pool.lease_of(live, as_modern=False)

    def release(self, ticket: Ticket, *, is_clean: bool) -> None:
        lease, now = self._held.pop(ticket), self._loop.time()
        self._pool.released(self.owner)
        if not is_clean and lease.number is not None and lease.need in _ATTRIBUTED:
            self._leases.soil(lease.number)
        grants = self._leases.release(ticket, now)
        for spent in self._leases.spent():
            grants += self._retire(spent)
        for grant in grants:
            self._grant(grant)
        self._arm(now + self._pool.settings.idle_seconds)
        self._pool.has_spare()

    def tell(self, notification: Notification) -> None:
        self.schemas.forget()
        for lease in list(self._held.values()):
            if lease.need is Need.LISTENING and lease.ticket in self._held:
                lease.live.changed(notification)

    def give_up(self) -> bool:
        """Nobody uses any of its children, and there is room for another group; False where somebody does."""
        if self._held:
            return False
        self.close()
        self._pool.forget(self)
        return True

    def resize(self, settings: PoolSettings) -> None:
        self.schemas.settings = settings.listing
        self._leases.resize(settings.children_max, settings.idle_seconds)
        self._alarm.by(self._leases.due)

    def close(self) -> None:
        self._pool.spares.remove(self.number)
        for number in list(self._children):
            self._stop(number)
        self._alarm.stop()

    # As a holder of children.

    @property
    def child_count(self) -> int:
        return self._leases.child_count

    def idle(self) -> list[float]:
        return self._leases.idle()

    def give_up_idle(self) -> None:
        number = self._leases.give_up_idle()
        if number is not None:
            self._stop(number)
            self._arm(self._leases.due)

    def _grant(self, grant: Grant) -> None:
        if isinstance(grant, Start):
            number = grant.child
            self.schemas.forget()  # Its tools may be others than those of a child before it.
            self._children[number] = self._pool.start(
                self.owner,
                self._carried,
                lambda: self._lost(number),
                lambda news: self._pool.changed(self.owner, news),
            )
        lease = self._held[grant.ticket]
        lease.number = grant.child
        lease.live.granted(self._children[grant.child], is_alone=lease.need in (Need.ALONE, Need.HOLDING))

    def _lost(self, number: ChildNumber) -> None:
        """Those who had it hear it from the child itself."""
        self._children.pop(number, None)
        self._pool.fell(self.owner)
        _tickets, grants = self._leases.lost(number)
        for grant in grants:
            self._grant(grant)
        self._arm(self._leases.due)

    def _retire(self, number: ChildNumber) -> list[Grant]:
        """What it says now is about a call that is over: nobody else gets it, and who listens hears that it ends."""
        self._stop(number)
        return self._leases.lost(number)[1]

    def _stop(self, number: ChildNumber) -> None:
        child = self._children.pop(number, None)
        if child is not None:
            child.close()
            child.dismiss()

    def _arm(self, due: float) -> None:
        """By `due`, at the latest, a child has been idle for long enough."""
        self._alarm.by(due)
        if not self._children and self._leases.is_empty:
            self._pool.forget(self)

    def _expire(self, now: float) -> float:
        for number in self._leases.expire(now):
            self._stop(number)
        if self._leases.is_empty:
            self._pool.forget(self)
        return self._leases.due


class _Lease:
    """`number` is that of the child, as soon as there is one."""

    __slots__ = ("_as_modern", "_group", "live", "need", "number", "ticket")

    def __init__(self, group: _Group, ticket: Ticket, live: LiveExchange, need: Need, as_modern: bool) -> None:
        self.ticket = ticket
        self.live = live
        self.need = need
        self.number: ChildNumber | None = None
        self._group = group
        self._as_modern = as_modern

    def fits(self, child: Host) -> bool:
        return child.is_modern or not self._as_modern

    def renew(self, live: LiveExchange) -> None:
        self._group.renew(self.ticket, live)

    def release(self, *, is_clean: bool) -> None:
        self._group.release(self.ticket, is_clean=is_clean)


class _Ear:
    """A subscription's part in the child that all share: nobody gave it up for this one."""

    def __init__(self, listening: set[LiveExchange], live: LiveExchange) -> None:
        self._listening = listening
        self._live = live
        listening.add(live)

    def fits(self, _child: Host) -> bool:
        return True

    def renew(self, live: LiveExchange) -> None:
        """It fits always."""

    def release(self, *, is_clean: bool) -> None:  # noqa: ARG002 - as every lease's
        self._listening.discard(self._live)
