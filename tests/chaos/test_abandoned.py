"""A slow start survives its client's impatience, and is for nobody else."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.client import Client, greeting
from tests.support.gateway import OTHER_TOKEN, TOKEN, Gateway, config, entry, eventually, serving
from tests.support.http import Reply, head, on_loop

BRISK = {"stopTimeout": 0.3, "killTimeout": 0.3}
SLOW = 1.0
LEFT = "client left before its session was open"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with serving(config({"slow": entry("--mode", "slow_start", "--n", str(SLOW), **BRISK)}), tmp_path) as gateway:
        yield gateway


def starts(gateway: Gateway) -> int:
    return gateway.log.count("child started")


async def impatient(gateway: Gateway, **headers: str) -> tuple[Client, Reply]:
    """A client that waits for its stream only; it may still go away."""
    client = Client(gateway, "slow")
    reply = await client.post(greeting(), **headers)
    client.session = reply.headers["mcp-session-id"]
    return client, reply


def leaves(gateway: Gateway, reply: Reply) -> None:
    """Its going has been noticed."""
    before = gateway.log.count(LEFT)
    reply.drop()
    assert eventually(lambda: gateway.log.count(LEFT) > before, 5)


@on_loop
async def test_who_comes_again_takes_the_start_over(gateway: Gateway) -> None:
    began = time.monotonic()
    first, reply = await impatient(gateway)
    leaves(gateway, reply)
    second = await Client(gateway, "slow").open()
    assert "result" in second.greeted
    assert time.monotonic() - began < SLOW + 0.6
    assert second.session != first.session
    assert await second.tool("echo", nonce="mine") == "mine"
    assert await first.status() == 404
    assert starts(gateway) == 1


@on_loop
async def test_who_comes_again_and_again_waits_for_one_start(gateway: Gateway) -> None:
    began = time.monotonic()
    for _ in range(3):
        _, reply = await impatient(gateway)
        leaves(gateway, reply)
    assert "result" in (await Client(gateway, "slow").open()).greeted
    assert time.monotonic() - began < SLOW + 0.8
    assert starts(gateway) == 1


@on_loop
async def test_a_start_that_is_over_by_then_waits_for_its_client(gateway: Gateway) -> None:
    _, reply = await impatient(gateway)
    leaves(gateway, reply)
    assert eventually(lambda: "child ready" in gateway.log, 5)
    began = time.monotonic()
    client = await Client(gateway, "slow").open()
    assert time.monotonic() - began < SLOW / 2
    assert await client.tool("count") == "1"
    assert starts(gateway) == 1


@on_loop
async def test_nobody_else_takes_it_over(gateway: Gateway) -> None:
    _, reply = await impatient(gateway)
    leaves(gateway, reply)
    assert eventually(lambda: "child ready" in gateway.log, 5)
    await Client(gateway, "slow", OTHER_TOKEN).open()
    await Client(gateway, "slow").open(capabilities={})
    await Client(gateway, "slow").open(version="2025-06-18")
    assert starts(gateway) == 4
    await Client(gateway, "slow").open()
    assert starts(gateway) == 4


@on_loop
async def test_a_client_that_waits_for_its_answer_keeps_its_start(gateway: Gateway) -> None:
    first, reply = await impatient(gateway)
    await Client(gateway, "slow").open()
    assert "result" in await first.settle(reply, 0)
    assert "tools" in (await first.call("tools/list"))["result"]
    assert starts(gateway) == 2


@on_loop
async def test_a_client_that_comes_back_by_its_session_keeps_it(gateway: Gateway) -> None:
    first, reply = await impatient(gateway)
    leaves(gateway, reply)
    assert "tools" in (await first.call("tools/list"))["result"]
    second = await Client(gateway, "slow").open()
    assert len({await first.tool("pid"), await second.tool("pid")}) == 2


@on_loop
async def test_a_start_goes_on_although_its_session_was_deleted(gateway: Gateway) -> None:
    first, reply = await impatient(gateway)
    assert (await first.delete()).status == 204
    reply.drop()
    assert await first.status() == 404
    second = await Client(gateway, "slow").open()
    assert await second.tool("echo", nonce="mine") == "mine"
    assert starts(gateway) == 1
    assert (await second.delete()).status == 204
    assert eventually(lambda: not gateway.children(), 5)


@on_loop
async def test_a_client_that_takes_no_stream_may_go_too(gateway: Gateway) -> None:
    body = json.dumps(greeting()).encode()
    _reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    headers = {"Content-Type": "application/json", "Accept": "application/json", "Content-Length": str(len(body))}
    writer.write(head(gateway.port, "POST", "/servers/slow/mcp", headers, TOKEN) + body)
    assert eventually(lambda: starts(gateway) == 1, 5)
    writer.close()
    await writer.wait_closed()
    assert eventually(lambda: LEFT in gateway.log, 5)
    client = await Client(gateway, "slow").open()
    assert await client.tool("count") == "1"
    assert starts(gateway) == 1


def test_a_start_that_nobody_comes_for_ends(tmp_path: Path) -> None:
    slow = entry("--mode", "slow_start", "--n", "0.6", **BRISK, startTimeout=1)
    with serving(config({"slow": slow}, sessions={"confirmTimeout": 0.5}), tmp_path) as gateway:

        @on_loop
        async def check() -> None:
            gone, reply = await impatient(gateway)
            leaves(gateway, reply)
            deleted, _ = await impatient_of(gateway)
            assert (await deleted.delete()).status == 204
            assert eventually(lambda: not gateway.children(), 8)
            assert await gone.status() == 404

        async def impatient_of(gateway: Gateway) -> tuple[Client, Reply]:
            client = Client(gateway, "slow", OTHER_TOKEN)
            reply = await client.post(greeting())
            client.session = reply.headers["mcp-session-id"]
            return client, reply

        check()


def test_a_start_that_was_left_goes_with_the_gateway(tmp_path: Path) -> None:
    slow = entry("--mode", "slow_start", "--n", "60", **BRISK)
    with serving(config({"slow": slow}), tmp_path) as gateway:

        @on_loop
        async def check() -> None:
            first, reply = await impatient(gateway)
            assert (await first.delete()).status == 204
            reply.drop()
            assert gateway.stop() == 0

        check()
