"""What was said on a session's streams, kept for clients whose connection broke.

One log for all streams of a session, bounded by bytes and by count; the oldest events go first, whosever they are.
An event's number is never used twice, and rises on every stream. Where an answer is evicted its request is
remembered, so that a client who resumes learns which answers it will not get.

Whatever changes is noted too, as the facts from which a log that goes on with the same numbers can be made.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from app.core.effects import StreamId
from app.protocol.jsonrpc import RequestId

REMEMBERED_STREAMS = 1000
REMEMBERED_ANSWERS = 2000
"""Of those that are no longer kept. One batch has many answers, and so many a stream."""


@dataclass(frozen=True, slots=True)
class Event:
    number: int
    stream: StreamId
    data: bytes
    answers: RequestId | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """A number that was given to what nobody needs to see twice."""

    number: int
    stream: StreamId


@dataclass(frozen=True, slots=True)
class Lost:
    """The event of that number was an answer, and is no longer kept."""

    number: int
    stream: StreamId
    answers: RequestId


@dataclass(frozen=True, slots=True)
class Evicted:
    """The event of that number is no longer kept."""

    number: int


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Nothing is known of that stream any more."""

    stream: StreamId


Fact: TypeAlias = Event | Mark | Lost | Evicted | Forgotten


@dataclass(slots=True)
class _Track:
    """A stream in the log: its events still kept, and the answers that are not."""

    last: int = 0
    first: int = 0
    events: deque[Event] = field(default_factory=deque)
    lost: deque[tuple[int, RequestId]] = field(default_factory=deque)


@dataclass(frozen=True, slots=True)
class Replay:
    events: list[Event]
    lost: list[RequestId]


def _unnoted(_fact: Fact) -> None:
    """Nobody wants to know."""


class EventLog:
    """`history` is what another log said it was made of, and `number` the last that was used of its numbers."""

    def __init__(
        self, bytes_max: int, count_max: int, history: Iterable[Event | Mark | Lost] = (), number: int = 0
    ) -> None:
        self.note: Callable[[Fact], None] = _unnoted
        """Told of each change."""
        self._bytes_max = bytes_max
        self._count_max = count_max
        self._events: deque[Event] = deque()
        self._tracks: dict[StreamId, _Track] = {}
        self._open: set[StreamId] = set()
        self._lost = 0
        self._bytes = 0
        self._number = number
        for fact in history:
            self._redo(fact)
        self._evict_surplus()

    def open(self, stream: StreamId) -> None:
        """More may be said on it: until it is closed it is not forgotten, however long it is silent."""
        self._open.add(stream)

    def close(self, stream: StreamId) -> None:
        self._open.discard(stream)

    def append(self, stream: StreamId, data: bytes, answers: RequestId | None = None) -> int:
        """Keep an event, and say its number. The newest event is always kept, however large it is."""
        event = Event(self._next(stream), stream, data, answers)
        self.note(event)
        self._keep(event)
        self._evict_surplus()
        return self._number

    def mark(self, stream: StreamId) -> int:
        """A number for an event that nobody needs to see twice."""
        number = self._next(stream)
        self.note(Mark(number, stream))
        return number

    def holds(self, stream: StreamId, number: int) -> bool:
        """Whether `number` was an event of `stream`, as far as the log remembers."""
        track = self._tracks.get(stream)
        return track is not None and track.first <= number <= track.last

    def after(self, stream: StreamId, number: int) -> Replay:
        """What `stream` said after `number`."""
        track = self._tracks[stream]
        lost = [ident for at, ident in track.lost if at > number]
        return Replay([event for event in track.events if event.number > number], lost)

    def history(self) -> list[Event | Mark | Lost]:
        """What this log is made of."""
        facts: list[Event | Mark | Lost] = []
        for stream, track in self._tracks.items():
            facts += [Mark(track.first, stream), Mark(track.last, stream)]
            facts += [Lost(number, stream, answers) for number, answers in track.lost]
        return [*facts, *self._events]

    def _next(self, stream: StreamId) -> int:
        self._number += 1
        if stream not in self._tracks:
            self._forget_streams()
        self._track(stream, self._number)
        return self._number

    def _track(self, stream: StreamId, number: int) -> _Track:
        track = self._tracks.get(stream)
        if track is None:
            track = self._tracks[stream] = _Track(first=number)
        track.last = max(track.last, number)
        return track

    def _keep(self, event: Event) -> None:
        self._tracks[event.stream].events.append(event)
        self._events.append(event)
        self._bytes += len(event.data)

    def _redo(self, fact: Event | Mark | Lost) -> None:
        self._number = max(self._number, fact.number)
        track = self._track(fact.stream, fact.number)
        match fact:
            case Event():
                self._keep(fact)
            case Lost():
                track.lost.append((fact.number, fact.answers))
                self._lost += 1
            case Mark():
                pass

    def _evict_surplus(self) -> None:
        while len(self._events) > 1 and (self._bytes > self._bytes_max or len(self._events) > self._count_max):
            self._evict()

    def _evict(self) -> None:
        event = self._events.popleft()
        self._bytes -= len(event.data)
        track = self._tracks.get(event.stream)
        if track is None or event.answers is None:
            self.note(Evicted(event.number))
        if track is None:
            return
        track.events.popleft()
        if event.answers is not None:
            self.note(Lost(event.number, event.stream, event.answers))
            track.lost.append((event.number, event.answers))
            self._lost += 1
            self._forget_answers()

    def _forget_streams(self) -> None:
        """Streams of which nothing is kept any more are remembered for a while, the oldest the least."""
        if len(self._tracks) > REMEMBERED_STREAMS:
            self._forget_stream()

    def _forget_answers(self) -> None:
        """Those of a stream that may go on last: of these, the oldest, and nobody can resume it from before them."""
        while self._lost > REMEMBERED_ANSWERS:
            if not self._forget_stream():
                track = next(track for track in self._tracks.values() if track.lost)
                number, _ = track.lost.popleft()
                track.first = number + 1
                self._lost -= 1
                self.note(Evicted(number))

    def _forget_stream(self) -> bool:
        """The oldest one that is over and of which nothing is kept; False where there is none."""
        for stream, track in self._tracks.items():
            if not track.events and stream not in self._open:
                del self._tracks[stream]
                self._lost -= len(track.lost)
                self.note(Forgotten(stream))
                return True
        return False
