"""A session's seat at many servers: a seat at each that it has needed by now."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

from app.core import finding
from app.core.catalog import Entry, Sight
from app.core.deadlines import FOREVER
from app.core.joining import Joining
from app.core.joint_names import JointNames
from app.core.joint_rules import everything
from app.core.partner import Announced, Find, Open, Outcome, Shut, ToServer
from app.core.probing import ToSession
from app.core.revival import Told
from app.core.session import Session
from app.gateway.access import Permit
from app.gateway.inorder import InOrder
from app.gateway.joint import Joint
from app.gateway.lasting import Holder, LastingSeat, TakePlace
from app.gateway.patient import PatientTimer
from app.gateway.settings import SiteName, UpstreamSettings
from app.protocol import methods
from app.protocol.faults import GatewayFault, ShuttingDown
from app.protocol.jsonrpc import Message, Notification, Request, RequestId, Result


class Client(Protocol):
    """The session."""

    owner: str
    core: Session

    def deliver(self, message: Message, about: RequestId | None = None) -> None: ...

    def remember(self, told: Told, /) -> None: ...

    @property
    def permit(self) -> Permit | None:
        """What its client may do now."""

    @property
    def is_live(self) -> bool:
        """Whether its client waits for anything."""


class JoinedSeat:
    """`open_seat` gives a seat at one of the servers, for who holds it, or raises why there is none."""

    def __init__(
        self,
        joint: Joint,
        mint: Iterator[int],
        open_seat: Callable[[str, Holder], LastingSeat],
        client: Client,
        on_leave: "Callable[[JoinedSeat], None]",
        told: Told | None = None,
    ) -> None:
        self._joint = joint
        self._open_seat = open_seat
        self._client = client
        self._on_leave = on_leave
        self._machine = Joining(joint.rules, mint, joint.known, told)
        self.mint = mint
        self.owner = client.owner
        machine = self._machine
        self.names = JointNames(lambda: machine.catalog, finds=joint.rules.finds)
        self._remembered = machine.told
        self._members: dict[str, Member] = {}
        self._cancelled = ""
        """The server whose call was cancelled last."""
        self._loop = asyncio.get_running_loop()
        self._timer: PatientTimer | None = None
        self._timer_at = FOREVER
        self._in_order = InOrder(self._do)
        self._is_left = False
        client.core.whose = machine.owner_of
        joint.watch(self._learn)

    # The session.

    @property
    def waiting_bytes(self) -> int:
        """Of what waits here, and at the servers."""
        return self._machine.waiting_bytes + sum(member.seat.waiting_bytes for member in self._members.values())

    def submit(self, message: Message) -> None:
        if isinstance(message, Notification) and message.method == methods.CANCELLED:
            ident = methods.cancelled_id(message)
            self._cancelled = (None if ident is None else self._machine.owner_of(ident)) or ""
        now = self._loop.time()
        outcomes = self._machine.submit(message, now, self._sight)
        if self._joint.uneven and isinstance(message, Request):
            self._limit(message.id, now)
        self._perform(outcomes)
        if self._cancelled in self._members:
            self._members[self._cancelled].settle()

    def _limit(self, ident: RequestId, now: float) -> None:
        """Where one server is to answer it, its deadlines are those of that."""
        limits = self._joint.uneven.get(self._machine.owner_of(ident) or "")
        if limits is not None:
            self._client.core.limit(ident, limits, now)

    def withdraw(self, ident: int, /) -> bool:
        member = self._members.get(self._machine.owner_of(ident) or "")
        if not self._machine.withdraw(ident):
            if member is None or not member.seat.withdraw(ident):
                return False
            self._machine.forget(ident)
        if member is not None:
            member.settle()
        return True

    def doubt(self) -> None:
        """Of the server whose call was given up just before."""
        member = self._members.get(self._cancelled)
        if member is not None:
            member.seat.doubt()

    def wake(self) -> None:
        self._perform(self._machine.wake())
        for member in list(self._members.values()):
            member.seat.wake()

    def leave(self) -> None:
        self._is_left = True
        self._joint.unwatch(self._learn)
        self._in_order.end()
        self._disarm()
        members, self._members = self._members, {}
        for member in members.values():
            member.seat.leave()
        self._on_leave(self)
        for member in members.values():
            member.release()

    @property
    def _sight(self) -> Sight:
        permit = self._client.permit
        return everything if permit is None else permit.sees

    # The servers.

    def members_at(self, site: SiteName) -> "list[Member]":
        """Who has a seat there."""
        return [member for member in self._members.values() if member.seat.site == site]

    def is_busy(self, server: str) -> bool:
        return self._machine.is_busy(server)

    def heard(self, server: str, message: Message, about: RequestId | None) -> None:
        self._perform(self._machine.receive(server, message, self._loop.time(), about))

    def bereft(self, server: str, fault: GatewayFault, withdraw: Callable[[int], bool]) -> None:
        self._perform(self._machine.bereft(server, fault, withdraw))
        if server in self._members:
            self._members[server].settle()

    def returned(self, server: str) -> None:
        self._perform(self._machine.returned(server, self._loop.time()))

    def lost(self, server: str, fault: GatewayFault) -> None:
        member = self._members.pop(server, None)
        self._perform(self._machine.lost(server, fault, _never if member is None else member.seat.withdraw))
        if member is not None:
            member.seat.leave()
            member.settle()

    def renewed(self, server: str) -> None:
        """It is configured otherwise now. There is no child of it before somebody wants something or listens."""
        self._perform(self._machine.renewed(server))
        if self._client.is_live and server in self._members:
            self._members[server].seat.wake()

    # What is to be done.

    def _perform(self, outcomes: list[Outcome]) -> None:
        machine = self._machine
        if machine.told is not self._remembered and machine.may_revive:
            self._remembered = machine.told
            self._client.remember(self._remembered)
        if outcomes and not self._in_order.perform(outcomes):
            return
        if machine.due < self._timer_at and not self._is_left:
            self._arm()

    def _do(self, outcome: Outcome) -> None:
        match outcome:
            case ToSession():
                self._client.deliver(outcome.message, outcome.about)
            case ToServer():
                member = self._members.get(outcome.server)
                if member is not None:
                    member.seat.submit(outcome.message)
            case Open():
                self._open(outcome.server)
            case Shut():
                member = self._members.pop(outcome.server, None)
                if member is not None:
                    member.seat.leave()
                    member.settle()
            case Announced():
                self._joint.announced(outcome.server)
            case Find():
                then = partial(self._found, outcome.request)
                self._joint.find(self._machine.catalog, outcome.query, outcome.limit, outcome.sees, then)

    def _found(self, request: RequestId, entries: list[Entry]) -> None:
        self._perform([ToSession(Result(request, finding.found(entries)))])

    def _open(self, server: str) -> None:
        member = Member(self, server)
        try:
            member.seat = self._open_seat(server, member)
            member.seat.on_return = partial(self.returned, server)
            self._members[server] = member
        except GatewayFault as fault:
            fault.executed = "no"
            self._perform(self._machine.lost(server, fault, _never))

    def _learn(self) -> None:
        self._perform(self._machine.learn(self._joint.known, self._joint.rules))
        for server in self._members.keys() - set(self._joint.settings.servers):
            self._members[server].dismiss()

    def _arm(self) -> None:
        self._disarm()
        self._timer_at = self._machine.due
        if self._timer_at < FOREVER:
            self._timer = PatientTimer(self._loop, self._timer_at, self._tick)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_at = None, FOREVER

    def _tick(self) -> None:
        self._timer, self._timer_at = None, FOREVER
        self._perform(self._machine.tick(self._loop.time()))


class Member:
    """Who holds the seat at one server."""

    seat: LastingSeat

    def __init__(self, joined: JoinedSeat, server: str) -> None:
        self.when_quiet: set[Callable[[], object]] = set()
        """Told once, when the server owes nothing any more, or nobody that it could owe it to is left."""
        self._joined = joined
        self._server = server

    @property
    def is_busy(self) -> bool:
        return self._joined.is_busy(self._server)

    @property
    def owner(self) -> str:
        return self._joined.owner

    def reseat(self, upstream: UpstreamSettings, take_place: TakePlace, fault: GatewayFault) -> None:
        """The server is configured so now."""
        if self.seat.reseat(upstream, take_place, fault):
            self._joined.renewed(self._server)
        else:
            self._joined.lost(self._server, fault)

    def close(self, fault: GatewayFault) -> None:
        """There is no such server any more."""
        self._joined.lost(self._server, fault)

    def dismiss(self) -> None:
        """It is not one of the several any more, though it may be there otherwise; its calls are waited for."""
        if self.is_busy:
            self.when_quiet.add(self.dismiss)
        else:
            gone = "the server is not one of these any more"
            self._joined.lost(self._server, ShuttingDown(gone, reason="server_removed", executed="unknown"))

    def settle(self) -> None:
        """Less may be owed than before."""
        if self.when_quiet and not self.is_busy:
            self.release()

    def release(self) -> None:
        """Nobody waits for the server any more."""
        told, self.when_quiet = self.when_quiet, set()
        for each in told:
            each()

    # As who has a seat.

    def deliver(self, message: Message, about: RequestId | None = None) -> None:
        self._joined.heard(self._server, message, about)
        self.settle()

    def remember(self, _told: Told, /) -> None:
        """What the client was told by all of them together is kept, and each is told anew."""

    def bereft(self, fault: GatewayFault, withdraw: Callable[[int], bool], /) -> None:
        self._joined.bereft(self._server, fault, withdraw)

    def lost(self, fault: GatewayFault, _reason: str, /) -> None:
        self._joined.lost(self._server, fault)


def _never(_ident: int) -> bool:
    return False
