"""A handshake child's questions: which become `input_required`, when, and under which keys."""

from typing import Any

import pytest

from app.core.effects import BeginStream, EndStream, ToClient, ToUpstream
from app.core.interview import Interview
from app.protocol.jsonrpc import Notification, Request, Result, payload
from tests.core.exchanges import (
    asking,
    begun,
    call_at_child,
    completed,
    done,
    form,
    interview,
    never,
    parked,
    raw,
    request,
    retry,
    roots,
    sample,
    shown,
    unanswered,
    url,
    withdrawal,
)


def keys(core: Interview, *questions: Request) -> list[str]:
    """Under which each of the questions is asked."""
    for question in questions:
        assert core.deliver(question, 1.0) == []
    return list(asking(core.tick(1.2, never), 1, 1)["inputRequests"])


# Asking.


def test_a_request_loses_what_only_stateless_servers_know_and_keeps_the_rest() -> None:
    params: dict[str, object] = {"name": "t", "arguments": {"n": 1.5}, "inputResponses": {}, "requestState": "s"}
    core = interview(request("a", params=params))
    assert core.begin(1, 0.0, can_stream=True) == [
        ToUpstream(Request(100, "tools/call", raw('{"name":"t","arguments":{"n":1.5}}')))
    ]


def test_a_question_ends_the_stream_as_a_result_that_asks_and_the_call_goes_on() -> None:
    core = begun(request("a"))
    question = form("q", "city")
    assert core.deliver(question, 1.0) == []
    assert core.tick(1.01, never) == [BeginStream(1)]
    assert core.due == 1.02
    body = {"resultType": "input_required", "inputRequests": {"city": shown(question)}, "requestState": "sealed-1"}
    assert core.tick(1.02, never) == [ToClient(1, Result("a", payload(body))), EndStream(1)]
    assert core.is_parked
    assert core.is_owed
    assert not core.is_over
    assert core.due == 301.02


@pytest.mark.parametrize("can_stream", [True, False])
def test_whether_the_client_takes_events_makes_no_difference_to_a_question(can_stream: bool) -> None:
    core = begun(can_stream=can_stream)
    core.deliver(roots(1), 1.0)
    assert asking(core.tick(1.02, never), 1, 1) == {
        "inputRequests": {"roots": {"method": "roots/list"}},
        "requestState": "sealed-1",
    }


def test_all_that_is_asked_without_a_pause_is_asked_at_once() -> None:
    core = begun(can_stream=False)
    core.deliver(form(1, "a"), 1.0)
    core.deliver(form(2, "b"), 1.019)
    assert core.due == 1.019 + 0.02
    assert core.tick(1.02, never) == []
    assert list(asking(core.tick(1.039, never), 1, 1)["inputRequests"]) == ["a", "b"]


def test_a_child_that_never_pauses_is_not_waited_for_longer_than_the_first_question_allows() -> None:
    core = begun(can_stream=False)
    for n in range(20):
        core.deliver(form(n, f"f{n}"), 1.0 + n / 100)
        assert core.tick(1.0 + n / 100, never) == []
    assert core.due == 1.2
    assert len(asking(core.tick(1.2, never), 1, 1)["inputRequests"]) == 20


@pytest.mark.parametrize("token", [None, "p"])
def test_a_child_that_asks_just_before_the_call_times_out_is_heard(token: str | None) -> None:
    core = begun(request(token=token), can_stream=False)
    core.deliver(form(1, "a"), 59.99)
    assert core.due == 60
    assert list(asking(core.tick(60, never), 1, 1)["inputRequests"]) == ["a"]
    assert core.is_parked


def test_the_pause_is_measured_anew_when_what_was_asked_first_is_withdrawn() -> None:
    core = begun(can_stream=False)
    core.deliver(form(1, "a"), 1.0)
    core.deliver(withdrawal(1), 1.01)
    core.deliver(form(2, "b"), 1.19)
    assert core.tick(1.2, never) == []
    assert list(asking(core.tick(1.21, never), 1, 1)["inputRequests"]) == ["b"]


def test_questions_keep_the_bytes_that_nobody_reads() -> None:
    core = begun()
    core.deliver(Request(1, "sampling/createMessage", raw('{"temperature":1.50,"maxTokens":5}')), 1.0)
    (said, _end) = core.tick(1.02, never)
    assert isinstance(said, ToClient)
    assert isinstance(said.message, Result)
    assert b'{"temperature":1.50,"maxTokens":5}' in bytes(said.message.result)


def test_an_elicitation_by_url_loses_the_id_that_this_revision_does_not_know() -> None:
    core = begun()
    core.deliver(url(1), 1.0)
    said = {"mode": "url", "message": "Go", "url": "https://x"}
    assert asking(core.tick(1.02, never), 1, 1)["inputRequests"] == {
        "elicitation": {"method": "elicitation/create", "params": said}
    }


def test_a_question_under_an_id_that_is_open_is_asked_once() -> None:
    core = begun()
    assert keys(core, form(1, "a"), form(1, "b"), form("1", "c")) == ["a", "c"]


# Keys.


@pytest.mark.parametrize(
    ("question", "key"),
    [
        (form(1, "user_name", "age"), "user_name"),
        (form(1, "名前"), "名前"),
        (form(1, "k" * 64), "k" * 64),
        (form(1), "elicitation"),
        (form(1, ""), "elicitation"),
        (form(1, "k" * 65), "elicitation"),
        (form(1, "line\nbreak"), "elicitation"),
        (Request(1, "elicitation/create", payload({"requestedSchema": 5})), "elicitation"),
        (url(1), "elicitation"),
        (sample(1), "sampling"),
        (roots(1), "roots"),
    ],
)
def test_a_key_says_what_is_asked(question: Request, key: str) -> None:
    assert keys(begun(), question) == [key]


def test_keys_of_one_name_are_numbered_past_those_that_look_so() -> None:
    questions = [form(1, "a"), form(2, "a_2"), form(3, "a"), form(4, "a"), sample(5), sample(6)]
    assert keys(begun(), *questions) == ["a", "a_2", "a_3", "a_4", "sampling", "sampling_2"]


def test_a_key_that_was_shown_is_never_used_again_and_one_that_was_not_may_be() -> None:
    core = begun()
    core.deliver(form(1, "a"), 0.5)
    core.deliver(withdrawal(1), 0.5)
    assert keys(core, form(2, "a")) == ["a"]
    core.resume(retry(2, {"a": {}}), 1, 2, 2.0, can_stream=True)
    core.deliver(form(3, "a"), 2.1)
    assert list(asking(core.tick(2.12, never), 2, 2)["inputRequests"]) == ["a_2"]


# What may be asked.


@pytest.mark.parametrize(
    ("capabilities", "question", "code"),
    [
        ({}, form(1, "a"), -32601),
        ({"sampling": {}}, form(1, "a"), -32601),
        ({"elicitation": {}}, sample(1), -32601),
        ({"elicitation": {}}, roots(1), -32601),
        ({"elicitation": {}, "roots": {}}, Request(1, "x/ask"), -32601),
        ({"elicitation": {}}, url(1), -32602),
        ({"elicitation": {"form": {}}}, url(1), -32602),
        ({"elicitation": {"url": {}}}, form(1, "a"), -32602),
        ({"elicitation": {}}, Request(1, "elicitation/create", payload({"mode": 5})), -32602),
        ({"elicitation": {}}, Request(1, "elicitation/create", payload({"mode": "odd"})), -32602),
        ({"sampling": {}}, sample(1, tools=[]), -32602),
        ({"sampling": {"context": {}}}, sample(1, toolChoice={}), -32602),
    ],
)
def test_what_the_client_did_not_declare_is_refused_at_once(
    capabilities: dict[str, Any], question: Request, code: int
) -> None:
    core = begun(request(capabilities=capabilities))
    ((ident, refusal, _reason),) = unanswered(core.deliver(question, 1.0))
    assert (ident, refusal) == (1, code)
    assert core.due == 0.25
    assert core.deliver(Result(100, raw("{}")), 1.0) == done(1, completed(1))


@pytest.mark.parametrize(
    ("capabilities", "question"),
    [
        ({"elicitation": {}}, form(1, "a")),
        ({"elicitation": {}}, Request(1, "elicitation/create")),
        ({"elicitation": {"applyDefaults": True}}, form(1, "a")),
        ({"elicitation": {"form": {}}}, form(1, "a")),
        ({"elicitation": {"url": {}}}, url(1)),
        ({"sampling": {}}, sample(1)),
        ({"sampling": {"tools": {}}}, sample(1, tools=[], toolChoice={})),
        ({"roots": {}}, roots(1)),
    ],
)
def test_what_the_client_declared_is_asked(capabilities: dict[str, Any], question: Request) -> None:
    assert parked(begun(request(capabilities=capabilities)), question).is_parked


@pytest.mark.parametrize("method", ["tools/list", "completion/complete", "resources/list", "x/future"])
def test_methods_that_may_not_ask_do_not(method: str) -> None:
    core = begun(request(method=method))
    assert unanswered(core.deliver(form(1, "a"), 1.0)) == [(1, -32601, "cannot_ask")]


@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "resources/read"])
def test_methods_that_may_ask_do(method: str) -> None:
    core = interview(request(method=method))
    assert core.begin(1, 0.0, can_stream=True) == [call_at_child(method=method)]
    assert parked(core, form(1, "a")).is_parked


# Questions that end before they are answered.


def test_a_question_that_is_withdrawn_before_it_was_asked_never_is() -> None:
    core = begun()
    core.deliver(form(1, "a"), 1.0)
    assert core.deliver(withdrawal("1"), 1.01) == []
    assert core.deliver(withdrawal(1), 1.01) == []
    assert core.tick(1.3, never) == [BeginStream(1)]
    assert core.due == 60
    assert core.deliver(Result(100, raw("{}")), 2.0) == done(1, completed(1))


def test_of_several_questions_the_one_that_is_withdrawn_is_not_asked() -> None:
    core = begun()
    core.deliver(form(1, "a"), 1.0)
    core.deliver(form(2, "b"), 1.0)
    core.deliver(withdrawal(1), 1.0)
    assert list(asking(core.tick(1.02, never), 1, 1)["inputRequests"]) == ["b"]


def test_the_answer_to_a_question_that_is_withdrawn_while_parked_goes_nowhere() -> None:
    core = parked(begun(), form(1, "a"), form(2, "b"))
    assert core.deliver(withdrawal(1), 2.0) == []
    answers: dict[str, object] = {"a": {"action": "accept"}, "b": {"action": "decline"}}
    assert core.resume(retry(2, answers), 1, 2, 3.0, can_stream=True) == [
        ToUpstream(Result(2, raw('{"action":"decline"}')))
    ]


def test_when_all_is_withdrawn_while_parked_the_retry_waits_for_the_answer_of_the_call() -> None:
    core = parked(begun(), form(1, "a"))
    core.deliver(withdrawal(1), 2.0)
    assert core.resume(retry(2, {"a": {}}), 1, 2, 3.0, can_stream=True) == []
    assert core.tick(4.0, never) == [BeginStream(2)]
    assert core.deliver(Result(100, raw("{}")), 5.0) == done(2, completed(2))


def test_a_malformed_withdrawal_withdraws_nothing() -> None:
    core = begun()
    core.deliver(form(1, "a"), 1.0)
    for params in (None, raw("{}"), raw('{"requestId":[1]}')):
        assert core.deliver(Notification("notifications/cancelled", params), 1.0) == []
    assert core.tick(1.02, never) != []


def test_a_call_that_is_answered_with_questions_open_tells_the_child_so_and_leaves_it_suspect() -> None:
    core = begun()
    core.deliver(form("q", "a"), 1.0)
    told, *answer = core.deliver(Result(100, raw("{}")), 1.01)
    assert unanswered([told]) == [("q", -31001, "client_unreachable")]
    assert answer == done(1, completed(1))
    assert core.is_owed
