"""One HTTP response being written: JSON at once, or events as they come.

What the gateway says is kept here until the connection takes it, up to a bound; one writer, the request's own
task, empties it. A client that reads so slowly that the bound is passed loses the connection, not the stream.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from app.edge.asgi import Headers, Receive, Send
from app.protocol.jsonrpc import one_line
from app.telemetry.tally import Tally

log = logging.getLogger("viaduct.edge")

EVENT_STREAM: Headers = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]
_COMMENT = b":\n\n"
_SLICE = 65536


class Response:
    """`retry_ms` is told to clients that may come back; `bytes_max` bounds what waits for a slow one."""

    __slots__ = (
        "_bytes_max",
        "_chunks",
        "_is_over",
        "_is_parting",
        "_leaving",
        "_on_ready",
        "_retry_ms",
        "_size",
        "_skipped",
        "_tally",
        "_waiter",
        "body",
        "has_begun",
    )

    def __init__(self, *, bytes_max: int, retry_ms: int, tally: Tally) -> None:
        self.body: bytes | None = None
        self.has_begun = False
        self._bytes_max = bytes_max
        self._retry_ms = retry_ms
        self._tally = tally
        self._chunks: list[bytes] = []
        self._size = 0
        self._skipped = 0
        self._is_over = False
        self._is_parting = False
        self._waiter: asyncio.Future[bool] | None = None
        self._on_ready: Callable[[], None] | None = None

    # The gateway's side.

    def answer(self, body: bytes) -> None:
        self.body = body
        self._decide()

    def begin(self, prime: str | None) -> None:
        self.has_begun = True
        first = _COMMENT if prime is None else b"id: %s\nretry: %d\ndata: \n\n" % (prime.encode(), self._retry_ms)
        self._put(first)
        self._decide()

    def event(self, ident: str | None, data: bytes) -> None:
        head = b"data: " if ident is None else b"id: %s\ndata: " % ident.encode()
        data = one_line(data)
        if len(data) < _SLICE:
            self._put(b"%s%s\n\n" % (head, data))
        else:
            self._put(head, data, b"\n\n")

    def named_event(self, name: str, data: str) -> None:
        """An event of HTTP+SSE that is no message."""
        self._put(f"event: {name}\ndata: {data}\n\n".encode())

    def end(self) -> None:
        self._is_over = True
        self._wake()
        self._decide()

    def has_room(self) -> bool:
        """Where there is none, the next event costs the connection."""
        return self._size <= self._bytes_max

    def skips(self) -> bool:
        """The first half of the bound is for everything, the second for what must not be missed."""
        if self._size <= self._bytes_max // 2:
            return False
        self._skipped += 1
        self._tally.left_out += 1
        return True

    # The edge's side.

    def part(self, _how: object = None) -> None:
        """The connection ends, and not the stream: whoever may go on with it comes again."""
        self._is_parting = True
        self._wake()

    @property
    def waiting_bytes(self) -> int:
        """What the connection has not taken yet."""
        return self._size + self._leaving

    def when_ready(self, then: Callable[[], None]) -> None:
        """Call `then` once it is known which form the response has."""
        if self.body is not None or self.has_begun or self._is_over:
            then()
        else:
            self._on_ready = then

    async def ready(self) -> None:
        """Until it is known which form the response has."""
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.when_ready(partial(_settle, waiter, woken=True))
        await waiter

    async def ready_or_gone(self, receive: Receive) -> None:
        """Until that is known, or the client is gone, which ends it."""
        if self.body is not None or self.has_begun or self._is_over:
            return
        watch = asyncio.get_running_loop().create_task(self._watch(receive))
        try:
            await self.ready()
        finally:
            watch.cancel()

    async def write(
        self, receive: Receive, send: Send, headers: Headers, *, keep_alive: float, close_after: float | None
    ) -> None:
        """Write events until the stream ends, the client is gone, or the connection has lasted `close_after`."""
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        loop = asyncio.get_running_loop()
        close_at = None if close_after is None else loop.time() + close_after
        watch = loop.create_task(self._watch(receive))
        self._leaving = 0
        self._tally.writing.add(self)
        try:
            await self._write_events(send, keep_alive, close_at)
        finally:
            watch.cancel()
            self._tally.writing.discard(self)
            if self._skipped:
                log.warning("a client reads too slowly: notifications left out", extra={"count": self._skipped})

    async def _write_events(self, send: Send, keep_alive: float, close_at: float | None) -> None:
        now = asyncio.get_running_loop().time
        while True:
            while self._chunks:
                for chunk in self._take():
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                    self._leaving -= len(chunk)
            if self._is_over:
                break
            if self._is_parting or (close_at is not None and now() >= close_at):
                await send({"type": "http.response.body", "body": b"retry: %d\n\n" % self._retry_ms, "more_body": True})
                break
            patience = keep_alive if close_at is None else min(keep_alive, max(0.0, close_at - now()))
            if not await self._wait(patience) and patience == keep_alive:
                self._put(_COMMENT)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._chunks.clear()
        self.end()

    def _take(self) -> Iterable[bytes]:
        """What waits: small things together, large things in slices, so that a slow client holds up little."""
        chunks, self._chunks, self._leaving, self._size = self._chunks, [], self._size, 0
        if sum(map(len, chunks)) <= _SLICE:
            return [b"".join(chunks)]
        return (piece for chunk in chunks for piece in _slices(chunk))

    def _put(self, *chunks: bytes) -> None:
        """What already waits decides whether there is room, so that any one event passes, however large it is."""
        if self._is_over:
            return
        if self._size > self._bytes_max:
            self._chunks.clear()
            self._is_over = True
            self._tally.cut_off += 1
        else:
            self._chunks += chunks
            self._size += sum(map(len, chunks))
        self._wake()

    def _decide(self) -> None:
        then, self._on_ready = self._on_ready, None
        if then is not None:
            then()

    def _wake(self) -> None:
        _settle(self._waiter, woken=True)

    async def _wait(self, seconds: float) -> bool:
        """Until there is something to do; False where the time was up first."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._waiter = waiter
        timer = loop.call_later(seconds, _expire, waiter)
        try:
            return await waiter
        finally:
            self._waiter = None
            timer.cancel()


def _expire(waiter: "asyncio.Future[bool]") -> None:
    _settle(waiter, woken=False)


def _settle(waiter: "asyncio.Future[bool] | None", *, woken: bool) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(woken)


def _slices(chunk: bytes) -> Iterator[bytes]:
    view = memoryview(chunk)
    for start in range(0, len(chunk), _SLICE):
        yield bytes(view[start : start + _SLICE])
