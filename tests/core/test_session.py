"""A session's decisions, whole effects compared."""

from itertools import count

import pytest
from msgspec import Raw

from app.core.deadlines import Deadlines
from app.core.effects import BeginStream, Doubt, Effect, Ended, EndStream, Overdue, ToClient, ToUpstream
from app.core.session import Phase, Session
from app.protocol import methods
from app.protocol.faults import Exited, InvalidRequest, Overloaded
from app.protocol.jsonrpc import Failure, Message, Notification, Request, Result, payload
from app.protocol.revisions import NEWEST_HANDSHAKE

LIMITS = Deadlines(start=10, request=60, max_request=600, stream_after=0.25, shutdown_grace=5)
GREETING = payload({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}, "roots": {}}})
GREETED = payload({"protocolVersion": "2025-11-25", "capabilities": {}})


def raw(text: str) -> Raw:
    return Raw(text.encode())


def never(ident: int) -> bool:
    return False


def post(session: Session, stream: int, *, can_stream: bool = True, now: float = 0.0) -> None:
    session.outlets.post(stream, can_stream=can_stream, begin_at=now + LIMITS.stream_after)


def ask(session: Session, request: Request, stream: int, *, now: float = 0.0, can_stream: bool = True) -> list[Effect]:
    post(session, stream, can_stream=can_stream, now=now)
    return session.ask(request, stream, now)


def call(ident: int | str, name: str = "echo") -> Request:
    return Request(ident, "tools/call", payload({"name": name}))


def ours(ident: int, name: str = "echo") -> ToUpstream:
    return ToUpstream(Request(ident, "tools/call", payload({"name": name})))


@pytest.fixture
def new() -> Session:
    return Session(LIMITS, count(100))


@pytest.fixture
def session(new: Session) -> Session:
    ask(new, Request(0, "initialize", GREETING), 1)
    new.deliver(Result(100, GREETED), 0.0)
    return new


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


def test_a_reply_ends_the_stream_of_the_call_it_answers(session: Session) -> None:
    assert ask(session, call(7), 2) == [ours(101)]
    assert session.deliver(Result(101, raw("{}")), 0.1) == [ToClient(2, Result(7, raw("{}"))), EndStream(2)]


def test_one_id_twice_in_flight_gets_each_its_own_answer(session: Session) -> None:
    ask(session, call(1, "slow"), 2)
    ask(session, call(1, "fast"), 3)
    assert session.deliver(Result(102, raw('"fast"')), 0.1) == [ToClient(3, Result(1, raw('"fast"'))), EndStream(3)]
    assert session.deliver(Result(101, raw('"slow"')), 0.2) == [ToClient(2, Result(1, raw('"slow"'))), EndStream(2)]


def test_ids_keep_their_json_type(session: Session) -> None:
    ask(session, call("1"), 2)
    assert session.deliver(Result(101, raw("{}")), 0.1)[0] == ToClient(2, Result("1", raw("{}")))


@pytest.mark.parametrize("ident", [None, 999, "101"])
def test_a_reply_that_nobody_waits_for_is_dropped(session: Session, ident: int | str | None) -> None:
    ask(session, call(1), 2)
    assert session.deliver(Failure(ident, raw('{"code":-32700}')), 0.1) == []
    assert session.is_busy


def test_a_second_answer_is_dropped(session: Session) -> None:
    ask(session, call(1), 2)
    session.deliver(Result(101, raw("{}")), 0.1)
    assert session.deliver(Result(101, raw("{}")), 0.1) == []


def test_progress_tokens_are_ours_towards_the_server_and_the_clients_towards_the_client(session: Session) -> None:
    asked = Request(1, "tools/call", raw('{"name":"x","_meta":{"progressToken":"tok","k":1.0}}'))
    sent = raw('{"name":"x","_meta":{"progressToken":101,"k":1.0}}')
    assert ask(session, asked, 2) == [ToUpstream(Request(101, "tools/call", sent))]
    news = Notification("notifications/progress", raw('{"progressToken":101,"progress":1}'))
    told = Notification("notifications/progress", raw('{"progressToken":"tok","progress":1}'))
    assert session.deliver(news, 0.1) == [ToClient(2, told)]
    session.deliver(Result(101, raw("{}")), 0.2)
    assert session.deliver(news, 0.3) == []


def test_progress_for_a_client_that_takes_json_only_is_dropped_but_counts_as_a_sign_of_life(session: Session) -> None:
    asked = Request(1, "tools/call", raw('{"_meta":{"progressToken":1}}'))
    ask(session, asked, 2, can_stream=False)
    news = Notification("notifications/progress", raw('{"progressToken":101,"progress":1}'))
    assert session.deliver(news, 59.0) == []
    assert session.tick(61.0, never) == []


def test_cancelling_an_id_that_is_in_flight_twice_cancels_the_newest(session: Session) -> None:
    ask(session, call(1), 2)
    ask(session, call(1), 3)
    note = Notification(methods.CANCELLED, raw('{"requestId":1,"reason":"x"}'))
    told = Notification(methods.CANCELLED, raw('{"requestId":102,"reason":"x"}'))
    assert session.tell(note, 0.1) == [ToUpstream(told), EndStream(3)]
    assert session.deliver(Result(102, raw("{}")), 0.2) == []
    assert session.deliver(Result(101, raw("{}")), 0.2) == [ToClient(2, Result(1, raw("{}"))), EndStream(2)]


def test_a_cancelled_call_of_a_client_that_takes_json_only_gets_a_last_word(session: Session) -> None:
    ask(session, call(1), 2, can_stream=False)
    effects = session.tell(Notification(methods.CANCELLED, raw('{"requestId":1}')), 0.1)
    match effects:
        case [ToUpstream(), ToClient(2, Failure(1, error)), EndStream(2)]:
            assert methods.error_code(error) == -31009
        case _:
            pytest.fail(repr(effects))


@pytest.mark.parametrize("params", ['{"requestId":"1"}', '{"requestId":9}', "{}", '{"requestId":null}'])
def test_cancelling_what_is_not_in_flight_does_nothing(session: Session, params: str) -> None:
    ask(session, call(1), 2)
    assert session.tell(Notification(methods.CANCELLED, raw(params)), 0.1) == []


def test_initialize_cannot_be_cancelled(new: Session) -> None:
    ask(new, Request(0, "initialize", GREETING), 1)
    assert new.tell(Notification(methods.CANCELLED, raw('{"requestId":0}')), 0.1) == []


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


def test_news_without_a_stream_waits_once_for_the_next_one_and_log_messages_do_not(session: Session) -> None:
    changed = Notification("notifications/tools/list_changed")
    for note in (changed, changed, Notification("notifications/message", raw('{"level":"info"}'))):
        assert session.deliver(note, 0.1) == []
    assert session.outlets.listen(9) == [changed]


def test_a_silent_call_times_out_and_the_server_is_told(session: Session) -> None:
    ask(session, call(1), 2)
    assert session.tick(0.25, never) == [BeginStream(2)]
    assert session.due == 60
    effects = session.tick(60, never)
    match effects:
        case [ToUpstream(Notification(methods.CANCELLED, told)), Doubt(), ToClient(2, Failure(1, error)), EndStream(2)]:
            assert methods.error_code(error) == -31003
            assert b'"executed":"unknown"' in bytes(error)
            assert told == raw('{"requestId":101,"reason":"timed out at the gateway"}')
        case _:
            pytest.fail(repr(effects))


def test_a_call_that_was_never_sent_is_taken_back_and_said_not_to_have_run(session: Session) -> None:
    ask(session, call(1), 2)
    effects = session.tick(60, lambda ident: ident == 101)[1:]
    match effects:
        case [ToClient(2, Failure(1, error)), EndStream(2)]:
            assert b'"executed":"no"' in bytes(error)
        case _:
            pytest.fail(repr(effects))


def test_progress_postpones_the_idle_deadline_but_not_the_last_one(session: Session) -> None:
    ask(session, Request(1, "tools/call", raw('{"_meta":{"progressToken":1}}')), 2)
    for now in range(50, 600, 50):
        session.deliver(Notification("notifications/progress", raw('{"progressToken":101,"progress":1}')), now)
        assert [type(effect) for effect in session.tick(now, never)] in ([], [BeginStream])
    assert any(isinstance(effect, EndStream) for effect in session.tick(600, never))


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


def test_a_later_call_begins_to_stream_in_its_own_time(session: Session) -> None:
    ask(session, call(1), 2)
    session.tick(0.25, never)
    ask(session, call(2), 3, now=10)
    assert session.due == 10.25
    assert session.tick(10.25, never) == [BeginStream(3)]


def test_an_initialize_that_takes_too_long_is_overdue_once(new: Session) -> None:
    ask(new, Request(0, "initialize", GREETING), 1)
    assert new.tick(10, never) == [BeginStream(1), Overdue()]
    assert new.tick(11, never) == []


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


def test_initialized_without_its_prefix_is_taken_for_what_it_means(session: Session) -> None:
    assert session.tell(Notification("initialized"), 0) == [ToUpstream(Notification("notifications/initialized"))]


def test_too_many_calls_are_refused_and_nothing_happens() -> None:
    session = Session(LIMITS, count(100), calls_max=1)
    ask(session, Request(0, "initialize", GREETING), 1)
    session.deliver(Result(100, GREETED), 0.0)
    ask(session, call(1), 2)
    with pytest.raises(Overloaded):
        ask(session, call(2), 3)


def test_a_batch_ends_its_stream_with_its_last_answer(session: Session) -> None:
    post(session, 2)
    batch: list[Message] = [call(1), Notification("notifications/x"), call(2)]
    assert session.ask_all(batch, 2, 0) == [ours(101), ToUpstream(Notification("notifications/x")), ours(102)]
    assert session.deliver(Result(102, raw("{}")), 1) == [ToClient(2, Result(2, raw("{}")))]
    assert session.deliver(Result(101, raw("{}")), 1) == [ToClient(2, Result(1, raw("{}"))), EndStream(2)]


def test_initialize_in_a_batch_is_refused(new: Session) -> None:
    with pytest.raises(InvalidRequest):
        new.ask_all([Request(0, "initialize", GREETING)], 1, 0)


# What is refused has changed nothing.


def test_a_refused_shutdown_leaves_the_session_open() -> None:
    session = Session(LIMITS, count(100), calls_max=1)
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


@pytest.mark.parametrize(
    "batch",
    [
        [call(1), call(2), call(3)],
        [Notification("notifications/x"), call(1), Request(2, "shutdown")],
        [call(1), Request(2, "initialize", GREETING)],
    ],
    ids=["too many", "a shutdown", "an initialize"],
)
def test_a_batch_is_accepted_whole_or_not_at_all(batch: list[Message]) -> None:
    session = Session(LIMITS, count(100), calls_max=2)
    ask(session, Request(0, "initialize", GREETING), 1)
    session.deliver(Result(100, GREETED), 0.0)
    post(session, 2)
    with pytest.raises((InvalidRequest, Overloaded)):
        session.ask_all(batch, 2, 0)
    session.outlets.drop(2)
    assert not session.is_busy
    assert ask(session, call(7), 3) == [ours(101)]


def test_calls_in_flight_count_against_a_batch() -> None:
    session = Session(LIMITS, count(100), calls_max=2)
    ask(session, Request(0, "initialize", GREETING), 1)
    session.deliver(Result(100, GREETED), 0.0)
    ask(session, call(1), 2)
    post(session, 3)
    with pytest.raises(Overloaded):
        session.ask_all([call(2), call(3)], 3, 0)
    session.outlets.drop(3)
    assert ask(session, call(4), 4) == [ours(102)]


def test_a_batch_before_initialize_leaves_nothing_behind(new: Session) -> None:
    post(new, 1)
    with pytest.raises(InvalidRequest):
        new.ask_all([Notification("notifications/x"), call(1)], 1, 0)
    ask(new, Request(0, "initialize", GREETING), 2)
    assert new.deliver(Result(100, GREETED), 1) == [ToClient(2, Result(0, GREETED)), EndStream(2)]


def test_a_batch_after_shutdown_is_refused_with_the_exit_that_is_in_it(session: Session) -> None:
    ask(session, Request(5, "shutdown"), 2)
    session.deliver(Result(101, raw("{}")), 1)
    post(session, 3)
    with pytest.raises(InvalidRequest):
        session.ask_all([Notification("notifications/exit"), call(1)], 3, 1)
    assert session.phase is Phase.CLOSING


def test_a_batch_that_cancels_its_first_member_still_answers_the_others(session: Session) -> None:
    post(session, 2)
    batch: list[Message] = [call(1), Notification(methods.CANCELLED, raw('{"requestId":1}')), call(2)]
    told = Notification(methods.CANCELLED, raw('{"requestId":101}'))
    assert session.ask_all(batch, 2, 0) == [ours(101), ToUpstream(told), ours(102)]
    assert session.deliver(Result(102, raw("{}")), 1) == [ToClient(2, Result(2, raw("{}"))), EndStream(2)]


def test_a_batch_that_cancels_all_of_itself_ends_at_once(session: Session) -> None:
    post(session, 2)
    batch: list[Message] = [call(1), Notification(methods.CANCELLED, raw('{"requestId":1}'))]
    assert session.ask_all(batch, 2, 0)[-1] == EndStream(2)
    assert not session.is_busy


# Before the server has answered initialize.


def test_what_was_held_and_cancelled_is_never_sent(new: Session) -> None:
    ask(new, Request(0, "initialize", GREETING), 1)
    ask(new, call(1), 2)
    assert new.tell(Notification(methods.CANCELLED, raw('{"requestId":1}')), 0.1) == [EndStream(2)]
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


# Where it goes.


def test_a_servers_error_passes_byte_for_byte(session: Session) -> None:
    ask(session, call(1), 2)
    error = raw('{ "code":-32602, "data":1.0 }')
    assert session.deliver(Failure(101, error), 1) == [ToClient(2, Failure(1, error)), EndStream(2)]


def test_news_goes_to_the_only_call_else_to_a_get_stream_else_to_the_newest_call(session: Session) -> None:
    news = Notification("notifications/tools/list_changed")
    ask(session, call(1), 2)
    assert session.deliver(news, 0) == [ToClient(2, news)]
    ask(session, call(2), 3)
    ask(session, call(3), 4, can_stream=False)
    assert session.deliver(news, 0) == [ToClient(3, news)]
    session.hear(9, 0)
    assert session.deliver(news, 0) == [ToClient(9, news)]


def test_the_only_call_is_passed_over_where_its_client_takes_json_only(session: Session) -> None:
    ask(session, call(1), 2, can_stream=False)
    session.hear(9, 0)
    assert session.deliver(Request(5, "roots/list"), 0) == [ToClient(9, Request(1, "roots/list"))]


def test_exit_without_shutdown_is_the_servers_own_affair(session: Session) -> None:
    note = Notification("notifications/exit")
    assert session.tell(note, 0) == [ToUpstream(note)]
    assert session.phase is Phase.OPEN


# Questions.


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


# The end.


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
