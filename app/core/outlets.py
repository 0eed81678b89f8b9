"""Which ways to the client a session has, and what each still owes.

A *post* is the answer to one POST: it ends when every request in that POST has been settled. A *listener* is a
stream that the client opened to hear what answers no request: a GET, or the one stream of HTTP+SSE.
"""

from dataclasses import dataclass

from app.core.effects import StreamId
from app.protocol import methods
from app.protocol.jsonrpc import Notification

FOREVER = float("inf")
WAITING_MAX = 100


@dataclass(slots=True)
class _Post:
    can_stream: bool
    owed: int = 0


class Outlets:
    def __init__(self) -> None:
        self._posts: dict[StreamId, _Post] = {}
        self._begins: dict[StreamId, float] = {}
        self._listeners: list[StreamId] = []
        self._waiting: list[Notification] = []

    @property
    def due(self) -> float:
        """When the next post must begin to stream; they fall due in the order they came."""
        return next(iter(self._begins.values()), FOREVER)

    @property
    def listener(self) -> StreamId | None:
        """The newest of the streams that are open for what answers no request."""
        return self._listeners[-1] if self._listeners else None

    def post(self, stream: StreamId, *, can_stream: bool, begin_at: float) -> None:
        """A POST came in whose answer, where its client takes a stream, begins at the latest at `begin_at`."""
        self._posts[stream] = _Post(can_stream)
        if can_stream:
            self._begins[stream] = begin_at

    def drop(self, stream: StreamId) -> None:
        """The post was refused before anything of it was accepted."""
        self._posts.pop(stream, None)
        self._begins.pop(stream, None)

    def owe(self, stream: StreamId) -> None:
        post = self._posts.get(stream)
        if post is not None:
            post.owed += 1

    def settle(self, stream: StreamId) -> bool:
        """One request of the stream has had its last word; whether that ends the stream."""
        post = self._posts.get(stream)
        if post is None:
            return False
        post.owed -= 1
        if post.owed > 0:
            return False
        self.drop(stream)
        return True

    def can_stream(self, stream: StreamId) -> bool:
        post = self._posts.get(stream)
        return stream in self._listeners if post is None else post.can_stream

    def begin_due(self, now: float) -> list[StreamId]:
        """The posts that must begin to stream now; each is named once."""
        due = [stream for stream, begin_at in self._begins.items() if begin_at <= now]
        for stream in due:
            del self._begins[stream]
        return due

    def listen(self, stream: StreamId) -> list[Notification]:
        """The client can hear on `stream`; what has been waiting for that is to be said there now."""
        self._listeners.append(stream)
        waiting, self._waiting = self._waiting, []
        return waiting

    def unlisten(self, stream: StreamId) -> None:
        if stream in self._listeners:
            self._listeners.remove(stream)

    def wait(self, notification: Notification) -> None:
        """Nobody can hear it now. Log messages are dropped, news that repeats itself is kept once."""
        if notification.method == methods.LOG_MESSAGE or notification in self._waiting:
            return
        self._waiting.append(notification)
        del self._waiting[:-WAITING_MAX]
