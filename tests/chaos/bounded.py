"""What the tests of bounds try: to come in, and to go on although others cannot come in."""

from collections.abc import Awaitable, Callable
from typing import Any

from tests.support.client import Client, greeting
from tests.support.gateway import TOKEN, Gateway
from tests.support.http import Reply

BRISK: dict[str, Any] = {"stopTimeout": 0.3, "killTimeout": 0.3, "era": "legacy"}

Attempt = Callable[[], Awaitable[Reply]]
Act = Callable[[], Awaitable[object]]


def opening(gateway: Gateway, token: str = TOKEN) -> Attempt:
    return lambda: Client(gateway, token=token).post(greeting())


def echoing(client: Client) -> Act:
    async def echo() -> None:
        assert await client.tool("echo", nonce="still here") == "still here"

    return echo


async def answered(kept: Reply, gateway: Gateway) -> None:
    kept.writer.write(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
    assert (await kept.reader.readline()).startswith(b"HTTP/1.1 200")
