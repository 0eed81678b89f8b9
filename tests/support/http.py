"""A small HTTP/1.1 client over asyncio streams: it sees every byte, and can behave badly on purpose."""

import asyncio
import contextlib
import functools
import json
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.gateway import PATIENCE, TOKEN

ACCEPT = "application/json, text/event-stream"
_LIMIT = 1 << 27
_open: dict[asyncio.StreamWriter, asyncio.AbstractEventLoop] = {}
"""Connections, each with its loop: a bystander has one of its own."""

Headers = Mapping[str, str] | Sequence[tuple[str, str]]


def on_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test on a loop of its own, within the patience that everything here has."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        bounded(test(*args, **kwargs))

    return run


def bounded(work: Coroutine[Any, Any, None], seconds: float = 3 * PATIENCE) -> None:
    """Run it on a loop of its own; connections that it leaves open are broken off."""

    async def within_patience() -> None:
        try:
            async with asyncio.timeout(seconds):
                await work
        finally:
            await close_all()

    asyncio.run(within_patience())


async def close_all() -> None:
    """Break off what this loop has left open."""
    own = asyncio.get_running_loop()
    for writer in [writer for writer, loop in list(_open.items()) if loop is own]:
        _open.pop(writer)
        writer.transport.abort()
    await asyncio.sleep(0)


async def soon(claim: Callable[[], Coroutine[Any, Any, bool]], seconds: float = PATIENCE) -> bool:
    """Whether it comes true within the time: for what happens in another process and gives no sign."""
    deadline = time.monotonic() + seconds
    while not await claim():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True


@dataclass
class Event:
    data: str = ""
    id: str | None = None
    event: str | None = None
    retry: int | None = None
    comment: str | None = None
    at: float = 0.0
    """When it came, by the monotonic clock."""

    @property
    def message(self) -> Any:
        return json.loads(self.data)


@dataclass
class Reply:
    """A response whose head has been read; its body is read on demand."""

    status: int
    headers: dict[str, str]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    began_at: float = field(default_factory=time.monotonic)
    _pending: bytes = field(default=b"")
    _is_over: bool = False

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")

    async def body(self) -> bytes:
        """All of it, after which the connection is closed."""
        async with asyncio.timeout(PATIENCE):
            body = await self.rest()
        self.close()
        return body

    async def rest(self) -> bytes:
        """All of it; the connection stays as it is."""
        if "content-length" in self.headers:
            return await self.reader.readexactly(int(self.headers["content-length"]))
        if self.headers.get("transfer-encoding") != "chunked":
            return b""
        chunks = []
        while chunk := await self._chunk():
            chunks.append(chunk)
        return b"".join(chunks)

    async def json(self) -> Any:
        return json.loads(await self.body())

    async def anything(self, seconds: float = PATIENCE) -> Event:
        """The next event or comment.

        Raises:
            EOFError: the stream has ended.
            TimeoutError: nothing came.
        """
        async with asyncio.timeout(seconds):
            while b"\n\n" not in self._pending:
                chunk = await self._chunk()
                if not chunk:
                    raise EOFError("the stream has ended")
                self._pending += chunk
        block, self._pending = self._pending.split(b"\n\n", 1)
        return _event(block.decode())

    async def next_event(self, seconds: float = PATIENCE) -> Event:
        """The next one that is no comment."""
        async with asyncio.timeout(seconds):
            while True:
                event = await self.anything()
                if event.comment is None:
                    return event

    async def next_message(self, seconds: float = PATIENCE) -> Any:
        async with asyncio.timeout(seconds):
            while True:
                event = await self.next_event()
                if event.data:
                    return event.message

    async def events(self) -> AsyncIterator[Event]:
        """Events and comments as they come, until the stream ends."""
        while True:
            try:
                yield await self.anything(2 * PATIENCE)
            except EOFError:
                return

    async def messages(self) -> AsyncIterator[Any]:
        async for event in self.events():
            if event.data and event.event in (None, "message"):
                yield event.message

    def close(self) -> None:
        _open.pop(self.writer, None)
        self.writer.close()

    def drop(self) -> None:
        """Break the connection, without a word and at once."""
        _open.pop(self.writer, None)
        with contextlib.suppress(OSError):
            self.writer.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        self.writer.transport.abort()

    async def _chunk(self) -> bytes:
        """Empty once the body has ended; also where the connection ended first."""
        if self._is_over:
            return b""
        try:
            size = int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16)
            data = await self.reader.readexactly(size)
            await self.reader.readexactly(2)
        except (asyncio.IncompleteReadError, ConnectionResetError):
            size, data = 0, b""
        self._is_over = size == 0
        return data


async def connection(port: int, receive_buffer: int | None = None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A small receive buffer makes a slow reader felt soon."""
    sock = socket.socket()
    if receive_buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
    except OSError:
        sock.close()
        raise
    limit = _LIMIT if receive_buffer is None else receive_buffer
    reader, writer = await asyncio.open_connection(sock=sock, limit=limit)
    _open[writer] = asyncio.get_running_loop()
    return reader, writer


def head(port: int, method: str, path: str, headers: Headers = (), token: str | None = TOKEN) -> bytes:
    """A request up to its body; a given header takes the place of the usual one of that name."""
    given = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
    names = {name.lower() for name, _ in given}
    usual = [("Host", f"127.0.0.1:{port}"), *([("Authorization", f"Bearer {token}")] if token else [])]
    fields = [(name, value) for name, value in usual if name.lower() not in names] + given
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")


async def request(
    port: int,
    method: str,
    path: str,
    headers: Headers = (),
    body: bytes = b"",
    token: str | None = TOKEN,
    receive_buffer: int | None = None,
) -> Reply:
    reader, writer = await connection(port, receive_buffer)
    fields = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
    if (body or method == "POST") and not any(name.lower() == "content-length" for name, _ in fields):
        fields.append(("Content-Length", str(len(body))))
    writer.write(head(port, method, path, fields, token) + body)
    return await read_reply(reader, writer)


async def raw(port: int, data: bytes) -> Reply:
    """Whatever bytes, on a connection of their own."""
    reader, writer = await connection(port)
    writer.write(data)
    return await read_reply(reader, writer)


async def read_reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Reply:
    async with asyncio.timeout(2 * PATIENCE):
        status_line, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
    return Reply(int(status_line.split()[1]), headers, reader, writer)


def _event(block: str) -> Event:
    event, data = Event(at=time.monotonic()), []
    for line in block.split("\n"):
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "":
                event.comment = value
            case "data":
                data.append(value)
            case "id":
                event.id = value
            case "event":
                event.event = value
            case "retry":
                event.retry = int(value)
    event.data = "\n".join(data)
    return event
