"""The answer to one request, written with as few system calls as it needs: head and body leave together.

uvicorn writes a head as soon as it is known. Ours is held until the first part of the body, which the application
gives in the same breath; on a small answer that saves one of two writes, and the client one of two wake-ups.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, Protocol

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle
from uvicorn.server import ServerState

from app.edge.asgi import Receive, Scope, Send
from app.edge.wire_refusals import internal

_JOIN_MAX = 65536
"""A body up to this is copied behind its head; a larger one is written by itself."""
_HEADS_MAX = 64

log = logging.getLogger("uvicorn.error")


class Owner(Protocol):
    """The connection of a request."""

    transport: asyncio.Transport
    flow: FlowControl
    server_state: ServerState

    def on_response_complete(self) -> None: ...

    def run(self, work: Coroutine[Any, Any, None]) -> None: ...


class Raw:
    """The bytes of a request as they came, for who wants to learn its head."""

    __slots__ = ("data",)

    def __init__(self) -> None:
        self.data = b""


class Cycle(RequestResponseCycle):
    """Headers come from this application only, so they are not searched for line breaks again.

    uvicorn makes its own with twenty attributes, most of which are the same for every request.
    """

    logger = log
    method = "POST"
    version = "1.1"
    message_event = asyncio.Event()
    """Nobody waits for this one: a request that was handed over is whole."""
    raw: Raw | None = None
    head = b""
    disconnected = False
    waiting_for_100_continue = False
    more_body = True
    response_started = False
    response_complete = False
    chunked_encoding = False
    gone: Callable[[], None] | None = None
    """To be told where the client goes before it was answered."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.transport = owner.transport
        self.flow = owner.flow
        self.keep_alive = True

    # A request that was handed over.

    def answer(self, status: int, headers: tuple[tuple[bytes, bytes], ...], body: bytes) -> None:
        if self.response_started or self.disconnected or self.transport.is_closing():
            return
        self.response_started = self.response_complete = True
        if (b"connection", b"close") in headers:
            self.keep_alive = False
        head = _heads.get(self.owner.server_state.default_headers, status, headers)
        close = b"" if self.keep_alive else b"connection: close\r\n"
        if len(body) > _JOIN_MAX:
            self.transport.write(b"%b%bcontent-length: %d\r\n\r\n" % (head, close, len(body)))
            self.transport.write(body)
        else:
            self.transport.write(b"%b%bcontent-length: %d\r\n\r\n%b" % (head, close, len(body), body))
        self._end()

    def watch(self, gone: Callable[[], None]) -> None:
        self.gone = gone

    def serve(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self.body, self.message_event = bytearray(), asyncio.Event()
        self.scope = {}  # type: ignore[typeddict-item]  # who was handed the request has read its head
        self.owner.run(self.run_asgi(app))  # type: ignore[arg-type]  # uvicorn types its events one by one

    # ASGI.

    async def send(self, message: ASGISendEvent) -> None:
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if message["type"] == "http.response.start":
            self._begin(message["status"], message.get("headers", ()))
        elif message["type"] == "http.response.body":
            self._continue(message.get("body", b""), more=message.get("more_body", False))
        else:
            raise RuntimeError(f"unexpected ASGI message {message['type']!r}")

    async def send_500_response(self) -> None:
        status, headers, body, _ = internal()
        headers = [*headers, (b"content-length", b"%d" % len(body)), (b"connection", b"close")]
        self._begin(status, headers)
        self._continue(body, more=False)

    def _begin(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        if self.response_started:
            raise RuntimeError("the response has begun already")
        self.response_started = True
        self.waiting_for_100_continue = False
        headers = (*self.owner.server_state.default_headers, *headers)
        names = {name for name, _ in headers}
        parts = [_rendered(status, headers)]
        if b"connection" in names:
            self.keep_alive = False
        elif not self.keep_alive:
            parts.append(b"connection: close\r\n")
        is_counted = b"content-length" in names or status in (204, 304)
        self.chunked_encoding = not is_counted and self.version != "1.0"
        if self.chunked_encoding:
            parts.append(b"transfer-encoding: chunked\r\n")
        parts.append(b"\r\n")
        self.head = b"".join(parts)

    def _continue(self, body: bytes, *, more: bool) -> None:
        if not self.response_started or self.response_complete:
            raise RuntimeError("there is no response to continue")
        head, self.head = self.head, b""
        if self.method == "HEAD":
            body = b""
        elif self.chunked_encoding:
            body = _chunked(body, more=more)
        if len(body) > _JOIN_MAX and head:
            self.transport.write(head)
            self.transport.write(body)
        elif head or body:
            self.transport.write(head + body)
        if not more:
            self._complete()

    def _complete(self) -> None:
        self.response_complete = True
        self.message_event.set()
        self._end()

    def _end(self) -> None:
        self.gone = None  # The connection keeps its last request, and this would keep all that was answered.
        if not self.keep_alive:
            self.transport.close()
        self.owner.on_response_complete()


class _Heads:
    """Heads but for their end, as long as the default headers are the same: among them is the date."""

    def __init__(self) -> None:
        self._defaults: list[tuple[bytes, bytes]] = []
        self._known: dict[tuple[int, tuple[tuple[bytes, bytes], ...]], bytes] = {}

    def get(self, defaults: list[tuple[bytes, bytes]], status: int, headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
        if defaults is not self._defaults or len(self._known) > _HEADS_MAX:
            self._defaults, self._known = defaults, {}
        head = self._known.get((status, headers))
        if head is None:
            head = self._known[status, headers] = _rendered(status, (*defaults, *headers))
        return head


_heads = _Heads()


def _rendered(status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return STATUS_LINE[status] + b"".join([b"%b: %b\r\n" % header for header in headers])


def _chunked(body: bytes, *, more: bool) -> bytes:
    chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
    return chunk if more else chunk + b"0\r\n\r\n"
