"""Servers that do not start: one after the other, all at once, and again and again."""

import asyncio
import os
import re
import signal
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import Client, greeting
from tests.support.gateway import (
    OTHER_TOKEN,
    TOKEN,
    Gateway,
    config,
    entry,
    eventually,
    serving,
    stage,
    stateless_entry,
)
from tests.support.http import Reply, on_loop, request, soon
from tests.support.metrics import number
from tests.support.stateless import StatelessClient

RESTARTS = {"backoff": 0.05, "deaths": 3, "window": 10, "coolDown": 0.6}
BRISK = {"stopTimeout": 0.3, "killTimeout": 0.3}
CALL = "tools/call"


def program(path: Path, text: str) -> dict[str, Any]:
    path.write_text(text)
    path.chmod(0o755)
    return {"command": str(path), **BRISK}


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    mended = f"#!/bin/sh\n[ -e {tmp_path}/good ] || exit 7\nexec {' '.join(stage())}\n"
    servers = {
        "calm": entry(**BRISK),
        "broken": entry("--mode", "exit_early", **BRISK),
        "modern": stateless_entry(**BRISK),
        "mended": program(tmp_path / "mended", mended),
    }
    with serving(config(servers, restarts=RESTARTS), tmp_path) as gateway:
        yield gateway


async def opened(gateway: Gateway, server: str) -> tuple[Reply, Any]:
    client = Client(gateway, server)
    reply = await client.post(greeting())
    return reply, await client.settle(reply, 0)


async def fail(gateway: Gateway, server: str) -> None:
    for _ in range(3):
        reply, answer = await opened(gateway, server)
        assert (reply.status, answer["error"]["data"]["reason"]) == (200, "exited_before_ready")


@on_loop
async def test_a_server_that_always_ends_backs_off_and_then_is_refused_at_once_and_the_others_serve(
    gateway: Gateway,
) -> None:
    began = time.monotonic()
    await fail(gateway, "broken")
    assert time.monotonic() - began > 0.05 + 0.1
    assert await number(gateway, "viaduct_server_state", server="broken", state="failed") == 1
    assert await number(gateway, "viaduct_server_state", server="broken") == 1
    starts = gateway.log.count("child started")
    reply, answer = await opened(gateway, "broken")
    assert (reply.status, reply.headers["retry-after"]) == (503, "1")
    assert "mcp-session-id" not in reply.headers
    error = answer["error"]
    assert (error["code"], error["data"]["reason"], error["data"]["executed"]) == (-31001, "failed", "no")
    assert (error["data"]["cause"], error["data"]["exitCode"]) == ("exited_before_ready", 7)
    assert error["data"]["stderr"] == ["cannot find my settings"]
    modern = await StatelessClient(gateway, "broken").ask("tools/list")
    assert modern.status == 503
    assert (await modern.json())["error"]["data"]["reason"] == "failed"
    assert gateway.log.count("child started") == starts
    assert gateway.log.count("server failed") == 1
    assert await (await Client(gateway, "calm").open()).tool("echo", nonce="fine") == "fine"
    assert (await request(gateway.port, "GET", "/readyz", token=None)).status == 200


@on_loop
async def test_after_the_cool_down_one_start_is_tried_and_the_server_heals(gateway: Gateway) -> None:
    await fail(gateway, "mended")
    assert (await opened(gateway, "mended"))[0].status == 503

    async def tried() -> int:
        return (await opened(gateway, "mended"))[0].status

    async with asyncio.timeout(5):
        while (status := await tried()) == 503:
            await asyncio.to_thread(eventually, lambda: False, 0.05)
    assert status == 200  # one trial, that failed
    assert await tried() == 503
    (gateway.folder / "good").touch()
    async with asyncio.timeout(5):
        while await tried() == 503:
            await asyncio.to_thread(eventually, lambda: False, 0.05)
    assert await (await Client(gateway, "mended").open()).tool("echo", nonce="healed") == "healed"


def test_after_the_cool_down_a_gateway_is_ready_although_nobody_has_tried(tmp_path: Path) -> None:
    servers = {"broken": entry("--mode", "exit_early", **BRISK)}
    with serving(config(servers, restarts={**RESTARTS, "coolDown": 1.5}), tmp_path) as gateway:

        async def is_ready() -> bool:
            return (await request(gateway.port, "GET", "/readyz", token=None)).status == 200

        @on_loop
        async def check() -> None:
            await fail(gateway, "broken")
            assert not await is_ready()
            assert await soon(is_ready, 5)
            assert await number(gateway, "viaduct_server_state", server="broken", state="idle") == 1
            assert (await opened(gateway, "broken"))[0].status == 200
            assert not await is_ready()

        check()


def test_a_gateway_of_which_every_server_has_failed_is_not_ready(tmp_path: Path) -> None:
    servers = {"broken": entry("--mode", "exit_early", **BRISK)}
    with serving(config(servers, restarts={**RESTARTS, "coolDown": 60}), tmp_path) as gateway:

        @on_loop
        async def check() -> None:
            assert (await request(gateway.port, "GET", "/readyz", token=None)).status == 200
            await fail(gateway, "broken")
            assert (await request(gateway.port, "GET", "/readyz", token=None)).status == 503
            assert (await request(gateway.port, "GET", "/healthz", token=None)).status == 200

        check()


@on_loop
async def test_who_crashes_its_own_child_does_not_shut_the_server_for_others(gateway: Gateway) -> None:
    for _ in range(4):
        client = await Client(gateway, "calm").open()
        os.kill(int(await client.tool("pid")), signal.SIGKILL)
        await (await client.delete()).body()
    assert await (await Client(gateway, "calm").open()).tool("echo", nonce="open") == "open"
    assert "server failed" not in gateway.log


def at_once(log: str) -> int:
    """How many children were between their start and their handshake, at most."""
    starting = most = 0
    for event in re.findall(r"child (started|ready)", log):
        starting += 1 if event == "started" else -1
        most = max(most, starting)
    return most


def test_sixty_servers_that_start_slowly_all_become_ready_a_few_at_a_time(tmp_path: Path) -> None:
    """Longer than one may take, all of them together do."""
    names, tokens = [f"s{number}" for number in range(60)], cycle([TOKEN, OTHER_TOKEN])
    slow = {name: entry("--mode", "slow_start", "--n", "0.15", **BRISK, startTimeout=2) for name in names}
    with serving(config(slow), tmp_path) as gateway:

        @on_loop
        async def check() -> None:
            clients = await asyncio.gather(*(Client(gateway, name, next(tokens)).open() for name in names))
            assert await asyncio.gather(*(client.tool("echo", nonce=client.path) for client in clients)) == [
                client.path for client in clients
            ]

        began = time.monotonic()
        check()
        assert time.monotonic() - began > 2
        assert at_once(gateway.log) == 4
        assert gateway.log.count("child ready") == 60


def test_who_does_not_want_its_turn_any_more_leaves_it_to_the_next(tmp_path: Path) -> None:
    """The first has a child already, and its start goes on as long as it may."""
    servers = {"slow": entry("--mode", "slow_start", "--n", "60", **BRISK, startTimeout=1.5), "calm": entry(**BRISK)}
    with serving(config(servers, starts=1), tmp_path) as gateway:

        @on_loop
        async def check() -> None:
            first, second = Client(gateway, "slow"), Client(gateway, "slow")
            for client in (first, second):
                reply = await client.post(greeting())
                client.session = reply.headers["mcp-session-id"]
            waiting = asyncio.create_task(Client(gateway, "calm").open())
            assert gateway.log.count("child started") == 1
            assert (await second.delete()).status == 204
            assert gateway.log.count("child started") == 1
            assert (await first.delete()).status == 204
            client = await waiting
            assert await client.tool("echo", nonce="my turn") == "my turn"
            assert gateway.log.count("child started") == 2

        check()
