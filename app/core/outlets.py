"""Which ways to the client a session has, and what each still owes.

A *post* is the answer to one POST: it ends when every request in that POST has been settled. A *listener* is a
stream that the client opened to hear what answers no request: a GET, or the one stream of HTTP+SSE.
"""

from collections.abc import Sequence

from msgspec import Struct

from app.core.anteroom import size_of
from app.core.deadlines import FOREVER
from app.core.effects import StreamId
from app.protocol import methods
from app.protocol.jsonrpc import Notification, Request, RequestId


class _Post(Struct):
    can_stream: bool
    begin_at: float
    """When it must have begun to stream; never, once it has, or for a client that takes no stream."""
    owed: int = 0


class Outlets:
    def __init__(self, waiting_max: int = 100, bytes_max: int = 8 << 20) -> None:
        self._waiting_max = waiting_max
        self._bytes_max = bytes_max
        self._posts: dict[StreamId, _Post] = {}
        self._listeners: list[StreamId] = []
        self._waiting: list[Notification | Request] = []

    @property
    def due(self) -> float:
        """When the next post must begin to stream."""
        return min((post.begin_at for post in self._posts.values()), default=FOREVER)

    @property
    def listener(self) -> StreamId | None:
        """The newest of the streams that are open for what answers no request."""
        return self._listeners[-1] if self._listeners else None

    def post(self, stream: StreamId, *, can_stream: bool, begin_at: float) -> None:
        """A POST came in whose answer, where its client takes a stream, begins at the latest at `begin_at`."""
        self._posts[stream] = _Post(can_stream, begin_at if can_stream else FOREVER)

    def drop(self, stream: StreamId) -> None:
        """The post was refused before anything of it was accepted."""
        self._posts.pop(stream, None)

    def owe(self, stream: StreamId) -> float:
        """One more request is to be answered there; when that must have begun to stream."""
        post = self._posts.get(stream)
        if post is None:
            return FOREVER
        post.owed += 1
        return post.begin_at

    def settle(self, stream: StreamId) -> bool:
        """One request of the stream has had its last word; whether that ends the stream."""
        post = self._posts.get(stream)
        if post is None:
            return False
        post.owed -= 1
        if post.owed > 0:
            return False
        del self._posts[stream]
        return True

    def is_post(self, stream: StreamId) -> bool:
        """Whether the stream is the answer to one POST, which ends with it."""
        return stream in self._posts

    def unattributed(self, calls: Sequence[StreamId]) -> StreamId | None:
        """Where a message goes that names no call: the only call's stream, a GET stream, the newest call's stream."""
        able = [stream for stream in calls if self.can_stream(stream)]
        if len(calls) == 1 and able:
            return able[0]
        return self.listener or (able[-1] if able else None)

    def can_stream(self, stream: StreamId) -> bool:
        post = self._posts.get(stream)
        return stream in self._listeners if post is None else post.can_stream

    def begin_due(self, now: float) -> list[StreamId]:
        """The posts that must begin to stream now; each is named once."""
        due = [stream for stream, post in self._posts.items() if post.begin_at <= now]
        for stream in due:
            self._posts[stream].begin_at = FOREVER
        return due

    def listen(self, stream: StreamId) -> list[Notification | Request]:
        """The client can hear on `stream`; what has been waiting for that is to be said there now."""
        self._listeners.append(stream)
        waiting, self._waiting = self._waiting, []
        return waiting

    def unlisten(self, stream: StreamId) -> None:
        if stream in self._listeners:
            self._listeners.remove(stream)

    def wait(self, notification: Notification) -> None:
        """Nobody can hear it now. Log messages are dropped, news that repeats itself is kept once, and no more in all
        than fits: the oldest goes, but never a question.
        """
        if notification.method == methods.LOG_MESSAGE or notification in self._waiting:
            return
        self._waiting.append(notification)
        *older, _ = [kept for kept in self._waiting if isinstance(kept, Notification)]
        for count, oldest in enumerate(older):
            if len(older) - count < self._waiting_max and self._waiting_bytes <= self._bytes_max:
                return
            self._waiting.remove(oldest)

    def can_hold(self, question: Request) -> bool:
        """Any one alone, and more as far as there is room for them."""
        held = [size_of(kept) for kept in self._waiting if isinstance(kept, Request)]
        return not held or sum(held) + size_of(question) <= self._bytes_max

    def hold(self, question: Request) -> None:
        """Nobody can hear it yet: many a server asks before its client has had the time to open a stream."""
        self._waiting.append(question)

    @property
    def _waiting_bytes(self) -> int:
        return sum(map(size_of, self._waiting))

    def release(self, ident: RequestId) -> None:
        """A question that was held has lapsed or was taken back."""
        self._waiting = [kept for kept in self._waiting if not (isinstance(kept, Request) and kept.id == ident)]
