"""One `subscriptions/listen` at a child of the handshake: acknowledged first, only what was asked for, its end."""

from itertools import count
from typing import Any

import pytest
from msgspec import Raw

from app.core.deadlines import FOREVER
from app.core.effects import BeginStream, Effect, Ended, EndStream, ToUpstream
from app.core.exchange import Subscription
from app.core.listening import Listening
from app.protocol.faults import Exited
from app.protocol.jsonrpc import Failure, Message, Notification, Request, RequestId, Result, payload
from tests.core.exchanges import LIMITS, cancelled, is_at_rest, logged, never, progress, raw, refused
from tests.core.subscriptions import (
    ACKNOWLEDGED,
    ALL,
    OFFERED,
    PROMPTS,
    RESOURCES,
    TOOLS,
    UPDATED,
    WATCHED,
    acknowledged,
    ended,
    heard,
    listen,
    tagged,
    updated,
)


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
