"""The numbers of children: that they start, die and are replaced, do not read, and say what is no message."""

import asyncio
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.live.counted import calls, comes_true, counting
from tests.support.client import Client, called
from tests.support.gateway import Gateway, config, entry, eventually, serving
from tests.support.http import on_loop, soon
from tests.support.metrics import number
from tests.support.stateless import StatelessClient


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with counting(tmp_path) as gateway:
        yield gateway


@on_loop
async def test_children_that_die_and_are_replaced_are_counted(gateway: Gateway) -> None:
    for round_ in (1, 2, 3):
        client = await Client(gateway, "shared").open(capabilities={})
        assert await number(gateway, "viaduct_child_restarts_total", server="shared") == round_ - 1
        answer = await client.call("tools/call", called("die"))
        assert answer["error"]["code"] == -31002
    assert (await calls(gateway, "shared"))["legacy", "tools/call", "exited"] == 3
    assert await number(gateway, "viaduct_child_ends_total", server="shared", reason="exited") == 3
    assert await number(gateway, "viaduct_child_starts_total", server="shared") == 3
    assert await comes_true(gateway, 0, "viaduct_children", server="shared")


@on_loop
async def test_a_stateless_clients_child_that_died_is_replaced(gateway: Gateway) -> None:
    client = StatelessClient(gateway, capabilities={})
    pid = int(await client.tool("pid"))
    assert await number(gateway, "viaduct_child_restarts_total", server="stage") == 0
    os.kill(pid, signal.SIGKILL)
    assert await comes_true(gateway, 1, "viaduct_child_ends_total", server="stage", reason="exited")
    assert int(await client.tool("pid")) != pid
    assert await number(gateway, "viaduct_child_restarts_total", server="stage") == 1
    await StatelessClient(gateway).tool("pid")
    assert await number(gateway, "viaduct_child_starts_total", server="stage") == 3
    assert await number(gateway, "viaduct_child_restarts_total", server="stage") == 1


@on_loop
async def test_a_command_that_cannot_be_started_is_counted_as_such(gateway: Gateway) -> None:
    await Client(gateway, "gone").open()
    assert await number(gateway, "viaduct_child_ends_total", server="gone", reason="command_not_found") == 1
    assert await number(gateway, "viaduct_child_start_seconds_count", server="gone") == 0
    assert await number(gateway, "viaduct_children", server="gone") == 0
    assert await calls(gateway, "gone") == {("legacy", "initialize", "unavailable"): 1}


@on_loop
async def test_what_a_server_does_not_read_is_seen_in_bytes(gateway: Gateway) -> None:
    client = await Client(gateway, "deaf").open(capabilities={})
    assert await number(gateway, "viaduct_child_queue_bytes", server="deaf") == 0
    asked = [asyncio.ensure_future(client.ask("ping", {"pad": "x" * 200_000})) for _ in range(3)]
    await asyncio.wait(asked)
    assert 400_000 < await number(gateway, "viaduct_child_queue_bytes", server="deaf") < 601_000
    assert await number(gateway, "viaduct_calls_in_flight", server="deaf") == 3
    await client.delete()
    assert await comes_true(gateway, 3, "viaduct_calls_total", server="deaf", method="ping", outcome="shutting_down")
    assert await comes_true(gateway, 0, "viaduct_child_queue_bytes", server="deaf")


def test_what_waits_for_another_child_is_seen_in_bytes(tmp_path: Path) -> None:
    @on_loop
    async def waits(gateway: Gateway) -> None:
        client = await Client(gateway).open()
        os.kill(int(await client.tool("pid")), signal.SIGKILL)
        assert eventually(lambda: "session waits for another child" in gateway.log)
        asked = [asyncio.ensure_future(client.ask("ping", {"pad": "x" * 200_000})) for _ in range(3)]
        assert await soon(partial(is_about, gateway, 600_000))
        for reply in await asyncio.gather(*asked):
            assert await reply.body()
        assert await comes_true(gateway, 0, "viaduct_child_queue_bytes", server="stage")

    async def is_about(gateway: Gateway, size: int) -> bool:
        return size < await number(gateway, "viaduct_child_queue_bytes", server="stage") < size * 1.01

    with serving(config({"stage": entry()}, restarts={"backoff": 2}), tmp_path) as gateway:
        waits(gateway)


def test_messages_for_which_there_is_no_room_are_counted(tmp_path: Path) -> None:
    @on_loop
    async def check() -> None:
        client = await Client(gateway, "deaf").open(capabilities={})
        asked = [asyncio.ensure_future(client.ask("ping", {"pad": "x" * 200_000})) for _ in range(3)]
        await asyncio.wait(asked)
        await client.tell("notifications/x", {"pad": "x" * 200_000})
        assert await number(gateway, "viaduct_child_undelivered_total", server="deaf") == 2
        assert (await calls(gateway, "deaf"))["legacy", "ping", "overloaded"] == 1

    servers = {"deaf": entry("--mode", "never_reads", stopTimeout=0.3, killTimeout=0.3)}
    with serving(config(servers, limits={"queueCount": 1}, drain=0.1), tmp_path) as gateway:
        check()


@on_loop
async def test_lines_that_are_no_messages_are_counted(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    await client.tool("raw", hex=b"nonsense\nmore\n".hex())
    assert await number(gateway, "viaduct_child_bad_lines_total", server="stage") == 2
