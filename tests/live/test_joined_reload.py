"""Another configuration of servers that are one, while clients use them."""

import copy
import json
import time
from collections.abc import Iterator
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import Client, called
from tests.support.gateway import TOKEN, Gateway, eventually, serving
from tests.support.http import on_loop, request, soon
from tests.support.metrics import number
from tests.support.reloading import reloaded
from tests.support.shelves import shelf, shelves
from tests.support.stateless import LISTEN, StatelessClient

BOOKS, FILMS = shelf("books", "pid", "sleep", "find"), shelf("films", "pid", "find", resources=["film://one"])
CHANGED = "notifications/tools/list_changed"


def library(groups: dict[str, Any] | None = None, **servers: dict[str, Any] | None) -> dict[str, Any]:
    """Of books and films, and of others; None is without that one."""
    known: dict[str, dict[str, Any] | None] = {"books": BOOKS, "films": FILMS, **servers}
    entries = [(name, copy.deepcopy(entry)) for name, entry in known.items() if entry is not None]
    return shelves(*entries, watchInterval=0.05, drain=3, groups=groups or {})


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with serving(library(), tmp_path) as gateway:
        yield gateway


async def names(client: Client | StatelessClient) -> list[str]:
    return [tool["name"] for tool in (await client.call("tools/list"))["result"]["tools"]]


async def has_in_time(client: Client | StatelessClient, name: str) -> bool:
    async def has() -> bool:
        return name in await names(client)

    return bool(await soon(has, 10))


@on_loop
async def test_an_added_server_is_told_of_and_the_children_of_the_others_stay(gateway: Gateway) -> None:
    client = await Client(gateway, "/mcp").open()
    pid = await client.tool("books__pid")
    stream = (await client.listen()).messages()
    await reloaded(gateway, library(songs=shelf("songs", "find")))
    assert (await anext(stream))["method"] == CHANGED
    assert await has_in_time(client, "songs__find")
    assert '"server": "songs"' in await client.tool("songs__find")
    assert await client.tool("books__pid") == pid


@on_loop
async def test_a_removed_server_ends_what_it_owes_and_is_there_no_more(gateway: Gateway) -> None:
    client = await Client(gateway, "/mcp").open()
    films = await client.tool("films__pid")
    reply = await client.ask("tools/call", called("books__sleep", seconds=1), 7)
    await reloaded(gateway, library(books=None, songs=shelf("songs", "find")))
    assert '"tool": "sleep"' in (await client.settle(reply, 7))["result"]["content"][0]["text"]
    assert not [name for name in await names(client) if name.startswith("books")]
    assert (await client.call("tools/call", called("books__find")))["error"]["code"] == -32602
    assert await client.tool("films__pid") == films
    assert eventually(lambda: len(gateway.children()) <= 1), "the child of the removed server stayed"


@on_loop
async def test_a_changed_server_gives_the_session_another_child(gateway: Gateway) -> None:
    client = await Client(gateway, "/mcp").open()
    books, films = await client.tool("books__pid"), await client.tool("films__pid")
    await reloaded(gateway, library(books=shelf("books", "pid", "borrow")))
    assert await has_in_time(client, "books__borrow")
    assert '"tool": "borrow"' in await client.tool("books__borrow")
    assert await client.tool("books__pid") != books
    assert await client.tool("films__pid") == films
    assert "books__find" not in await names(client)


@pytest.mark.parametrize("way", ["deleted", "cancelled"])
@on_loop
async def test_a_server_is_not_waited_for_whose_last_call_has_nobody_any_more(tmp_path: Path, way: str) -> None:
    content = library(songs=shelf("songs", "find"))
    content["viaduct"]["drain"] = 60
    with serving(copy.deepcopy(content), tmp_path) as gateway:
        client = await Client(gateway, "/mcp").open()
        reply = await client.ask("tools/call", called("books__sleep", seconds=120), 7)
        del content["mcpServers"]["books"]
        await reloaded(gateway, content)
        assert not await is_gone(gateway, "books")
        if way == "deleted":
            await client.delete()
        else:
            await client.tell("notifications/cancelled", {"requestId": 7})
        reply.close()
        assert await soon(lambda: is_gone(gateway, "books"), 5)
        started = time.monotonic()
        assert gateway.stop() == 0
        assert time.monotonic() - started < 10


async def is_gone(gateway: Gateway, server: str) -> bool:
    """Who still uses it would find it where it was."""
    reply = await request(gateway.port, "GET", f"/servers/{server}/mcp", token=TOKEN)
    reply.close()
    return reply.status == 404


@on_loop
async def test_what_was_counted_is_counted_on(gateway: Gateway) -> None:
    async def calls() -> float:
        return await number(gateway, "viaduct_calls_total", server="/mcp", method="tools/call", era="legacy")

    client = await Client(gateway, "/mcp").open()
    await client.tool("books__pid")
    assert await calls() == 1
    await reloaded(gateway, library(songs=shelf("songs", "find")))
    await client.tool("books__pid")
    await (await Client(gateway, "/mcp").open()).tool("books__pid")
    assert await calls() == 3


@on_loop
async def test_a_group_comes_and_goes(gateway: Gateway) -> None:
    office = {"office": {"servers": ["films"]}}
    await reloaded(gateway, library(office))
    client = await Client(gateway, "/groups/office/mcp").open()
    assert await names(client) == ["films__pid", "films__find"]
    await client.tool("films__pid")
    await reloaded(gateway, library())

    async def is_gone() -> bool:
        return await client.status() == 404

    assert await soon(is_gone, 5)
    assert eventually(lambda: not gateway.children())


@on_loop
async def test_who_listens_to_a_resource_is_not_deaf_after_its_server_changed(gateway: Gateway) -> None:
    """Somebody else looks, so that nothing but its listening brings it to the next child."""
    common = {"isolation": "shared"}
    await reloaded(gateway, library(films=shelf("films", "state", resources=["film://one"], settings=common)))
    client, other = await Client(gateway, "/mcp").open(), StatelessClient(gateway, "/servers/films/mcp")
    assert (await client.call("resources/subscribe", {"uri": "film://one"}))["result"] == {}
    await client.listen()
    await reloaded(gateway, library(films=shelf("films", "state", "pid", resources=["film://one"], settings=common)))

    async def is_subscribed() -> bool:
        return "film://one" in json.loads(await other.tool("state"))["subscribed"]

    assert await soon(is_subscribed, 5)


@on_loop
async def test_a_group_lets_the_children_go_of_a_server_that_it_has_no_more(gateway: Gateway) -> None:
    await reloaded(gateway, library({"office": {"servers": ["books", "films"]}}))
    client = await Client(gateway, "/groups/office/mcp").open()
    films = await client.tool("films__pid")
    reply = await client.ask("tools/call", called("books__sleep", seconds=1), 7)
    await reloaded(gateway, library({"office": {"servers": ["films"]}}))
    assert '"tool": "sleep"' in (await client.settle(reply, 7))["result"]["content"][0]["text"]
    assert eventually(lambda: len(gateway.children()) == 1), "the child of the other server stayed"
    assert await client.tool("films__pid") == films


@on_loop
async def test_a_call_that_was_cancelled_does_not_hold_a_removed_server(tmp_path: Path) -> None:
    def patient(**servers: Any) -> dict[str, Any]:
        content = library(songs=FILMS, **servers)
        content["viaduct"]["drain"] = 60
        return content

    with serving(patient(), tmp_path) as gateway:
        client = await Client(gateway, "/mcp").open()
        await client.tool("books__pid")
        await client.ask("tools/call", called("books__sleep", seconds=30), 7)
        await reloaded(gateway, patient(books=None))
        await client.tell("notifications/cancelled", {"requestId": 7})
        assert eventually(lambda: not gateway.children(), 10)


@on_loop
async def test_what_is_denied_is_so_in_a_view_that_many_others_were_wanted_after(tmp_path: Path) -> None:
    """Clients choose the views, and only so many are kept for who comes next."""
    tags = list("abcdefg")

    def tagged(**choice: Any) -> dict[str, Any]:
        return library(books={**copy.deepcopy(BOOKS), "tags": tags, **choice}, films={**FILMS, "tags": tags})

    with serving(tagged(), tmp_path) as gateway:
        client = await Client(gateway, "/mcp?tags=a").open()
        assert "books__find" in await names(client)
        for chosen in chain(*(combinations(tags[1:], number) for number in range(1, 7))):
            for mode in ("list", "search"):
                await names(StatelessClient(gateway, f"/mcp?tags={','.join(chosen)}&mode={mode}"))
        await reloaded(gateway, tagged(tools={"deny": ["find"]}))
        assert "books__find" not in await names(client)
        assert (await client.call("tools/call", called("books__find")))["error"]["code"] == -32602


@on_loop
async def test_stateless_clients_hear_of_it_too(gateway: Gateway) -> None:
    client = StatelessClient(gateway, "/mcp")
    await client.call("tools/list")
    reply = await client.ask(LISTEN, {"notifications": {"toolsListChanged": True}})
    stream = reply.messages()
    await anext(stream)
    await reloaded(gateway, library(songs=shelf("songs", "find")))
    assert (await anext(stream))["method"] == CHANGED
    assert await has_in_time(client, "songs__find")
    assert '"server": "songs"' in await client.tool("songs__find")


@on_loop
async def test_what_stateless_clients_may_have_in_flight_is_what_the_last_configuration_says(gateway: Gateway) -> None:
    content = library()
    content["viaduct"]["stateless"] = {"maxBytes": 500}
    await reloaded(gateway, content)
    client = StatelessClient(gateway, "/mcp")
    stream = await client.listen(toolsListChanged=True)
    reply = await client.ask(LISTEN, {"notifications": {"toolsListChanged": True}, "more": "x" * 500})
    assert (reply.status, (await reply.json())["error"]["data"]["reason"]) == (429, "stateless.maxBytes")
    stream.close()
