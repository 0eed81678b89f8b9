"""A handshake child's answers and log messages in the words of the stateless revision."""

from typing import Any

import pytest
from msgspec import Raw

from app.core.effects import ToClient, ToUpstream
from app.core.interview import Interview
from app.protocol import methods, stateless
from app.protocol.jsonrpc import Failure, Message, Notification, Request, Result, payload
from tests.core.exchanges import (
    LIMITS,
    answered,
    asking,
    begun,
    call_at_child,
    completed,
    done,
    interview,
    logged,
    progress,
    raw,
    read,
    refused,
    request,
)

HINTS = {"ttlMs": 0, "cacheScope": "private"}


# Results.


def test_a_result_says_that_it_is_complete_and_whose_it_is_and_keeps_the_rest() -> None:
    said = raw('{"content":[1.50],"_meta":{"a/b":2.50}}')
    info = '"io.modelcontextprotocol/serverInfo":{"name":"w","version":"9"}'
    expected = raw(f'{{"resultType":"complete","content":[1.50],"_meta":{{"a/b":2.50,{info}}}}}')
    assert begun().deliver(Result(100, said), 1.0) == done(1, Result(1, expected))


def test_a_server_that_has_no_name_is_not_named() -> None:
    asked = request()
    core = Interview(asked, stateless.envelope(asked), LIMITS, iter([100]), seal=str)
    core.begin(1, 0.0, can_stream=True)
    assert core.deliver(Result(100, raw("{}")), 1.0) == done(1, Result(1, raw('{"resultType":"complete"}')))


@pytest.mark.parametrize("method", sorted(stateless.CACHEABLE))
def test_results_that_may_be_cached_say_how_long(method: str) -> None:
    core = interview(request(method=method), HINTS)
    core.begin(1, 0.0, can_stream=True)
    assert core.deliver(Result(100, raw('{"x":1,"ttlMs":5}')), 1.0) == done(
        1, completed(1, x=1, ttlMs=0, cacheScope="private")
    )


@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "completion/complete"])
def test_results_that_are_never_cached_do_not(method: str) -> None:
    core = interview(request(method=method), HINTS)
    core.begin(1, 0.0, can_stream=True)
    assert core.deliver(Result(100, raw("{}")), 1.0) == done(1, completed(1))


@pytest.mark.parametrize("result", ["[]", "null", "1", '"x"'])
def test_a_result_that_is_no_object_is_nonsense(result: str) -> None:
    core = begun()
    assert refused(core.deliver(Result(100, raw(result)), 1.0), 1) == (1, -31004, "spoke_nonsense", "unknown")
    assert not core.is_owed


@pytest.mark.parametrize("theirs", ["100", 101, 1])
def test_an_answer_to_another_id_is_none(theirs: Any) -> None:
    core = begun()
    assert core.deliver(Result(theirs, raw("{}")), 1.0) == []
    assert not core.is_over


# Errors.


@pytest.mark.parametrize(
    ("code", "method", "expected"),
    [
        (-32002, "resources/read", -32602),
        (-32002, "tools/call", -32602),
        (-32601, "x/future", -32601),
        (-32602, "tools/call", -32602),
        (-32603, "tools/call", -32603),
        (-32000, "tools/call", -32000),
        (7, "tools/call", 7),
    ],
)
def test_an_error_has_a_code_that_the_revision_knows_and_keeps_the_rest(code: int, method: str, expected: int) -> None:
    core = begun(request("a", method))
    error = raw(f'{{"code":{code},"message":"m","data":{{"uri":"u","n":1.50}}}}')
    said = raw(f'{{"code":{expected},"message":"m","data":{{"uri":"u","n":1.50}}}}')
    assert core.deliver(Failure(100, error), 1.0) == done(1, Failure("a", said))


@pytest.mark.parametrize(("method", "expected"), [("x/future", -32601), ("tools/call", -32602)])
def test_what_an_mcp_1_server_says_to_an_unknown_method_has_the_code_for_one(method: str, expected: int) -> None:
    core = begun(request(method=method))
    effects = core.deliver(Failure(100, raw('{"code":-32602,"message":"Invalid request parameters","data":""}')), 1.0)
    answer = answered(effects, 1)
    assert isinstance(answer, Failure)
    assert read(answer.error)["code"] == expected


def url_needed(*elicitations: object) -> Failure:
    return Failure(100, payload({"code": -32042, "message": "m", "data": {"elicitations": elicitations}}))


PAGE = {"mode": "url", "elicitationId": "e", "url": "https://x", "message": "Go"}
SHOWN = {"method": "elicitation/create", "params": {"mode": "url", "url": "https://x", "message": "Go"}}


def test_pages_to_visit_first_are_asked_for_and_the_call_is_over() -> None:
    core = begun(request("a"))
    effects = core.deliver(url_needed(PAGE, PAGE), 1.0)
    assert asking(effects, 1, "a") == {
        "inputRequests": {"elicitation": SHOWN, "elicitation_2": SHOWN},
        "requestState": "sealed-0",
    }
    assert core.is_over
    assert not core.is_parked
    assert not core.is_owed


@pytest.mark.parametrize("declared", [{}, {"elicitation": {}}, {"elicitation": {"form": {}}}, {"sampling": {}}])
def test_a_client_that_visits_no_pages_hears_what_it_would_need(declared: dict[str, object]) -> None:
    effects = begun(request("a", capabilities=declared)).deliver(url_needed(PAGE), 1.0)
    assert refused(effects, 1) == ("a", -32021, "missing_capability", "unknown")
    answer = answered(effects, 1)
    assert isinstance(answer, Failure)
    assert read(answer.error)["data"]["requiredCapabilities"] == {"elicitation": {"url": {}}}


@pytest.mark.parametrize("listed", [[], [{"mode": "form", "message": "m"}], [5]])
def test_an_error_that_names_no_page_is_only_an_error(listed: list[object]) -> None:
    (said, *_rest) = begun().deliver(url_needed(*listed), 1.0)
    error = {"code": -32603, "message": "m", "data": {"elicitations": listed}}
    assert said == ToClient(1, Failure(1, payload(error)))


def test_a_method_that_may_not_ask_does_not_ask_for_a_page() -> None:
    answer = answered(begun(request(method="tools/list")).deliver(url_needed(PAGE), 1.0), 1)
    assert isinstance(answer, Failure)
    assert read(answer.error)["code"] == -32603


# Log messages and what else is said on the way.


def test_a_level_is_set_before_the_request_that_wants_it() -> None:
    level = ToUpstream(Request(100, "logging/setLevel", payload({"level": "info"})))
    core = interview(request(level="info"))
    assert core.begin(1, 0.0, can_stream=True) == [level, call_at_child(101)]
    assert core.deliver(Failure(100, raw('{"code":-32601}')), 0.1) == []
    assert core.deliver(Result(100, raw("{}")), 0.1) == []
    assert core.deliver(Result(101, raw("{}")), 0.2) == done(1, completed(1))


@pytest.mark.parametrize(
    ("wanted", "level", "is_heard"),
    [
        ("", "emergency", False),
        ("warning", "notice", False),
        ("warning", "warning", True),
        ("warning", "alert", True),
        ("emergency", "alert", False),
    ],
)
def test_log_messages_are_heard_from_the_level_that_was_asked_for(wanted: str, level: str, is_heard: bool) -> None:
    core = begun(request(level=wanted))
    assert core.deliver(logged(level), 1.0) == ([ToClient(1, logged(level))] if is_heard else [])


def test_progress_has_the_clients_token_and_the_child_ours() -> None:
    core = interview(request("a", token="p"))
    assert core.begin(1, 0.0, can_stream=True) == [call_at_child(100, token=100)]
    assert core.deliver(progress(100, 0.5), 1.0) == [ToClient(1, progress("p", 0.5))]
    assert core.deliver(progress("p"), 1.0) == []
    core.deliver(Result(100, raw("{}")), 2.0)
    assert core.deliver(progress(100), 3.0) == []


@pytest.mark.parametrize(
    "method", ["notifications/elicitation/complete", "notifications/tools/list_changed", "notifications/x"]
)
def test_what_else_a_child_says_is_of_no_call(method: str) -> None:
    said: Message = Notification(method, raw("{}"))
    assert begun(request(level="debug")).deliver(said, 1.0) == []


def test_what_is_no_json_of_a_known_shape_is_survived() -> None:
    core = begun(request(level="debug"))
    odd = Raw(b'{"level":5,"progressToken":[],"requestId":{}}')
    for method in ("notifications/progress", "notifications/cancelled"):
        assert core.deliver(Notification(method, odd), 1.0) == []
    assert core.deliver(Notification("notifications/message", odd), 1.0) == [
        ToClient(1, Notification("notifications/message", odd))
    ]


@pytest.mark.parametrize("error", ['"boom"', "null", "[]", '{"code":"x","message":"y"}', '{"code":-1}'])
def test_an_error_that_is_none_is_not_passed_on(error: str) -> None:
    (said,) = [effect for effect in begun().deliver(Failure(100, raw(error)), 1.0) if isinstance(effect, ToClient)]
    assert isinstance(said.message, Failure)
    assert methods.error_code(said.message.error) == -31004


@pytest.mark.parametrize("kind", ['"input_required"', "7", '"task"'])
def test_a_kind_of_result_that_a_handshake_server_names_itself_means_nothing(kind: str) -> None:
    effects = begun().deliver(Result(100, raw(f'{{"resultType":{kind},"content":[]}}')), 1.0)
    (said,) = [effect for effect in effects if isinstance(effect, ToClient)]
    assert isinstance(said.message, Result)
    assert read(said.message.result)["resultType"] == "complete"
