"""Which era a child speaks, and the answer to the client's `initialize` that comes of it."""

import pytest

from app.core.deadlines import FOREVER
from app.core.parties import ToChild
from app.core.probing import Found, ToSession
from app.core.translation import Translation
from app.protocol.jsonrpc import Failure, Message, Notification, Request, Result, payload
from tests.core.translations import (
    DISCOVERED,
    INITIALIZE,
    OFFERED,
    REFUSED,
    SERVER,
    enveloped,
    failed,
    modern,
    new,
    raw,
    read,
)

DISCOVER = enveloped(100, "server/discover")
GREETED = ToSession(
    Result(
        1,
        payload({"capabilities": OFFERED, "protocolVersion": "2025-06-18", "serverInfo": SERVER}),
    )
)


def greeted(**discovered: object) -> object:
    translation = new("modern")
    translation.submit(INITIALIZE, 0)
    (outcome,) = translation.receive(Result(100, payload({**DISCOVERED, **discovered})), 0)
    assert isinstance(outcome, ToSession)
    assert isinstance(outcome.message, Result)
    return read(outcome.message.result)


def refused_legacy(ident: int = 1) -> Translation:
    """A child that answered our client's own initialize with an error."""
    translation = new("legacy")
    assert translation.submit(INITIALIZE, 0) == [ToChild(INITIALIZE)]
    assert translation.receive(Failure(1, REFUSED), 3) == [DISCOVER]
    return translation


# The client's own initialize goes first.


def test_a_child_that_answers_the_handshake_is_left_alone_from_then_on() -> None:
    translation = new("legacy")
    answer = Result(1, raw('{ "protocolVersion" : "2024-11-05" , "ttlMs":1}'))
    before = translation.is_plain
    assert translation.submit(INITIALIZE, 0) == [ToChild(INITIALIZE)]
    assert translation.receive(answer, 0) == [ToSession(answer)]
    assert (before, translation.is_plain) == (False, True)
    assert translation.found == Found(legacy=True)
    assert translation.due == FOREVER
    messages: list[Message] = [
        Request(2, "ping"),
        Request(3, "tools/call", raw("{ }")),
        Notification("notifications/roots/list_changed"),
        Result(4, raw('{"resultType":"input_required"}')),
        Failure(5, REFUSED),
    ]
    for message in messages:
        (down,), (up,) = translation.submit(message, 0), translation.receive(message, 0)
        assert (down, up) == (ToChild(message), ToSession(message))
        assert down.message is message
        assert up.message is message
    assert translation.tick(1e9) == []


def test_an_error_to_initialize_is_followed_by_discover_and_the_session_hears_of_a_modern_child() -> None:
    translation = refused_legacy()
    assert translation.due == 8
    assert translation.receive(Result(100, payload(DISCOVERED)), 4) == [GREETED]
    assert translation.found == Found(legacy=False, modern=True)
    assert not translation.is_plain
    assert translation.due == FOREVER


@pytest.mark.parametrize(
    "answer",
    [
        Failure(100, payload({"code": -32022, "message": "other", "data": {"supported": ["2027-01-01"]}})),
        Result(100, payload({**DISCOVERED, "supportedVersions": ["2027-01-01"]})),
        Result(100, raw('{"supportedVersions":"2026-07-28"}')),
        Result(100, raw("[]")),
    ],
)
def test_where_discover_fails_too_the_first_error_goes_out_as_it_was(answer: Message) -> None:
    translation = refused_legacy()
    assert translation.receive(answer, 4) == [ToSession(Failure(1, REFUSED))]
    assert translation.found == Found()
    assert translation.due == FOREVER
    assert translation.greeting is None


def test_where_discover_is_not_answered_in_time_the_first_error_goes_out() -> None:
    translation = refused_legacy()
    assert translation.tick(7.9) == []
    assert translation.tick(8) == [ToSession(Failure(1, REFUSED))]
    assert translation.found == Found()
    assert translation.receive(Result(100, payload(DISCOVERED)), 9) == []
    assert translation.submit(Request(2, "ping"), 9) == []
    assert translation.tick(1e9) == []


def test_where_nothing_else_is_to_be_tried_the_error_goes_out_at_once() -> None:
    translation = new("legacy", falls_back=False)
    translation.submit(INITIALIZE, 0)
    assert translation.receive(Failure(1, REFUSED), 0) == [ToSession(Failure(1, REFUSED))]


def test_what_a_child_says_before_it_answers_reaches_the_session_and_so_does_the_answer_the_child() -> None:
    translation = new("legacy")
    translation.submit(INITIALIZE, 0)
    assert translation.due == FOREVER
    log, ping, pong = Notification("notifications/message"), Request(7, "ping"), Result(7, raw("{}"))
    assert translation.receive(log, 0) == [ToSession(log)]
    assert translation.receive(ping, 0) == [ToSession(ping)]
    assert translation.submit(pong, 0) == [ToChild(pong)]


def test_an_answer_to_nothing_decides_nothing() -> None:
    translation = new("modern")
    translation.submit(INITIALIZE, 0)
    strange: list[Message] = [Result(1, raw("{}")), Result(55, payload(DISCOVERED)), Failure(None, REFUSED)]
    assert [translation.receive(reply, 1) for reply in strange] == [[], [], []]
    assert translation.greeting == INITIALIZE
    assert translation.due == 5


# Discover goes first.


def test_where_discover_goes_first_it_carries_the_client_and_answers_its_initialize() -> None:
    translation = new("modern")
    (sent,) = translation.submit(INITIALIZE, 0)
    assert isinstance(sent.message, Request)
    assert (sent.message.id, sent.message.method) == (100, "server/discover")
    assert read(sent.message.params) == {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "desk", "version": "3"},
            "io.modelcontextprotocol/clientCapabilities": {
                "elicitation": {"form": {}, "url": {}},
                "sampling": {},
                "roots": {"listChanged": True},
            },
        }
    }
    assert translation.greeting == INITIALIZE
    assert translation.receive(Result(100, payload(DISCOVERED)), 0) == [GREETED]
    assert translation.found == Found(modern=True)
    assert translation.greeting is None


@pytest.mark.parametrize("answer", [Failure(100, REFUSED), Result(100, raw('{"supportedVersions":[]}'))])
def test_where_discover_fails_initialize_follows_and_its_answer_is_passed_on(answer: Message) -> None:
    translation = new("modern")
    translation.submit(INITIALIZE, 0)
    assert translation.receive(answer, 1) == [ToChild(INITIALIZE)]
    assert translation.found == Found(modern=False)
    assert translation.due == FOREVER
    reply = Result(1, raw('{"protocolVersion":"2025-06-18"}'))
    assert translation.receive(reply, 2) == [ToSession(reply)]
    assert translation.is_plain
    assert translation.found == Found(legacy=True, modern=False)


def test_where_both_fail_the_error_to_initialize_is_what_the_session_hears() -> None:
    translation = new("modern")
    translation.submit(INITIALIZE, 0)
    translation.receive(Failure(100, raw('{"code":1}')), 1)
    assert translation.receive(Failure(1, REFUSED), 2) == [ToSession(Failure(1, REFUSED))]
    assert translation.found == Found(modern=False)


def test_silence_after_discover_is_followed_by_initialize_and_says_nothing_of_the_child() -> None:
    translation = new("modern")
    translation.submit(INITIALIZE, 0)
    assert translation.due == 5
    assert translation.tick(5) == [ToChild(INITIALIZE)]
    assert translation.found == Found()
    assert translation.due == FOREVER
    reply = Result(1, raw('{"protocolVersion":"2025-06-18"}'))
    assert translation.receive(reply, 6) == [ToSession(reply)]
    assert translation.found == Found(legacy=True)


def test_a_child_that_is_slow_to_start_answers_both_and_initialize_decides() -> None:
    translation = new("modern")
    translation.submit(INITIALIZE, 0)
    translation.tick(5)
    assert translation.receive(Result(100, payload(DISCOVERED)), 20) == []
    reply = Result(1, raw('{"protocolVersion":"2025-06-18"}'))
    assert translation.receive(reply, 20) == [ToSession(reply)]
    assert translation.is_plain
    assert translation.found == Found(legacy=True, modern=True)


def test_a_modern_child_that_is_slow_to_start_answers_both_one_of_them_with_an_error() -> None:
    translation = new("modern")
    translation.submit(INITIALIZE, 0)
    translation.tick(5)
    assert translation.receive(Result(100, payload(DISCOVERED)), 20) == []
    assert translation.receive(Failure(1, REFUSED), 20) == [GREETED]
    assert translation.found == Found(legacy=False, modern=True)


def test_a_slow_modern_child_that_never_answers_initialize_is_modern_after_a_while() -> None:
    translation = new("modern")
    translation.submit(INITIALIZE, 0)
    translation.tick(5)
    translation.receive(Result(100, payload(DISCOVERED)), 20)
    assert translation.due == 25
    assert translation.tick(25) == [GREETED]
    assert translation.receive(Result(1, raw("{}")), 26) == []


def test_an_error_to_initialize_waits_for_a_discover_that_is_still_out() -> None:
    translation = new("modern")
    translation.submit(INITIALIZE, 0)
    translation.tick(5)
    assert translation.receive(Failure(1, REFUSED), 6) == []
    assert translation.due == 11
    assert translation.receive(Result(100, payload(DISCOVERED)), 7) == [GREETED]
    again = new("modern")
    again.submit(INITIALIZE, 0)
    again.tick(5)
    again.receive(Failure(1, REFUSED), 6)
    assert again.tick(11) == [ToSession(Failure(1, REFUSED))]


def test_a_late_error_to_discover_leaves_the_word_to_initialize() -> None:
    translation = new("modern")
    translation.submit(INITIALIZE, 0)
    translation.tick(5)
    assert translation.receive(Failure(100, REFUSED), 6) == []
    assert translation.due == FOREVER
    reply = Result(1, raw("{}"))
    assert translation.receive(reply, 7) == [ToSession(reply)]


def test_where_only_the_modern_era_is_tried_its_failure_answers_initialize() -> None:
    translation = new("modern", falls_back=False)
    translation.submit(INITIALIZE, 0)
    assert translation.receive(Failure(100, REFUSED), 1) == [ToSession(Failure(1, REFUSED))]
    other = new("modern", falls_back=False)
    other.submit(INITIALIZE, 0)
    (told,) = other.receive(Result(100, payload({**DISCOVERED, "supportedVersions": ["2027-01-01"]})), 1)
    assert failed(told.message) == (1, -31001)
    silent = new("modern", falls_back=False)
    silent.submit(INITIALIZE, 0)
    (told,) = silent.tick(5)
    assert failed(told.message) == (1, -31001)


# What the session is greeted with.


@pytest.mark.parametrize(
    ("wanted", "given"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        (7, "2025-11-25"),
    ],
)
def test_the_answer_is_of_the_revision_that_was_asked_for_where_there_is_such_a_one(wanted: object, given: str) -> None:
    translation = new("modern")
    translation.submit(Request(1, "initialize", payload({"protocolVersion": wanted, "capabilities": {}})), 0)
    (outcome,) = translation.receive(Result(100, payload(DISCOVERED)), 0)
    assert isinstance(outcome.message, Result)
    assert read(outcome.message.result)["protocolVersion"] == given


def test_the_answer_offers_what_the_child_does_and_nothing_that_the_protocol_does_not_have_any_more() -> None:
    offered = {
        "tools": {"listChanged": False},
        "completions": {},
        "extensions": {"io.modelcontextprotocol/ui": {"a": 1.50}},
        "experimental": {"x": {}},
        "tasks": {"list": {}},
    }
    assert greeted(capabilities=offered, instructions="Ask.", _meta={"com.example/x": 1}) == {
        "protocolVersion": "2025-06-18",
        "capabilities": {name: offer for name, offer in offered.items() if name != "tasks"},
        "serverInfo": {"name": "unknown", "version": "unknown"},
        "instructions": "Ask.",
        "_meta": {"com.example/x": 1},
    }


def test_capabilities_that_cannot_be_read_offer_nothing() -> None:
    said = greeted(capabilities=["tools"])
    assert isinstance(said, dict)
    assert said["capabilities"] == {}


def test_a_client_that_does_not_say_who_it_is_is_given_our_name() -> None:
    translation = new("modern")
    (sent,) = translation.submit(Request(1, "initialize"), 0)
    assert isinstance(sent.message, Request)
    assert read(sent.message.params)["_meta"] == {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "viaduct", "version": "0.1"},
    }


def test_a_message_taken_back_before_the_era_is_known_is_taken_back_as_it_is() -> None:
    translation = new("legacy")
    translation.submit(INITIALIZE, 0)
    assert translation.withdraw(5, lambda ident: ident == 5)
    assert not translation.withdraw(5, lambda ident: False)


def test_a_second_initialize_is_none_of_a_modern_childs_business() -> None:
    (told,) = modern().submit(Request(2, "initialize"), 0)
    assert failed(told.message) == (2, -32601)


UNSUPPORTED = {"code": -32022, "message": "no", "data": {"supported": ["2099-01-01"], "requested": "2026-07-28"}}


@pytest.mark.parametrize(
    "reply",
    [
        Result(100, payload({**DISCOVERED, "supportedVersions": ["2099-01-01"]})),
        Failure(100, payload(UNSUPPORTED)),
    ],
)
def test_a_server_of_other_revisions_is_not_greeted(reply: Message) -> None:
    translation = new("modern")
    translation.submit(INITIALIZE, 0)
    match translation.receive(reply, 0):
        case [ToSession(Failure(1, error))]:
            assert read(error)["data"]["reason"] == "unsupported_revision"
        case other:
            pytest.fail(repr(other))


@pytest.mark.parametrize("supported", [["2025-11-25"], [], ["2099-01-01", "2024-11-05"]])
def test_one_that_names_a_revision_of_the_handshake_or_none_is(supported: list[str]) -> None:
    translation = new("modern")
    translation.submit(INITIALIZE, 0)
    said = {**UNSUPPORTED, "data": {"supported": supported}}
    assert translation.receive(Failure(100, payload(said)), 0) == [ToChild(INITIALIZE)]
