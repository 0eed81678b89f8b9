"""Several parties on one stateless child: each hears what names its requests, and nobody hears the rest."""

import pytest
from msgspec import Raw

from app.core.parties import Changed, ToChild, ToLog, ToParty
from app.core.relay import Relay
from app.protocol import methods
from app.protocol.jsonrpc import Failure, Message, Notification, Request, RequestId, Result, payload

ANNA, BERT = 1, 2
EMPTY = payload({})
LOG = Notification("notifications/message", payload({"level": "info"}))
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def call(ident: int) -> Request:
    return Request(ident, "tools/call", payload({"name": "echo"}))


def listen(ident: int) -> Request:
    return Request(ident, "subscriptions/listen", payload({"notifications": {"toolsListChanged": True}}))


def progress(token: object) -> Notification:
    return Notification("notifications/progress", payload({"progressToken": token, "progress": 1}))


def cancel(ident: object) -> Notification:
    return Notification("notifications/cancelled", payload({"requestId": ident}))


def left(ident: int) -> ToChild:
    return ToChild(methods.cancellation(ident, "nobody waits for it any more"))


def news(ident: object, method: str = "notifications/tools/list_changed") -> Notification:
    return Notification(method, payload({"_meta": {SUBSCRIPTION: ident}}))


@pytest.fixture
def relay() -> Relay:
    """Anna calls as 11 and listens as 12, Bert calls as 21 and listens as 22."""
    relay = Relay(EMPTY)
    for party, call_id in ((ANNA, 11), (BERT, 21)):
        relay.submit(party, call(call_id))
        relay.submit(party, listen(call_id + 1))
    return relay


def test_what_the_child_was_discovered_to_be_can_be_read() -> None:
    assert Relay(payload({"supportedVersions": []})).discovered == payload({"supportedVersions": []})


# Calls.


def test_requests_and_answers_are_passed_on_as_they_are() -> None:
    relay = Relay(EMPTY)
    assert relay.submit(ANNA, call(1)) == [ToChild(call(1))]
    assert relay.submit(BERT, call(2)) == [ToChild(call(2))]
    assert relay.receive(Failure(2, EMPTY)) == [ToParty(BERT, Failure(2, EMPTY))]
    assert relay.receive(Result(1, EMPTY)) == [ToParty(ANNA, Result(1, EMPTY))]
    assert relay.receive(Result(1, EMPTY)) == []


@pytest.mark.parametrize("ident", ["11", 99, None])
def test_an_answer_to_nobody_goes_nowhere(relay: Relay, ident: RequestId | None) -> None:
    assert relay.receive(Failure(ident, EMPTY)) == []
    assert relay.receive(Result(11, EMPTY)) == [ToParty(ANNA, Result(11, EMPTY))]


def test_progress_goes_to_whose_request_it_is_until_that_is_answered(relay: Relay) -> None:
    assert relay.receive(progress(21)) == [ToParty(BERT, progress(21))]
    relay.receive(Result(21, EMPTY))
    assert relay.receive(progress(21)) == []


@pytest.mark.parametrize("token", ["11", 99, None, 1.5])
def test_progress_of_no_request_goes_nowhere(relay: Relay, token: object) -> None:
    assert relay.receive(progress(token)) == []


def test_a_party_cancels_its_own_request_once(relay: Relay) -> None:
    assert relay.submit(ANNA, cancel(11)) == [ToChild(cancel(11))]
    assert relay.submit(ANNA, cancel(11)) == []
    assert relay.receive(progress(11)) == []
    assert relay.receive(Result(11, EMPTY)) == []


@pytest.mark.parametrize("ident", [21, "11", None])
def test_nobody_cancels_what_is_not_theirs(relay: Relay, ident: object) -> None:
    assert relay.submit(ANNA, cancel(ident)) == []
    assert relay.receive(Result(21, EMPTY)) == [ToParty(BERT, Result(21, EMPTY))]


@pytest.mark.parametrize("was_unsent", [True, False])
@pytest.mark.parametrize("ident", [11, 12])
def test_a_request_that_was_never_sent_is_forgotten_and_one_that_was_is_not(
    relay: Relay, ident: int, was_unsent: bool
) -> None:
    assert relay.withdraw(ident, lambda unsent: was_unsent and unsent == ident) is was_unsent
    assert (left(ident) in relay.leave(ANNA)) is not was_unsent


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
def test_what_this_era_does_not_have_does_not_reach_the_child(relay: Relay, message: Message) -> None:
    assert relay.submit(ANNA, message) == []


def test_what_an_extension_says_does(relay: Relay) -> None:
    assert relay.submit(ANNA, Notification("notifications/x")) == [ToChild(Notification("notifications/x"))]


@pytest.mark.parametrize("method", ["ping", "elicitation/create"])
def test_the_child_asks_nobody_anything(relay: Relay, method: str) -> None:
    relay.hold(ANNA)
    match relay.receive(Request("q", method, EMPTY)):
        case [ToChild(Failure("q", error))]:
            assert methods.error_code(error) == -32601
        case other:
            pytest.fail(repr(other))


# Subscriptions.


def test_the_news_of_a_subscription_are_their_listeners(relay: Relay) -> None:
    acknowledged = news(12, "notifications/subscriptions/acknowledged")
    updated = news(22, "notifications/resources/updated")
    assert relay.receive(acknowledged) == [ToParty(ANNA, acknowledged)]
    assert relay.receive(news(12)) == [ToParty(ANNA, news(12))]
    assert relay.receive(updated) == [ToParty(BERT, updated)]


@pytest.mark.parametrize("ident", ["12", 11, 99])
def test_news_of_no_subscription_are_nobodys(relay: Relay, ident: RequestId) -> None:
    assert relay.receive(news(ident)) == []


def test_a_subscription_ends_with_its_answer(relay: Relay) -> None:
    assert relay.receive(Result(12, EMPTY)) == [ToParty(ANNA, Result(12, EMPTY))]
    assert relay.receive(news(12)) == []


def test_of_a_subscription_that_the_child_ends_only_the_answer_still_comes(relay: Relay) -> None:
    assert relay.receive(cancel(12)) == [ToParty(ANNA, cancel(12))]
    assert relay.receive(cancel(12)) == []
    assert relay.receive(news(12)) == []
    assert relay.receive(Result(12, EMPTY)) == [ToParty(ANNA, Result(12, EMPTY))]
    assert relay.receive(Result(12, EMPTY)) == []


def test_a_subscription_that_the_child_ended_is_not_cancelled(relay: Relay) -> None:
    relay.receive(cancel(12))
    relay.receive(cancel(22))
    assert relay.submit(ANNA, cancel(12)) == []
    assert relay.leave(BERT) == [left(21)]
    assert relay.receive(Result(12, EMPTY)) == []


@pytest.mark.parametrize("ident", [11, "12", 99, None])
def test_the_child_ends_nothing_else(relay: Relay, ident: object) -> None:
    assert relay.receive(cancel(ident)) == []
    assert relay.receive(Result(11, EMPTY)) == [ToParty(ANNA, Result(11, EMPTY))]


# What names nobody.


def test_log_messages_are_the_holders_and_of_no_subscription(relay: Relay) -> None:
    tagged = news(12, "notifications/message")
    assert relay.receive(LOG) == [ToLog(LOG)]
    assert relay.hold(BERT) == []
    assert relay.receive(LOG) == [ToParty(BERT, LOG)]
    assert relay.receive(tagged) == [ToParty(BERT, tagged)]
    assert relay.hold(ANNA) == []
    assert relay.unhold(BERT) == []
    assert relay.receive(LOG) == [ToParty(ANNA, LOG)]
    assert relay.unhold(ANNA) == []
    assert relay.receive(tagged) == [ToLog(tagged)]


@pytest.mark.parametrize("kind", ["tools", "prompts", "resources"])
def test_a_changed_list_that_names_no_subscription_is_news_to_all(relay: Relay, kind: str) -> None:
    note = Notification(f"notifications/{kind}/list_changed")
    assert relay.receive(note) == [Changed(note)]


@pytest.mark.parametrize("params", [None, Raw(b"{}"), Raw(b'{"_meta":7}'), payload({"_meta": {SUBSCRIPTION: None}})])
@pytest.mark.parametrize("method", ["notifications/resources/updated", "notifications/x"])
def test_what_else_names_nobody_is_no_partys(relay: Relay, params: Raw | None, method: str) -> None:
    relay.hold(ANNA)
    assert relay.receive(Notification(method, params)) == [ToLog(Notification(method, params))]


# Leaving.


def test_one_who_leaves_takes_everything_along(relay: Relay) -> None:
    relay.hold(ANNA)
    assert relay.leave(ANNA) == [left(11), left(12)]
    assert [relay.receive(message) for message in (Result(11, EMPTY), news(12), progress(11))] == [[], [], []]
    assert relay.receive(LOG) == [ToLog(LOG)]
    assert relay.receive(news(22)) == [ToParty(BERT, news(22))]
    assert relay.leave(ANNA) == []
