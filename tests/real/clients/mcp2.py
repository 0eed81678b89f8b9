"""Drives a server with `mcp` 2.x, the second generation of the Python SDK.

As it does unless told otherwise, it asks for the modern revision first, and falls back to the handshake by what it is
answered.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from driver import drive
from mcp import Client, MCPError
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from session import Json, wire


class Mcp2:
    fault: Any = MCPError

    def open(self, target: Json, callbacks: Json) -> AbstractAsyncContextManager[Client]:
        return Client(_transport(target), **callbacks)

    def greeting(self, client: Client) -> Json:
        greeting = client.session.initialize_result
        assert greeting is not None, "the handshake was not used"
        return {"instructions": None} | wire(greeting)

    def uri(self, text: str) -> str:
        return text

    async def abandon(self, client: Client, request_id: int) -> None:
        """Leaving the call did it."""


@asynccontextmanager
async def _transport(target: Json) -> AsyncIterator[Any]:
    headers = {"Authorization": f"Bearer {target['token']}"}
    if target["transport"] == "sse":
        async with sse_client(target["url"], headers=headers) as streams:
            yield streams
    else:
        async with (
            create_mcp_http_client(headers) as http,
            streamable_http_client(target["url"], http_client=http) as s,
        ):
            yield s


drive(Mcp2())
