"""A session's calls: where each answer goes, under which id, and when it is late."""

import pytest

from app.core.effects import BeginStream, Doubt, EndStream, ToClient, ToUpstream
from app.core.session import Session
from app.protocol import methods
from app.protocol.jsonrpc import Failure, Notification, Request, Result
from tests.core.sessions import CANCELLED, GREETING, ask, call, never, ours, raw


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
    assert session.tell(note, 0.1) == [ToUpstream(told), ToClient(3, CANCELLED), EndStream(3)]
    assert session.deliver(Result(102, raw("{}")), 0.2) == []
    assert session.deliver(Result(101, raw("{}")), 0.2) == [ToClient(2, Result(1, raw("{}"))), EndStream(2)]


@pytest.mark.parametrize("can_stream", [True, False])
def test_the_response_to_a_cancelled_call_ends_with_a_last_word(session: Session, can_stream: bool) -> None:
    ask(session, call(1), 2, can_stream=can_stream)
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


def test_a_later_call_begins_to_stream_in_its_own_time(session: Session) -> None:
    ask(session, call(1), 2)
    session.tick(0.25, never)
    ask(session, call(2), 3, now=10)
    assert session.due == 10.25
    assert session.tick(10.25, never) == [BeginStream(3)]


def test_initialized_without_its_prefix_is_taken_for_what_it_means(session: Session) -> None:
    assert session.tell(Notification("initialized"), 0) == [ToUpstream(Notification("notifications/initialized"))]


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
