"""Calls at a stateless child: what they carry, what it asks, and what the session sees of both."""

import pytest

from app.core.deadlines import FOREVER
from app.core.parties import ToChild
from app.core.probing import ToSession
from app.core.translation import Translation
from app.protocol.jsonrpc import Failure, Message, Notification, Request, Result, payload
from tests.core.translations import (
    REFUSED,
    asking,
    call,
    cancelled,
    code,
    enveloped,
    modern,
    raw,
    read,
    retry,
    withdrawn,
)

FORM: dict[str, object] = {
    "method": "elicitation/create",
    "params": {"message": "Who?", "requestedSchema": {"type": "object"}},
}
URL: dict[str, object] = {
    "method": "elicitation/create",
    "params": {"mode": "url", "message": "Go", "url": "https://x"},
}
SAMPLE: dict[str, object] = {"method": "sampling/createMessage", "params": {"maxTokens": 1.50}}
ROOTS: dict[str, object] = {"method": "roots/list"}


def question(ident: int, asked: dict[str, object], about: int) -> ToSession:
    params = asked.get("params")
    return ToSession(Request(ident, str(asked["method"]), None if params is None else payload(params)), about)


def called(ident: int = 10, **params: object) -> Translation:
    translation = modern()
    translation.submit(call(ident, **params), 0)
    return translation


# What a request carries, and what its answer loses.


def test_a_request_carries_the_client_and_keeps_its_id_and_what_it_said() -> None:
    (sent,) = modern().submit(
        Request(10, "tools/call", raw('{"arguments":{"n":1.50},"_meta":{"traceparent":"x","progressToken":10}}')), 0
    )
    assert sent == ToChild(
        Request(
            10,
            "tools/call",
            raw(
                '{"arguments":{"n":1.50},"_meta":{"traceparent":"x","progressToken":10,'
                '"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
                '"io.modelcontextprotocol/clientCapabilities":'
                '{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{"listChanged":true}},'
                '"io.modelcontextprotocol/clientInfo":{"name":"desk","version":"3"}}}'
            ),
        )
    )


def test_a_result_loses_what_handshake_clients_do_not_know() -> None:
    translation = called()
    answer = raw(
        '{"resultType":"complete","content":[1.50],"ttlMs":1,"cacheScope":"public",'
        '"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"w","version":"1"},"a/b":2.50}}'
    )
    assert translation.receive(Result(10, answer), 0) == [
        ToSession(Result(10, raw('{"content":[1.50],"_meta":{"a/b":2.50}}')))
    ]


def test_a_result_without_a_kind_is_complete_and_one_of_an_extensions_kind_is_passed_as_it_is() -> None:
    translation = called()
    assert translation.receive(Result(10, raw('{"content":[]}')), 0) == [ToSession(Result(10, raw('{"content":[]}')))]
    translation.submit(call(11), 0)
    task = raw('{"resultType":"task", "ttlMs":1}')
    assert translation.receive(Result(11, task), 0) == [ToSession(Result(11, task))]


def test_an_output_schema_that_no_handshake_client_takes_is_left_out() -> None:
    translation = modern()
    translation.submit(Request(10, "tools/list"), 0)
    answer = raw('{"tools":[{"name":"a","outputSchema":{"type":"array"}}]}')
    assert translation.receive(Result(10, answer), 0) == [ToSession(Result(10, raw('{"tools":[{"name":"a"}]}')))]


@pytest.mark.parametrize("number", [-32020, -32021, -32022, -32602, -32603, 7])
def test_an_error_keeps_its_code_and_its_bytes(number: int) -> None:
    translation = called()
    error = raw(f'{{"code":{number} ,"message":"m","data":{{"uri":"a","n":1.50}}}}')
    assert translation.receive(Failure(10, error), 0) == [ToSession(Failure(10, error))]


def test_a_resource_that_does_not_exist_has_the_code_that_it_had() -> None:
    translation = modern()
    translation.submit(Request(10, "resources/read", payload({"uri": "a"})), 0)
    error = raw('{"code":-32602,"message":"m","data":{"uri":"a"}}')
    assert translation.receive(Failure(10, error), 0) == [
        ToSession(Failure(10, raw('{"code":-32002,"message":"m","data":{"uri":"a"}}')))
    ]
    translation.submit(Request(11, "resources/read", payload({"uri": "a"})), 0)
    assert translation.receive(Failure(11, REFUSED), 0) == [ToSession(Failure(11, REFUSED))]


def test_an_answer_to_nothing_is_dropped_and_so_is_a_second_one() -> None:
    translation = called()
    strange: list[Message] = [Result(99, raw("{}")), Failure(None, REFUSED), Result("10", raw("{}"))]
    assert [translation.receive(reply, 0) for reply in strange] == [[], [], []]
    assert translation.receive(Result(10, raw("{}")), 0) == [ToSession(Result(10, raw("{}")))]
    assert translation.receive(Result(10, raw("{}")), 0) == []


def test_progress_is_told_as_long_as_the_child_works_on_the_call() -> None:
    translation = called(_meta={"progressToken": 10})
    note = Notification("notifications/progress", raw('{"progressToken":10,"progress":0.50}'))
    assert translation.receive(note, 0) == [ToSession(note, 10)]
    translation.receive(Result(10, raw("{}")), 0)
    assert translation.receive(note, 0) == []


def test_a_log_message_is_passed() -> None:
    note = Notification("notifications/message", raw('{"level":"info"}'))
    assert called().receive(note, 0) == [ToSession(note)]


# What is answered for the child.


def test_a_ping_and_a_shutdown_are_answered_without_the_child() -> None:
    translation = modern()
    assert translation.submit(Request(10, "ping"), 0) == [ToSession(Result(10, raw("{}")))]
    assert translation.submit(Request(11, "shutdown"), 0) == [ToSession(Result(11, raw("{}")))]


def test_a_log_level_is_sent_with_every_request_once_it_was_set() -> None:
    translation = modern()
    assert translation.submit(Request(10, "tools/list"), 0) == [enveloped(10, "tools/list")]
    assert translation.submit(Request(11, "logging/setLevel", payload({"level": "error"})), 0) == [
        ToSession(Result(11, raw("{}")))
    ]
    assert translation.submit(Request(12, "tools/list"), 0) == [enveloped(12, "tools/list", None, "error")]


@pytest.mark.parametrize("params", [{"level": "loud"}, {"level": 7}, {}])
def test_a_level_that_there_is_not_is_refused_and_changes_nothing(params: object) -> None:
    translation = modern()
    assert code(translation.submit(Request(10, "logging/setLevel", payload(params)), 0)) == (10, -32602)
    assert translation.submit(Request(12, "tools/list"), 0) == [enveloped(12, "tools/list")]


def test_a_level_for_a_server_that_does_not_log_is_an_unknown_method() -> None:
    request = Request(10, "logging/setLevel", payload({"level": "error"}))
    assert code(modern({"tools": {}}).submit(request, 0)) == (10, -32601)


@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen"])
def test_methods_that_the_handshake_revisions_do_not_have_are_unknown(method: str) -> None:
    assert code(modern().submit(Request(10, method), 0)) == (10, -32601)


@pytest.mark.parametrize("method", ["notifications/roots/list_changed", "notifications/exit", "notifications/progress"])
def test_what_a_stateless_child_has_no_use_for_is_swallowed(method: str) -> None:
    assert modern().submit(Notification(method), 0) == []


def test_any_other_notification_is_passed_as_it_is() -> None:
    note = Notification("notifications/x", raw("{ }"))
    assert modern().submit(note, 0) == [ToChild(note)]
    assert modern().receive(note, 0) == [ToSession(note)]


def test_a_stateless_child_that_asks_is_told_that_it_may_not() -> None:
    (told,) = modern().receive(Request("q", "roots/list"), 0)
    assert isinstance(told, ToChild)
    assert isinstance(told.message, Failure)
    assert (told.message.id, read(told.message.error)["code"]) == ("q", -32601)


# Questions.


def test_what_a_result_asks_is_asked_and_its_answers_are_one_retry() -> None:
    translation = called(arguments={"n": 1})
    assert translation.receive(asking(10, {"a": FORM, "b": SAMPLE, "c": ROOTS}, "s1"), 0) == [
        question(101, FORM, 10),
        question(102, SAMPLE, 10),
        question(103, ROOTS, 10),
    ]
    assert translation.submit(Result(103, raw('{"roots":[]}')), 0) == []
    assert translation.submit(Result(101, raw('{"action":"decline"}')), 0) == []
    answers: dict[str, object] = {"c": {"roots": []}, "a": {"action": "decline"}, "b": {"model": "m"}}
    assert translation.submit(Result(102, raw('{"model":"m"}')), 0) == [retry(104, answers, "s1", arguments={"n": 1})]
    assert translation.receive(Result(104, raw('{"content":[]}')), 0) == [ToSession(Result(10, raw('{"content":[]}')))]


def test_each_round_has_its_own_answers_and_its_own_state() -> None:
    translation = called()
    translation.receive(asking(10, {"a": ROOTS}, "s1"), 0)
    assert translation.submit(Result(101, raw('{"roots":[1]}')), 0) == [retry(102, {"a": {"roots": [1]}}, "s1")]
    assert translation.receive(asking(102, {"b": ROOTS}), 0) == [question(103, ROOTS, 10)]
    assert translation.submit(Result(103, raw('{"roots":[2]}')), 0) == [retry(104, {"b": {"roots": [2]}})]
    assert translation.receive(asking(104, {}, "s3"), 0) == [retry(105, {}, "s3")]
    assert translation.receive(Failure(105, REFUSED), 0) == [ToSession(Failure(10, REFUSED))]


def test_two_calls_ask_at_once_and_each_gets_its_own_answers() -> None:
    translation = called(10)
    translation.submit(call(11), 0)
    assert translation.receive(asking(11, {"a": ROOTS}, "y"), 0) == [question(101, ROOTS, 11)]
    assert translation.receive(asking(10, {"a": ROOTS}, "x"), 0) == [question(102, ROOTS, 10)]
    assert translation.submit(Result(101, raw('{"roots":[1]}')), 0) == [retry(103, {"a": {"roots": [1]}}, "y")]
    assert translation.submit(Result(102, raw('{"roots":[2]}')), 0) == [retry(104, {"a": {"roots": [2]}}, "x")]


def test_an_answer_counts_once() -> None:
    translation = called()
    translation.receive(asking(10, {"a": ROOTS, "b": ROOTS}), 0)
    translation.submit(Result(101, raw('{"roots":[1]}')), 0)
    assert translation.submit(Result(101, raw('{"roots":[9]}')), 0) == []
    answers: dict[str, object] = {"a": {"roots": [1]}, "b": {"roots": [2]}}
    assert translation.submit(Result(102, raw('{"roots":[2]}')), 0) == [retry(103, answers)]
    assert translation.submit(Result(102, raw('{"roots":[3]}')), 0) == []


def test_progress_of_a_later_round_has_the_sessions_token() -> None:
    translation = called(_meta={"progressToken": 10})
    translation.receive(asking(10, {"a": ROOTS}), 0)
    note = Notification("notifications/progress", payload({"progressToken": 10, "progress": 1}))
    assert translation.receive(note, 0) == []
    assert translation.submit(Result(101, raw("{}")), 0) == [
        retry(102, {"a": {}}, _meta={"progressToken": 102}),
    ]
    assert translation.receive(note, 0) == []
    later = Notification("notifications/progress", payload({"progressToken": 102, "progress": 1}))
    assert translation.receive(later, 0) == [ToSession(note, 10)]


def test_the_level_that_a_retry_carries_is_the_one_of_now() -> None:
    translation = called()
    translation.receive(asking(10, {"a": ROOTS}), 0)
    translation.submit(Request(11, "logging/setLevel", payload({"level": "error"})), 0)
    (sent,) = translation.submit(Result(101, raw("{}")), 0)
    assert isinstance(sent.message, Request)
    assert read(sent.message.params)["_meta"]["io.modelcontextprotocol/logLevel"] == "error"


def test_an_elicitation_in_url_mode_is_given_a_name_each_time() -> None:
    translation = called()
    told = translation.receive(asking(10, {"a": URL, "b": URL, "c": FORM}), 0)
    params = [read(each.message.params) for each in told if isinstance(each.message, Request)]
    assert [each.get("elicitationId") for each in params] == ["e1", "e2", None]
    assert params[0] == {"mode": "url", "message": "Go", "url": "https://x", "elicitationId": "e1"}


def test_an_elicitation_that_the_client_answers_with_an_error_counts_as_dismissed() -> None:
    translation = called()
    translation.receive(asking(10, {"a": FORM}, "s"), 0)
    assert translation.submit(Failure(101, REFUSED), 0) == [retry(102, {"a": {"action": "cancel"}}, "s")]


@pytest.mark.parametrize("asked", [SAMPLE, ROOTS])
def test_an_error_to_any_other_question_fails_the_call_and_takes_back_its_other_questions(
    asked: dict[str, object],
) -> None:
    translation = called()
    translation.receive(asking(10, {"a": FORM, "b": asked, "c": FORM}), 0)
    translation.submit(Result(101, raw("{}")), 0)
    assert translation.submit(Failure(102, REFUSED), 0) == [ToSession(Failure(10, REFUSED)), withdrawn(103, 10)]
    assert translation.submit(Result(103, raw("{}")), 0) == []


@pytest.mark.parametrize(
    "body",
    [
        '{"resultType":"input_required"}',
        '{"resultType":"input_required","inputRequests":{}}',
        '{"resultType":"input_required","inputRequests":[]}',
        '{"resultType":"input_required","inputRequests":{"a":{"params":{}}}}',
        '{"resultType":"input_required","requestState":7}',
        '{"resultType":"input_required","inputRequests":{"a":{"method":"tools/call"}}}',
    ],
)
def test_what_is_no_question_fails_the_call(body: str) -> None:
    translation = called()
    assert code(translation.receive(Result(10, raw(body)), 0)) == (10, -31004)


def test_a_question_where_none_may_be_asked_fails_the_call() -> None:
    translation = modern()
    translation.submit(Request(10, "tools/list"), 0)
    assert code(translation.receive(asking(10, {"a": ROOTS}, "s"), 0)) == (10, -31004)


@pytest.mark.parametrize("method", ["prompts/get", "resources/read"])
def test_prompts_and_resources_may_ask_too(method: str) -> None:
    translation = modern()
    translation.submit(Request(10, method), 0)
    assert translation.receive(asking(10, {"a": ROOTS}), 0) == [question(101, ROOTS, 10)]


# Retries without a question.


def test_a_state_alone_is_retried_at_once_and_then_after_growing_pauses() -> None:
    translation = called()
    ident, now = 10, 0.0
    pauses = []
    for _ in range(8):
        told = translation.receive(asking(ident, {}, "s"), now)
        if not told:
            then = translation.due
            pauses.append(round(then - now, 6))
            assert translation.tick(then - 0.01) == []
            now = then
            told = translation.tick(now)
        ident = 101 + len(pauses)
        assert told == [retry(ident, {}, "s")]
        assert translation.due == FOREVER
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]


def test_a_question_lets_the_pauses_begin_anew() -> None:
    translation = called()
    translation.receive(asking(10, {}, "s"), 0)
    assert translation.receive(asking(101, {}, "s"), 0) == []
    translation.tick(1)
    translation.receive(asking(102, {"a": ROOTS}), 1)
    translation.submit(Result(103, raw("{}")), 1)
    assert translation.receive(asking(104, {}, "s"), 1) == [retry(105, {}, "s")]
    assert translation.receive(asking(105, {}, "s"), 1) == []
    assert translation.due == 1.1


# Cancelling.


def test_a_call_that_the_child_works_on_is_cancelled_under_the_id_of_its_round() -> None:
    translation = called()
    gone = cancelled(10, "changed my mind")
    assert translation.submit(gone, 0) == [ToChild(gone)]
    assert translation.submit(gone, 0) == []
    assert translation.receive(Result(10, raw("{}")), 0) == []
    translation.submit(call(11), 0)
    translation.receive(asking(11, {"a": ROOTS}), 0)
    translation.submit(Result(101, raw("{}")), 0)
    assert translation.submit(cancelled(11, "no"), 0) == [ToChild(cancelled(102, "no"))]
    assert translation.receive(Failure(102, REFUSED), 0) == []


def test_a_call_whose_client_is_being_asked_is_forgotten_without_a_word_to_the_child() -> None:
    translation = called()
    translation.receive(asking(10, {"a": FORM, "b": ROOTS}), 0)
    translation.submit(Result(101, raw("{}")), 0)
    assert translation.submit(cancelled(10, "no"), 0) == [withdrawn(102, 10)]
    assert translation.submit(Result(102, raw("{}")), 0) == []


def test_a_call_that_pauses_is_not_retried_once_it_was_cancelled() -> None:
    translation = called()
    translation.receive(asking(10, {}, "s"), 0)
    translation.receive(asking(101, {}, "s"), 0)
    assert translation.submit(cancelled(10, "no"), 0) == []
    assert translation.due == FOREVER
    assert translation.tick(9) == []


def test_what_was_never_asked_or_is_answered_cannot_be_cancelled() -> None:
    translation = called()
    translation.receive(Result(10, raw("{}")), 0)
    strange = [cancelled(10, "late"), cancelled(99, "never"), Notification("notifications/cancelled")]
    assert [translation.submit(note, 0) for note in strange] == [[], [], []]


def test_a_child_cannot_take_back_what_it_did_not_ask() -> None:
    translation = called()
    translation.receive(asking(10, {"a": ROOTS}), 0)
    assert translation.receive(cancelled(101, "x"), 0) == []
    assert translation.receive(cancelled(10, "x"), 0) == []
    assert translation.submit(Result(101, raw("{}")), 0) == [retry(102, {"a": {}})]


def test_only_a_first_round_can_be_taken_back_before_it_was_sent() -> None:
    translation = called()
    assert not translation.withdraw(10, lambda ident: False)
    assert translation.withdraw(10, lambda ident: ident == 10)
    assert translation.receive(Result(10, raw("{}")), 0) == []
    translation.submit(call(11), 0)
    translation.receive(asking(11, {"a": ROOTS}), 0)
    assert not translation.withdraw(11, lambda ident: True)
    translation.submit(Result(101, raw("{}")), 0)
    assert not translation.withdraw(11, lambda ident: True)
    assert translation.receive(Result(102, raw("{}")), 0) == [ToSession(Result(11, raw("{}")))]
