"""One `subscriptions/listen` that a child of the same era has: acknowledged first, only what was asked for, its end."""

from itertools import count

import pytest

from app.core.deadlines import FOREVER
from app.core.effects import BeginStream, Doubt, Ended, ToUpstream
from app.core.exchange import Subscription
from app.protocol.faults import Exited
from app.protocol.jsonrpc import Failure, Message, Request, RequestId, Result, payload
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
from tests.core.subscriptions import ALL, PROMPTS, RESOURCES, TOOLS, UPDATED, acknowledged, ended, heard, listen, tagged


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
