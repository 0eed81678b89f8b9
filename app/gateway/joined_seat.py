"""A session's seat at many servers: a seat at each that it has needed by now."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Protocol

from app.core.deadlines import FOREVER
from app.core.joining import Announced, Joining, Open, Outcome, Sight, ToServer, ToSession, everything
from app.core.joint_names import JointNames
from app.core.revival import Told
from app.gateway.access import Permit
from app.gateway.inorder import InOrder
from app.gateway.joint import Joint
from app.gateway.lasting import Holder, LastingSeat
from app.gateway.patient import PatientTimer
from app.protocol import methods
from app.protocol.faults import GatewayFault
from app.protocol.jsonrpc import Message, Notification, RequestId


class Client(Protocol):
    """The session."""

    def deliver(self, message: Message, about: RequestId | None = None) -> None: ...

    def remember(self, told: Told, /) -> None: ...

    @property
    def permit(self) -> Permit | None:
        """What its client may do now."""


class JoinedSeat:
    """`open_seat` gives a seat at one of the servers, for who holds it, or raises why there is none."""

    def __init__(
        self,
        joint: Joint,
        mint: Iterator[int],
        open_seat: Callable[[str, Holder], LastingSeat],
        client: Client,
        told: Told | None = None,
    ) -> None:
        self._joint = joint
        self._open_seat = open_seat
        self._client = client
        self._machine = Joining(joint.rules, mint, joint.known, told)
        self.mint = mint
        machine = self._machine
        self.names = JointNames(lambda: machine.catalog, finds=joint.rules.find is not None)
        self._remembered = machine.told
        self._seats: dict[str, LastingSeat] = {}
        self._cancelled = ""
        """The server whose call was cancelled last."""
        self._loop = asyncio.get_running_loop()
        self._timer: PatientTimer | None = None
        self._timer_at = FOREVER
        self._in_order = InOrder(self._do)
        joint.watch(self._learn)

    # The session.

    def submit(self, message: Message) -> None:
        if isinstance(message, Notification) and message.method == methods.CANCELLED:
            ident = methods.cancelled_id(message)
            self._cancelled = (None if ident is None else self._machine.owner_of(ident)) or ""
        self._perform(self._machine.submit(message, self._loop.time(), self._sight))

    def withdraw(self, ident: int, /) -> bool:
        if self._machine.withdraw(ident):
            return True
        seat = self._seats.get(self._machine.owner_of(ident) or "")
        return seat is not None and seat.withdraw(ident)

    def doubt(self) -> None:
        """Of the server whose call was given up just before."""
        seat = self._seats.get(self._cancelled)
        if seat is not None:
            seat.doubt()

    def wake(self) -> None:
        self._perform(self._machine.wake())
        for seat in list(self._seats.values()):
            seat.wake()

    def leave(self) -> None:
        self._joint.unwatch(self._learn)
        self._in_order.end()
        self._disarm()
        seats, self._seats = self._seats, {}
        for seat in seats.values():
            seat.leave()

    @property
    def _sight(self) -> Sight:
        permit = self._client.permit
        return everything if permit is None else permit.sees

    # The servers.

    def is_busy(self, server: str) -> bool:
        return self._machine.is_busy(server)

    def heard(self, server: str, message: Message, about: RequestId | None) -> None:
        self._perform(self._machine.receive(server, message, about))

    def bereft(self, server: str, fault: GatewayFault, withdraw: Callable[[int], bool]) -> None:
        self._perform(self._machine.bereft(server, fault, withdraw))

    def lost(self, server: str, fault: GatewayFault) -> None:
        seat = self._seats.pop(server, None)
        self._perform(self._machine.lost(server, fault, _never if seat is None else seat.withdraw))
        if seat is not None:
            seat.leave()

    # What is to be done.

    def _perform(self, outcomes: list[Outcome]) -> None:
        if outcomes and not self._in_order.perform(outcomes):
            return
        machine = self._machine
        if machine.told is not self._remembered:
            self._remembered = machine.told
            if machine.may_revive:
                self._client.remember(self._remembered)
        if machine.due < self._timer_at:
            self._arm()

    def _do(self, outcome: Outcome) -> None:
        match outcome:
            case ToSession():
                self._client.deliver(outcome.message, outcome.about)
            case ToServer():
                seat = self._seats.get(outcome.server)
                if seat is not None:
                    seat.submit(outcome.message)
            case Open():
                self._open(outcome.server)
            case Announced():
                self._joint.announced(outcome.server)

    def _open(self, server: str) -> None:
        try:
            self._seats[server] = self._open_seat(server, _Member(self, server))
        except GatewayFault as fault:
            fault.executed = "no"
            self._perform(self._machine.lost(server, fault, _never))

    def _learn(self) -> None:
        self._perform(self._machine.learn(self._joint.known))

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


class _Member:
    """Who holds the seat at one server."""

    __slots__ = ("_seat", "_server")

    def __init__(self, seat: JoinedSeat, server: str) -> None:
        self._seat = seat
        self._server = server

    @property
    def is_busy(self) -> bool:
        return self._seat.is_busy(self._server)

    def deliver(self, message: Message, about: RequestId | None = None) -> None:
        self._seat.heard(self._server, message, about)

    def remember(self, _told: Told, /) -> None:
        """What the client was told by all of them together is kept, and each is told anew."""

    def bereft(self, fault: GatewayFault, withdraw: Callable[[int], bool], /) -> None:
        self._seat.bereft(self._server, fault, withdraw)

    def lost(self, fault: GatewayFault, _reason: str, /) -> None:
        self._seat.lost(self._server, fault)


def _never(_ident: int) -> bool:
    return False
