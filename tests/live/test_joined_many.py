"""Fifty servers with a thousand tools behind one URL: what there is of them before anybody calls one.

Bounds are far above what `python -m tests.bench.many` measures, for other tests run beside these.
"""

import asyncio
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bench import load
from tests.support.client import Client
from tests.support.gateway import PATIENCE, TOKEN, Gateway, config, cpu_seconds, entry, eventually, serving
from tests.support.http import on_loop
from tests.support.shelves import library, shelf

SERVERS, TOOLS = 50, 20
CATALOG = {"read": "use", "listTimeout": 60}
LIST_SECONDS = 0.5
SERVER_BYTES = 1 << 20
SESSION_BYTES = 200 << 10
SHARE_OF_CPU = 1.6


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with serving(library(SERVERS, TOOLS, catalog=CATALOG), tmp_path_factory.mktemp("many")) as gateway:
        yield gateway


async def all_tools(client: Client) -> list[str]:
    names: list[str] = []
    cursor: dict[str, Any] = {}
    while True:
        page = (await client.call("tools/list", cursor))["result"]
        names += [tool["name"] for tool in page["tools"]]
        if "nextCursor" not in page:
            return names
        cursor = {"cursor": page["nextCursor"]}


async def known(gateway: Gateway) -> None:
    """The servers have been asked what they offer, and stopped."""
    assert len(await all_tools(await Client(gateway, "/mcp").open())) == SERVERS * TOOLS
    assert eventually(lambda: not gateway.children())


@on_loop
async def test_a_new_session_has_a_thousand_tools_at_once_and_starts_nothing(gateway: Gateway) -> None:
    await known(gateway)
    since, delays = len(gateway.log_lines), []
    for _ in range(9):
        client = await Client(gateway, "/mcp").open()
        began = time.monotonic()
        page = (await client.call("tools/list"))["result"]["tools"]
        delays.append(time.monotonic() - began)
        assert len(page) == 500
    assert statistics.median(delays) < LIST_SECONDS, delays
    assert not gateway.children()
    assert "child started" not in gateway.own_log(since)


@on_loop
async def test_the_first_call_starts_the_one_child_that_it_needs(gateway: Gateway) -> None:
    await known(gateway)
    client = await Client(gateway, "/mcp").open()
    names = await all_tools(client)
    assert len(set(names)) == SERVERS * TOOLS
    since = len(gateway.log_lines)
    pid = int(await client.tool("server42__pid"))
    assert gateway.children() == [pid]
    assert gateway.own_log(since).count("child started") == 1
    assert (await client.delete()).status == 204
    assert eventually(lambda: not gateway.children())


@on_loop
async def test_each_further_server_costs_little_memory(gateway: Gateway, tmp_path: Path) -> None:
    await known(gateway)
    with serving(library(2, TOOLS, catalog=CATALOG), tmp_path) as other:
        assert len(await all_tools(await Client(other, "/mcp").open())) == 2 * TOOLS
        assert eventually(lambda: not other.children())
        assert gateway.rss() - other.rss() < (SERVERS - 2) * SERVER_BYTES


@on_loop
async def test_sessions_have_what_they_know_of_the_servers_in_common(gateway: Gateway) -> None:
    """Each of these has a list of its own, for its child has one tool less for it."""
    await known(gateway)
    before, clients = 0, []
    for number in range(30):
        if number == 5:
            before = gateway.rss()
        client = await Client(gateway, "/mcp").open({})
        await client.tool("server07__pid")
        async with asyncio.timeout(PATIENCE):
            while len(await all_tools(client)) == SERVERS * TOOLS:
                pass
        clients.append(client)
    assert gateway.rss() - before < 25 * SESSION_BYTES
    for client in clients:
        assert (await client.delete()).status == 204
    assert eventually(lambda: not gateway.children())


@on_loop
async def test_a_call_to_one_of_many_costs_little_more_than_to_it_alone(tmp_path: Path) -> None:
    others = {name: shelf(name, "find", "keep") for name in ("atlas", "beacon", "cellar", "dock")}
    with serving(config({"stage": entry(), **others}), tmp_path) as gateway:
        alone, joined = await Client(gateway).open(), await Client(gateway, "/mcp").open()
        sides = [(alone, load.CALL, list[float]()), (joined, load.JOINED_CALL, list[float]())]
        for _ in range(6):
            for client, call, costs in sides:
                headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "*/*", "Mcp-Session-Id": str(client.session)}
                before = cpu_seconds(gateway.pid)
                row = await load.run(gateway.port, headers, call, 8, 0.4, client.path)
                assert not row["wrong"]
                costs.append((cpu_seconds(gateway.pid) - before) / row["calls"])
        of_alone, of_joined = (statistics.median(costs) for _, _, costs in sides)
        assert of_joined < SHARE_OF_CPU * of_alone
