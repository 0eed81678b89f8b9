"""What a client hears again, and what it is told that it will not."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.replay import REMEMBERED_ANSWERS, REMEMBERED_STREAMS, Event, EventLog, Evicted, Fact, Forgotten, Replay
from app.protocol.jsonrpc import RequestId


def roomy() -> EventLog:
    return EventLog(bytes_max=1000, count_max=100)


def test_numbers_rise_by_one_across_all_streams() -> None:
    log = roomy()
    assert [log.append(1, b"a"), log.append(2, b"b"), log.mark(1), log.append(1, b"c")] == [1, 2, 3, 4]


def test_after_an_event_come_the_later_ones_of_its_stream_only() -> None:
    log = roomy()
    for stream, data in ((1, b"a"), (2, b"b"), (1, b"c"), (2, b"d"), (1, b"e")):
        log.append(stream, data)
    assert log.after(1, 1) == Replay([Event(3, 1, b"c"), Event(5, 1, b"e")], [])
    assert log.after(2, 2) == Replay([Event(4, 2, b"d")], [])
    assert log.after(2, 4) == Replay([], [])


def test_a_mark_can_be_gone_on_from_and_is_not_said_again() -> None:
    log = roomy()
    assert log.mark(1) == 1
    log.append(1, b"a")
    assert log.mark(1) == 3
    assert log.holds(1, 1)
    assert log.after(1, 1) == Replay([Event(2, 1, b"a")], [])
    assert log.after(1, 3) == Replay([], [])


@pytest.mark.parametrize(("stream", "number"), [(1, 0), (1, 5), (2, 1), (2, 4), (3, 1), (1, -1)])
def test_numbers_that_a_stream_never_had_are_not_its_events(stream: int, number: int) -> None:
    log = roomy()
    for spoken in (1, 1, 2, 1):
        log.append(spoken, b"a")
    assert not log.holds(stream, number)


def test_the_oldest_events_go_first_whosever_they_are() -> None:
    log = EventLog(bytes_max=1000, count_max=2)
    for stream, data in ((1, b"a"), (2, b"b"), (1, b"c")):
        log.append(stream, data)
    assert log.after(1, 0).events == [Event(3, 1, b"c")]
    assert log.after(2, 0).events == [Event(2, 2, b"b")]
    assert log.holds(1, 1)


def test_bytes_bound_the_log_to_the_last_one() -> None:
    log = EventLog(bytes_max=4, count_max=100)
    for data in (b"ab", b"cd"):
        log.append(1, data)
    assert [event.data for event in log.after(1, 0).events] == [b"ab", b"cd"]
    log.append(1, b"e")
    assert [event.data for event in log.after(1, 0).events] == [b"cd", b"e"]


def test_the_newest_event_is_kept_however_large_it_is() -> None:
    log = EventLog(bytes_max=4, count_max=100)
    log.append(1, b"a")
    log.append(1, b"x" * 50)
    assert [event.data for event in log.after(1, 0).events] == [b"x" * 50]
    log.append(1, b"b")
    assert [event.data for event in log.after(1, 0).events] == [b"b"]


def test_an_evicted_answer_is_named_to_whoever_has_not_heard_it() -> None:
    log = EventLog(bytes_max=1000, count_max=1)
    log.append(1, b"news")
    log.append(1, b"one", answers=7)
    log.append(1, b"two", answers="7")
    log.append(2, b"other", answers=8)
    assert log.after(1, 1) == Replay([], [7, "7"])
    assert log.after(1, 2) == Replay([], ["7"])
    assert log.after(1, 3) == Replay([], [])
    assert log.after(2, 3) == Replay([Event(4, 2, b"other", 8)], [])


def test_streams_of_which_nothing_is_kept_are_remembered_for_a_while() -> None:
    log = EventLog(bytes_max=1000, count_max=1)
    for stream in range(REMEMBERED_STREAMS + 3):
        log.append(stream, b"a")
    remembered = [stream for stream in range(REMEMBERED_STREAMS + 3) if log.holds(stream, stream + 1)]
    assert remembered == list(range(2, REMEMBERED_STREAMS + 3))


def test_a_stream_of_which_something_is_kept_is_never_forgotten() -> None:
    log = EventLog(bytes_max=10**6, count_max=2 * REMEMBERED_STREAMS)
    for stream in range(REMEMBERED_STREAMS + 3):
        log.append(stream, b"a")
    log.mark(-1)
    assert all(log.after(stream, 0).events for stream in range(REMEMBERED_STREAMS + 3))


def test_a_stream_that_goes_on_is_not_forgotten_however_long_it_is_silent() -> None:
    log = EventLog(bytes_max=1000, count_max=1)
    log.open(0)
    log.mark(0)
    for stream in range(1, REMEMBERED_STREAMS + 3):
        log.append(stream, b"a")
    assert log.holds(0, 1)
    log.close(0)
    log.append(-1, b"a")
    assert not log.holds(0, 1)


def test_of_answers_that_are_no_longer_kept_no_more_are_remembered_than_so_many() -> None:
    log, noted = EventLog(bytes_max=1000, count_max=1), list[Fact]()
    for number in range(REMEMBERED_ANSWERS - 1):
        log.append(1, b"a", answers=number)
    log.append(2, b"a", answers="its only one")
    log.note = noted.append
    log.append(3, b"a")
    log.append(3, b"a")
    assert len(log.after(1, 0).lost) == REMEMBERED_ANSWERS - 1
    log.append(4, b"a", answers="one more")
    log.append(4, b"a")
    assert [fact for fact in noted if isinstance(fact, Forgotten)] == [Forgotten(1)]
    assert (log.holds(1, 1), log.after(2, 1).lost, log.after(4, 1).lost) == (False, ["its only one"], ["one more"])


def test_of_one_stream_that_goes_on_the_oldest_answers_are_forgotten_and_nobody_resumes_it_before_them() -> None:
    log, noted = EventLog(bytes_max=1000, count_max=1), list[Fact]()
    log.open(1)
    log.note = noted.append
    for number in range(REMEMBERED_ANSWERS + 4):
        log.append(1, b"a", answers=number)
    assert [fact for fact in noted if isinstance(fact, Evicted)] == [Evicted(1), Evicted(2), Evicted(3)]
    assert not log.holds(1, 3)
    assert log.after(1, 4).lost == [*range(4, REMEMBERED_ANSWERS + 3)]


@dataclass
class Model:
    """Everything that was ever said, and what of it may still be kept."""

    bytes_max: int
    count_max: int
    said: list[Event] = field(default_factory=list)
    number: int = 0

    def kept(self) -> list[Event]:
        kept: list[Event] = []
        for event in reversed(self.said):
            size = sum(len(other.data) for other in kept) + len(event.data)
            if kept and (size > self.bytes_max or len(kept) + 1 > self.count_max):
                break
            kept.insert(0, event)
        return kept


SAYINGS = st.tuples(st.integers(1, 3), st.integers(0, 9), st.none() | st.sampled_from([1, "1", 2]), st.booleans())


@given(st.integers(0, 30), st.integers(1, 6), st.lists(SAYINGS, max_size=30))
def test_a_replay_is_the_exact_rest_and_names_the_answers_that_are_gone(
    bytes_max: int, count_max: int, sayings: list[tuple[int, int, RequestId | None, bool]]
) -> None:
    log, model = EventLog(bytes_max, count_max), Model(bytes_max, count_max)
    heard: dict[int, list[int]] = {1: [], 2: [], 3: []}
    for stream, size, answers, is_mark in sayings:
        number = log.mark(stream) if is_mark else log.append(stream, b"x" * size, answers)
        assert number == model.number + 1
        model.number = number
        heard[stream].append(number)
        if not is_mark:
            model.said.append(Event(number, stream, b"x" * size, answers))
    kept = model.kept()
    for stream, numbers in heard.items():
        for number in numbers:
            assert log.holds(stream, number)
            rest = [event for event in model.said if event.stream == stream and event.number > number]
            lost = [event.answers for event in rest if event not in kept and event.answers is not None]
            assert log.after(stream, number) == Replay([event for event in rest if event in kept], lost)
