"""One child for many: what each session may say to it, and who hears what it says."""

from itertools import count

import pytest
from msgspec import Raw

from app.core.parties import Changed, Outcome, Refused, ToChild, ToLog, ToParty
from app.core.sharing import Sharing
from app.protocol import methods
from app.protocol.jsonrpc import Failure, Message, Notification, Request, Result, payload

GREETED = payload({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x"}})
ANNA, BERT, CARL = 1, 2, 3
EMPTY = payload({})


def raw(text: str) -> Raw:
    return Raw(text.encode())


def initialize(ident: int, version: str = "2025-11-25") -> Request:
    return Request(ident, "initialize", payload({"protocolVersion": version, "capabilities": {"roots": {}}}))


def call(ident: int) -> Request:
    return Request(ident, "tools/call", payload({"name": "echo"}))


def about(ident: int, method: str, uri: str = "file:///a") -> Request:
    return Request(ident, f"resources/{method}", payload({"uri": uri}))


def updated(uri: str = "file:///a") -> Notification:
    return Notification("notifications/resources/updated", payload({"uri": uri}))


def cancel(ident: int) -> Notification:
    return Notification("notifications/cancelled", payload({"requestId": ident}))


def own_cancel(ident: int) -> ToChild:
    return ToChild(methods.cancellation(ident, "the session has ended"))


def leveled(ident: int, level: str) -> Request:
    return Request(ident, "logging/setLevel", payload({"level": level}))


@pytest.fixture
def new() -> Sharing:
    sharing = Sharing(count(100), "1.2")
    sharing.greet()
    return sharing


@pytest.fixture
def sharing(new: Sharing) -> Sharing:
    """Greeted, with three sessions; ids of theirs are below 100, ours go on at 101."""
    new.receive(Result(100, GREETED))
    for party in (ANNA, BERT, CARL):
        new.submit(party, initialize(party))
    return new


# The greeting.


def test_the_child_is_greeted_by_us_with_no_capabilities() -> None:
    greeting = payload(
        {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "viaduct", "version": "1.2"},
        }
    )
    assert Sharing(count(100), "1.2").greet() == [ToChild(Request(100, "initialize", greeting))]


def test_the_child_is_greeted_with_what_its_clients_are_able_to_do() -> None:
    client = raw('{"name":"anna","version":"1.0"}')
    sharing = Sharing(count(100), "1.2", {"roots": raw('{"listChanged":1.0}')}, client)
    greeting = raw(
        '{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":1.0}},'
        '"clientInfo":{"name":"anna","version":"1.0"}}'
    )
    assert sharing.greet() == [ToChild(Request(100, "initialize", greeting))]


def test_what_the_child_answered_can_be_read(new: Sharing) -> None:
    assert new.greeted is None
    new.receive(Result(100, GREETED))
    assert new.greeted == GREETED


def test_what_is_said_before_the_child_has_answered_waits_for_it_in_order(new: Sharing) -> None:
    note = Notification("notifications/x")
    assert [new.submit(ANNA, initialize(1)), new.submit(BERT, note), new.submit(ANNA, call(2))] == [[], [], []]
    assert new.receive(Result(100, GREETED)) == [
        ToChild(Notification("notifications/initialized")),
        ToParty(ANNA, Result(1, GREETED)),
        ToChild(note),
        ToChild(call(2)),
    ]


def test_what_a_session_said_that_left_before_the_answer_is_not_said(new: Sharing) -> None:
    new.submit(ANNA, call(1))
    new.submit(BERT, call(2))
    assert new.leave(ANNA) == []
    assert new.receive(Result(100, GREETED))[1:] == [ToChild(call(2))]


def test_a_child_that_refuses_the_greeting_is_of_no_use(new: Sharing) -> None:
    error = raw('{"code":-32602,"message":"no"}')
    assert new.receive(Failure(100, error)) == [Refused(error)]


@pytest.mark.parametrize("ident", ["100", 99, None])
def test_only_an_answer_to_the_greeting_is_one(new: Sharing, ident: int | str | None) -> None:
    assert new.receive(Failure(ident, raw("{}"))) == []
    assert new.submit(ANNA, call(1)) == []


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_each_session_is_answered_in_its_own_revision(sharing: Sharing, version: str) -> None:
    answer = bytes(GREETED).replace(b"2025-11-25", version.encode())
    assert sharing.submit(4, initialize(7, version)) == [ToParty(4, Result(7, Raw(answer)))]


@pytest.mark.parametrize("version", ["2026-07-28", "1999-01-01", ""])
def test_a_session_that_asks_for_no_revision_of_a_handshake_gets_the_childs(sharing: Sharing, version: str) -> None:
    assert sharing.submit(4, initialize(7, version)) == [ToParty(4, Result(7, GREETED))]


def test_a_greeting_answer_that_is_no_object_is_passed_on_as_it_is(new: Sharing) -> None:
    new.receive(Result(100, raw("7")))
    assert new.submit(ANNA, initialize(1, "2025-03-26")) == [ToParty(ANNA, Result(1, raw("7")))]


# Calls.


def test_a_reply_goes_to_the_session_that_asked_and_to_it_once(sharing: Sharing) -> None:
    assert sharing.submit(ANNA, call(11)) == [ToChild(call(11))]
    assert sharing.submit(BERT, call(12)) == [ToChild(call(12))]
    assert sharing.receive(Result(12, raw("2"))) == [ToParty(BERT, Result(12, raw("2")))]
    assert sharing.receive(Failure(11, raw("1"))) == [ToParty(ANNA, Failure(11, raw("1")))]
    assert sharing.receive(Result(12, raw("2"))) == []


@pytest.mark.parametrize("ident", ["11", 99, None])
def test_a_reply_to_nobody_goes_nowhere(sharing: Sharing, ident: int | str | None) -> None:
    sharing.submit(ANNA, call(11))
    assert sharing.receive(Failure(ident, raw("{}"))) == []


def test_progress_goes_to_the_session_whose_call_it_is_until_that_is_answered(sharing: Sharing) -> None:
    news = Notification("notifications/progress", payload({"progressToken": 11, "progress": 1}))
    sharing.submit(ANNA, call(11))
    sharing.submit(BERT, call(12))
    assert sharing.receive(news) == [ToParty(ANNA, news)]
    sharing.receive(Result(11, EMPTY))
    assert sharing.receive(news) == []


@pytest.mark.parametrize("token", ["11", None, 1.5])
def test_progress_of_no_call_goes_nowhere(sharing: Sharing, token: object) -> None:
    sharing.submit(ANNA, call(11))
    assert sharing.receive(Notification("notifications/progress", payload({"progressToken": token}))) == []


def test_a_session_cancels_its_own_calls(sharing: Sharing) -> None:
    sharing.submit(ANNA, call(11))
    assert sharing.submit(ANNA, cancel(11)) == [ToChild(cancel(11))]
    assert sharing.receive(Result(11, EMPTY)) == []
    assert sharing.submit(ANNA, cancel(11)) == []


def test_nobody_cancels_a_call_of_another_session(sharing: Sharing) -> None:
    sharing.submit(ANNA, call(11))
    assert sharing.submit(BERT, cancel(11)) == []
    assert sharing.receive(Result(11, EMPTY)) == [ToParty(ANNA, Result(11, EMPTY))]


@pytest.mark.parametrize("was_unsent", [True, False])
def test_a_call_that_was_never_sent_is_forgotten_and_one_that_was_is_not(sharing: Sharing, was_unsent: bool) -> None:
    sharing.submit(ANNA, call(11))
    assert sharing.withdraw(11, lambda ident: was_unsent and ident == 11) is was_unsent
    assert sharing.leave(ANNA) == ([] if was_unsent else [own_cancel(11)])


def test_a_call_that_still_waits_for_the_greeting_is_taken_back_by_us(new: Sharing) -> None:
    new.submit(ANNA, call(11))
    new.submit(BERT, call(12))
    assert new.withdraw(11, lambda ident: False) is True
    assert new.receive(Result(100, GREETED))[1:] == [ToChild(call(12))]


# What a session may not do to the others.


@pytest.mark.parametrize(
    "message",
    [
        Notification("notifications/initialized"),
        Notification("notifications/exit"),
        Notification("notifications/roots/list_changed"),
        Result(1, EMPTY),
        Failure(1, EMPTY),
    ],
    ids=lambda message: getattr(message, "method", type(message).__name__),
)
def test_what_concerns_one_session_only_does_not_reach_the_child(sharing: Sharing, message: Message) -> None:
    assert sharing.submit(ANNA, message) == []


def test_a_shutdown_of_one_session_is_answered_by_us(sharing: Sharing) -> None:
    assert sharing.submit(ANNA, Request(11, "shutdown")) == [ToParty(ANNA, Result(11, EMPTY))]


def test_the_child_is_asked_for_the_most_detailed_level_that_anybody_wants(sharing: Sharing) -> None:
    assert sharing.submit(ANNA, leveled(11, "error")) == [ToChild(leveled(11, "error"))]
    assert sharing.submit(BERT, leveled(12, "warning")) == [ToChild(leveled(12, "warning"))]
    assert sharing.submit(ANNA, leveled(13, "critical")) == [ToParty(ANNA, Result(13, EMPTY))]
    assert sharing.submit(CARL, leveled(14, "debug")) == [ToChild(leveled(14, "debug"))]
    assert sharing.submit(CARL, leveled(15, "error")) == [ToChild(leveled(15, "warning"))]


def test_when_the_session_leaves_that_wanted_the_most_the_child_is_asked_for_less(sharing: Sharing) -> None:
    sharing.submit(ANNA, leveled(11, "debug"))
    sharing.receive(Result(11, EMPTY))
    sharing.submit(BERT, leveled(12, "error"))
    assert sharing.leave(CARL) == []
    assert sharing.leave(ANNA) == [ToChild(leveled(101, "error"))]
    assert sharing.receive(Result(101, EMPTY)) == []
    assert sharing.leave(BERT) == []


def test_a_level_that_the_child_refused_is_asked_for_again(sharing: Sharing) -> None:
    sharing.submit(ANNA, leveled(11, "debug"))
    error = raw('{"code":-32601}')
    assert sharing.receive(Failure(11, error)) == [ToParty(ANNA, Failure(11, error))]
    assert sharing.submit(BERT, leveled(12, "debug")) == [ToChild(leveled(12, "debug"))]


@pytest.mark.parametrize("level", ["loud", "", "INFO"])
def test_a_level_that_there_is_not_is_the_childs_to_judge(sharing: Sharing, level: str) -> None:
    assert sharing.submit(ANNA, leveled(11, level)) == [ToChild(leveled(11, level))]
    assert sharing.submit(BERT, leveled(12, "error")) == [ToChild(leveled(12, "error"))]


# What the child says.


def test_log_messages_are_ours_and_no_clients(sharing: Sharing) -> None:
    message = Notification("notifications/message", payload({"level": "info"}))
    assert sharing.receive(message) == [ToLog(message)]


@pytest.mark.parametrize("kind", ["tools", "prompts", "resources"])
def test_a_changed_list_is_news_to_every_session(sharing: Sharing, kind: str) -> None:
    note = Notification(f"notifications/{kind}/list_changed")
    sharing.leave(BERT)
    assert sharing.receive(note) == [Changed(note), ToParty(ANNA, note), ToParty(CARL, note)]


def test_a_session_that_has_not_been_greeted_hears_no_news(new: Sharing) -> None:
    new.receive(Result(100, GREETED))
    new.submit(ANNA, initialize(1))
    new.submit(BERT, call(2))
    note = Notification("notifications/tools/list_changed")
    assert new.receive(note) == [Changed(note), ToParty(ANNA, note)]


def test_the_child_asks_nobody_anything(sharing: Sharing) -> None:
    assert sharing.receive(Request(5, "ping")) == [ToChild(Result(5, EMPTY))]
    match sharing.receive(Request("q", "sampling/createMessage", EMPTY)):
        case [ToChild(Failure("q", error))]:
            assert methods.error_code(error) == -32601
        case other:
            pytest.fail(repr(other))


def test_the_childs_cancellations_concern_nobody(sharing: Sharing) -> None:
    assert sharing.receive(cancel(5)) == []


# Subscriptions.


def test_only_the_first_subscriber_and_the_last_are_the_childs_concern(sharing: Sharing) -> None:
    assert sharing.submit(ANNA, about(11, "subscribe")) == [ToChild(about(11, "subscribe"))]
    assert sharing.submit(BERT, about(12, "subscribe")) == [ToParty(BERT, Result(12, EMPTY))]
    assert sharing.submit(ANNA, about(13, "subscribe")) == [ToParty(ANNA, Result(13, EMPTY))]
    assert sharing.submit(ANNA, about(14, "unsubscribe")) == [ToParty(ANNA, Result(14, EMPTY))]
    assert sharing.submit(BERT, about(15, "unsubscribe")) == [ToChild(about(15, "unsubscribe"))]
    assert sharing.submit(BERT, about(16, "unsubscribe")) == [ToChild(about(16, "unsubscribe"))]


def test_one_who_subscribes_twice_is_still_one(sharing: Sharing) -> None:
    sharing.submit(ANNA, about(11, "subscribe"))
    assert sharing.submit(ANNA, about(12, "subscribe")) == [ToParty(ANNA, Result(12, EMPTY))]
    assert sharing.submit(ANNA, about(13, "unsubscribe")) == [ToChild(about(13, "unsubscribe"))]


def test_one_who_never_subscribed_does_not_end_the_subscription_of_others(sharing: Sharing) -> None:
    sharing.submit(ANNA, about(11, "subscribe"))
    assert sharing.submit(BERT, about(12, "unsubscribe")) == [ToParty(BERT, Result(12, EMPTY))]
    assert sharing.receive(updated()) == [ToParty(ANNA, updated())]


def test_an_update_goes_to_the_subscribers_of_its_resource_only(sharing: Sharing) -> None:
    for party, ident, uri in ((ANNA, 11, "a"), (BERT, 12, "b"), (CARL, 13, "a")):
        sharing.submit(party, about(ident, "subscribe", uri))
    assert sharing.receive(updated("a")) == [ToParty(ANNA, updated("a")), ToParty(CARL, updated("a"))]
    assert sharing.receive(updated("b")) == [ToParty(BERT, updated("b"))]
    assert sharing.receive(updated("c")) == []
    assert sharing.receive(Notification("notifications/resources/updated")) == []


def test_a_subscription_that_the_child_refused_is_none(sharing: Sharing) -> None:
    sharing.submit(ANNA, about(11, "subscribe"))
    assert sharing.receive(Failure(11, EMPTY)) == [ToParty(ANNA, Failure(11, EMPTY))]
    assert sharing.receive(updated()) == []
    assert sharing.submit(BERT, about(12, "subscribe")) == [ToChild(about(12, "subscribe"))]


@pytest.mark.parametrize("params", ["{}", '{"uri":7}', '{"uri":""}'])
def test_without_a_uri_the_child_judges_each_request(sharing: Sharing, params: str) -> None:
    for ident, method in ((11, "subscribe"), (12, "subscribe"), (13, "unsubscribe")):
        request = Request(ident, f"resources/{method}", raw(params))
        assert sharing.submit(ident, request) == [ToChild(request)]


def test_the_child_sees_the_uri_that_we_read(sharing: Sharing) -> None:
    for ident, method in ((11, "subscribe"), (12, "unsubscribe")):
        request = Request(ident, f"resources/{method}", raw('{"uri":"a","x":1.0,"uri":"b"}'))
        seen = Request(ident, f"resources/{method}", raw('{"uri":"b","x":1.0}'))
        assert sharing.submit(ANNA, request) == [ToChild(seen)]


def subscribed_and_gone(sharing: Sharing, how: str) -> list[Outcome]:
    """Anna subscribes as 11, and takes it back before the child has answered."""
    sharing.submit(ANNA, about(11, "subscribe"))
    match how:
        case "cancels":
            return sharing.submit(ANNA, cancel(11))
        case "leaves":
            return sharing.leave(ANNA)
        case _:
            return sharing.submit(ANNA, about(101, "unsubscribe"))


@pytest.mark.parametrize("how", ["cancels", "leaves", "unsubscribes"])
def test_a_subscription_that_is_taken_back_early_is_undone_and_not_cancelled(sharing: Sharing, how: str) -> None:
    assert subscribed_and_gone(sharing, how) == [ToChild(about(101, "unsubscribe"))]
    assert sharing.receive(updated()) == []


@pytest.mark.parametrize("how", ["cancels", "leaves", "unsubscribes"])
def test_the_late_refusal_of_one_subscription_does_not_end_the_next(sharing: Sharing, how: str) -> None:
    subscribed_and_gone(sharing, how)
    assert sharing.submit(BERT, about(12, "subscribe")) == [ToChild(about(12, "subscribe"))]
    sharing.receive(Failure(11, EMPTY))
    assert sharing.receive(updated()) == [ToParty(BERT, updated())]


@pytest.mark.parametrize("how", ["cancels", "leaves"])
def test_a_subscription_that_others_rely_on_by_now_goes_on_without_its_first(sharing: Sharing, how: str) -> None:
    sharing.submit(ANNA, about(11, "subscribe"))
    sharing.submit(BERT, about(12, "subscribe"))
    assert (sharing.submit(ANNA, cancel(11)) if how == "cancels" else sharing.leave(ANNA)) == []
    assert sharing.withdraw(11, lambda ident: True) is False
    assert sharing.receive(Result(11, EMPTY)) == []
    assert sharing.receive(updated()) == [ToParty(BERT, updated())]


# Leaving.


def test_one_who_leaves_takes_everything_along(sharing: Sharing) -> None:
    sharing.submit(ANNA, call(11))
    sharing.submit(BERT, call(12))
    sharing.submit(ANNA, about(13, "subscribe", "a"))
    sharing.submit(ANNA, about(14, "subscribe", "b"))
    sharing.receive(Result(13, EMPTY))
    sharing.receive(Result(14, EMPTY))
    sharing.submit(BERT, about(15, "subscribe", "b"))
    assert sharing.leave(ANNA) == [own_cancel(11), ToChild(about(101, "unsubscribe", "a"))]
    assert sharing.receive(Result(11, EMPTY)) == []
    assert sharing.receive(Result(101, EMPTY)) == []
    assert sharing.receive(updated("b")) == [ToParty(BERT, updated("b"))]
    assert sharing.leave(ANNA) == []


def test_progress_of_a_request_of_our_own_goes_nowhere(sharing: Sharing) -> None:
    sharing.submit(ANNA, about(11, "subscribe"))
    sharing.leave(ANNA)
    assert sharing.receive(Notification("notifications/progress", payload({"progressToken": 101}))) == []
