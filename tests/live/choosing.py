"""Servers of which not everything is shown, and clients of every kind that look at what is."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from tests.support.client import Client, called
from tests.support.gateway import TOKEN, Gateway
from tests.support.shelves import shelf
from tests.support.sse_client import SseClient
from tests.support.stateless import StatelessClient

BOOKS = shelf(
    "books",
    *("find", "burn", "quiet", "watch", "state"),
    prompts=["review", "secret"],
    resources=["book://one", "book://secret"],
    templates=["book://{title}"],
    settings={
        "tags": ["home"],
        "tools": {
            "deny": ["burn", "resources/book://secret*"],
            "change": {
                "quiet": {"enabled": False},
                "find": {"name": "look_up", "title": "Look up", "description": "Looks books up."},
                "state": {"tags": ["dev"]},
                "prompts/secret": {"enabled": False},
            },
        },
    },
)
FILMS = shelf(
    "films",
    *("find", "burn", "state", "watch"),
    prompts=["review"],
    resources=["film://one"],
    settings={"tags": ["dev", "home"]},
)
PLAIN = shelf("plain", "find", "echo")
GROUPS = {
    "office": {"servers": ["films", "books"], "tools": {"deny": ["films/burn"]}},
    "dev": {"tags": ["dev"], "mode": "search"},
}
METHODS = {
    "tools": ("tools/list", "name"),
    "prompts": ("prompts/list", "name"),
    "resources": ("resources/list", "uri"),
    "resourceTemplates": ("resources/templates/list", "uriTemplate"),
}


def entries() -> list[tuple[str, dict[str, Any]]]:
    return [(name, deepcopy(each)) for name, each in (("books", BOOKS), ("films", FILMS), ("plain", PLAIN))]


async def over_http(gateway: Gateway, base: str, token: str = TOKEN) -> Client:
    path, _, query = base.partition("?")
    return await Client(gateway, f"{path}/mcp" + (f"?{query}" if query else ""), token).open()


async def over_sse(gateway: Gateway, base: str, token: str = TOKEN) -> SseClient:
    path, _, query = base.partition("?")
    return await SseClient(gateway, f"{path}/sse" + (f"?{query}" if query else ""), token).open()


async def stateless(gateway: Gateway, base: str, token: str = TOKEN) -> StatelessClient:
    path, _, query = base.partition("?")
    return StatelessClient(gateway, f"{path}/mcp" + (f"?{query}" if query else ""), token)


every_way = pytest.mark.parametrize("connect", [over_http, over_sse, stateless])
Connect = Callable[..., Any]


async def listed(client: Any, key: str = "tools") -> list[str]:
    method, name = METHODS[key]
    return [each[name] for each in (await client.call(method))["result"][key]]


def wrapped(tool: str, **arguments: Any) -> dict[str, Any]:
    """The parameters of a call of the tool that calls others."""
    return {"name": "call_tool", "arguments": {"name": tool, "arguments": arguments}}


async def by_search(client: Any, name: str, **arguments: Any) -> str:
    answer = await client.call("tools/call", wrapped(name, **arguments))
    assert "result" in answer, answer
    return str(answer["result"]["content"][0]["text"])


async def is_unknown(client: Any, tool: str) -> bool:
    answer = await client.call("tools/call", called(tool))
    return answer.get("error", {}).get("code") == -32602 and "unknown tool" in answer["error"]["message"]
