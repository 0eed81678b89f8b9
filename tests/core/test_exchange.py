"""One stateless request to a child of the same era: what goes through, what is mapped, and how it ends."""

from itertools import count
from typing import Any

import pytest

from app.core.deadlines import FOREVER
from app.core.effects import BeginStream, Doubt, Ended, ToClient, ToUpstream
from app.core.exchange import Discovery, Exchange, Waiting
from app.protocol.faults import Exited, Unavailable
from app.protocol.jsonrpc import Failure, Message, Notification, Request, RequestId, Result, payload
from tests.core.exchanges import (
    LIMITS,
    always,
    cancelled,
    done,
    is_at_rest,
    logged,
    never,
    progress,
    raw,
    read,
    refused,
    request,
)


def new(asked: Request | None = None, level: str = "") -> Exchange:
    return Exchange(asked or request(), LIMITS, count(100), level=level, server="weather")


def begun(asked: Request | None = None, *, level: str = "", can_stream: bool = True) -> Exchange:
    exchange = new(asked, level)
    exchange.begin(1, 0.0, can_stream=can_stream)
    return exchange


# What goes through.


@pytest.mark.parametrize("ident", [7, "7", -1, 2**63])
def test_a_request_goes_out_under_our_id_and_its_answer_back_under_the_clients(ident: RequestId) -> None:
    asked = Request(ident, "tools/call", raw('{"n":1.50,"_meta":{"a/b":2.50}}'))
    exchange = new(asked)
    assert exchange.begin(1, 0.0, can_stream=True) == [ToUpstream(Request(100, "tools/call", asked.params))]
    effects = exchange.deliver(Result(100, raw('{ "resultType":"task","x":1.50}')), 1.0)
    assert effects == done(1, Result(ident, raw('{ "resultType":"task","x":1.50}')))
    assert type(effects[0].message.id) is type(ident)  # type: ignore[union-attr]  # the one just compared
    assert is_at_rest(exchange)


@pytest.mark.parametrize("code", [-32002, -32042, -32021, -32602, 7])
def test_an_error_of_the_child_goes_through_as_it_is(code: int) -> None:
    error = raw(f'{{"code":{code} ,"message":"m","data":1.50}}')
    assert begun(request("a")).deliver(Failure(100, error), 1.0) == done(1, Failure("a", error))


def test_a_child_that_asks_and_a_client_that_retries_are_not_interfered_with() -> None:
    asked = request(2, params={"name": "t", "inputResponses": {"k": {"a": 1}}, "requestState": "theirs"})
    exchange = new(asked)
    assert exchange.begin(1, 0.0, can_stream=True) == [ToUpstream(Request(100, "tools/call", asked.params))]
    question = raw('{"resultType":"input_required","requestState":"more"}')
    assert exchange.deliver(Result(100, question), 1.0) == done(1, Result(2, question))


@pytest.mark.parametrize("token", [5, "5", "", 0])
def test_progress_is_reported_to_us_and_passed_on_under_the_clients_token(token: RequestId) -> None:
    exchange = new(request(token=token))
    (sent,) = exchange.begin(1, 0.0, can_stream=True)
    assert isinstance(sent, ToUpstream)
    assert isinstance(sent.message, Request)
    assert read(sent.message.params)["_meta"]["progressToken"] == 100
    assert exchange.deliver(progress(100, 0.5), 1.0) == [ToClient(1, progress(token, 0.5))]
    assert exchange.deliver(progress(token), 1.0) == []
    assert exchange.deliver(progress("100"), 1.0) == []


def test_progress_that_was_not_asked_for_is_dropped() -> None:
    assert begun().deliver(progress(100), 1.0) == []


@pytest.mark.parametrize(
    ("wanted", "level", "is_heard"),
    [
        ("", "emergency", False),
        ("info", "debug", False),
        ("info", "info", True),
        ("info", "error", True),
        ("error", "warning", False),
        ("debug", "odd", True),
    ],
)
def test_log_messages_are_heard_from_the_level_that_was_asked_for(wanted: str, level: str, is_heard: bool) -> None:
    exchange = begun(level=wanted)
    assert exchange.deliver(logged(level), 1.0) == ([ToClient(1, logged(level))] if is_heard else [])


def test_what_else_the_child_says_of_the_call_is_passed_on_and_a_withdrawal_of_our_id_is_not() -> None:
    exchange = begun()
    news = Notification("x/news", raw('{"n":1.50}'))
    assert exchange.deliver(news, 1.0) == [ToClient(1, news)]
    assert exchange.deliver(Notification("notifications/cancelled", payload({"requestId": 100})), 1.0) == []
    assert exchange.deliver(Request(3, "roots/list"), 1.0) == []


@pytest.mark.parametrize("reply", [Result("100", raw("{}")), Result(1, raw("{}")), Failure(None, raw("{}"))])
def test_an_answer_to_another_id_is_none(reply: Message) -> None:
    exchange = begun()
    assert exchange.deliver(reply, 1.0) == []
    assert exchange.is_owed


def test_nothing_is_said_after_the_answer() -> None:
    exchange = begun(request(token=5), level="debug")
    exchange.deliver(Result(100, raw("{}")), 1.0)
    late: list[Message] = [Result(100, raw("{}")), progress(100), logged("error"), Notification("x/news")]
    assert [exchange.deliver(message, 2.0) for message in late] == [[], [], [], []]
    assert exchange.tick(9999.0, never) == []
    assert exchange.lost(Exited("gone")) == []
    assert exchange.close() == []
    assert exchange.gone(1) == []
    assert exchange.settle(raw("{}")) == []


def test_discovery_names_the_revisions_that_are_served_here_and_keeps_the_rest() -> None:
    exchange = Discovery(request(method="server/discover"), LIMITS, count(100))
    exchange.begin(1, 0.0, can_stream=True)
    found = raw('{"supportedVersions":["2026-07-28","2027-01-01"],"ttlMs":5.50}')
    effects = exchange.deliver(Result(100, found), 1.0)
    served = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
    (answer,) = [effect.message for effect in effects if isinstance(effect, ToClient)]
    assert isinstance(answer, Result)
    assert sorted(read(answer.result).pop("supportedVersions")) == sorted(served)
    assert b'"ttlMs":5.50' in bytes(answer.result)


def test_discovery_passes_on_an_error_and_a_result_that_is_no_object() -> None:
    for reply in (Failure(100, raw('{"code":1}')), Result(100, raw("[1]"))):
        exchange = Discovery(request(), LIMITS, count(100))
        exchange.begin(1, 0.0, can_stream=True)
        (said, *_rest) = exchange.deliver(reply, 1.0)
        expected: Message = Failure(1, raw('{"code":1}')) if isinstance(reply, Failure) else Result(1, raw("[1]"))
        assert said == ToClient(1, expected)


def test_what_is_known_without_the_child_is_answered_at_once() -> None:
    waiting = Waiting(request("a"), LIMITS, count(100))
    assert waiting.begin(1, 0.0, can_stream=True) == []
    assert waiting.settle(raw('{"x":1.50}')) == done(1, Result("a", raw('{"x":1.50}')))


# The stream.


def test_a_stream_begins_once_when_nothing_was_said_for_a_while() -> None:
    exchange = begun()
    assert exchange.due == 0.25
    assert exchange.tick(0.24, never) == []
    assert exchange.tick(0.25, never) == [BeginStream(1)]
    assert exchange.tick(0.26, never) == []
    assert exchange.due == 60


def test_a_stream_that_something_was_said_on_is_not_begun_again() -> None:
    exchange = begun()
    news = Notification("x/news")
    assert exchange.deliver(news, 0.1) == [ToClient(1, news)]
    assert exchange.tick(0.25, never) == []


def test_a_client_that_takes_only_json_hears_nothing_but_the_answer() -> None:
    exchange = begun(request(token=5), level="debug", can_stream=False)
    assert exchange.due == 60
    said: list[Message] = [progress(100), logged("error"), Notification("x/news")]
    assert [exchange.deliver(message, 0.1) for message in said] == [[], [], []]
    assert exchange.tick(1.0, never) == []
    assert exchange.deliver(Result(100, raw("{}")), 2.0) == done(1, Result(1, raw("{}")))


# Time.


@pytest.mark.parametrize("can_stream", [True, False])
def test_progress_extends_the_quiet_deadline_and_not_the_last_one(can_stream: bool) -> None:
    exchange = begun(request(token=5), can_stream=can_stream)
    for now in range(50, 600, 50):
        exchange.tick(now, never)
        assert not exchange.is_over
        exchange.deliver(progress(100), now)
    exchange.tick(599, never)
    assert not exchange.is_over
    effects = exchange.tick(600, never)
    assert effects[:2] == [cancelled(100, "timed out at the gateway"), Doubt()]
    assert refused(effects, 1) == (1, -31003, "timed_out", "unknown")
    assert is_at_rest(exchange)


def test_what_is_not_progress_extends_nothing() -> None:
    exchange = begun(level="debug")
    exchange.deliver(logged("error"), 59)
    exchange.deliver(Notification("x/news"), 59)
    exchange.tick(60, never)
    assert exchange.is_over


def test_a_call_of_which_nothing_was_sent_is_taken_back_when_it_times_out() -> None:
    exchange = begun()
    assert exchange.is_owed
    effects = exchange.tick(60, lambda ident: ident == 100)
    assert refused(effects, 1) == (1, -31003, "timed_out", "no")
    assert len(effects) == 3
    assert not exchange.is_owed


def test_a_request_without_a_child_times_out_unexecuted() -> None:
    waiting = Waiting(request(), LIMITS, count(100), server="weather")
    waiting.begin(1, 0.0, can_stream=True)
    assert waiting.tick(0.25, never) == [BeginStream(1)]
    assert refused(waiting.tick(60, never), 1) == (1, -31003, "timed_out", "no")


# Other ends.


def test_closing_the_response_cancels() -> None:
    exchange = begun()
    assert exchange.gone(2) == []
    assert exchange.gone(1) == [cancelled(100, "the client closed the response"), Ended("cancelled")]
    assert is_at_rest(exchange)
    assert exchange.is_owed


def test_closing_the_response_before_there_is_a_child_tells_nobody() -> None:
    waiting = Waiting(request(), LIMITS, count(100))
    waiting.begin(1, 0.0, can_stream=True)
    assert waiting.gone(1) == [Ended("cancelled")]
    assert not waiting.is_owed


def test_a_stopping_gateway_cancels_and_says_so() -> None:
    exchange = begun()
    effects = exchange.close()
    assert effects[0] == cancelled(100, "the gateway is shutting down")
    assert refused(effects, 1) == (1, -31006, "shutting_down", "unknown")
    assert is_at_rest(exchange)
    waiting = Waiting(request(), LIMITS, count(100), server="weather")
    waiting.begin(1, 0.0, can_stream=True)
    effects = waiting.close()
    assert refused(effects, 1) == (1, -31006, "shutting_down", "no")
    assert len(effects) == 3


def test_a_lost_child_is_told_of_and_owes_nothing() -> None:
    exchange = begun()
    effects = exchange.lost(Exited("gone", executed="unknown"))
    assert refused(effects, 1) == (1, -31002, "exited", "unknown")
    assert len(effects) == 3
    assert not exchange.is_owed
    assert is_at_rest(exchange)


def test_a_child_that_never_came_is_told_of() -> None:
    waiting = Waiting(request(), LIMITS, count(100), server="weather")
    waiting.begin(1, 0.0, can_stream=True)
    assert refused(waiting.lost(Unavailable("no", details={"server": "weather"})), 1)[1] == -31001


@pytest.mark.parametrize("reply", [Result(100, raw("{}")), Failure(100, raw('{"code":1}'))])
def test_a_child_owes_something_from_the_request_to_the_answer(reply: Any) -> None:
    exchange = new()
    owed = [exchange.is_owed]
    exchange.begin(1, 0.0, can_stream=True)
    owed.append(exchange.is_owed)
    exchange.deliver(reply, 1.0)
    assert [*owed, exchange.is_owed] == [False, True, False]


def test_a_timed_out_call_is_still_owed_unless_it_was_taken_back() -> None:
    for withdraw, is_owed in ((never, True), (always, False)):
        exchange = begun()
        exchange.tick(60, withdraw)
        assert exchange.is_owed is is_owed


def test_a_request_without_parameters_is_passed_on_without() -> None:
    exchange = new(Request(1, "x/future"))
    assert exchange.begin(1, 0.0, can_stream=True) == [ToUpstream(Request(100, "x/future"))]
    assert exchange.due < FOREVER
