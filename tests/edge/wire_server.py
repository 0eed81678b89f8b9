"""A real uvicorn server on the hardened protocol, with an application that tells what it was given."""

import asyncio
import contextlib
import json
import logging
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import uvicorn
import uvloop

from app.edge.wire import BODY_FAULT, WireLimits, protocol
from app.telemetry.tally import Tally

PATIENCE = 5.0
"""Seconds after which a test gives up on what should have happened at once."""

HEAD = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\nX-Last: 1\r\n\r\n"
"""To be filled with the length of a body."""


def post(body: bytes, head: bytes = HEAD) -> bytes:
    return head % len(body) + body


class EchoApp:
    """Answers with what it saw; what it does differently is told by the path."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.served: list[str] = []
        self.disconnected: list[str] = []
        self.changed = threading.Condition()
        self.gate = asyncio.Event()

    def note(self, where: list[str], path: str) -> None:
        with self.changed:
            where.append(path)
            self.changed.notify_all()

    def wait_for(self, where: list[str], path: str) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: path in where, PATIENCE), (path, where)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["path"]
        self.note(self.started, path)
        match path:
            case "/crash":
                raise RuntimeError("a bug of the application")
            case "/silent":
                return
            case "/early":
                await answer(send, 200, {"path": path})
            case "/mute":
                await self.wait_for_disconnect(receive, path)
            case "/big":
                await answer(send, 200, "x" * (32 << 20))
            case "/parts":
                await send({"type": "http.response.start", "status": 200, "headers": []})
                await send({"type": "http.response.body", "body": b"one,", "more_body": True})
                await send({"type": "http.response.body", "body": b"two"})
            case "/flood":
                await self.flood(receive, send, path)
            case "/gated":
                await self.gate.wait()
                await self.echo(scope, receive, send)
            case _:
                await self.echo(scope, receive, send)

    async def echo(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while True:
            event = await receive()
            if event["type"] == "http.disconnect":
                self.note(self.disconnected, scope["path"])
                return
            body += event["body"]
            if not event["more_body"]:
                break
        fault = scope["state"].get(BODY_FAULT)
        if fault is not None:
            await answer(send, 413 if fault == "too_large" else 408, {"from": "app", "fault": fault})
            return
        self.note(self.served, scope["path"])
        await answer(send, 200, seen(scope, body))

    async def wait_for_disconnect(self, receive: Any, path: str) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.note(self.disconnected, path)

    async def flood(self, receive: Any, send: Any, path: str) -> None:
        """More than every buffer on the way holds."""
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        gone = asyncio.create_task(self.wait_for_disconnect(receive, path))
        while not gone.done():
            await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
            await asyncio.sleep(0)


def seen(scope: Any, body: bytes) -> dict[str, object]:
    return {
        "method": scope["method"],
        "path": scope["path"],
        "query": scope["query_string"].decode(),
        "http_version": scope["http_version"],
        "headers": [[name.decode("latin-1"), value.decode("latin-1")] for name, value in scope["headers"]],
        "body": body.decode("latin-1"),
    }


async def answer(send: Any, status: int, content: object) -> None:
    body = json.dumps(content).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@dataclass
class Served:
    port: int
    app: EchoApp
    server: uvicorn.Server
    loop: asyncio.AbstractEventLoop
    records: list[logging.LogRecord] = field(default_factory=list)

    def connect(self, receive_buffer: int | None = None) -> "Client":
        return Client(self.port, receive_buffer)

    def exchange(self, raw: bytes) -> list["Response"]:
        """What one connection is answered until it ends."""
        with self.connect() as client:
            client.send(raw)
            return client.read_all()

    def reset(self) -> None:
        self.on_loop(self.app.gate.clear)
        self.app.started.clear()
        self.app.served.clear()
        self.app.disconnected.clear()

    def complaints(self) -> list[str]:
        """What the server logged as a warning or worse, with its tracebacks."""
        return [logging.Formatter().format(record) for record in self.records]

    def open_gate(self) -> None:
        self.loop.call_soon_threadsafe(self.app.gate.set)

    def connections(self) -> dict[int, Any]:
        """The server's protocols, by the port of their client."""
        return self.on_loop(lambda: {c.client[1]: c for c in self.server.server_state.connections})

    def on_loop(self, function: Any) -> Any:
        """Run it on the server's loop, where its protocols live."""

        async def run() -> Any:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(PATIENCE)


@dataclass(frozen=True)
class Response:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def error(self) -> tuple[int, str]:
        """Status and reason of a refusal; that it has the shape of one is asserted."""
        content = self.json()
        assert self.headers["content-type"] == "application/json"
        assert self.headers["connection"] == "close"
        assert content["jsonrpc"] == "2.0"
        assert content["id"] is None
        error = content["error"]
        assert error["message"]
        assert error["data"] | {"source": "gateway", "executed": "no"} == error["data"]
        return self.status, error["data"]["reason"]


class Client:
    def __init__(self, port: int, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", port))
        self.port = self.socket.getsockname()[1]
        self.buffer = b""

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, raw: bytes) -> None:
        self.socket.sendall(raw)

    def send_in_pieces(self, raw: bytes, size: int) -> None:
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(raw), size):
            self.socket.sendall(raw[start : start + size])

    def read(self) -> Response | None:
        """The next response, or None where the connection ended properly instead. A reset raises."""
        while b"\r\n\r\n" not in self.buffer:
            if not self._more():
                assert self.buffer == b"", self.buffer
                return None
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        status_line, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        status = int(status_line.split(" ")[1])
        length = int(headers.get("content-length", "0"))
        while len(self.buffer) < length:
            assert self._more(), "the response was cut short"
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return Response(status, headers, body)

    def read_all(self) -> list[Response]:
        responses = []
        while (response := self.read()) is not None:
            responses.append(response)
        return responses

    def drain(self) -> bytes:
        """Whatever comes until the connection ends."""
        while self._more():
            pass
        return self.buffer

    def _more(self) -> bool:
        data = self.socket.recv(65536)
        self.buffer += data
        return bool(data)


class _Heard(logging.Handler):
    def __init__(self, records: list[logging.LogRecord]) -> None:
        super().__init__(logging.WARNING)
        self.records = records

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@contextlib.contextmanager
def serving(limits: WireLimits, loop: str, **settings: Any) -> Iterator[Served]:
    """Until left; warnings that the server logged are in `records`."""
    app = EchoApp()
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app, http=protocol(limits, Tally()), loop=loop, lifespan="off", log_config=None, access_log=False, **settings
    )
    server = _Server(config)
    records: list[logging.LogRecord] = []
    handler = _Heard(records)
    logging.getLogger().addHandler(handler)
    thread = threading.Thread(target=lambda: _run(loop, server.serve(sockets=[listener])))
    thread.start()
    try:
        assert server.is_up.wait(PATIENCE)
        yield Served(listener.getsockname()[1], app, server, server.loop, records)
    finally:
        server.should_exit = server.force_exit = True
        thread.join(PATIENCE)
        logging.getLogger().removeHandler(handler)
        listener.close()
    assert not thread.is_alive()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = threading.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.loop = asyncio.get_running_loop()
        self.is_up.set()


def _run(loop: str, main: Any) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop if loop == "uvloop" else asyncio.new_event_loop) as runner:
        runner.run(main)
