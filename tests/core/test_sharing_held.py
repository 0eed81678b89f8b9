"""A child that one party holds: it is asked and told what names no call, and nobody else is."""

from itertools import count

import pytest
from msgspec import Raw

from app.core.bounds import Bounds
from app.core.parties import Changed, ToChild, ToLog, ToParty
from app.core.sharing import Sharing
from app.protocol import methods
from app.protocol.jsonrpc import Failure, Notification, Reply, Request, RequestId, Result, payload

ANNA, BERT = 1, 2
EMPTY = payload({})
CAPABILITIES = {"elicitation": EMPTY, "roots": EMPTY}
LOG = Notification("notifications/message", payload({"level": "info"}))


def question(ident: RequestId = "q", method: str = "elicitation/create") -> Request:
    return Request(ident, method, EMPTY)


def refused(outcomes: object) -> tuple[RequestId | None, int]:
    """Whose question the child is told an error to, and which."""
    match outcomes:
        case [ToChild(Failure(ident, error))]:
            return ident, methods.error_code(error)
        case other:
            pytest.fail(repr(other))


@pytest.fixture
def sharing() -> Sharing:
    """Greeted by us; ids of the parties are below 100."""
    sharing = Sharing(count(100), "1.2", CAPABILITIES)
    sharing.greet()
    sharing.receive(Result(100, EMPTY))
    return sharing


@pytest.fixture
def held(sharing: Sharing) -> Sharing:
    assert sharing.hold(ANNA) == []
    return sharing


# Without initialize.


def test_a_party_needs_no_initialize_to_ask_and_to_leave(sharing: Sharing) -> None:
    request = Request(11, "tools/list")
    assert sharing.submit(ANNA, request) == [ToChild(request)]
    assert sharing.receive(Result(11, EMPTY)) == [ToParty(ANNA, Result(11, EMPTY))]
    assert sharing.submit(ANNA, Request(12, "tools/list")) == [ToChild(Request(12, "tools/list"))]
    assert sharing.leave(ANNA) == [ToChild(methods.cancellation(12, "the session has ended"))]


def test_a_party_that_subscribed_hears_of_its_resource_and_of_no_list(sharing: Sharing) -> None:
    about = payload({"uri": "a"})
    sharing.submit(ANNA, Request(11, "resources/subscribe", about))
    updated = Notification("notifications/resources/updated", about)
    changed = Notification("notifications/tools/list_changed")
    assert sharing.receive(updated) == [ToParty(ANNA, updated)]
    assert sharing.receive(changed) == [Changed(changed)]
    assert sharing.leave(ANNA) == [ToChild(Request(101, "resources/unsubscribe", about))]


# Questions.


def test_a_question_goes_to_the_holder_and_its_answer_to_the_child_once(held: Sharing) -> None:
    assert held.receive(question()) == [ToParty(ANNA, question())]
    answer = Result("q", payload({"action": "accept"}))
    assert held.submit(ANNA, answer) == [ToChild(answer)]
    assert held.submit(ANNA, answer) == []


@pytest.mark.parametrize("answer", [Result("q", EMPTY), Failure("q", EMPTY)])
def test_only_who_was_asked_may_answer(held: Sharing, answer: Reply) -> None:
    held.receive(question())
    assert held.submit(BERT, answer) == []
    assert held.submit(ANNA, answer) == [ToChild(answer)]


def test_an_answer_answers_the_question_of_its_id_and_its_type_of_id(held: Sharing) -> None:
    held.receive(question(1))
    held.receive(question("1"))
    assert held.submit(ANNA, Failure(None, EMPTY)) == []
    assert held.submit(ANNA, Result("1", EMPTY)) == [ToChild(Result("1", EMPTY))]
    assert held.submit(ANNA, Result("1", EMPTY)) == []
    assert held.submit(ANNA, Result(1, EMPTY)) == [ToChild(Result(1, EMPTY))]


def test_a_second_question_under_an_open_id_is_not_asked(held: Sharing) -> None:
    held.receive(question())
    assert held.receive(question(method="roots/list")) == []


@pytest.mark.parametrize("method", ["sampling/createMessage", "x/y", "elicitation"])
def test_what_was_not_declared_is_not_asked(held: Sharing, method: str) -> None:
    assert refused(held.receive(question(method=method))) == ("q", -32601)
    assert held.submit(ANNA, Result("q", EMPTY)) == []


def test_a_ping_is_answered_by_us(held: Sharing) -> None:
    assert held.receive(question(method="ping")) == [ToChild(Result("q", EMPTY))]


def test_where_nobody_holds_the_child_nobody_is_asked(sharing: Sharing) -> None:
    sharing.submit(ANNA, Request(11, "tools/call"))
    assert refused(sharing.receive(question())) == ("q", -31001)
    assert sharing.submit(ANNA, Result("q", EMPTY)) == []


def test_a_question_for_roots_waits_for_the_next_who_holds_the_child(sharing: Sharing) -> None:
    asked = question("r", "roots/list")
    assert sharing.receive(asked) == []
    assert sharing.receive(asked) == []
    assert sharing.hold(ANNA) == [ToParty(ANNA, asked)]
    assert sharing.submit(ANNA, Result("r", EMPTY)) == [ToChild(Result("r", EMPTY))]
    assert sharing.unhold(ANNA) == []
    assert sharing.hold(BERT) == []


def test_a_question_for_roots_that_is_taken_back_is_asked_of_nobody(sharing: Sharing) -> None:
    sharing.receive(question("r", "roots/list"))
    assert sharing.receive(methods.cancellation("r", "")) == []
    assert sharing.hold(ANNA) == []


def test_a_child_that_answers_nothing_until_it_knows_the_roots_is_told_that_it_will_not(sharing: Sharing) -> None:
    sharing.receive(question("r", "roots/list"))
    assert refused(sharing.doubt()) == ("r", -31001)
    assert sharing.doubt() == []
    assert sharing.hold(ANNA) == []


def test_no_more_questions_for_roots_are_kept_than_may_be_open() -> None:
    sharing = Sharing(count(100), "1.2", CAPABILITIES, bounds=Bounds(questions=1))
    sharing.greet()
    sharing.receive(Result(100, EMPTY))
    assert sharing.receive(question(1, "roots/list")) == []
    assert refused(sharing.receive(question(2, "roots/list"))) == (2, -31001)


def test_no_more_is_kept_of_open_questions_than_there_is_room_for() -> None:
    sharing = Sharing(count(100), "1.2", CAPABILITIES, bounds=Bounds(waiting_bytes=100))
    sharing.greet()
    sharing.receive(Result(100, EMPTY))
    first, second = (Request(ident, "roots/list", payload({"padding": "x" * 100})) for ident in (1, 2))
    assert sharing.receive(first) == []
    assert refused(sharing.receive(second)) == (2, -31001)
    assert sharing.hold(ANNA) == [ToParty(ANNA, first)]
    assert refused(sharing.receive(second)) == (2, -31005)
    sharing.submit(ANNA, Result(1, EMPTY))
    assert sharing.receive(second) == [ToParty(ANNA, second)]


def test_a_question_that_the_child_takes_back_is_over(held: Sharing) -> None:
    held.receive(question())
    gone = Notification("notifications/cancelled", payload({"requestId": "q"}))
    assert held.receive(gone) == [ToParty(ANNA, gone)]
    assert held.receive(gone) == []
    assert held.submit(ANNA, Result("q", EMPTY)) == []
    assert held.unhold(ANNA) == []


@pytest.mark.parametrize("ident", [1, None, 1.5])
def test_a_question_that_nobody_was_asked_cannot_be_taken_back(held: Sharing, ident: object) -> None:
    held.receive(question("1"))
    assert held.receive(Notification("notifications/cancelled", payload({"requestId": ident}))) == []
    assert held.submit(ANNA, Result("1", EMPTY)) == [ToChild(Result("1", EMPTY))]


# Letting go.


def test_the_questions_of_one_who_lets_go_are_answered_by_an_error(held: Sharing) -> None:
    held.receive(question())
    assert refused(held.unhold(ANNA)) == ("q", -31001)
    assert held.submit(ANNA, Result("q", EMPTY)) == []
    assert held.unhold(ANNA) == []
    assert held.receive(LOG) == [ToLog(LOG)]


def test_one_who_leaves_lets_go_after_its_calls_are_cancelled(held: Sharing) -> None:
    held.submit(ANNA, Request(11, "tools/call"))
    held.receive(question())
    cancelled, *answered = held.leave(ANNA)
    assert cancelled == ToChild(methods.cancellation(11, "the session has ended"))
    assert refused(answered) == ("q", -31001)
    assert refused(held.receive(question("r"))) == ("r", -31001)


def test_nobody_lets_go_for_another(held: Sharing) -> None:
    held.receive(question())
    assert held.unhold(BERT) == []
    assert held.leave(BERT) == []
    assert held.submit(ANNA, Result("q", EMPTY)) == [ToChild(Result("q", EMPTY))]


def test_one_who_takes_the_child_over_is_asked_nothing_that_was_asked_before(held: Sharing) -> None:
    held.receive(question())
    assert held.hold(ANNA) == []
    assert refused(held.hold(BERT)) == ("q", -31001)
    assert held.submit(BERT, Result("q", EMPTY)) == []
    assert held.receive(question("r")) == [ToParty(BERT, question("r"))]


# Notifications.


@pytest.mark.parametrize("method", ["message", "elicitation/complete", "x"])
def test_what_names_no_call_is_the_holders(held: Sharing, method: str) -> None:
    note = Notification(f"notifications/{method}")
    assert held.receive(note) == [ToParty(ANNA, note)]


def test_what_names_a_call_is_the_callers(held: Sharing) -> None:
    held.submit(BERT, Request(11, "tools/list"))
    progress = Notification("notifications/progress", payload({"progressToken": 11, "progress": 1}))
    assert held.receive(progress) == [ToParty(BERT, progress)]


@pytest.mark.parametrize("kind", ["tools", "prompts", "resources"])
def test_a_changed_list_is_not_the_holders_alone(held: Sharing, kind: str) -> None:
    held.submit(BERT, Request(11, "initialize", payload({"protocolVersion": "2025-11-25"})))
    note = Notification(f"notifications/{kind}/list_changed")
    assert held.receive(note) == [Changed(note), ToParty(BERT, note)]


@pytest.mark.parametrize(("method", "is_logged"), [("message", True), ("x", False)])
def test_where_nobody_holds_the_child_only_sessions_hear_what_names_no_call(
    sharing: Sharing, method: str, is_logged: bool
) -> None:
    sharing.submit(ANNA, Request(11, "tools/call"))
    note = Notification(f"notifications/{method}", Raw(b"{}"))
    assert sharing.receive(note) == ([ToLog(note)] if is_logged else [])
