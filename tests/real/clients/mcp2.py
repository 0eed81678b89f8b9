"""Drives a server with `mcp` 2.x, the second generation of the Python SDK.

Its modes: "legacy" is the handshake; "auto", which it has unless told otherwise, asks for the stateless revision first
and falls back to the handshake by what it is answered; "2026-07-28" sends its first request in that revision unasked.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from driver import drive
from mcp import Client, MCPError
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.subscriptions import ResourceUpdated, event_to_notification
from mcp.types import DiscoverResult, ListToolsResult
from session import BOUND_SECONDS, Json, Next, wire


class Mcp2:
    fault: Any = MCPError

    @asynccontextmanager
    async def open(self, target: Json, callbacks: Json) -> AsyncIterator[Client]:
        async with Client(_transport(target), mode=target["mode"], **callbacks) as client:
            if client.session.initialize_result is None:
                await _discovered(client)
            yield client

    def greeting(self, client: Client) -> Json:
        greeting = client.session.initialize_result or client.session.discover_result
        assert greeting is not None
        info = client.server_info
        said = {"protocolVersion": client.protocol_version, "serverInfo": None if info is None else wire(info)}
        return {"instructions": None} | wire(greeting) | said

    def is_stateless(self, client: Client) -> bool:
        return client.session.initialize_result is None

    @asynccontextmanager
    async def listen(self, client: Client, wanted: Json) -> AsyncIterator[Next]:
        lists = {f"{name}_list_changed": True for name in wanted.get("lists", [])}
        async with client.listen(resource_subscriptions=wanted.get("resources", []), **lists) as subscription:

            async def following() -> Json:
                with anyio.fail_after(BOUND_SECONDS):
                    event = await anext(subscription)
                params = {"uri": event.uri} if isinstance(event, ResourceUpdated) else {}
                return {"method": event_to_notification(event, {}).method, "params": params}

            yield following

    def uri(self, text: str) -> str:
        return text

    async def tools(self, client: Client, cursor: str | None) -> ListToolsResult:
        return await client.list_tools(cursor=cursor)

    async def abandon(self, client: Client, request_id: int) -> None:
        """Leaving the call did it."""


async def _discovered(client: Client) -> None:
    """Where a mode makes do with an invented answer, the server's own takes its place."""
    session = client.session
    session.adopt(DiscoverResult.model_validate(await session.send_discover("2026-07-28")))


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
