"""A handshake-era client, as plain as the protocol: one POST for each message."""

import itertools
import json
from typing import Any

from tests.support.gateway import TOKEN, Gateway
from tests.support.http import ACCEPT, Reply, connection, head, read_reply, request

ALL = {"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": True}}
NEWEST = "2025-11-25"


def called(name: str, **arguments: Any) -> dict[str, Any]:
    """The parameters of a tools/call."""
    return {"name": name, "arguments": arguments}


def greeting(version: str = NEWEST, capabilities: dict[str, Any] | None = None) -> dict[str, Any]:
    """The message initialize."""
    params = {
        "protocolVersion": version,
        "capabilities": ALL if capabilities is None else capabilities,
        "clientInfo": {"name": "test", "version": "1"},
    }
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}


class Client:
    def __init__(self, gateway: Gateway | int, server: str = "stage", token: str = TOKEN) -> None:
        self.port = gateway if isinstance(gateway, int) else gateway.port
        self.path = server if server.startswith("/") else f"/servers/{server}/mcp"
        self.token = token
        self.session: str | None = None
        self.version: str | None = None
        self.greeted: Any = None
        self._ids = itertools.count(1)

    async def open(self, capabilities: dict[str, Any] | None = None, version: str = NEWEST) -> "Client":
        reply = await self.post(greeting(version, capabilities))
        assert reply.status == 200, await reply.body()
        self.session = reply.headers.get("mcp-session-id")
        self.greeted = await self.settle(reply, 0)
        if "result" in self.greeted:
            self.version = self.greeted["result"]["protocolVersion"]
            await self.tell("notifications/initialized")
        return self

    async def post(self, message: Any, **headers: str) -> Reply:
        """`message` as it is where it is bytes. A header may be given, with _ for -; an empty one is left out."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        fields = {name: value for name, value in (self.headers() | given).items() if value}
        return await request(self.port, "POST", self.path, fields, body, self.token)

    async def call(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """The answer, result or error; what else comes on the way is dropped."""
        ident = next(self._ids)
        return await self.settle(await self.ask(method, params, ident), ident)

    async def ask(self, method: str, params: dict[str, Any] | None = None, ident: int | str | None = None) -> Reply:
        """The response itself, for who wants to see what comes on the way."""
        message = {"jsonrpc": "2.0", "id": next(self._ids) if ident is None else ident, "method": method}
        return await self.post(message if params is None else {**message, "params": params})

    async def tool(self, name: str, **arguments: Any) -> Any:
        answer = await self.call("tools/call", called(name, **arguments))
        assert "result" in answer, answer
        return answer["result"]["content"][0]["text"]

    async def tell(self, method: str, params: dict[str, Any] | None = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        reply = await self.post(message if params is None else {**message, "params": params})
        assert reply.status == 202, await reply.body()
        reply.close()

    async def answer(self, ident: Any, result: Any) -> None:
        reply = await self.post({"jsonrpc": "2.0", "id": ident, "result": result})
        assert reply.status == 202
        reply.close()

    async def listen(self, last: str | None = None, receive_buffer: int | None = None) -> Reply:
        headers = self.headers() | ({"Last-Event-ID": last} if last is not None else {})
        del headers["Content-Type"]
        return await request(self.port, "GET", self.path, headers, b"", self.token, receive_buffer)

    async def delete(self) -> Reply:
        return await request(self.port, "DELETE", self.path, self.headers(), token=self.token)

    async def status(self) -> int:
        """What a ping of this session gets by HTTP."""
        reply = await self.ask("ping")
        await reply.body()
        return reply.status

    def headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": ACCEPT}
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        if self.version:
            headers["MCP-Protocol-Version"] = self.version
        return headers

    async def settle(self, reply: Reply, ident: Any) -> Any:
        """The answer to `ident`, in whichever form it comes."""
        if not reply.is_stream:
            return await reply.json()
        async for message in reply.messages():
            if message.get("id") == ident and "method" not in message:
                reply.close()
                return message
        raise AssertionError("the stream ended without an answer")


class KeptAlive:
    """Requests one after another on one connection."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def post(self, client: Client, message: Any) -> tuple[Reply, Any]:
        if not hasattr(self, "_pair"):
            self._pair = await connection(self._gateway.port)
        body = json.dumps(message).encode()
        fields = {**client.headers(), "Accept": "application/json", "Content-Length": str(len(body))}
        self._pair[1].write(head(self._gateway.port, "POST", client.path, fields, client.token) + body)
        reply = await read_reply(*self._pair)
        text = await reply.rest()
        return reply, json.loads(text) if text else None
