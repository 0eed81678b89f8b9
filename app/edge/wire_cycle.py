"""The answer to one request, written with as few system calls as it needs: head and body leave together.

uvicorn writes a head as soon as it is known. Ours is held until the first part of the body, which the application
gives in the same breath; on a small answer that saves one of two writes, and the client one of two wake-ups.
"""

from collections.abc import Iterable

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from app.edge.wire_refusals import internal

_JOIN_MAX = 65536
"""A body up to this is copied behind its head; a larger one is written by itself."""


class Cycle(RequestResponseCycle):
    """Headers come from this application only, so they are not searched for line breaks again."""

    head: bytes

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
        status, headers, body = internal()
        headers = [*headers, (b"content-length", b"%d" % len(body)), (b"connection", b"close")]
        self._begin(status, headers)
        self._continue(body, more=False)

    def _begin(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        if self.response_started:
            raise RuntimeError("the response has begun already")
        self.response_started = True
        self.waiting_for_100_continue = False
        parts = [STATUS_LINE[status]]
        names = set()
        for name, value in (*self.default_headers, *headers):
            parts.append(b"%b: %b\r\n" % (name, value))
            names.add(name)
        if b"connection" in names:
            self.keep_alive = False
        elif not self.keep_alive:
            parts.append(b"connection: close\r\n")
        is_counted = b"content-length" in names or status in (204, 304)
        self.chunked_encoding = not is_counted and self.scope["http_version"] != "1.0"
        if self.chunked_encoding:
            parts.append(b"transfer-encoding: chunked\r\n")
        parts.append(b"\r\n")
        self.head = b"".join(parts)

    def _continue(self, body: bytes, *, more: bool) -> None:
        if not self.response_started or self.response_complete:
            raise RuntimeError("there is no response to continue")
        head, self.head = self.head, b""
        if self.scope["method"] == "HEAD":
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
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


def _chunked(body: bytes, *, more: bool) -> bytes:
    chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
    return chunk if more else chunk + b"0\r\n\r\n"
