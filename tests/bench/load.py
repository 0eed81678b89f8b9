"""Load over raw sockets: closed loops on kept-alive connections, every answer read whole and looked at."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import httptools

CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"nonce":"n"}}}'
JOINED_CALL = CALL.replace(b'"echo"', b'"stage__echo"')


class Loop(asyncio.Protocol):
    """One connection that asks again as soon as it is answered, until the time is up."""

    def __init__(self, head: bytes, call: bytes, end: float) -> None:
        self.request = head + b"Content-Length: %d\r\n\r\n" % len(call) + call
        self.end = end
        self.delays: list[float] = []
        self.wrong = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.body = b""
        self.began = time.perf_counter()
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.delays.append(time.perf_counter() - self.began)
        if self.parser.get_status_code() != 200 or b'"result"' not in self.body:
            self.wrong += 1
        if time.perf_counter() < self.end:
            asyncio.get_running_loop().call_soon(self.ask)
        else:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None)


async def run(
    port: int, headers: Mapping[str, str], call: bytes, connections: int, seconds: float, path: str = "/mcp"
) -> dict[str, Any]:
    """Calls a second, median and 99th percentile in microseconds, and how many answers were wrong."""
    fields = {"Host": f"127.0.0.1:{port}", "Content-Type": "application/json", **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    head = f"POST {path} HTTP/1.1\r\n{lines}".encode()
    began = time.perf_counter()
    loop = asyncio.get_running_loop()
    loops = [
        (await loop.create_connection(lambda: Loop(head, call, began + seconds), "127.0.0.1", port))[1]
        for _ in range(connections)
    ]
    await asyncio.gather(*(one.done for one in loops))
    took = time.perf_counter() - began
    delays = sorted(delay for one in loops for delay in one.delays)
    return {
        "rps": round(len(delays) / took),
        "p50_us": round(delays[len(delays) // 2] * 1e6),
        "p99_us": round(delays[len(delays) * 99 // 100] * 1e6),
        "wrong": sum(one.wrong for one in loops),
        "calls": len(delays),
    }
