"""A client of 2026-07-28: every request says who asks, nothing is opened, and questions are answered by a retry."""

import itertools
import json
from collections.abc import Mapping
from typing import Any

from tests.support.client import called
from tests.support.gateway import TOKEN, Gateway
from tests.support.http import ACCEPT, Reply, request

VERSION = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
ALL: dict[str, Any] = {"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {}}
CALL = "tools/call"
LISTEN = "subscriptions/listen"

ACCEPTED = {"action": "accept", "content": {"name": "Ada"}}
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "hm"}, "model": "m"}
ROOTS = {"roots": [{"uri": "file:///srv"}]}
ANSWERS = {"elicitation/create": ACCEPTED, "sampling/createMessage": SAMPLED, "roots/list": ROOTS}


def answers(result: Any) -> dict[str, Any]:
    """One for each question of a result that asks."""
    return {key: ANSWERS[asked["method"]] for key, asked in result["inputRequests"].items()}


def methods_of(result: Any) -> list[str]:
    """What a result asks, sorted."""
    return sorted(asked["method"] for asked in result["inputRequests"].values())


def said(answer: Any) -> str:
    """The text of a tool's answer."""
    assert answer.get("result", {}).get("resultType") == "complete", answer
    text: str = answer["result"]["content"][0]["text"]
    return text


class StatelessClient:
    def __init__(
        self,
        gateway: Gateway | int,
        server: str = "stage",
        token: str = TOKEN,
        capabilities: dict[str, Any] | None = None,
    ) -> None:
        self.port = gateway if isinstance(gateway, int) else gateway.port
        self.path = server if server.startswith("/") else f"/servers/{server}/mcp"
        self.token = token
        self.capabilities = ALL if capabilities is None else capabilities
        self._ids = itertools.count(1)

    def message(
        self, method: str, params: Mapping[str, Any] | None = None, ident: int | str = 1, **meta: Any
    ) -> dict[str, Any]:
        carried = {
            PREFIX + "protocolVersion": VERSION,
            PREFIX + "clientCapabilities": self.capabilities,
            PREFIX + "clientInfo": {"name": "test", "version": "1"},
            **{(name if name == "progressToken" else PREFIX + name): value for name, value in meta.items()},
        }
        return {"jsonrpc": "2.0", "id": ident, "method": method, "params": {**(params or {}), "_meta": carried}}

    def headers(self, message: Any) -> dict[str, str]:
        """All that must mirror the message."""
        fields = {"Content-Type": "application/json", "Accept": ACCEPT, "MCP-Protocol-Version": VERSION}
        if not isinstance(message, dict) or "method" not in message:
            return fields
        fields["Mcp-Method"] = message["method"]
        params = message.get("params") or {}
        target = params.get("uri" if message["method"] == "resources/read" else "name")
        return fields if target is None else fields | {"Mcp-Name": target}

    async def post(self, message: Any, headers: Mapping[str, str] | None = None) -> Reply:
        """A given header takes the place of the usual one; an empty one is left out."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        fields = {name: value for name, value in (self.headers(message) | dict(headers or {})).items() if value}
        return await request(self.port, "POST", self.path, fields, body, self.token)

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        ident: int | str | None = None,
        headers: Mapping[str, str] | None = None,
        **meta: Any,
    ) -> Reply:
        """The response itself, for who wants to see what comes on the way."""
        return await self.post(
            self.message(method, params, next(self._ids) if ident is None else ident, **meta), headers
        )

    async def call(self, method: str, params: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """The answer, result or error; what else comes on the way is dropped."""
        return await self.settle(await self.ask(method, params, **options))

    async def tool(self, name: str, **arguments: Any) -> str:
        return said(await self.call(CALL, called(name, **arguments)))

    async def asked(self, name: str, **arguments: Any) -> Any:
        """The result of a call of a tool that asks something."""
        answer = await self.call(CALL, called(name, **arguments))
        assert answer.get("result", {}).get("resultType") == "input_required", answer
        return answer["result"]

    async def retry(self, result: Any, responses: Mapping[str, Any], name: str, **arguments: Any) -> Any:
        """The call once more, with answers to what `result` asked."""
        more = {"inputResponses": responses, "requestState": result["requestState"]}
        return await self.call(CALL, {**called(name, **arguments), **more})

    async def listen(self, **wanted: Any) -> Reply:
        """A subscription that was acknowledged with all that is wanted."""
        stream = await self.ask(LISTEN, {"notifications": wanted}, ident="listen")
        first = await stream.next_message()
        assert first["method"] == "notifications/subscriptions/acknowledged", first
        assert first["params"]["notifications"] == wanted, first
        return stream

    async def settle(self, reply: Reply) -> Any:
        if not reply.is_stream:
            return await reply.json()
        async for message in reply.messages():
            if "method" not in message:
                reply.close()
                return message
        raise AssertionError("the stream ended without an answer")
