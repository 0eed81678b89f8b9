"""A session's seat at many servers, with seats at each that are none."""

from collections.abc import Callable
from itertools import count
from typing import Any, cast

from app.core import finding
from app.core import session as core
from app.core.deadlines import FOREVER, Deadlines
from app.gateway.joined_seat import JoinedSeat, Member
from app.gateway.joint import Joint
from app.gateway.lasting import Holder, LastingSeat
from app.protocol import methods
from app.protocol.faults import Exited, GatewayFault, Overloaded
from app.protocol.jsonrpc import Failure, Message, Request, RequestId, Result, payload
from tests.core.joints import GREETING, known, offered
from tests.gateway.test_joint_child import FakeJoint
from tests.support.http import on_loop

CALL = Request(50, "tools/call", payload({"name": "a__find"}))


class FakeSeat:
    waiting_bytes = 0

    def __init__(self, member: Member) -> None:
        self.member = member
        self.sent: list[Message] = []
        self.unsent: list[int] = []
        self.is_left = False
        self.on_return: Callable[[], object]

    def submit(self, message: Message) -> None:
        self.sent.append(message)

    def withdraw(self, ident: int) -> bool:
        return ident in self.unsent

    def leave(self) -> None:
        self.is_left = True

    def greets(self, *, refuses: bool = False) -> None:
        [greeting] = [each for each in self.sent if isinstance(each, Request) and each.method == methods.INITIALIZE]
        error = payload({"code": 1, "message": "no"})
        self.member.deliver(Failure(greeting.id, error) if refuses else Result(greeting.id, GREETING))

    def asked(self) -> list[str]:
        return [message.method for message in self.sent if isinstance(message, Request)]


class Session:
    """As the session, with its seat."""

    owner = "somebody"
    permit = None
    is_live = True

    def __init__(self, joint: FakeJoint | None = None, refusal: GatewayFault | None = None) -> None:
        self.heard: list[Message] = []
        self.seats: list[FakeSeat] = []
        self.left: list[JoinedSeat] = []
        self._refusal = refusal
        self.core = core.Session(Deadlines(), count(1))
        mint = count(1)
        # They have all that is used.
        self.seat = JoinedSeat(cast("Joint", joint or FakeJoint()), mint, self._open, self, self.left.append)

    def _open(self, _server: str, holder: Holder) -> LastingSeat:
        if self._refusal is not None:
            raise self._refusal
        self.seats.append(FakeSeat(cast("Member", holder)))
        return cast("LastingSeat", self.seats[-1])

    def deliver(self, message: Message, about: RequestId | None = None) -> None:
        self.heard.append(message)

    def remember(self, _told: Any, /) -> None:
        """Nobody goes on."""


@on_loop
async def test_a_server_is_opened_when_it_is_first_needed_and_then_asked_what_it_offers() -> None:
    session = Session()
    assert session.seats == []
    session.seat.submit(CALL)
    [seat] = session.seats
    seat.greets()
    assert seat.asked() == [
        methods.INITIALIZE,
        "tools/call",
        "tools/list",
        "resources/list",
        "resources/templates/list",
    ]
    seat.member.deliver(Result(50, payload({})))
    assert session.heard == [Result(50, payload({}))]
    session.seat.leave()


@on_loop
async def test_why_a_server_cannot_be_had_is_told_and_nothing_of_it_stays() -> None:
    session = Session(refusal=Overloaded("full", reason="children"))
    session.seat.submit(CALL)
    [refused] = session.heard
    assert isinstance(refused, Failure)
    assert b'"executed":"no"' in bytes(refused.error)
    assert not session.seat.is_busy("a")
    session.seat.leave()


@on_loop
async def test_the_seat_at_a_server_that_refuses_the_greeting_is_left() -> None:
    session = Session()
    session.seat.submit(CALL)
    session.seats[0].greets(refuses=True)
    assert ([type(message) for message in session.heard], session.seats[0].is_left) == ([Failure], True)
    session.seat.submit(CALL)
    assert [seat.is_left for seat in session.seats] == [True, False]
    session.seat.leave()


@on_loop
async def test_what_a_seat_takes_back_keeps_nobody_busy() -> None:
    session = Session()
    session.seat.submit(CALL)
    [seat] = session.seats
    seat.greets()
    assert not session.seat.withdraw(50)
    assert session.seat.is_busy("a")
    seat.unsent.append(50)
    assert session.seat.withdraw(50)
    assert not session.seat.is_busy("a")
    session.seat.leave()


@on_loop
async def test_lists_are_read_again_when_another_child_is_there() -> None:
    session = Session()
    session.seat.submit(CALL)
    [seat] = session.seats
    seat.greets()
    seat.member.bereft(Exited("gone"), lambda _: False)
    seat.sent.clear()
    seat.on_return()
    assert seat.asked() == ["tools/list", "resources/list", "resources/templates/list"]
    session.seat.leave()


@on_loop
async def test_what_is_found_after_the_end_is_told_to_nobody_and_keeps_nothing_alive() -> None:
    joint, late = FakeJoint(known({"a": offered("a")}), finds=True), list[Callable[[Any], None]]()
    joint.find = lambda _catalog, _query, _limit, _sees, then: late.append(then)
    session = Session(joint)
    session.seat.submit(Request(51, "tools/list"))
    session.seat.submit(Request(50, "tools/call", payload({"name": finding.FIND, "arguments": {"query": "x"}})))
    session.seat.leave()
    late[0]([])
    assert (session.heard, session.left, joint.watchers) == ([], [session.seat], {})
    assert session.seat._timer_at == FOREVER
