"""A server's questions: whom they reach, under which id, and how they end."""

from itertools import count

import pytest

from app.core.bounds import Bounds
from app.core.effects import BeginStream, EndStream, ToClient, ToUpstream
from app.core.session import Session
from app.protocol import methods
from app.protocol.jsonrpc import Failure, Notification, Request, Result
from tests.core.sessions import GREETED, GREETING, LIMITS, ask, call, never, raw


def test_a_question_goes_to_the_only_call_in_flight_and_its_answer_back_under_the_servers_id(session: Session) -> None:
    ask(session, call(1), 2)
    question = Request("q", "elicitation/create", raw('{"message":"ok?"}'))
    assert session.deliver(question, 0.1) == [ToClient(2, Request(1, "elicitation/create", raw('{"message":"ok?"}')))]
    assert session.tell(Result(1, raw('{"action":"accept"}')), 0.2) == [
        ToUpstream(Result("q", raw('{"action":"accept"}')))
    ]


def test_of_several_calls_none_is_asked_while_a_get_stream_is_there(session: Session) -> None:
    ask(session, call(1), 2)
    ask(session, call(2), 3)
    assert session.deliver(Request(5, "roots/list"), 0.1) == [ToClient(3, Request(1, "roots/list"))]
    session.outlets.listen(9)
    assert session.deliver(Request(6, "roots/list"), 0.1) == [ToClient(9, Request(2, "roots/list"))]


def test_a_question_for_which_there_is_no_stream_is_answered_with_an_error_at_once(session: Session) -> None:
    ask(session, call(1), 2, can_stream=False)
    match session.deliver(Request(5, "roots/list"), 0.1):
        case [ToUpstream(Failure(5, error))]:
            assert methods.error_code(error) == -31001
        case other:
            pytest.fail(repr(other))


def test_a_question_beyond_the_bound_is_answered_with_an_error_at_once_and_the_open_ones_stay() -> None:
    session = Session(LIMITS, count(100), Bounds(questions=2))
    ask(session, Request(0, "initialize", GREETING), 1)
    session.deliver(Result(100, GREETED), 0.0)
    ask(session, call(1), 2)
    for ident in (5, 6):
        assert session.deliver(Request(ident, "roots/list"), 0.1) == [ToClient(2, Request(ident - 4, "roots/list"))]
    match session.deliver(Request(7, "roots/list"), 0.1):
        case [ToUpstream(Failure(7, error))]:
            assert methods.error_code(error) == -31005
        case other:
            pytest.fail(repr(other))
    assert session.tell(Result(1, raw("{}")), 0.2) == [ToUpstream(Result(5, raw("{}")))]
    assert session.deliver(Request(8, "roots/list"), 0.3) == [ToClient(2, Request(3, "roots/list"))]


def test_a_question_that_cannot_be_asked_yet_is_held_only_where_there_is_room_for_it() -> None:
    session = Session(LIMITS, count(100), Bounds(waiting_bytes=100))
    ask(session, Request(0, "initialize", GREETING), 1)
    session.deliver(Result(100, GREETED), 0.0)
    large = raw('{"padding":"%s"}' % ("x" * 100))
    assert session.deliver(Request(5, "roots/list", large), 0.1) == []
    match session.deliver(Request(6, "roots/list", large), 0.1):
        case [ToUpstream(Failure(6, error))]:
            assert methods.error_code(error) == -31005
        case other:
            pytest.fail(repr(other))
    assert session.hear(3, 0.2) == [ToClient(3, Request(1, "roots/list", large))]


def test_a_client_is_never_asked_what_it_did_not_declare(session: Session) -> None:
    ask(session, call(1), 2)
    match session.deliver(Request(5, "sampling/createMessage", raw("{}")), 0.1):
        case [ToUpstream(Failure(5, error))]:
            assert methods.error_code(error) == -32601
        case other:
            pytest.fail(repr(other))


def test_a_ping_that_cannot_reach_the_client_is_answered_by_us(session: Session) -> None:
    assert session.deliver(Request(5, "ping"), 0.1) == [ToUpstream(Result(5, raw("{}")))]


def test_a_withdrawn_question_is_withdrawn_from_the_client_under_our_id(session: Session) -> None:
    ask(session, call(1), 2)
    session.deliver(Request(5, "roots/list"), 0.1)
    note = Notification(methods.CANCELLED, raw('{"requestId":5}'))
    assert session.deliver(note, 0.2) == [ToClient(2, Notification(methods.CANCELLED, raw('{"requestId":1}')))]
    assert session.tell(Result(1, raw("{}")), 0.3) == []


def test_a_call_does_not_time_out_while_its_client_is_being_asked(session: Session) -> None:
    ask(session, call(1), 2)
    session.deliver(Request(5, "elicitation/create", raw("{}")), 1)
    assert session.tick(300, never) == [BeginStream(2)]
    session.tell(Result(1, raw("{}")), 300)
    assert session.tick(359, never) == []
    assert any(isinstance(effect, EndStream) for effect in session.tick(360, never))


def test_a_question_on_a_stream_of_its_own_gives_no_call_more_time(session: Session) -> None:
    session.hear(9, 0)
    ask(session, call(1), 2, can_stream=False)
    assert session.deliver(Request(5, "roots/list"), 1) == [ToClient(9, Request(1, "roots/list"))]
    assert EndStream(2) in session.tick(60, never)


def test_a_question_that_nobody_can_hear_yet_is_said_on_the_next_get_stream(session: Session) -> None:
    assert session.deliver(Request("q", "roots/list"), 1) == []
    assert session.tick(1, never) == []
    assert session.due == 6
    assert session.tell(Result(1, raw("{}")), 2) == []
    assert session.hear(9, 2) == [ToClient(9, Request(1, "roots/list"))]
    assert session.tick(6, never) == []
    assert session.tell(Result(1, raw("{}")), 7) == [ToUpstream(Result("q", raw("{}")))]


def test_a_question_that_nobody_hears_in_time_is_answered_with_an_error(session: Session) -> None:
    session.deliver(Request("q", "roots/list"), 1)
    match session.tick(6, never):
        case [ToUpstream(Failure("q", error))]:
            assert methods.error_code(error) == -31001
            assert b"no stream" in bytes(error)
        case other:
            pytest.fail(repr(other))
    assert session.hear(9, 7) == []


def test_a_question_that_was_taken_back_before_anybody_heard_it_is_never_said(session: Session) -> None:
    session.deliver(Request("q", "roots/list"), 1)
    assert session.deliver(Notification(methods.CANCELLED, raw('{"requestId":"q"}')), 2) == []
    assert session.hear(9, 3) == []


def test_a_question_that_is_never_answered_lapses_and_a_late_answer_is_dropped(session: Session) -> None:
    session.hear(9, 0)
    session.deliver(Request("q", "roots/list"), 1)
    assert session.tick(600.9, never) == []
    match session.tick(601, never):
        case [ToUpstream(Failure("q", error))]:
            assert methods.error_code(error) == -31001
            assert b"did not answer" in bytes(error)
        case other:
            pytest.fail(repr(other))
    assert session.tell(Result(1, raw("{}")), 602) == []


def test_when_a_question_has_been_answered_its_call_is_due_after_the_time_of_a_fresh_one(session: Session) -> None:
    ask(session, call(1), 2)
    session.deliver(Request(5, "roots/list"), 1)
    session.tick(0.25, never)
    assert session.due == 600
    session.tell(Result(1, raw("{}")), 300)
    assert session.due == 360


def test_when_a_question_was_taken_back_its_call_is_due_after_the_time_of_a_fresh_one(session: Session) -> None:
    ask(session, call(1), 2)
    session.deliver(Request(5, "roots/list"), 1)
    session.tick(0.25, never)
    session.deliver(Notification(methods.CANCELLED, raw('{"requestId":5}')), 300)
    assert session.due == 360
    assert session.tick(359, never) == []
    assert EndStream(2) in session.tick(360, never)


def test_a_question_whose_stream_has_ended_is_withdrawn_where_the_client_can_hear_it(session: Session) -> None:
    note = Notification(methods.CANCELLED, raw('{"requestId":5}'))
    told = Notification(methods.CANCELLED, raw('{"requestId":1}'))
    ask(session, call(1), 2)
    session.deliver(Request(5, "roots/list"), 1)
    session.deliver(Result(101, raw("{}")), 2)
    assert session.deliver(note, 3) == []
    assert session.hear(9, 4) == [ToClient(9, told)]


@pytest.mark.parametrize("theirs", ['"5"', "6", "null"])
def test_taking_back_what_was_not_asked_does_nothing(session: Session, theirs: str) -> None:
    ask(session, call(1), 2)
    session.deliver(Request(5, "roots/list"), 1)
    assert session.deliver(Notification(methods.CANCELLED, raw(f'{{"requestId":{theirs}}}')), 2) == []
    assert session.tell(Result(1, raw("{}")), 3) == [ToUpstream(Result(5, raw("{}")))]


@pytest.mark.parametrize("ident", [2, "1", None])
def test_an_answer_to_no_question_goes_nowhere(session: Session, ident: int | str | None) -> None:
    ask(session, call(1), 2)
    session.deliver(Request(5, "roots/list"), 1)
    assert session.tell(Failure(ident, raw("{}")), 2) == []
