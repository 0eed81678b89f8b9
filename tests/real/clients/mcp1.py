"""Drives a server with `mcp` 1.x, the first generation of the Python SDK. Runs in the environment that holds it."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from driver import drive
from mcp import ClientSession, McpError, types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from pydantic import AnyUrl
from session import Json, Next, wire


class Mcp1:
    fault: Any = McpError

    def __init__(self) -> None:
        self._greetings: dict[int, Json] = {}

    @asynccontextmanager
    async def open(self, target: Json, callbacks: Json) -> AsyncIterator[ClientSession]:
        async with _transport(target) as streams, ClientSession(streams[0], streams[1], **callbacks) as client:
            self._greetings[id(client)] = {"instructions": None} | wire(await client.initialize())
            yield client

    def greeting(self, client: ClientSession) -> Json:
        return self._greetings[id(client)]

    def is_stateless(self, _: ClientSession) -> bool:
        return False

    def listen(self, _: ClientSession, wanted: Json) -> AbstractAsyncContextManager[Next]:
        raise NotImplementedError(wanted)

    def uri(self, text: str) -> AnyUrl:
        return AnyUrl(text)

    async def tools(self, client: ClientSession, cursor: str | None) -> types.ListToolsResult:
        return await client.list_tools(params=types.PaginatedRequestParams(cursor=cursor))

    async def abandon(self, client: ClientSession, request_id: int) -> None:
        params = types.CancelledNotificationParams(requestId=request_id, reason="enough seen")
        await client.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))


@asynccontextmanager
async def _transport(target: Json) -> AsyncIterator[tuple[Any, ...]]:
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


drive(Mcp1())
