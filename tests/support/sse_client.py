"""A client of HTTP+SSE (2024-11-05): all that is said to it comes on one stream."""

import asyncio
import itertools
import json
from typing import Any
from urllib.parse import urljoin

from tests.support.client import called, greeting
from tests.support.gateway import TOKEN, Gateway
from tests.support.http import Reply, request


class SseClient:
    """What comes between a request and its answer is kept in `heard`."""

    def __init__(self, gateway: Gateway, path: str = "/servers/stage/sse", token: str = TOKEN) -> None:
        self.port = gateway.port
        self.path = path
        self.token = token
        self.target = ""
        self.greeted: Any = None
        self.heard: list[Any] = []
        self.stream: Reply
        self._ids = itertools.count(1)

    async def open(self, capabilities: dict[str, Any] | None = None, version: str = "2024-11-05") -> "SseClient":
        self.stream = await request(self.port, "GET", self.path, {"Accept": "text/event-stream"}, token=self.token)
        assert self.stream.status == 200, await self.stream.body()
        endpoint = await self.stream.next_event()
        assert endpoint.event == "endpoint"
        self.target = urljoin(self.path, endpoint.data)
        self.greeted = await self.settle(await self.post(greeting(version, capabilities)), 0)
        if "result" in self.greeted:
            await self.tell("notifications/initialized")
        return self

    async def post(self, message: Any) -> int:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        fields = {"Content-Type": "application/json"}
        reply = await request(self.port, "POST", self.target, fields, body, self.token)
        await reply.body()
        return reply.status

    async def ask(self, method: str, params: dict[str, Any] | None = None, ident: int | str | None = None) -> int | str:
        """The id under which the answer will come."""
        ident = next(self._ids) if ident is None else ident
        message = {"jsonrpc": "2.0", "id": ident, "method": method}
        assert await self.post(message if params is None else {**message, "params": params}) == 202
        return ident

    async def call(self, method: str, params: dict[str, Any] | None = None) -> Any:
        return await self.settle(202, await self.ask(method, params))

    async def tool(self, name: str, **arguments: Any) -> Any:
        return (await self.call("tools/call", called(name, **arguments)))["result"]["content"][0]["text"]

    async def tell(self, method: str, params: dict[str, Any] | None = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        assert await self.post(message if params is None else {**message, "params": params}) == 202

    async def settle(self, status: int, ident: int | str) -> Any:
        """The answer to `ident`."""
        assert status == 202
        while True:
            message = await self.stream.next_message()
            if message.get("id") == ident and "method" not in message:
                return message
            self.heard.append(message)

    async def hears(self, method: str) -> Any:
        """The next message of that method, be it one that was heard already."""
        for message in self.heard:
            if message.get("method") == method:
                self.heard.remove(message)
                return message
        async with asyncio.timeout(10):
            while True:
                message = await self.stream.next_message()
                if message.get("method") == method:
                    return message
                self.heard.append(message)
