"""A batch is accepted whole or not at all, and ends its stream with its last answer."""

from itertools import count

import pytest

from app.core.bounds import Bounds
from app.core.effects import EndStream, ToClient, ToUpstream
from app.core.phases import Phase
from app.core.session import Session
from app.protocol import methods
from app.protocol.faults import InvalidRequest, Overloaded
from app.protocol.jsonrpc import Message, Notification, Request, Result
from tests.core.sessions import CANCELLED, GREETED, GREETING, LIMITS, ask, call, ours, post, raw


def test_a_batch_ends_its_stream_with_its_last_answer(session: Session) -> None:
    post(session, 2)
    batch: list[Message] = [call(1), Notification("notifications/x"), call(2)]
    assert session.ask_all(batch, 2, 0) == [ours(101), ToUpstream(Notification("notifications/x")), ours(102)]
    assert session.deliver(Result(102, raw("{}")), 1) == [ToClient(2, Result(2, raw("{}")))]
    assert session.deliver(Result(101, raw("{}")), 1) == [ToClient(2, Result(1, raw("{}"))), EndStream(2)]


def test_initialize_in_a_batch_is_refused(new: Session) -> None:
    with pytest.raises(InvalidRequest):
        new.ask_all([Request(0, "initialize", GREETING)], 1, 0)


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
    session = Session(LIMITS, count(100), Bounds(calls=2))
    ask(session, Request(0, "initialize", GREETING), 1)
    session.deliver(Result(100, GREETED), 0.0)
    post(session, 2)
    with pytest.raises((InvalidRequest, Overloaded)):
        session.ask_all(batch, 2, 0)
    session.outlets.drop(2)
    assert not session.is_busy
    assert ask(session, call(7), 3) == [ours(101)]


def test_calls_in_flight_count_against_a_batch() -> None:
    session = Session(LIMITS, count(100), Bounds(calls=2))
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
    assert session.ask_all(batch, 2, 0) == [ours(101), ToUpstream(told), ToClient(2, CANCELLED), ours(102)]
    assert session.deliver(Result(102, raw("{}")), 1) == [ToClient(2, Result(2, raw("{}"))), EndStream(2)]


def test_a_batch_that_cancels_all_of_itself_ends_at_once(session: Session) -> None:
    post(session, 2)
    batch: list[Message] = [call(1), Notification(methods.CANCELLED, raw('{"requestId":1}'))]
    assert session.ask_all(batch, 2, 0)[-1] == EndStream(2)
    assert not session.is_busy
