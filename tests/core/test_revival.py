"""What a server was told is told to the next child of it."""

from itertools import count

import pytest

from app.core.bounds import Bounds
from app.core.parties import ToChild
from app.core.probing import ToSession
from app.core.revival import NotTaken, Phase, Revival, Unlike
from app.protocol.faults import Unavailable
from app.protocol.jsonrpc import Failure, Message, Notification, Request, Result, failure, payload
from app.protocol.methods import cancellation
from tests.core.sessions import GREETING, raw

OFFERS = payload(
    {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {"listChanged": True}, "prompts": {"listChanged": False}, "resources": {}},
    }
)
INITIALIZE = Request(1, "initialize", GREETING)
INITIALIZED = Notification("notifications/initialized")
TOOLS_CHANGED = ToSession(Notification("notifications/tools/list_changed"))


def asked(ident: int, method: str, **params: object) -> Request:
    return Request(ident, method, payload(params))


@pytest.fixture
def revival() -> Revival:
    """Of a session that is open, and has minted up to 99."""
    live = Revival(count(100))
    assert live.submit(INITIALIZE) == [ToChild(INITIALIZE)]
    assert live.receive(Result(1, OFFERS)) == [ToSession(Result(1, OFFERS))]
    assert live.submit(INITIALIZED) == [ToChild(INITIALIZED)]
    return live


def agree(revival: Revival, *told: Message) -> None:
    for message in told:
        revival.submit(message)
        if isinstance(message, Request):
            revival.receive(Result(message.id, raw("{}")))


def revived(revival: Revival) -> list[object]:
    revival.lost()
    assert revival.revive() == [ToChild(Request(100, "initialize", GREETING))]
    return list(revival.receive(Result(100, OFFERS)))


def test_before_its_first_handshake_is_answered_a_session_ends_with_its_child() -> None:
    new = Revival(count(1))
    assert not new.may_revive
    new.submit(INITIALIZE)
    assert not new.may_revive


def test_a_session_that_is_shutting_down_does_not_go_on(revival: Revival) -> None:
    assert revival.may_revive
    revival.submit(Request(2, "shutdown"))
    assert not revival.may_revive


def test_the_next_child_is_greeted_alike_and_the_client_hears_what_its_server_said_that_it_tells(
    revival: Revival,
) -> None:
    assert revived(revival) == [ToChild(INITIALIZED), TOOLS_CHANGED]
    assert revival.is_passing


def test_who_was_not_initialized_yet_is_not_and_hears_nothing() -> None:
    early = Revival(count(100))
    early.submit(INITIALIZE)
    early.receive(Result(1, OFFERS))
    assert revived(early) == []
    assert early.submit(INITIALIZED) == [ToChild(INITIALIZED)]


def test_level_and_subscriptions_are_told_as_they_were_last_agreed(revival: Revival) -> None:
    agree(
        revival,
        asked(2, "logging/setLevel", level="info"),
        asked(3, "resources/subscribe", uri="a:1"),
        asked(4, "resources/subscribe", uri="a:2"),
        asked(5, "resources/unsubscribe", uri="a:1"),
        asked(6, "logging/setLevel", level="error"),
    )
    revival.submit(asked(7, "resources/subscribe", uri="a:3"))
    revival.receive(Failure(7, raw("{}")))
    revival.submit(asked(8, "logging/setLevel", level="debug"))
    assert revived(revival) == [
        ToChild(INITIALIZED),
        ToChild(asked(101, "logging/setLevel", level="error")),
        ToChild(asked(102, "resources/subscribe", uri="a:2")),
        TOOLS_CHANGED,
    ]
    assert not revival.is_passing
    assert revival.receive(Result(101, raw("{}"))) == []
    assert revival.receive(Failure(102, raw('{"code":-32002}'))) == [NotTaken("resources/subscribe", -32002)]
    assert revival.is_passing


@pytest.mark.parametrize("method", ["logging/setLevel", "resources/subscribe"])
def test_of_what_nobody_waits_for_any_more_nothing_is_kept(revival: Revival, method: str) -> None:
    for ident, is_cancelled in ((2, True), (3, False)):
        revival.submit(asked(ident, method, level="debug", uri="x:1"))
        if is_cancelled:
            cancelled = cancellation(ident, "no more")
            assert revival.submit(cancelled) == [ToChild(cancelled)]
        else:
            assert not revival.withdraw(ident)
        assert revival.is_passing
        revival.receive(Result(ident, raw("{}")))
    assert revived(revival) == [ToChild(INITIALIZED), TOOLS_CHANGED]


def test_what_is_said_meanwhile_waits_in_its_order(revival: Revival) -> None:
    revival.lost()
    call, other = asked(2, "tools/call", name="a"), asked(3, "tools/list")
    note = Notification("notifications/roots/list_changed")
    for message in (call, note, other):
        assert revival.submit(message) == []
    assert revival.withdraw(3)
    assert not revival.withdraw(3)
    revival.revive()
    assert revival.submit(other) == []
    assert revival.receive(Result(100, OFFERS)) == [
        ToChild(INITIALIZED),
        TOOLS_CHANGED,
        ToChild(call),
        ToChild(note),
        ToChild(other),
    ]


def test_what_concerns_the_child_that_died_goes_nowhere(revival: Revival) -> None:
    revival.lost()
    revival.submit(asked(2, "tools/list"))
    cancelled = Notification("notifications/cancelled", payload({"requestId": 2}))
    for message in (cancelled, Result("q1", raw("{}")), Failure("q2", raw("{}")), Notification("notifications/exit")):
        assert revival.submit(message) == []
    revival.revive()
    assert revival.receive(Result(100, OFFERS)) == [ToChild(INITIALIZED), TOOLS_CHANGED]


def test_a_level_that_was_set_meanwhile_is_kept_for_the_child_after_the_next(revival: Revival) -> None:
    revival.lost()
    level = asked(2, "logging/setLevel", level="error")
    revival.submit(level)
    revival.revive()
    revival.receive(Result(100, OFFERS))
    assert revival.receive(Result(2, raw("{}"))) == [ToSession(Result(2, raw("{}")))]
    revival.lost()
    revival.revive()
    again = asked(102, "logging/setLevel", level="error")
    assert ToChild(again) in revival.receive(Result(101, OFFERS))


def test_there_is_room_for_so_much_and_what_finds_none_is_answered() -> None:
    full = Revival(count(100), Bounds(early_count=1))
    full.submit(INITIALIZE)
    full.receive(Result(1, OFFERS))
    full.lost()
    assert full.submit(asked(2, "tools/list")) == []
    (refused,) = full.submit(asked(3, "tools/list"))
    assert isinstance(refused, ToSession)
    assert isinstance(refused.message, Failure)
    assert full.submit(Notification("notifications/x")) == []


def test_a_child_that_dies_too_leaves_everything_for_the_next(revival: Revival) -> None:
    revival.lost()
    revival.submit(asked(2, "tools/list"))
    revival.revive()
    revival.lost()
    assert revival.phase is Phase.BEREFT
    assert revival.revive() == [ToChild(Request(101, "initialize", GREETING))]
    assert revival.receive(Result(100, OFFERS)) == [ToSession(Result(100, OFFERS))]  # nobody asked for it any more
    assert revival.receive(Result(101, OFFERS))[-1] == ToChild(asked(2, "tools/list"))


def subscribe(ident: int, number: int) -> ToChild:
    return ToChild(asked(ident, "resources/subscribe", uri=f"a:{number}"))


def subscribed(revival: Revival, number: int) -> list[object]:
    """What the next child is told of so many subscriptions at once."""
    agree(revival, *(asked(1000 + n, "resources/subscribe", uri=f"a:{n}") for n in range(number)))
    return [told for told in revived(revival) if told not in (ToChild(INITIALIZED), TOOLS_CHANGED)]


def test_many_subscriptions_are_told_a_few_at_a_time_and_the_next_when_one_is_answered(revival: Revival) -> None:
    told = subscribed(revival, 40)
    assert told == [subscribe(101 + n, n) for n in range(32)]
    for n in range(8):
        assert not revival.is_passing
        assert revival.receive(Result(101 + n, raw("{}"))) == [subscribe(133 + n, 32 + n)]
    for n in range(8, 40):
        assert revival.receive(Result(101 + n, raw("{}"))) == []
    assert revival.is_passing


def test_what_the_session_says_of_a_subscription_comes_after_what_it_said_of_it_before(revival: Revival) -> None:
    subscribed(revival, 40)
    end = asked(2, "resources/unsubscribe", uri="a:39")
    assert revival.submit(end) == [subscribe(133, 39), ToChild(end)]
    revival.receive(Result(133, raw("{}")))
    revival.receive(Result(2, raw("{}")))
    assert "a:39" not in revival.told.subscribed


def test_a_child_that_dies_before_it_was_told_all_leaves_all_for_the_next(revival: Revival) -> None:
    subscribed(revival, 40)
    revival.lost()
    revival.revive()
    again = revival.receive(Result(133, OFFERS))
    assert sum(isinstance(told, ToChild) for told in again) == 1 + 32
    assert subscribe(134, 0) in again


FULL = payload({"code": -31005, "message": "the queue is full"})


def test_what_finds_no_room_on_its_way_to_the_child_is_told_again_and_not_forgotten(revival: Revival) -> None:
    subscribed(revival, 2)
    assert revival.receive(Failure(102, FULL)) == []
    assert not revival.is_passing
    assert revival.receive(Result(101, raw("{}"))) == [subscribe(103, 1)]
    assert revival.receive(Result(103, raw("{}"))) == []
    assert revival.is_passing


def test_a_child_to_which_nothing_gets_through_is_no_successor(revival: Revival) -> None:
    subscribed(revival, 2)
    revival.receive(Failure(101, FULL))
    (unlike,) = revival.receive(Failure(102, FULL))
    assert isinstance(unlike, Unlike)


def test_while_there_can_be_no_child_requests_are_answered_and_with_the_next_they_wait_again(revival: Revival) -> None:
    revival.lost()
    fault = Unavailable("not now", reason="failed")
    revival.refuse(fault)
    assert revival.is_refusing
    assert revival.submit(asked(2, "tools/list")) == [ToSession(failure(2, fault))]
    revival.revive()
    assert not revival.is_refusing
    assert revival.submit(asked(3, "tools/list")) == []


OTHER = payload({"protocolVersion": "2025-06-18", "capabilities": {}})


@pytest.mark.parametrize("reply", [Result(100, OTHER), Failure(100, raw("{}"))])
def test_a_child_that_is_not_as_the_one_before_it_is_no_successor(revival: Revival, reply: Result | Failure) -> None:
    revival.lost()
    revival.revive()
    (unlike,) = revival.receive(reply)
    assert isinstance(unlike, Unlike)
    assert (unlike.fault.reason, unlike.fault.executed, unlike.fault.retryable) == ("not_revived", "no", False)


def test_what_the_child_says_for_itself_passes_at_any_time(revival: Revival) -> None:
    note, question = Notification("notifications/message"), Request("q", "ping")
    assert revival.receive(question, 7) == [ToSession(question, 7)]
    revival.lost()
    revival.revive()
    assert revival.receive(note) == [ToSession(note)]


def test_who_takes_over_before_the_answer_gets_it_under_its_own_id() -> None:
    taken = Revival(count(100))
    taken.submit(INITIALIZE)
    assert taken.submit(Request(7, "initialize", GREETING)) == []
    assert taken.receive(Result(1, OFFERS)) == [ToSession(Result(7, OFFERS))]


def test_who_takes_over_after_the_answer_gets_it_at_once() -> None:
    taken = Revival(count(100))
    taken.submit(INITIALIZE)
    taken.receive(Result(1, OFFERS))
    assert taken.submit(Request(7, "initialize", GREETING)) == [ToSession(Result(7, OFFERS))]
    assert taken.submit(INITIALIZED) == [ToChild(INITIALIZED)]


def test_a_refusal_too_is_told_to_who_took_over() -> None:
    taken = Revival(count(100))
    taken.submit(INITIALIZE)
    taken.submit(Request(7, "initialize", GREETING))
    assert taken.receive(Failure(1, raw("{}"))) == [ToSession(Failure(7, raw("{}")))]
