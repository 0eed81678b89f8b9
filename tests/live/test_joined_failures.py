"""Many servers behind one URL, some of which do not do what they should: the others serve as if nothing were."""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import Client, called
from tests.support.gateway import Gateway, eventually, serving
from tests.support.http import on_loop
from tests.support.metrics import number
from tests.support.shelves import shelf, shelves

LISTS = {"listTimeout": 0.3, "retry": 0.3, "maxRetry": 0.6, "readTimeout": 1, "fresh": 0.2, "read": "use"}
GOOD = ("good", shelf("good", "find", "pid"))
MISSING = {"command": "/nowhere/there-is-no-such-server"}


def joined(bad: dict[str, Any], **lists: Any) -> dict[str, Any]:
    """A server that is well, and one that may not be."""
    return shelves(("bad", bad), GOOD, catalog={**LISTS, **lists}, restarts={"deaths": 50, "backoff": 0.05})


def at(method: str, deed: object, *tools: str, settings: dict[str, Any] | None = None, **has: Any) -> dict[str, Any]:
    return shelf("bad", *tools, at={method: deed}, settings=settings, **has)


async def opened(gateway: Gateway, path: str = "/mcp", **given: Any) -> Client:
    return await Client(gateway, path).open(**given)


async def tools(client: Client) -> list[str]:
    """Their names, of all pages."""
    found: list[str] = []
    cursor: dict[str, Any] = {}
    while True:
        result = (await client.call("tools/list", cursor))["result"]
        found += [tool["name"] for tool in result["tools"]]
        if "nextCursor" not in result:
            return found
        cursor = {"cursor": result["nextCursor"]}


async def is_well(client: Client) -> None:
    assert [name for name in await tools(client) if name.startswith("good")] == ["good__find", "good__pid"]
    assert '"server": "good"' in await client.tool("good__find")


def absence(gateway: Gateway) -> list[str]:
    return [line for line in gateway.own_log().split("\n") if "lists could not be read" in line]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (MISSING, "command_not_found"),
        (at("initialize", "exit"), "exited_before_ready"),
        (at("initialize", "hang", settings={"startTimeout": 0.6}), "start_timed_out"),
        (at("tools/list", "exit"), "exited"),
        (at("tools/list", "hang"), "timed_out"),
        (at("tools/list", "noise"), "timed_out"),
    ],
    ids=["never starts", "ends in initialize", "hangs in initialize", "ends in its list", "hangs in its list", "noise"],
)
def test_a_server_that_cannot_be_read_is_absent_with_a_reason(bad: dict[str, Any], reason: str, tmp_path: Path) -> None:
    @on_loop
    async def absent(gateway: Gateway) -> None:
        client = await opened(gateway)
        began = time.monotonic()
        await is_well(client)
        assert time.monotonic() - began < 5
        assert eventually(lambda: absence(gateway))
        assert f"reason={reason}" in absence(gateway)[0]
        assert "server=bad" in absence(gateway)[0]
        await is_well(client)
        unknown = await client.call("tools/call", called("bad__anything"))
        assert unknown["error"]["code"] == -32602

    with serving(joined(bad), tmp_path) as gateway:
        absent(gateway)


def test_a_server_that_can_never_start_is_told_by_the_metrics(tmp_path: Path) -> None:
    @on_loop
    async def told(gateway: Gateway) -> None:
        await is_well(await opened(gateway))
        assert await number(gateway, "viaduct_server_state", server="bad", state="unstartable") == 1

    with serving(joined(MISSING), tmp_path) as gateway:
        told(gateway)


def test_a_list_does_not_wait_for_the_slowest_and_the_rest_follows(tmp_path: Path) -> None:
    slow = shelf("bad", "late", slow=1.5)

    @on_loop
    async def follows(gateway: Gateway) -> None:
        began = time.monotonic()
        client = await opened(gateway)
        stream = await client.listen()
        names = await tools(client)
        assert time.monotonic() - began < 1.5
        assert names == ["good__find", "good__pid"]
        told = await anext(stream.messages())
        assert told["method"] == "notifications/tools/list_changed"
        assert await tools(client) == ["bad__late", "good__find", "good__pid"]
        assert '"tool": "late"' in await client.tool("bad__late")

    with serving(joined(slow, readTimeout=10), tmp_path) as gateway:
        follows(gateway)


def test_a_server_that_can_be_read_at_last_is_there_from_then_on(tmp_path: Path) -> None:
    flag = tmp_path / "well"

    @on_loop
    async def recovers(gateway: Gateway) -> None:
        client = await opened(gateway)
        stream = await client.listen()
        assert await tools(client) == ["good__find", "good__pid"]
        assert eventually(lambda: len(absence(gateway)) > 1), "it is tried again"
        flag.touch()
        told = await anext(stream.messages())
        assert told["method"] == "notifications/tools/list_changed"
        assert '"tool": "back"' in await client.tool("bad__back")

    with serving(joined(at("tools/list", f"exit until {flag}", "back")), tmp_path) as gateway:
        recovers(gateway)


@pytest.mark.parametrize(
    ("garbage", "kept"),
    [
        (7, []),
        ({"tools": 7}, []),
        ({"tools": [7, None, {}, {"name": 7}, {"name": "sane", "inputSchema": {"type": "object"}}]}, ["bad__sane"]),
        ({"tools": [{"name": "twin", "title": "first"}, {"name": "twin", "title": "second"}]}, ["bad__twin"]),
        ({"tools": [{"name": "again"}], "nextCursor": "again"}, ["bad__again"]),
        ({"tools": [{"name": "once"}], "nextCursor": 7}, ["bad__once"]),
    ],
    ids=["a number", "no list", "some sane", "twins", "the same cursor", "no cursor"],
)
def test_of_garbage_the_part_that_makes_sense_is_listed(garbage: object, kept: list[str], tmp_path: Path) -> None:
    @on_loop
    async def lists(gateway: Gateway) -> None:
        client = await opened(gateway)
        assert await tools(client) == [*kept, "good__find", "good__pid"]
        await is_well(client)
        answer = await client.call("tools/call", called("bad__sane" if "bad__sane" in kept else "good__find"))
        assert "-32" in str(answer) or "result" in answer

    with serving(joined(at("tools/list", garbage)), tmp_path) as gateway:
        lists(gateway)


def test_ten_thousand_tools_are_listed_page_by_page_and_each_can_be_called(tmp_path: Path) -> None:
    @on_loop
    async def lists(gateway: Gateway) -> None:
        client = await opened(gateway)
        names = await tools(client)
        assert len(names) == len(set(names)) == 10_002
        assert names[-2:] == ["good__find", "good__pid"]
        assert '"tool": "number_9999"' in await client.tool("bad__number_9999")

    with serving(joined(shelf("bad", count=10_000), listTimeout=15, readTimeout=15), tmp_path) as gateway:
        lists(gateway)


def test_of_a_list_that_never_ends_so_many_pages_are_read(tmp_path: Path) -> None:
    @on_loop
    async def lists(gateway: Gateway) -> None:
        names = await tools(await opened(gateway))
        assert names == [*(f"bad__endless_{number}" for number in range(7)), "good__find", "good__pid"]

    with serving(joined(at("tools/list", "endless"), listTimeout=15, pages=7), tmp_path) as gateway:
        lists(gateway)
