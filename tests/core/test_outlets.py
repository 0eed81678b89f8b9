"""Which ways to the client there are, and when one of them ends."""

import pytest
from msgspec import Raw

from app.core.deadlines import FOREVER
from app.core.outlets import Outlets
from app.protocol.jsonrpc import Notification, Request

NEWS = Notification("notifications/tools/list_changed")


def numbered(number: int) -> Notification:
    return Notification("notifications/x", Raw(b'{"n":%d}' % number))


@pytest.fixture
def outlets() -> Outlets:
    return Outlets()


def test_a_post_ends_with_the_last_word_that_it_owes(outlets: Outlets) -> None:
    outlets.post(1, can_stream=True, begin_at=0.25)
    assert [outlets.owe(1), outlets.owe(1)] == [0.25, 0.25]
    assert outlets.settle(1) is False
    assert outlets.settle(1) is True
    assert outlets.settle(1) is False


def test_a_listener_owes_nothing_and_never_ends_by_settling(outlets: Outlets) -> None:
    outlets.listen(1)
    assert outlets.owe(1) == FOREVER
    assert outlets.settle(1) is False
    assert outlets.can_stream(1)


def test_posts_begin_to_stream_once_each_when_their_time_has_come(outlets: Outlets) -> None:
    for stream, begin_at in ((1, 0.25), (2, 0.5), (3, 0.75)):
        outlets.post(stream, can_stream=True, begin_at=begin_at)
    assert outlets.due == 0.25
    assert outlets.begin_due(0.24) == []
    assert outlets.begin_due(0.5) == [1, 2]
    assert outlets.begin_due(0.5) == []
    assert outlets.due == 0.75


def test_what_takes_json_only_never_begins_to_stream(outlets: Outlets) -> None:
    outlets.post(1, can_stream=False, begin_at=0.25)
    assert (outlets.due, outlets.owe(1), outlets.can_stream(1)) == (FOREVER, FOREVER, False)
    assert outlets.begin_due(1e9) == []
    assert outlets.settle(1) is True


def test_a_post_can_stream_until_it_has_ended(outlets: Outlets) -> None:
    outlets.post(1, can_stream=True, begin_at=0.25)
    outlets.owe(1)
    assert outlets.can_stream(1)
    outlets.settle(1)
    assert not outlets.can_stream(1)
    assert outlets.due == FOREVER


def test_a_post_that_was_refused_is_forgotten(outlets: Outlets) -> None:
    outlets.post(1, can_stream=True, begin_at=0.25)
    outlets.drop(1)
    outlets.drop(1)
    assert (outlets.due, outlets.can_stream(1), outlets.settle(1)) == (FOREVER, False, False)


def test_the_newest_open_listener_hears_what_answers_no_request(outlets: Outlets) -> None:
    heard = [outlets.listener]
    for stream in (1, 2, 3):
        outlets.listen(stream)
        heard.append(outlets.listener)
    for stream in (3, 1, 1, 2):
        outlets.unlisten(stream)
        heard.append(outlets.listener)
    assert heard == [None, 1, 2, 3, 2, 2, 2, None]


def test_a_listener_can_stream_as_long_as_its_connection_is_there(outlets: Outlets) -> None:
    outlets.listen(1)
    outlets.listen(2)
    outlets.unlisten(1)
    assert (outlets.can_stream(1), outlets.can_stream(2)) == (False, True)


def test_what_waits_is_heard_once_in_its_order_by_the_next_listener(outlets: Outlets) -> None:
    for notification in (numbered(1), NEWS, numbered(2)):
        outlets.wait(notification)
    assert outlets.listen(1) == [numbered(1), NEWS, numbered(2)]
    assert outlets.listen(2) == []


def test_news_that_repeats_itself_waits_once_and_log_messages_not_at_all(outlets: Outlets) -> None:
    for notification in (NEWS, numbered(1), NEWS, numbered(1), Notification("notifications/message")):
        outlets.wait(notification)
    assert outlets.listen(1) == [NEWS, numbered(1)]


def test_a_question_that_is_held_waits_with_the_rest_until_it_is_released(outlets: Outlets) -> None:
    questions = [Request(ident, "roots/list") for ident in (1, 2, 3)]
    outlets.hold(questions[0])
    outlets.wait(NEWS)
    outlets.hold(questions[1])
    outlets.hold(questions[2])
    outlets.release(2)
    outlets.release(7)
    assert outlets.listen(1) == [questions[0], NEWS, questions[2]]


def test_of_too_much_that_waits_the_newest_is_kept() -> None:
    outlets = Outlets(waiting_max=10)
    for number in range(15):
        outlets.wait(numbered(number))
    assert outlets.listen(1) == [numbered(number) for number in range(5, 15)]


def test_what_waits_has_a_bound_in_bytes_and_any_one_alone_is_kept() -> None:
    outlets = Outlets(bytes_max=100)
    large = Notification("notifications/x", Raw(b'{"n":"%b"}' % (b"x" * 100)))
    for told in (numbered(1), numbered(2), large):
        outlets.wait(told)
    assert outlets.listen(1) == [large]
    for number in range(9):
        outlets.wait(numbered(number))
    assert outlets.listen(1) == [numbered(number) for number in range(5, 9)]


def test_no_more_questions_are_held_than_there_is_room_for_but_any_one_alone() -> None:
    outlets = Outlets(bytes_max=100)
    large = Request(1, "roots/list", Raw(b'{"n":"%b"}' % (b"x" * 100)))
    outlets.wait(numbered(1))
    assert outlets.can_hold(large)
    outlets.hold(large)
    assert not outlets.can_hold(Request(2, "roots/list"))
    outlets.release(1)
    assert outlets.can_hold(Request(2, "roots/list"))


def test_no_question_gives_way_to_news() -> None:
    outlets = Outlets(waiting_max=2)
    question = Request(1, "roots/list")
    outlets.hold(question)
    for number in range(5):
        outlets.wait(numbered(number))
    assert outlets.listen(1) == [question, numbered(3), numbered(4)]
