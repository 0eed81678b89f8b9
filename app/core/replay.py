"""What was said on a session's streams, kept for clients whose connection broke.

One log for all streams of a session, bounded by bytes and by count; the oldest events go first, whosever they are.
An event's number is never used twice, and rises on every stream. Where an answer is evicted its request is
remembered, so that a client who resumes learns which answers it will not get.
"""

from collections import deque
from dataclasses import dataclass, field

from app.core.effects import StreamId
from app.protocol.jsonrpc import RequestId

REMEMBERED_STREAMS = 1000


@dataclass(frozen=True, slots=True)
class Event:
    number: int
    stream: StreamId
    data: bytes
    answers: RequestId | None = None


@dataclass(slots=True)
class _Track:
    """A stream in the log: its events still kept, and the answers that are not."""

    last: int = 0
    first: int = 0
    events: deque[Event] = field(default_factory=deque)
    lost: list[tuple[int, RequestId]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Replay:
    events: list[Event]
    lost: list[RequestId]


class EventLog:
    def __init__(self, bytes_max: int, count_max: int) -> None:
        self._bytes_max = bytes_max
        self._count_max = count_max
        self._events: deque[Event] = deque()
        self._tracks: dict[StreamId, _Track] = {}
        self._bytes = 0
        self._number = 0

    def append(self, stream: StreamId, data: bytes, answers: RequestId | None = None) -> int:
        """Keep an event, and say its number. The newest event is always kept, however large it is."""
        event = Event(self.mark(stream), stream, data, answers)
        track = self._tracks[stream]
        track.events.append(event)
        self._events.append(event)
        self._bytes += len(data)
        while len(self._events) > 1 and (self._bytes > self._bytes_max or len(self._events) > self._count_max):
            self._evict()
        return self._number

    def mark(self, stream: StreamId) -> int:
        """A number for an event that nobody needs to see twice."""
        self._number += 1
        track = self._tracks.get(stream)
        if track is None:
            self._forget_streams()
            track = self._tracks[stream] = _Track(first=self._number)
        track.last = self._number
        return self._number

    def holds(self, stream: StreamId, number: int) -> bool:
        """Whether `number` was an event of `stream`, as far as the log remembers."""
        track = self._tracks.get(stream)
        return track is not None and track.first <= number <= track.last

    def after(self, stream: StreamId, number: int) -> Replay:
        """What `stream` said after `number`."""
        track = self._tracks[stream]
        lost = [ident for at, ident in track.lost if at > number]
        return Replay([event for event in track.events if event.number > number], lost)

    def _evict(self) -> None:
        event = self._events.popleft()
        self._bytes -= len(event.data)
        track = self._tracks.get(event.stream)
        if track is None:
            return
        track.events.popleft()
        if event.answers is not None:
            track.lost.append((event.number, event.answers))

    def _forget_streams(self) -> None:
        """Streams of which nothing is kept any more are remembered for a while, the oldest the least."""
        if len(self._tracks) <= REMEMBERED_STREAMS:
            return
        for stream, track in list(self._tracks.items()):
            if not track.events:
                del self._tracks[stream]
                return
