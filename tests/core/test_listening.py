"""One `subscriptions/listen` at a child of either era: acknowledged first, only what was asked for, and how it ends."""

from itertools import count
from typing import Any

import pytest
from msgspec import Raw

from app.core.deadlines import FOREVER
from app.core.effects import BeginStream, Doubt, Effect, Ended, EndStream, ToClient, ToUpstream
from app.core.exchange import Subscription
from app.core.listening import Listening
from app.protocol.faults import Exited
from app.protocol.jsonrpc import Failure, Message, Notification, Request, RequestId, Result, payload
from tests.core.exchanges import (
    LIMITS,
    SUBSCRIPTION,
    always,
    cancelled,
    done,
    is_at_rest,
    logged,
    never,
    progress,
    raw,
    refused,
    request,
)

ALL = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
OFFERED = {"tools": {"listChanged": True}, "prompts": {"listChanged": True}, "resources": {"listChanged": True}}
WATCHED = {"resources": {"subscribe": True}}
TOOLS = "notifications/tools/list_changed"
PROMPTS = "notifications/prompts/list_changed"
RESOURCES = "notifications/resources/list_changed"
UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


def listen(wanted: object = ALL, ident: RequestId = "L") -> Request:
    return request(ident, "subscriptions/listen", {"notifications": wanted})


def tagged(method: str, ident: RequestId = "L", **params: object) -> Notification:
    return Notification(method, payload({**params, "_meta": {SUBSCRIPTION: ident}}))


def heard(*said: Notification) -> list[Effect]:
    return [ToClient(1, notification) for notification in said]


def acknowledged(agreed: object, ident: RequestId = "L") -> Notification:
    return tagged(ACKNOWLEDGED, ident, notifications=agreed)


def ended(ident: RequestId = "L") -> list[Effect]:
    """We say that it is over, and then it is."""
    reason = {"requestId": ident, "reason": "the server ended the subscription"}
    body = {"resultType": "complete", "_meta": {SUBSCRIPTION: ident}}
    return [*heard(tagged("notifications/cancelled", ident, **reason)), *done(1, Result(ident, payload(body)))]


def updated(uri: str) -> Notification:
    return Notification(UPDATED, payload({"uri": uri}))


# A child of the same era.


def passed(wanted: object = ALL, ident: RequestId = "L") -> Subscription:
    core = Subscription(listen(wanted, ident), LIMITS, count(100), server="weather")
    core.begin(1, 0.0, can_stream=True)
    return core


def opened(wanted: object = ALL, ident: RequestId = "L") -> Subscription:
    core = passed(wanted, ident)
    core.deliver(acknowledged(wanted, 100), 1.0)
    return core


@pytest.mark.parametrize("ident", [7, "7"])
def test_a_subscription_goes_to_the_child_under_our_id_and_what_it_says_back_under_the_clients(
    ident: RequestId,
) -> None:
    core = Subscription(listen(ident=ident), LIMITS, count(100))
    asked = Request(100, "subscriptions/listen", listen(ident=ident).params)
    assert core.begin(1, 0.0, can_stream=True) == [ToUpstream(asked)]
    assert core.deliver(acknowledged({"toolsListChanged": True}, 100), 1.0) == heard(
        acknowledged({"toolsListChanged": True}, ident)
    )
    assert core.deliver(tagged(TOOLS, 100), 2.0) == heard(tagged(TOOLS, ident))


def test_what_is_said_before_the_acknowledgement_is_kept_within_a_bound_and_the_newest_always() -> None:
    core = passed()
    large = [tagged(TOOLS, 100, n=number, padding="x" * (3 << 20)) for number in range(4)]
    for told in large:
        assert core.deliver(told, 0.5) == []
    said = core.deliver(acknowledged(ALL, 100), 1.0)
    assert said == heard(acknowledged(ALL), *(tagged(TOOLS, n=number, padding="x" * (3 << 20)) for number in (2, 3)))


def test_an_acknowledged_subscription_has_no_deadline() -> None:
    core = opened()
    assert core.due == FOREVER
    assert core.tick(1e9, never) == []
    assert core.deliver(tagged(PROMPTS, 100), 1e9) == heard(tagged(PROMPTS))


def test_what_a_child_says_before_it_acknowledges_is_held() -> None:
    core = passed()
    assert core.deliver(tagged(TOOLS, 100), 0.1) == []
    assert core.deliver(tagged(PROMPTS, 100), 0.2) == []
    assert core.deliver(acknowledged(ALL, 100), 0.3) == heard(acknowledged(ALL), tagged(TOOLS), tagged(PROMPTS))
    assert core.tick(0.4, never) == []


def test_of_what_comes_too_early_the_newest_hundred_are_held() -> None:
    core = passed({"resourceSubscriptions": ["a"]})
    for n in range(150):
        core.deliver(tagged(UPDATED, 100, uri=str(n)), 0.1)
    _said, *held = core.deliver(acknowledged({}, 100), 0.2)
    assert held == heard(*(tagged(UPDATED, uri=str(n)) for n in range(50, 150)))


@pytest.mark.parametrize(
    ("wanted", "method"),
    [
        ({"promptsListChanged": True, "resourcesListChanged": True, "resourceSubscriptions": ["a"]}, TOOLS),
        ({"toolsListChanged": True, "resourcesListChanged": True, "resourceSubscriptions": ["a"]}, PROMPTS),
        ({"toolsListChanged": True, "promptsListChanged": True, "resourceSubscriptions": ["a"]}, RESOURCES),
        ({**ALL, "toolsListChanged": False}, TOOLS),
        (ALL, UPDATED),
        ({**ALL, "resourceSubscriptions": []}, UPDATED),
    ],
)
def test_what_was_not_asked_for_is_not_passed_on(wanted: dict[str, object], method: str) -> None:
    core = opened(wanted)
    assert core.deliver(tagged(method, 100, uri="a"), 2.0) == []
    core = passed(wanted)
    core.deliver(tagged(method, 100, uri="a"), 0.5)
    assert len(core.deliver(acknowledged(wanted, 100), 1.0)) == 1


def test_what_no_filter_of_ours_knows_is_passed_on() -> None:
    core = opened({"x/tasks": ["t"]})
    assert core.deliver(tagged("notifications/tasks/status", 100, n=1), 2.0) == heard(
        tagged("notifications/tasks/status", n=1)
    )


def test_a_filter_that_we_cannot_read_is_for_the_child_to_judge() -> None:
    core = opened({"toolsListChanged": "yes"})
    assert core.deliver(tagged(TOOLS, 100), 2.0) == heard(tagged(TOOLS))


def test_log_messages_are_never_on_a_subscription_and_progress_is_where_it_was_asked_for() -> None:
    core = Subscription(request("L", "subscriptions/listen", {"notifications": ALL}, token="p"), LIMITS, count(100))
    core.begin(1, 0.0, can_stream=True)
    core.deliver(acknowledged(ALL, 100), 1.0)
    assert core.deliver(logged("emergency"), 2.0) == []
    assert core.deliver(progress(100), 2.0) == heard(tagged("notifications/progress", progressToken="p", progress=1))
    assert core.due == FOREVER


def test_a_child_that_does_not_acknowledge_in_time_fails_the_subscription() -> None:
    core = passed()
    assert core.tick(0.25, never) == [BeginStream(1)]
    effects = core.tick(60.0, never)
    assert effects[:2] == [cancelled(100, "timed out at the gateway"), Doubt()]
    assert refused(effects, 1) == ("L", -31003, "timed_out", "unknown")
    assert is_at_rest(core)
    core = passed()
    assert refused(core.tick(60.0, always), 1) == ("L", -31003, "timed_out", "no")
    assert not core.is_owed


def test_a_client_that_closes_the_stream_unsubscribes() -> None:
    for core in (passed(), opened()):
        assert core.gone(2) == []
        assert core.gone(1) == [cancelled(100, "the client closed the response"), Ended("cancelled")]
        assert is_at_rest(core)


def test_a_stopping_gateway_ends_a_subscription_gracefully() -> None:
    core = opened()
    assert core.close() == [cancelled(100, "the gateway is shutting down"), *ended()]
    assert is_at_rest(core)
    assert core.close() == []


def test_a_subscription_that_never_was_acknowledged_is_refused_and_not_ended() -> None:
    core = passed()
    core.deliver(tagged(TOOLS, 100), 0.1)
    effects = core.close()
    assert effects[0] == cancelled(100, "the gateway is shutting down")
    assert refused(effects, 1) == ("L", -31006, "shutting_down", "unknown")
    core = passed()
    effects = core.lost(Exited("gone", executed="unknown"))
    assert refused(effects, 1) == ("L", -31002, "exited", "unknown")
    assert len(effects) == 3
    assert is_at_rest(core)
    assert not core.is_owed


def test_a_lost_child_ends_an_open_subscription_gracefully() -> None:
    core = opened(ident=5)
    assert core.lost(Exited("gone")) == ended(5)
    assert is_at_rest(core)
    assert not core.is_owed
    assert core.lost(Exited("gone")) == []


def test_a_child_that_ends_the_subscription_ends_it() -> None:
    core = opened()
    assert core.deliver(tagged("notifications/cancelled", 100, requestId=100), 2.0) == ended()
    assert core.deliver(Result(100, raw("{}")), 2.0) == []
    assert is_at_rest(core)


def test_a_result_of_the_child_ends_the_subscription_and_keeps_what_it_says() -> None:
    core = opened()
    said = payload({"resultType": "complete", "x": 1.5, "_meta": {SUBSCRIPTION: 100, "a/b": 1}})
    mapped = payload({"resultType": "complete", "x": 1.5, "_meta": {SUBSCRIPTION: "L", "a/b": 1}})
    assert core.deliver(Result(100, said), 2.0) == [*ended()[:1], *done(1, Result("L", mapped))]
    assert not core.is_owed
    core = opened()
    assert core.deliver(Result(100, raw("[]")), 2.0) == ended()


def test_a_result_instead_of_an_acknowledgment_is_all_there_is() -> None:
    core = passed()
    core.deliver(tagged(TOOLS, 100), 0.1)
    mapped = payload({"_meta": {SUBSCRIPTION: "L"}})
    assert core.deliver(Result(100, raw("{}")), 2.0) == done(1, Result("L", mapped))


def test_an_error_of_the_child_is_passed_on() -> None:
    error = raw('{"code":-32602 ,"message":"m"}')
    for core in (passed(), opened()):
        assert core.deliver(Failure(100, error), 2.0) == done(1, Failure("L", error))


def test_nothing_is_said_after_the_end() -> None:
    core = opened()
    core.gone(1)
    late: list[Message] = [tagged(TOOLS, 100), acknowledged(ALL, 100), Result(100, raw("{}")), progress(100)]
    assert [core.deliver(message, 2.0) for message in late] == [[], [], [], []]
    assert core.tick(1e9, never) == []


# A child of the handshake.


def new(wanted: object = ALL, ident: RequestId = "L") -> Listening:
    core = Listening(listen(wanted, ident), LIMITS, count(100), server="weather")
    assert core.begin(1, 0.0, can_stream=True) == []
    return core


def ready(core: Listening, capabilities: object = OFFERED) -> list[Effect]:
    return core.ready(payload({"protocolVersion": "2025-11-25", "capabilities": capabilities}))


def subscribe(ident: int, uri: str) -> ToUpstream:
    return ToUpstream(Request(ident, "resources/subscribe", payload({"uri": uri})))


@pytest.mark.parametrize("ident", [7, "7"])
def test_what_the_child_promises_to_tell_of_is_acknowledged_at_once(ident: RequestId) -> None:
    core = new(ident=ident)
    assert core.due == 0.25
    assert ready(core) == heard(acknowledged(ALL, ident))
    assert core.due == FOREVER
    assert core.deliver(Notification(TOOLS), 1.0) == heard(tagged(TOOLS, ident))


@pytest.mark.parametrize(
    ("wanted", "offered", "agreed"),
    [
        (ALL, {}, {}),
        (ALL, {"tools": {"listChanged": True}, "prompts": {}}, {"toolsListChanged": True}),
        (ALL, {"prompts": {"listChanged": True}}, {"promptsListChanged": True}),
        ({"resourcesListChanged": True}, OFFERED, {"resourcesListChanged": True}),
        ({"toolsListChanged": False}, OFFERED, {}),
        ({}, OFFERED, {}),
        ({"resourceSubscriptions": ["a"]}, OFFERED, {}),
        ({"resourceSubscriptions": []}, WATCHED, {}),
        (ALL, {"tools": 5}, {}),
    ],
)
def test_what_the_child_does_not_offer_is_left_out(wanted: object, offered: object, agreed: object) -> None:
    assert ready(new(wanted), offered) == heard(acknowledged(agreed))


def test_resources_are_subscribed_to_before_they_are_acknowledged() -> None:
    core = new({"resourceSubscriptions": ["a", "b", "a"], "resourcesListChanged": True})
    assert ready(core, {"resources": {"subscribe": True, "listChanged": True}}) == [
        subscribe(100, "a"),
        subscribe(101, "b"),
    ]
    assert core.deliver(Result(100, raw("{}")), 0.1) == []
    assert core.deliver(Result("101", raw("{}")), 0.1) == []
    assert core.deliver(Result(100, raw("{}")), 0.1) == []
    assert core.deliver(Result(101, raw("{}")), 0.2) == heard(
        acknowledged({"resourcesListChanged": True, "resourceSubscriptions": ["a", "b"]})
    )


def test_a_resource_that_the_server_refuses_is_left_out() -> None:
    core = new({"resourceSubscriptions": ["a", "b"]})
    ready(core, WATCHED)
    core.deliver(Failure(100, raw('{"code":-32002}')), 0.1)
    assert core.deliver(Result(101, raw("{}")), 0.2) == heard(acknowledged({"resourceSubscriptions": ["b"]}))
    assert core.deliver(updated("a"), 1.0) == []
    assert core.deliver(updated("b"), 1.0) == heard(tagged(UPDATED, uri="b"))
    assert core.deliver(updated("b/part"), 1.0) == heard(tagged(UPDATED, uri="b/part"))


def test_a_subscription_of_which_all_is_refused_is_open_and_silent() -> None:
    core = new({"resourceSubscriptions": ["a"]})
    ready(core, WATCHED)
    assert core.deliver(Failure(100, raw('{"code":-32002}')), 0.1) == heard(acknowledged({}))
    assert core.deliver(updated("a"), 1.0) == []
    assert core.deliver(updated("b"), 1.0) == []


def test_early_updates_are_held_until_the_acknowledgment_and_then_only_what_is_acknowledged_is_told() -> None:
    core = new({"resourceSubscriptions": ["a", "b"], "toolsListChanged": True, "promptsListChanged": True})
    ready(core, {**WATCHED, "tools": {"listChanged": True}})
    for early in (updated("a"), Notification(TOOLS), updated("b"), Notification(PROMPTS), Notification(RESOURCES)):
        assert core.deliver(early, 0.1) == []
    core.deliver(Failure(100, raw("{}")), 0.2)
    agreed = {"toolsListChanged": True, "resourceSubscriptions": ["b"]}
    assert core.deliver(Result(101, raw("{}")), 0.3) == heard(
        acknowledged(agreed), tagged(TOOLS), tagged(UPDATED, uri="b")
    )
    assert core.deliver(Notification(TOOLS), 0.4) == heard(tagged(TOOLS))


@pytest.mark.parametrize("method", [TOOLS, PROMPTS, RESOURCES, UPDATED])
def test_a_client_hears_only_what_it_asked_for(method: str) -> None:
    names = {TOOLS: "toolsListChanged", PROMPTS: "promptsListChanged", RESOURCES: "resourcesListChanged"}
    offered = {**OFFERED, "resources": {"listChanged": True, "subscribe": True}}
    core = new({name: name != names.get(method) for name in ALL})
    ready(core, offered)
    assert core.deliver(Notification(method, payload({"uri": "a"})), 1.0) == []
    if method in names:
        core = new({names[method]: True})
        ready(core, offered)
        assert core.deliver(Notification(method), 1.0) == heard(tagged(method))


@pytest.mark.parametrize(
    "said",
    [
        logged("emergency"),
        progress(100),
        Notification("notifications/x"),
        Notification("notifications/cancelled", payload({"requestId": 100})),
        Notification("notifications/elicitation/complete"),
        Notification(ACKNOWLEDGED),
        Request(1, "roots/list"),
        Result(1, Raw(b"{}")),
        Failure(None, Raw(b"{}")),
    ],
)
def test_what_else_a_child_says_is_not_of_a_subscription(said: Message) -> None:
    wanted = {**ALL, "resourceSubscriptions": ["a"]}
    core = new(wanted)
    ready(core, {**OFFERED, "resources": {"subscribe": True, "listChanged": True}})
    assert core.deliver(said, 0.1) == []
    assert core.deliver(Result(100, raw("{}")), 0.2) == heard(acknowledged(wanted))
    assert core.deliver(said, 0.3) == []


def test_a_child_that_does_not_answer_is_heard_without_the_rest_and_told_to_leave_it() -> None:
    core = new({"resourceSubscriptions": ["a", "b"]})
    ready(core, WATCHED)
    core.deliver(Result(100, raw("{}")), 0.1)
    assert core.tick(59.0, never) == [BeginStream(1)]
    assert core.tick(60.0, never) == [
        cancelled(101, "not answered in time"),
        *heard(acknowledged({"resourceSubscriptions": ["a"]})),
    ]
    assert core.deliver(Result(101, raw("{}")), 61.0) == []
    assert core.deliver(updated("b"), 61.0) == []
    assert core.due == FOREVER


def test_a_child_that_is_not_ready_in_time_fails_the_subscription() -> None:
    core = new()
    assert core.tick(0.25, never) == [BeginStream(1)]
    effects = core.tick(60.0, never)
    assert refused(effects, 1) == ("L", -31003, "timed_out", "no")
    assert len(effects) == 3
    assert ready(core) == []


def test_closing_a_stream_tells_the_child_nothing_for_others_may_listen_there() -> None:
    for is_ready in (False, True):
        core = new()
        if is_ready:
            ready(core)
        assert core.gone(2) == []
        assert core.gone(1) == [Ended("cancelled")]
        assert is_at_rest(core)
        assert ready(core) == []
        assert core.deliver(Notification(TOOLS), 1.0) == []


@pytest.mark.parametrize("ident", [7, "7"])
def test_an_open_subscription_is_ended_gracefully_by_us(ident: RequestId) -> None:
    core = new(ident=ident)
    ready(core)
    assert core.close() == ended(ident)
    assert is_at_rest(core)
    core = new(ident=ident)
    ready(core)
    assert core.lost(Exited("gone")) == ended(ident)
    assert core.close() == []
    assert core.lost(Exited("gone")) == []


@pytest.mark.parametrize("is_subscribing", [True, False])
def test_a_subscription_that_is_not_open_yet_is_refused(is_subscribing: bool) -> None:
    def core() -> Listening:
        listening = new({"resourceSubscriptions": ["a"]})
        if is_subscribing:
            ready(listening, WATCHED)
        listening.deliver(updated("a"), 0.1)
        return listening

    effects = core().close()
    assert refused(effects, 1) == ("L", -31006, "shutting_down", "no")
    assert len(effects) == 3
    effects = core().lost(Exited("gone", executed="unknown"))
    assert refused(effects, 1) == ("L", -31002, "exited", "unknown")
    assert len(effects) == 3


@pytest.mark.parametrize("wanted", [None, 5, [], {"toolsListChanged": 1}, {"resourceSubscriptions": [5]}])
def test_a_subscription_without_a_readable_filter_is_refused(wanted: object) -> None:
    core = Listening(listen(wanted), LIMITS, count(100), server="weather")
    assert refused(core.begin(1, 0.0, can_stream=True), 1) == ("L", -32602, "bad_params", "no")
    assert ready(core) == []
    assert is_at_rest(core)
    bare = Listening(Request("L", "subscriptions/listen"), LIMITS, count(100), server="weather")
    assert refused(bare.begin(1, 0.0, can_stream=True), 1)[1] == -32602


@pytest.mark.parametrize("kind", [Subscription, Listening])
def test_a_client_that_takes_no_events_cannot_subscribe(kind: Any) -> None:
    core: Subscription = kind(listen(), LIMITS, count(100), server="weather")
    effects = core.begin(1, 0.0, can_stream=False)
    assert refused(effects, 1) == ("L", -32600, "no_stream", "no")
    assert effects[1:] == [EndStream(1), Ended("answered")]
    assert is_at_rest(core)
    assert not core.is_owed
