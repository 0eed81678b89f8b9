"""What is shown of many servers, by configuration and by URL: everywhere they are, and as long as a session lasts."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.choosing import GROUPS, Connect, by_search, entries, every_way, is_unknown, listed, wrapped
from tests.support.client import Client, KeptAlive, called, greeting
from tests.support.gateway import Gateway, serving
from tests.support.http import on_loop, request
from tests.support.reloading import reloaded
from tests.support.shelves import shelf, shelves


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with serving(shelves(*entries(), groups=GROUPS), tmp_path_factory.mktemp("choice")) as gateway:
        yield gateway


@every_way
@on_loop
async def test_what_is_switched_off_denied_or_renamed_is_so_wherever_its_server_is(
    gateway: Gateway, connect: Connect
) -> None:
    for base, prefix in (("", "books__"), ("/groups/office", "books__"), ("/servers/books", "")):
        client = await connect(gateway, base)
        tools = (await client.call("tools/list"))["result"]["tools"]
        of_books = [tool["name"] for tool in tools if "books" in tool["description"]]
        assert of_books == ["look_up", f"{prefix}watch", f"{prefix}state"]
        [look_up] = [tool for tool in tools if tool["name"] == "look_up"]
        assert (look_up["title"], look_up["description"]) == ("Look up", "Looks books up.")
        assert '"tool": "find"' in await client.tool("look_up")
        for own in ("burn", "quiet", "find"):
            for name in {own, prefix + own, f"books__{own}"}:
                assert await is_unknown(client, name), (base, name)
        assert [name for name in await listed(client, "prompts") if "films" not in name] == [f"{prefix}review"]
        hidden = await client.call("prompts/get", {"name": f"{prefix}secret"})
        assert hidden["error"]["code"] == -32602
        assert "book://secret" not in await listed(client, "resources")
        for uri in ("book://secret", "book://secret/2", "viaduct://books/book://secret"):
            assert (await client.call("resources/read", {"uri": uri}))["error"]["code"] == -32602, (base, uri)
        assert "result" in await client.call("resources/read", {"uri": "book://one"})


@every_way
@on_loop
async def test_a_group_has_its_own_servers_in_its_own_order(gateway: Gateway, connect: Connect) -> None:
    client = await connect(gateway, "/groups/office")
    assert await listed(client) == [
        *("films__find", "films__state", "films__watch"),
        *("look_up", "books__watch", "books__state"),
    ]
    for outside in ("plain__find", "films__burn"):
        assert await is_unknown(client, outside)
    whole = await connect(gateway, "")
    assert {"plain__find", "films__burn"} <= set(await listed(whole))
    assert '"tool": "burn"' in await whole.tool("films__burn")


@every_way
@on_loop
async def test_a_url_chooses_by_tags(gateway: Gateway, connect: Connect) -> None:
    films = ["films__find", "films__burn", "films__state", "films__watch"]
    dev = await connect(gateway, "?tags=dev")
    assert await listed(dev) == ["books__state", *films]
    assert await is_unknown(dev, "look_up")
    assert await is_unknown(dev, "plain__find")
    assert '"server": "films"' in await dev.tool("films__find")
    either = await connect(gateway, "?tags=home,dev")
    assert await listed(either) == ["look_up", "books__watch", "books__state", *films]
    group = await connect(gateway, "/groups/office?tags=dev")
    assert await listed(group) == ["films__find", "films__state", "films__watch", "books__state"]


@pytest.mark.parametrize("path", ["/mcp", "/sse", "/groups/office/mcp", "/groups/office/sse"])
@on_loop
async def test_tags_that_nothing_has_are_refused(gateway: Gateway, path: str) -> None:
    for query in ("tags=nowhere", "tags=", "tags=dev,nowhere", "mode=neither"):
        method = "GET" if path.endswith("sse") else "POST"
        reply = await request(gateway.port, method, f"{path}?{query}", {"Accept": "text/event-stream"})
        assert reply.status == 400, await reply.body()
        error = (await reply.json())["error"]
        assert error["data"]["reason"] == "bad_query"
        assert query != "tags=nowhere" or error["message"] == "there is no tag 'nowhere'; there are dev, home"


@pytest.mark.parametrize("path", ["/groups/nobody/mcp", "/groups/nobody/sse", "/groups/mcp", "/groups/office"])
@on_loop
async def test_a_group_that_is_not_there_is_no_path(gateway: Gateway, path: str) -> None:
    reply = await request(gateway.port, "POST", path, {"Content-Type": "application/json"}, b"{}")
    assert reply.status == 404
    assert (await reply.json())["error"]["data"]["reason"] == "unknown_path"


@every_way
@on_loop
async def test_in_search_mode_two_tools_find_and_call_what_the_group_has_and_nothing_else(
    gateway: Gateway, connect: Connect
) -> None:
    client = await connect(gateway, "/groups/dev")
    assert await listed(client) == ["find_tools", "call_tool"]
    found = json.loads(await client.tool("find_tools", query="find of films", limit=20))["tools"]
    assert found[0]["name"] == "films__find"
    films = {f"films__{own}" for own in ("find", "burn", "state", "watch")}
    assert {tool["name"] for tool in found} <= {"books__state", *films}
    assert '"server": "films", "tool": "find"' in await by_search(client, "films__find")
    assert '"server": "films", "tool": "find"' in await client.tool("films__find")
    for hidden in ("look_up", "plain__find", "books__burn", "find_tools", "call_tool"):
        answer = await client.call("tools/call", wrapped(hidden))
        assert answer["error"]["code"] == -32602, hidden
    whole = await connect(gateway, "?mode=search")
    assert '"tool": "find"' in await by_search(whole, "look_up")
    assert await listed(await connect(gateway, "/groups/dev?mode=list")) != ["find_tools", "call_tool"]


# What a group names, what has tags of its own, and how long a choice holds.

NAMING = {
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


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with serving(library(CHOSEN, NAMING), tmp_path_factory.mktemp("chosen")) as gateway:
        yield gateway


async def names(gateway: Gateway, path: str) -> list[str]:
    client = await Client(gateway, path).open()
    return [tool["name"] for tool in (await client.call("tools/list"))["result"]["tools"]]


@on_loop
async def test_a_group_has_its_own_servers_names_and_choice(chosen: Gateway) -> None:
    client = await Client(chosen, "/groups/quiet/mcp").open()
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
        ("/groups/fun/mcp", ["books__watch", "films__find", "films__ask"]),
        ("/groups/fun/mcp?tags=home", ["books__watch"]),
        ("/servers/books/mcp?tags=fun", ["watch"]),
    ],
)
async def test_tags_choose_what_is_seen(chosen: Gateway, path: str, seen: list[str]) -> None:
    assert await names(chosen, path) == seen


@on_loop
async def test_a_session_sees_what_the_url_said_that_opened_it(chosen: Gateway) -> None:
    client = await Client(chosen, "/mcp?tags=home").open()
    client.path = "/mcp"
    tools = (await client.call("tools/list"))["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["books__find", "books__watch"]


@on_loop
async def test_a_view_is_the_same_for_later_requests_with_the_same_head(chosen: Gateway) -> None:
    client, kept = await Client(chosen, "/mcp?tags=home").open(), KeptAlive(chosen)
    for ident in range(1, 6):
        _, answer = await kept.post(client, {"jsonrpc": "2.0", "id": ident, "method": "tools/list"})
        assert [tool["name"] for tool in answer["result"]["tools"]] == ["books__find", "books__watch"]


@on_loop
async def test_tools_are_switched_and_groups_added_without_a_restart(tmp_path: Path) -> None:
    with serving(library(CHOSEN, NAMING), tmp_path) as gateway:
        client = await Client(gateway, "/mcp").open()
        groups = {"new": {"servers": ["books"], "naming": "none"}}
        await reloaded(gateway, library({"tools": {"deny": ["watch"]}}, groups))
        of_books, of_films = ["books__find", "books__log", "books__state"], ["films__find", "films__ask"]
        assert await names(gateway, "/mcp") == [*of_books, *of_films]
        assert await names(gateway, "/groups/new/mcp") == ["find", "log", "state"]
        assert (await Client(gateway, "/groups/quiet/mcp").post(greeting())).status == 404
        assert '"tool": "log"' in await client.tool("books__log", level="info")
        assert (await client.call("tools/call", called("books__watch")))["error"]["code"] == -32602
