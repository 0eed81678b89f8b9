"""A session from initialize to its end."""

from itertools import count

import pytest

from app.core.bounds import Bounds
from app.core.deadlines import FOREVER, Deadlines
from app.core.effects import BeginStream, Ended, EndStream, ToClient, ToUpstream
from app.core.phases import Phase
from app.core.session import Session
from app.protocol import methods
from app.protocol.faults import Exited, InvalidRequest, Overloaded
from app.protocol.jsonrpc import Failure, Notification, Request, Result, payload
from app.protocol.revisions import NEWEST_HANDSHAKE
from tests.core.sessions import CANCELLED, GREETED, GREETING, LIMITS, ask, call, never, ours, raw


def test_initialize_goes_to_the_server_as_it_is_and_its_answer_comes_back_as_it_is(new: Session) -> None:
    assert ask(new, Request("a", "initialize", GREETING), 1) == [ToUpstream(Request(100, "initialize", GREETING))]
    assert new.deliver(Result(100, GREETED), 0.1) == [ToClient(1, Result("a", GREETED)), EndStream(1)]
    assert (new.phase, new.revision) == (Phase.OPEN, NEWEST_HANDSHAKE)


def test_what_is_said_before_the_answer_to_initialize_waits_for_it_in_order(new: Session) -> None:
    ask(new, Request(0, "initialize", GREETING), 1)
    assert ask(new, call(1), 2) == []
    assert new.tell(Notification("notifications/initialized"), 0.0) == []
    assert new.deliver(Result(100, GREETED), 0.1)[2:] == [
        ours(101),
        ToUpstream(Notification("notifications/initialized")),
    ]


def test_a_refused_initialize_ends_the_session_with_the_servers_own_error(new: Session) -> None:
    ask(new, Request(0, "initialize", GREETING), 1)
    error = raw('{"code":-32602,"message":"no"}')
    assert new.deliver(Failure(100, error), 0.1) == [ToClient(1, Failure(0, error)), EndStream(1), Ended("refused")]


def test_a_request_before_initialize_is_out_of_turn(new: Session) -> None:
    with pytest.raises(InvalidRequest):
        ask(new, call(1), 1)


def test_initialize_twice_is_refused(session: Session) -> None:
    with pytest.raises(InvalidRequest):
        ask(session, Request(5, "initialize", GREETING), 2)


def test_an_initialize_has_all_the_time_that_its_server_takes_to_start(new: Session) -> None:
    ask(new, Request(0, "initialize", GREETING), 1)
    assert new.tick(10, never) == [BeginStream(1)]
    assert new.due == FOREVER
    assert new.tick(100_000, never) == []


def test_losing_the_server_fails_every_call_once_and_ends_the_session(session: Session) -> None:
    ask(session, call(1), 2)
    ask(session, call("b"), 3)
    effects = session.lost(Exited("gone", executed="unknown"), "exited")
    assert [type(effect) for effect in effects] == [ToClient, EndStream, ToClient, EndStream, Ended]
    assert session.lost(Exited("gone"), "exited") == []
    assert session.phase is Phase.ENDED


def test_shutdown_is_passed_on_and_answered_for_a_server_that_does_not_know_it(session: Session) -> None:
    assert ask(session, Request(5, "shutdown"), 2) == [ToUpstream(Request(101, "shutdown"))]
    unknown = Failure(101, raw('{"code":-32601,"message":"?"}'))
    assert session.deliver(unknown, 1) == [ToClient(2, Result(5, raw("{}"))), EndStream(2)]
    with pytest.raises(InvalidRequest):
        ask(session, call(6), 3)
    exit_note = Notification("notifications/exit")
    assert session.tell(exit_note, 2) == [ToUpstream(exit_note), Ended("exit")]


def test_after_shutdown_a_session_ends_by_itself(session: Session) -> None:
    ask(session, Request(5, "shutdown"), 2)
    session.deliver(Result(101, raw("{}")), 1)
    assert session.tick(5.9, never) == []
    assert session.due == 6
    assert session.tick(6, never) == [Ended("shutdown")]


def test_too_many_calls_are_refused_and_nothing_happens() -> None:
    session = Session(LIMITS, count(100), Bounds(calls=1))
    ask(session, Request(0, "initialize", GREETING), 1)
    session.deliver(Result(100, GREETED), 0.0)
    ask(session, call(1), 2)
    with pytest.raises(Overloaded):
        ask(session, call(2), 3)


def test_a_refused_shutdown_leaves_the_session_open() -> None:
    session = Session(LIMITS, count(100), Bounds(calls=1))
    ask(session, Request(0, "initialize", GREETING), 1)
    session.deliver(Result(100, GREETED), 0.0)
    ask(session, call(1), 2)
    with pytest.raises(Overloaded):
        ask(session, Request(2, "shutdown"), 3)
    session.deliver(Result(101, raw("{}")), 1)
    assert ask(session, call(3), 4) == [ours(102)]


def test_shutdown_before_the_server_has_answered_initialize_is_refused(new: Session) -> None:
    ask(new, Request(0, "initialize", GREETING), 1)
    with pytest.raises(InvalidRequest):
        ask(new, Request(1, "shutdown"), 2)
    new.deliver(Result(100, GREETED), 1)
    assert ask(new, call(2), 3) == [ours(101)]


def test_what_was_held_and_cancelled_is_never_sent(new: Session) -> None:
    ask(new, Request(0, "initialize", GREETING), 1)
    ask(new, call(1), 2)
    assert new.tell(Notification(methods.CANCELLED, raw('{"requestId":1}')), 0.1) == [
        ToClient(2, CANCELLED),
        EndStream(2),
    ]
    assert new.deliver(Result(100, GREETED), 1) == [ToClient(1, Result(0, GREETED)), EndStream(1)]


def test_what_was_held_too_long_is_never_sent_and_throws_no_doubt_on_the_server() -> None:
    session = Session(Deadlines(start=300, request=60, stream_after=0.25), count(100))
    ask(session, Request(0, "initialize", GREETING), 1)
    ask(session, call(1), 2)
    session.tick(0.25, never)
    match session.tick(60, never):
        case [ToClient(2, Failure(1, error)), EndStream(2)]:
            assert b'"executed":"no"' in bytes(error)
        case other:
            pytest.fail(repr(other))
    assert session.deliver(Result(100, GREETED), 61)[2:] == []


def test_what_finds_no_room_before_the_server_is_ready_is_answered_so_or_dropped() -> None:
    session = Session(LIMITS, count(100), Bounds(early_count=2))
    ask(session, Request(0, "initialize", GREETING), 1)
    assert ask(session, call(1), 2) == []
    assert session.tell(Notification("notifications/x"), 0.0) == []
    match ask(session, call(2), 3):
        case [ToClient(3, Failure(2, error)), EndStream(3)]:
            assert methods.error_code(error) == -31005
            assert b'"executed":"no"' in bytes(error)
        case other:
            pytest.fail(repr(other))
    assert session.tell(Notification("notifications/y"), 0.0) == []
    assert session.tell(Notification("notifications/initialized"), 0.0) == []
    assert session.deliver(Result(100, GREETED), 0.1)[2:] == [
        ours(101),
        ToUpstream(Notification("notifications/x")),
        ToUpstream(Notification("notifications/initialized")),
    ]


def test_notifications_of_a_client_that_never_greets_are_bounded(new: Session) -> None:
    for number in range(1000):
        new.tell(Notification(f"notifications/{number}"), 0.0)
    assert len(new.anteroom.empty()) == 256


def test_a_session_that_is_lost_early_fails_what_it_held(new: Session) -> None:
    ask(new, Request(0, "initialize", GREETING), 1)
    ask(new, call(1), 2)
    effects = new.lost(Exited("gone"), "exited")
    assert [type(effect) for effect in effects] == [ToClient, EndStream, ToClient, EndStream, Ended]


@pytest.mark.parametrize(
    ("answered", "date"), [("2024-11-05", "2024-11-05"), ("2026-07-28", "2024-11-05"), ("soon", "2024-11-05")]
)
def test_the_servers_version_is_the_sessions(new: Session, answered: str, date: str) -> None:
    ask(new, Request(0, "initialize", GREETING), 1)
    assert new.revision == NEWEST_HANDSHAKE
    new.deliver(Result(100, payload({"protocolVersion": answered})), 1)
    assert new.revision.date == date


def test_exit_without_shutdown_is_the_servers_own_affair(session: Session) -> None:
    note = Notification("notifications/exit")
    assert session.tell(note, 0) == [ToUpstream(note)]
    assert session.phase is Phase.OPEN


def test_a_shutdown_that_is_never_answered_ends_the_session_all_the_same(session: Session) -> None:
    ask(session, Request(5, "shutdown"), 2)
    session.tick(0.25, never)
    assert EndStream(2) in session.tick(60, never)
    assert session.due == 65
    assert session.tick(65, never) == [Ended("shutdown")]


def test_a_shutdown_that_was_cancelled_ends_the_session_all_the_same(session: Session) -> None:
    ask(session, Request(5, "shutdown"), 2)
    session.tell(Notification(methods.CANCELLED, raw('{"requestId":5}')), 1)
    session.tick(0.25, never)
    assert session.due == 65
    assert session.tick(65, never) == [Ended("shutdown")]


def test_a_server_that_refuses_to_shut_down_is_heard_and_the_session_ends(session: Session) -> None:
    ask(session, Request(5, "shutdown"), 2)
    error = raw('{"code":-32000,"message":"busy"}')
    assert session.deliver(Failure(101, error), 1) == [ToClient(2, Failure(5, error)), EndStream(2)]
    assert session.tick(6, never) == [Ended("shutdown")]


@pytest.mark.parametrize("reason", ["deleted", "idle"])
def test_a_session_that_is_closed_gives_every_call_its_last_word(session: Session, reason: str) -> None:
    ask(session, call("a"), 2)
    match session.close(reason):
        case [ToClient(2, Failure("a", error)), EndStream(2), Ended(reason_told)]:
            assert reason_told == reason
            assert methods.error_code(error) == -31006
            assert f'"reason":"{reason}","executed":"unknown"'.encode() in bytes(error)
        case other:
            pytest.fail(repr(other))


def test_after_the_end_nothing_is_said_to_anybody(session: Session) -> None:
    session.hear(9, 0)
    ask(session, call(1), 2)
    session.deliver(Request(4, "roots/list"), 0)
    session.close("deleted")
    news = Notification("notifications/tools/list_changed")
    for said in (news, Request(5, "ping"), Request(6, "roots/list"), Result(101, raw("{}"))):
        assert session.deliver(said, 1) == []
    for told in (Notification("notifications/x"), Result(1, raw("{}"))):
        assert session.tell(told, 1) == []
    assert session.hear(10, 1) == []
    assert session.tick(1000, never) == []
    with pytest.raises(InvalidRequest):
        ask(session, call(2), 3)


def test_what_no_stream_has_heard_is_not_said_after_the_end(session: Session) -> None:
    session.deliver(Request(5, "roots/list"), 0)
    session.deliver(Notification("notifications/tools/list_changed"), 0)
    session.close("deleted")
    assert session.hear(9, 1) == []
