"""What a configuration and a URL choose of many servers, as clients see it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import NEWEST, Client, KeptAlive, called, greeting
from tests.support.gateway import Gateway, serving
from tests.support.http import on_loop
from tests.support.reloading import reloaded
from tests.support.shelves import shelf, shelves
from tests.support.sse_client import SseClient
from tests.support.stateless import StatelessClient

GROUPS = {
    "quiet": {
        "servers": ["films", "books"],
        "naming": "none",
        "tools": {"deny": ["films/find"], "change": {"books/find": {"name": "look_up", "title": "Look up"}}},
    },
    "fun": {"tags": ["fun"]},
}
CHOSEN = {
    "tags": ["home"],
    "tools": {"deny": ["log"], "change": {"state": {"enabled": False}, "watch": {"tags": ["fun"]}}},
}


def library(books: dict[str, Any], groups: dict[str, Any]) -> dict[str, Any]:
    return shelves(
        ("books", shelf("books", "find", "log", "state", "watch", settings=books, prompts=["review"])),
        ("films", shelf("films", "find", "ask", settings={"tags": ["fun"]})),
        groups=groups,
    )


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with serving(library(CHOSEN, GROUPS), tmp_path) as gateway:
        yield gateway


async def names(gateway: Gateway, path: str) -> list[str]:
    client = await Client(gateway, path).open()
    return [tool["name"] for tool in (await client.call("tools/list"))["result"]["tools"]]


@on_loop
async def test_what_is_denied_or_switched_off_is_not_there_at_any_url(gateway: Gateway) -> None:
    assert await names(gateway, "/mcp") == ["books__find", "books__watch", "films__find", "films__ask"]
    assert await names(gateway, "/servers/books/mcp") == ["find", "watch"]
    client = await Client(gateway, "/servers/books/mcp").open()
    assert '"tool": "find"' in await client.tool("find")
    for name in ("log", "state"):
        assert (await client.call("tools/call", called(name)))["error"]["code"] == -32602


@on_loop
async def test_a_group_has_its_own_servers_names_and_choice(gateway: Gateway) -> None:
    client = await Client(gateway, "/groups/quiet/mcp").open()
    tools = (await client.call("tools/list"))["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["ask", "look_up", "watch"]
    assert tools[1]["title"] == "Look up"
    assert '"server": "books", "tool": "find"' in await client.tool("look_up")
    assert (await client.call("tools/call", called("find")))["error"]["code"] == -32602


@on_loop
@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("/mcp?tags=home", ["books__find", "books__watch"]),
        ("/mcp?tags=fun", ["books__watch", "films__find", "films__ask"]),
        ("/mcp?tags=fun,home", ["books__find", "books__watch", "films__find", "films__ask"]),
        ("/groups/fun/mcp", ["books__watch", "films__find", "films__ask"]),
        ("/groups/fun/mcp?tags=home", ["books__watch"]),
        ("/servers/books/mcp?tags=fun", ["watch"]),
    ],
)
async def test_tags_choose_what_is_seen(gateway: Gateway, path: str, seen: list[str]) -> None:
    assert await names(gateway, path) == seen


@on_loop
async def test_what_a_tag_does_not_show_cannot_be_called(gateway: Gateway) -> None:
    client = await Client(gateway, "/mcp?tags=fun").open()
    assert (await client.call("tools/call", called("books__find")))["error"]["code"] == -32602


@on_loop
async def test_a_session_sees_what_the_url_said_that_opened_it(gateway: Gateway) -> None:
    client = await Client(gateway, "/mcp?tags=home").open()
    client.path = "/mcp"
    tools = (await client.call("tools/list"))["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["books__find", "books__watch"]


@on_loop
async def test_a_view_is_the_same_for_later_requests_with_the_same_head(gateway: Gateway) -> None:
    client, kept = await Client(gateway, "/mcp?tags=home").open(), KeptAlive(gateway)
    for ident in range(1, 6):
        _, answer = await kept.post(client, {"jsonrpc": "2.0", "id": ident, "method": "tools/list"})
        assert [tool["name"] for tool in answer["result"]["tools"]] == ["books__find", "books__watch"]


@on_loop
@pytest.mark.parametrize(
    ("path", "seen"),
    [("/sse?tags=home", ["books__find", "books__watch"]), ("/groups/quiet/sse", ["ask", "look_up", "watch"])],
)
async def test_over_the_older_transport_it_is_the_same(gateway: Gateway, path: str, seen: list[str]) -> None:
    client = await SseClient(gateway, path).open()
    tools = (await client.call("tools/list"))["result"]["tools"]
    assert [tool["name"] for tool in tools] == seen


@on_loop
@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("/mcp?tags=home", ["books__find", "books__watch"]),
        ("/groups/quiet/mcp", ["ask", "look_up", "watch"]),
        ("/servers/books/mcp", ["find", "watch"]),
    ],
)
async def test_for_stateless_clients_it_is_the_same(gateway: Gateway, path: str, seen: list[str]) -> None:
    client = StatelessClient(gateway, path)
    tools = (await client.call("tools/list"))["result"]["tools"]
    assert [tool["name"] for tool in tools] == seen
    hidden = await client.call("tools/call", called("log"))
    assert hidden["error"]["code"] == -32602


@on_loop
async def test_a_tag_that_nothing_has_is_refused_and_the_known_ones_named(gateway: Gateway) -> None:
    reply = await Client(gateway, "/mcp?tags=work").post(greeting(NEWEST))
    told: Any = json.loads(await reply.body())
    assert (reply.status, told["error"]["data"]["reason"]) == (400, "bad_query")
    assert told["error"]["message"] == "there is no tag 'work'; there are fun, home"


@on_loop
async def test_tools_are_switched_and_groups_added_without_a_restart(gateway: Gateway) -> None:
    client = await Client(gateway, "/mcp").open()
    await reloaded(gateway, library({"tools": {"deny": ["watch"]}}, {"new": {"servers": ["books"], "naming": "none"}}))
    assert await names(gateway, "/mcp") == ["books__find", "books__log", "books__state", "films__find", "films__ask"]
    assert await names(gateway, "/groups/new/mcp") == ["find", "log", "state"]
    assert (await Client(gateway, "/groups/quiet/mcp").post(greeting())).status == 404
    assert '"tool": "log"' in await client.tool("books__log", level="info")
    assert (await client.call("tools/call", called("books__watch")))["error"]["code"] == -32602
