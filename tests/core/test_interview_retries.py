"""A retry goes on with the call that was parked: whose answers reach the child, and what the retry itself may want."""

from typing import Any

import pytest
from msgspec import Raw

from app.core.deadlines import FOREVER
from app.core.effects import BeginStream, ToClient, ToUpstream
from app.core.interview import Interview
from app.protocol.faults import BadParams
from app.protocol.jsonrpc import Notification, Request, RequestId, Result, payload
from tests.core.exchanges import (
    asking,
    begun,
    completed,
    done,
    form,
    logged,
    never,
    parked,
    progress,
    raw,
    request,
    retry,
    roots,
    sample,
    shown,
    unanswered,
    url,
)

ACCEPT = {"action": "accept", "content": {"n": 1}}


def resume(core: Interview, asked: Request, round_: int = 1, stream: int = 2, now: float = 10.0) -> list[Any]:
    return list(core.resume(asked, round_, stream, now, can_stream=True))


def reply(ident: RequestId, value: object) -> ToUpstream:
    return ToUpstream(Result(ident, payload(value)))


# Answers.


@pytest.mark.parametrize("theirs", [7, "7", 0, ""])
def test_a_retry_answers_the_question_under_the_childs_id_and_is_answered_under_its_own(theirs: RequestId) -> None:
    core = parked(begun(request(1)), form(theirs, "a"))
    assert resume(core, retry("r", {"a": ACCEPT})) == [reply(theirs, ACCEPT)]
    assert not core.is_parked
    assert core.deliver(Result(100, raw("{}")), 11.0) == done(2, completed("r"))


def test_an_answer_keeps_the_bytes_that_the_client_wrote() -> None:
    core = parked(begun(), sample(1))
    meta = bytes(request().params or b"")[len(b'{"name":"t",') :]
    params = Raw(b'{"name":"t","inputResponses":{"sampling":{"n" : 1.50}},' + meta)
    assert resume(core, Request(2, "tools/call", params)) == [ToUpstream(Result(1, raw('{"n" : 1.50}')))]


def test_answers_under_unknown_keys_are_ignored() -> None:
    core = parked(begun(), form(1, "a"))
    assert resume(core, retry(2, {"b": ACCEPT, "a": ACCEPT, "": {}, "A": {}})) == [reply(1, ACCEPT)]


def test_what_was_not_answered_is_asked_again_under_its_key() -> None:
    core = parked(begun(), form(1, "a"), form(2, "b"))
    assert resume(core, retry(2, {"a": ACCEPT})) == [reply(1, ACCEPT)]
    assert core.due == 10.02
    assert asking(core.tick(10.02, never), 2, 2) == {
        "inputRequests": {"b": shown(form(2, "b"))},
        "requestState": "sealed-2",
    }
    assert resume(core, retry(3, {"a": {}, "b": ACCEPT}), 2, 3, 20.0) == [reply(2, ACCEPT)]


@pytest.mark.parametrize("params", [{}, {"inputResponses": {}}])
def test_a_retry_that_answers_nothing_is_asked_the_same_again(params: dict[str, object]) -> None:
    core = parked(begun(), form(1, "a"))
    assert resume(core, request(2, params={"name": "t", **params})) == []
    assert list(asking(core.tick(10.02, never), 2, 2)["inputRequests"]) == ["a"]


def test_what_the_child_asks_while_the_call_is_parked_is_asked_after_the_retry() -> None:
    core = parked(begun(), form(1, "a"))
    assert core.deliver(form(2, "b"), 5.0) == []
    assert core.due == 301.02
    assert resume(core, retry(2, {"a": ACCEPT})) == [reply(1, ACCEPT)]
    assert list(asking(core.tick(10.02, never), 2, 2)["inputRequests"]) == ["b"]


def test_what_was_not_asked_yet_cannot_be_answered() -> None:
    core = parked(begun(), form(1, "a"))
    core.deliver(form(2, "b"), 5.0)
    assert resume(core, retry(2, {"b": ACCEPT})) == []
    assert list(asking(core.tick(10.02, never), 2, 2)["inputRequests"]) == ["a", "b"]


def test_what_the_child_asks_after_a_retry_is_asked_with_what_is_still_open() -> None:
    core = parked(begun(), form(1, "a"), form(2, "b"))
    resume(core, retry(2, {"a": ACCEPT}))
    core.deliver(form(1, "c"), 10.01)
    assert core.tick(10.02, never) == []
    asked = asking(core.tick(10.04, never), 2, 2)
    assert asked == {
        "inputRequests": {"b": shown(form(2, "b")), "c": shown(form(1, "c"))},
        "requestState": "sealed-2",
    }


def test_rounds_may_follow_one_another_without_end() -> None:
    core = begun()
    for n in range(1, 6):
        core.deliver(form(n, "a"), n * 10.0)
        key = "a" if n == 1 else f"a_{n}"
        asked = asking(core.tick(n * 10.0 + 0.02, never), n, n)
        assert (list(asked["inputRequests"]), asked["requestState"]) == ([key], f"sealed-{n}")
        assert resume(core, retry(n + 1, {key: ACCEPT}), n, n + 1, n * 10.0 + 5) == [reply(n, ACCEPT)]
    assert core.deliver(Result(100, raw("{}")), 99.0) == done(6, completed(6))


# Retries that are refused.


def test_a_round_is_used_once() -> None:
    core = parked(begun(), form(1, "a"))
    resume(core, retry(2, {"a": ACCEPT}))
    with pytest.raises(BadParams) as used:
        resume(core, retry(3, {"a": ACCEPT}), stream=3)
    assert used.value.reason == "state_used"
    assert core.deliver(Result(100, raw("{}")), 11.0) == done(2, completed(2))


@pytest.mark.parametrize("round_", [0, 1, 3])
def test_only_the_round_that_is_open_is_answered(round_: int) -> None:
    core = parked(begun(), form(1, "a"))
    resume(core, retry(2, {}))
    core.tick(10.02, never)
    with pytest.raises(BadParams):
        resume(core, retry(3, {"a": ACCEPT}), round_, 3)
    assert resume(core, retry(3, {"a": ACCEPT}), 2, 3) == [reply(1, ACCEPT)]


def test_a_call_that_is_not_parked_or_over_is_not_gone_on_with() -> None:
    core = begun()
    for _ in ("running", "over"):
        with pytest.raises(BadParams):
            resume(core, retry(2, {}), 0)
        core.close()
    core = parked(begun(), form(1, "a"))
    core.close()
    with pytest.raises(BadParams):
        resume(core, retry(2, {"a": ACCEPT}))
    assert core.due == FOREVER


@pytest.mark.parametrize("answer", [None, "yes", 1, [], True])
def test_an_answer_that_is_no_object_is_refused_and_may_be_mended(answer: object) -> None:
    core = parked(begun(), form(1, "a"), form(2, "b"))
    with pytest.raises(BadParams, match="'b'"):
        resume(core, retry(2, {"a": ACCEPT, "b": answer}))
    assert core.is_parked
    assert core.due == 301.02
    assert resume(core, retry(3, {"a": ACCEPT, "b": ACCEPT})) == [reply(1, ACCEPT), reply(2, ACCEPT)]


@pytest.mark.parametrize("answers", [5, [], "x", {"a": ACCEPT, "requestState": 5}])
def test_answers_that_are_not_readable_are_refused_and_may_be_mended(answers: Any) -> None:
    core = parked(begun(), form(1, "a"))
    params: dict[str, object] = {"name": "t", "inputResponses": answers}
    if isinstance(answers, dict):
        params = {"name": "t", "inputResponses": {}, "requestState": 5}
    with pytest.raises(BadParams):
        resume(core, request(2, params=params))
    assert core.is_parked
    assert resume(core, retry(3, {"a": ACCEPT})) == [reply(1, ACCEPT)]


def test_a_retry_without_its_envelope_is_refused_and_may_be_mended() -> None:
    core = parked(begun(), form(1, "a"))
    with pytest.raises(BadParams):
        resume(core, Request(2, "tools/call", payload({"inputResponses": {"a": {}}})))
    assert resume(core, retry(3, {"a": ACCEPT})) == [reply(1, ACCEPT)]


# What a retry wants for itself.


@pytest.mark.parametrize("token", ["p", 7, None])
def test_progress_after_a_retry_is_reported_under_its_token(token: RequestId | None) -> None:
    core = parked(begun(request(token="first")), form(1, "a"))
    assert core.deliver(progress(100), 5.0) == []
    resume(core, retry(2, {"a": ACCEPT}, token=token))
    heard = [] if token is None else [ToClient(2, progress(token, 3))]
    assert core.deliver(progress(100, 3), 11.0) == heard


def test_progress_keeps_a_call_alive_whose_retry_does_not_want_to_hear_of_it() -> None:
    core = parked(begun(request(token="first")), form(1, "a"))
    resume(core, retry(2, {"a": ACCEPT}))
    core.deliver(progress(100), 60.0)
    core.tick(119.0, never)
    assert not core.is_over


@pytest.mark.parametrize(
    ("capabilities", "refusals"),
    [
        ({"elicitation": {"form": {}, "url": {}}, "roots": {}}, []),
        ({"elicitation": {"url": {}}, "roots": {}}, [(1, -32602, "capability_not_declared")]),
        ({}, [(1, -32601, "capability_not_declared"), (2, -32601, "capability_not_declared")]),
    ],
)
def test_what_a_retry_does_not_declare_is_not_asked_again(capabilities: dict[str, object], refusals: list[Any]) -> None:
    core = parked(begun(), form(1, "a"), roots(2))
    assert unanswered(resume(core, retry(2, {}, capabilities=capabilities))) == refusals
    assert (core.due < 10.25) is (len(refusals) < 2)
    ((_, code, reason),) = unanswered(core.deliver(sample(9), 10.01))
    assert (code, reason) == (-32601, "capability_not_declared")


def test_what_only_a_retry_declares_may_be_asked_from_then_on() -> None:
    core = parked(begun(request(capabilities={"elicitation": {}})), form(1, "a"))
    assert unanswered(core.deliver(url(2), 2.0)) == [(2, -32602, "capability_not_declared")]
    resume(core, retry(2, {"a": ACCEPT}))
    assert core.deliver(url(2), 11.0) == []


def test_a_retry_has_a_log_level_of_its_own() -> None:
    core = parked(begun(request(level="error")), form(1, "a"), form(2, "b"))
    level = ToUpstream(Request(102, "logging/setLevel", payload({"level": "debug"})))
    assert resume(core, retry(2, {"a": ACCEPT}, level="debug")) == [level, reply(1, ACCEPT)]
    assert core.deliver(logged("debug"), 10.01) == [ToClient(2, logged("debug"))]
    core.tick(10.02, never)
    assert core.deliver(logged("error"), 10.03) == []
    assert resume(core, retry(3, {"b": ACCEPT}), 2, 3) == [reply(2, ACCEPT)]
    assert core.deliver(logged("emergency"), 11.0) == []


def test_a_level_that_stays_is_not_set_again() -> None:
    core = parked(begun(request(level="error")), form(1, "a"))
    assert resume(core, retry(2, {"a": ACCEPT}, level="error")) == [reply(1, ACCEPT)]


def test_a_retry_has_a_stream_and_deadlines_of_its_own() -> None:
    core = parked(begun(), form(1, "a"))
    resume(core, retry(2, {"a": ACCEPT}), now=100.0)
    assert core.due == 100.25
    assert core.tick(100.25, never) == [BeginStream(2)]
    assert core.due == 160.0
    news = Notification("x/news")
    assert core.deliver(news, 101.0) == []


def test_a_retry_that_takes_only_json_hears_only_its_answer() -> None:
    core = parked(begun(request(token="p", level="debug")), form(1, "a"))
    core.resume(retry(2, {"a": ACCEPT}, token="p", level="debug"), 1, 2, 10.0, can_stream=False)
    assert core.tick(11.0, never) == []
    assert core.deliver(progress(101), 11.0) == []
    assert core.deliver(logged("error"), 11.0) == []
    assert core.deliver(Result(101, raw("{}")), 12.0) == done(2, completed(2))
