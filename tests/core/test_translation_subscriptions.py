"""Subscriptions of a handshake client at a stateless child: one stream, renewed."""

import pytest

from app.core.deadlines import FOREVER
from app.core.parties import ToChild
from app.core.probing import ToSession
from app.core.translation import Translation
from app.protocol.jsonrpc import Failure, Notification, Request, Result, payload
from tests.core.translations import (
    REFUSED,
    acknowledged,
    asked,
    cancelled,
    code,
    failed,
    listen,
    listening,
    modern,
    raw,
    tagged,
    unlistened,
)

INITIALIZED = Notification("notifications/initialized")
CHANGES = {"toolsListChanged": True, "resourcesListChanged": True}
DONE = raw('{"resultType":"complete"}')


def subscribe(ident: int, uri: object) -> Request:
    return Request(ident, "resources/subscribe", payload({"uri": uri}))


def unsubscribe(ident: int, uri: object) -> Request:
    return Request(ident, "resources/unsubscribe", payload({"uri": uri}))


def okay(ident: int) -> ToSession:
    return ToSession(Result(ident, raw("{}")))


def agreed(*uris: str) -> dict[str, object]:
    return {**CHANGES, "resourceSubscriptions": list(uris)}


def subscribed(*uris: str) -> Translation:
    """A session that is subscribed to each of them, the last stream being 101 plus their number."""
    translation = listening()
    for number, uri in enumerate(uris):
        translation.submit(subscribe(10 + number, uri), 0)
        translation.receive(acknowledged(102 + number, agreed(*uris[: number + 1])), 0)
    return translation


def update(ident: int, uri: str) -> Notification:
    return tagged("notifications/resources/updated", ident, {"uri": uri})


# Opening.


def test_nothing_is_opened_before_the_client_is_initialized_and_then_what_the_server_offers() -> None:
    translation = modern()
    assert translation.submit(subscribe(10, "b"), 0) == []
    assert translation.submit(subscribe(11, "a"), 0) == []
    assert translation.due == FOREVER
    assert translation.submit(INITIALIZED, 0) == [listen(101, "a", "b")]
    assert translation.submit(INITIALIZED, 0) == []
    assert translation.receive(acknowledged(101, agreed("a", "b")), 0) == [okay(10), okay(11)]


def test_of_a_server_that_tells_of_nothing_nothing_is_wanted_until_somebody_subscribes() -> None:
    translation = modern({"resources": {"subscribe": True}, "tools": {"listChanged": False}})
    assert translation.submit(INITIALIZED, 0) == []
    assert translation.submit(subscribe(10, "a"), 0) == [listen(101, "a", tools=False, resources=False)]


@pytest.mark.parametrize("offered", [{"tools": {}}, {"resources": {"listChanged": True}}])
def test_a_server_that_offers_no_subscriptions_is_not_asked_for_one(offered: dict[str, object]) -> None:
    translation = modern(offered)
    assert code(translation.submit(subscribe(10, "a"), 0)) == (10, -32601)
    assert code(translation.submit(unsubscribe(11, "a"), 0)) == (11, -32601)


@pytest.mark.parametrize("uri", ["", 7, None])
def test_a_subscription_to_nothing_is_refused(uri: object) -> None:
    assert code(listening().submit(subscribe(10, uri), 0)) == (10, -32602)
    assert code(listening().submit(unsubscribe(10, uri), 0)) == (10, -32602)


# What is heard.


def test_a_notification_of_the_stream_reaches_the_session_without_its_mark() -> None:
    translation = listening()
    note = Notification(
        "notifications/resources/updated",
        raw('{"uri":"a","x":1.50,"_meta":{"io.modelcontextprotocol/subscriptionId":101,"a/b":1}}'),
    )
    assert translation.receive(note, 0) == [
        ToSession(Notification("notifications/resources/updated", raw('{"uri":"a","x":1.50,"_meta":{"a/b":1}}')))
    ]
    assert translation.receive(tagged("notifications/tools/list_changed", 101), 0) == [
        ToSession(Notification("notifications/tools/list_changed", raw("{}")))
    ]


@pytest.mark.parametrize("ident", [99, "101", 102])
def test_a_notification_of_any_other_stream_is_dropped(ident: int | str) -> None:
    assert listening().receive(tagged("notifications/tools/list_changed", ident), 0) == []


def test_a_mark_that_is_no_id_is_no_streams() -> None:
    note = Notification(
        "notifications/tools/list_changed", raw('{"_meta":{"io.modelcontextprotocol/subscriptionId":{}}}')
    )
    assert listening().receive(note, 0) == []


def test_a_change_without_a_mark_is_told() -> None:
    note = Notification("notifications/tools/list_changed")
    assert listening().receive(note, 0) == [ToSession(note)]


@pytest.mark.parametrize("ident", [99, 101])
def test_an_acknowledgement_that_nobody_waits_for_is_dropped(ident: int) -> None:
    assert listening().receive(acknowledged(ident, agreed("a")), 0) == []


# Subscribing.


def test_a_subscription_is_answered_when_the_new_stream_is_acknowledged_and_then_the_old_one_is_cancelled() -> None:
    translation = listening()
    assert translation.submit(subscribe(10, "a"), 0) == [listen(102, "a")]
    assert translation.receive(tagged("notifications/tools/list_changed", 101), 0) != []
    assert translation.receive(tagged("notifications/tools/list_changed", 102), 0) == []
    assert translation.receive(acknowledged(102, agreed("a")), 0) == [unlistened(101), okay(10)]
    assert translation.receive(tagged("notifications/tools/list_changed", 101), 0) == []
    assert translation.receive(Result(101, DONE), 0) == []
    assert translation.receive(update(102, "a"), 0) == [
        ToSession(Notification("notifications/resources/updated", raw('{"uri":"a"}')))
    ]


def test_what_comes_while_a_stream_is_being_opened_waits_for_the_next_one() -> None:
    translation = listening()
    translation.submit(subscribe(10, "b"), 0)
    assert translation.submit(subscribe(11, "a"), 0) == []
    assert translation.submit(subscribe(12, "b"), 0) == []
    assert translation.receive(acknowledged(102, agreed("b")), 0) == [
        unlistened(101),
        okay(10),
        okay(12),
        listen(103, "a", "b"),
    ]
    assert translation.receive(acknowledged(103, agreed("a", "b")), 0) == [unlistened(102), okay(11)]


def test_who_is_subscribed_already_is_answered_at_once() -> None:
    translation = subscribed("a")
    assert translation.submit(subscribe(20, "a"), 0) == [okay(20)]


def test_a_resource_that_the_acknowledgement_leaves_out_is_an_error_and_not_asked_for_again() -> None:
    translation = listening()
    translation.submit(subscribe(10, "a"), 0)
    cancel, told = translation.receive(acknowledged(102, CHANGES), 0)
    assert cancel == unlistened(101)
    assert failed(told.message) == (10, -32602)
    assert translation.submit(subscribe(11, "b"), 0) == [listen(103, "b")]


def test_a_list_that_the_acknowledgement_leaves_out_is_not_asked_for_again() -> None:
    translation = modern()
    translation.submit(INITIALIZED, 0)
    assert translation.receive(acknowledged(101, {"toolsListChanged": True}), 0) == []
    assert translation.submit(subscribe(10, "a"), 0) == [listen(102, "a", resources=False)]


def test_a_stream_on_which_nothing_will_be_told_is_cancelled() -> None:
    translation = modern()
    translation.submit(INITIALIZED, 0)
    assert translation.receive(acknowledged(101, {"toolsListChanged": 1}), 0) == [unlistened(101)]
    assert translation.due == FOREVER


# Unsubscribing.


def test_unsubscribing_is_answered_at_once_and_nothing_of_the_resource_is_told_any_more() -> None:
    translation = subscribed("a", "b")
    assert translation.submit(unsubscribe(20, "a"), 0) == [okay(20), listen(104, "b")]
    assert translation.receive(update(103, "a"), 0) == []
    assert translation.receive(update(103, "a/part"), 0) != []
    assert translation.receive(update(103, "b"), 0) != []
    assert translation.receive(acknowledged(104, agreed("b")), 0) == [unlistened(103)]


def test_unsubscribing_from_the_last_thing_that_was_wanted_ends_the_stream() -> None:
    translation = modern({"resources": {"subscribe": True}})
    translation.submit(INITIALIZED, 0)
    translation.submit(subscribe(10, "a"), 0)
    translation.receive(acknowledged(101, agreed("a")), 0)
    assert translation.submit(unsubscribe(11, "a"), 0) == [okay(11), unlistened(101)]
    assert translation.receive(update(101, "a"), 0) == []


def test_unsubscribing_from_what_was_not_subscribed_to_changes_nothing() -> None:
    assert listening().submit(unsubscribe(10, "a"), 0) == [okay(10)]


def test_who_unsubscribes_from_what_is_still_being_opened_is_answered_to_both() -> None:
    translation = listening()
    translation.submit(subscribe(10, "a"), 0)
    assert translation.submit(unsubscribe(11, "a"), 0) == [okay(10), okay(11)]
    assert translation.receive(acknowledged(102, agreed("a")), 0) == [unlistened(101), listen(103)]


def test_who_comes_back_while_the_stream_is_renewed_without_it_waits_for_the_next_one() -> None:
    translation = subscribed("a")
    translation.submit(unsubscribe(20, "a"), 0)
    assert translation.submit(subscribe(21, "a"), 0) == []
    assert translation.receive(acknowledged(103, CHANGES), 0) == [unlistened(102), listen(104, "a")]
    assert translation.receive(acknowledged(104, agreed("a")), 0) == [unlistened(103), okay(21)]


def test_a_subscription_that_is_cancelled_before_it_began_is_none() -> None:
    translation = listening()
    translation.submit(subscribe(10, "a"), 0)
    assert translation.submit(cancelled(10, "no"), 0) == []
    assert translation.receive(acknowledged(102, agreed("a")), 0) == [unlistened(101), listen(103)]


def test_a_cancelled_subscription_is_kept_for_others_that_want_it() -> None:
    translation = listening()
    translation.submit(subscribe(10, "a"), 0)
    translation.submit(subscribe(11, "a"), 0)
    translation.submit(cancelled(10, "no"), 0)
    assert translation.receive(acknowledged(102, agreed("a")), 0) == [unlistened(101), okay(11)]


def test_a_cancelled_subscription_to_what_is_subscribed_to_already_leaves_it_so() -> None:
    translation = subscribed("a")
    translation.receive(Result(102, DONE), 1)
    assert translation.submit(subscribe(20, "a"), 1) == [listen(103, "a")]
    assert translation.submit(cancelled(20, "no"), 1) == []
    assert translation.receive(acknowledged(103, agreed("a")), 1) == []


# The child ends it.


@pytest.mark.parametrize("end", [Result(102, DONE), Failure(102, REFUSED), cancelled(102, "bye")])
def test_a_stream_that_the_child_ends_is_opened_again_after_a_pause(end: Result | Failure | Notification) -> None:
    translation = subscribed("a")
    assert translation.receive(end, 10) == []
    assert translation.receive(update(102, "a"), 10) == []
    assert translation.due == 10.5
    assert translation.tick(10.4) == []
    assert translation.tick(10.5) == [listen(103, "a")]
    assert translation.due == FOREVER
    assert translation.receive(acknowledged(103, agreed("a")), 11) == []


def test_a_child_that_says_so_twice_has_ended_it_once() -> None:
    translation = listening()
    translation.receive(cancelled(101, "bye"), 10)
    assert translation.receive(Result(101, DONE), 11) == []
    assert translation.due == 10.5


def test_the_pause_grows_to_a_bound_and_begins_anew_after_a_stream_that_lasted() -> None:
    translation = modern()
    translation.submit(INITIALIZED, 0)
    now, ident, pauses = 0.0, 101, []
    for lasted in (0, 1, 59, 0, 0, 0, 0, 0, 0, 60, 0):
        translation.receive(acknowledged(ident, CHANGES), now)
        now += lasted
        translation.receive(Result(ident, DONE), now)
        pauses.append(translation.due - now)
        now, ident = translation.due, ident + 1
        assert translation.tick(now) == [listen(ident)]
    assert pauses == [0.5, 1, 2, 4, 8, 16, 32, 60, 60, 0.5, 1]


def test_a_stream_that_the_child_will_not_open_is_tried_again_after_a_pause() -> None:
    translation = modern()
    translation.submit(INITIALIZED, 0)
    assert translation.receive(Failure(101, REFUSED), 1) == []
    assert translation.due == 1.5
    assert translation.tick(1.5) == [listen(102)]


def test_who_waits_for_a_stream_that_the_child_will_not_open_hears_why() -> None:
    translation = listening()
    translation.submit(subscribe(10, "a"), 0)
    assert translation.receive(Failure(102, REFUSED), 1) == [ToSession(Failure(10, REFUSED))]
    assert translation.receive(tagged("notifications/tools/list_changed", 101), 1) != []
    assert translation.tick(9) == []
    assert translation.due == FOREVER


def test_who_waits_for_a_stream_that_the_child_ends_before_it_began_hears_so() -> None:
    translation = listening()
    translation.submit(subscribe(10, "a"), 0)
    (told,) = translation.receive(Result(102, DONE), 1)
    assert failed(told.message) == (10, -31001)


def test_who_waited_for_the_next_stream_need_not_wait_for_the_pause() -> None:
    translation = listening()
    translation.submit(subscribe(10, "a"), 0)
    translation.submit(subscribe(11, "b"), 0)
    told, again = translation.receive(Failure(102, REFUSED), 1)
    assert failed(told.message) == (10, -32601)
    assert again == listen(103, "b")
    assert translation.due == FOREVER


def test_a_subscription_during_the_pause_opens_at_once() -> None:
    translation = listening()
    translation.receive(Result(101, DONE), 10)
    told = translation.submit(subscribe(10, "a"), 10.1)
    assert told == [listen(102, "a")]
    assert asked(told) == agreed("a")
    assert translation.due == FOREVER


def test_an_old_stream_that_ends_while_the_new_one_is_being_opened_is_not_opened_again() -> None:
    translation = listening()
    translation.submit(subscribe(10, "a"), 0)
    assert translation.receive(Result(101, DONE), 1) == []
    assert translation.due == FOREVER
    assert translation.receive(acknowledged(102, agreed("a")), 2) == [okay(10)]


def test_a_stream_that_cannot_be_renewed_without_a_resource_goes_on_with_it_until_it_can() -> None:
    translation = subscribed("a")
    assert translation.submit(unsubscribe(20, "a"), 0) == [okay(20), listen(103)]
    assert translation.receive(Failure(103, REFUSED), 1) == []
    assert translation.receive(update(102, "a"), 1) == []
    assert translation.tick(1.5) == [listen(104)]
    assert translation.receive(acknowledged(104, CHANGES), 2) == [unlistened(102)]


def test_who_comes_back_while_the_old_stream_goes_on_hears_of_the_resource_again() -> None:
    translation = subscribed("a")
    translation.submit(unsubscribe(20, "a"), 0)
    translation.receive(Failure(103, REFUSED), 1)
    assert translation.submit(subscribe(21, "a"), 1) == [okay(21)]
    assert translation.receive(update(102, "a"), 1) != []
    assert translation.due == FOREVER


def test_a_listen_carries_the_client_and_no_log_level() -> None:
    translation = modern()
    translation.submit(Request(9, "logging/setLevel", payload({"level": "debug"})), 0)
    assert translation.submit(INITIALIZED, 0) == [listen(101)]


def test_what_the_session_cancels_is_never_the_stream() -> None:
    translation = listening()
    assert translation.submit(cancelled(101, "x"), 0) == []
    assert [type(told) for told in translation.receive(tagged("notifications/tools/list_changed", 101), 0)] == [
        ToSession
    ]
    assert ToChild not in [type(told) for told in translation.tick(99)]
