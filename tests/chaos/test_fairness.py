"""One token has many starts of a slow server, also such that nobody waits for: others do not notice."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.client import Client, greeting
from tests.support.gateway import OTHER_TOKEN, Gateway, config, entry, eventually, serving
from tests.support.http import Reply, on_loop

BRISK = {"stopTimeout": 0.3, "killTimeout": 0.3, "era": "legacy"}
SLOW = 5.0
"""Of these, two start at once: 24 of them take a minute."""
SOON = 3.0
LEFT = "client left before its session was open"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    slow = entry("--mode", "slow_start", "--n", str(SLOW), **BRISK)
    content = config({"slow": slow, "fast": entry(**BRISK)}, restarts={"backoff": 0.05})
    content["viaduct"]["drain"] = 0.2
    with serving(content, tmp_path) as gateway:
        yield gateway


async def many_starts(gateway: Gateway, *, are_left: bool) -> list[Reply]:
    """Of one token, at the slow server; no two say the same of themselves, so none takes another's over."""
    replies = await asyncio.gather(
        *(Client(gateway, "slow").post(greeting(capabilities={"experimental": {"n": {"n": n}}})) for n in range(24))
    )
    if are_left:
        for reply in replies:
            reply.drop()
        assert await asyncio.to_thread(eventually, lambda: gateway.log.count(LEFT) == 24, 5)
    return replies


async def opened_soon(gateway: Gateway) -> Client:
    began = time.monotonic()
    client = await Client(gateway, "fast", OTHER_TOKEN).open()
    assert time.monotonic() - began < SOON
    return client


@on_loop
@pytest.mark.parametrize("are_left", [False, True])
async def test_somebody_else_opens_a_session_and_gets_another_child_at_once(gateway: Gateway, are_left: bool) -> None:
    before = await opened_soon(gateway)
    await many_starts(gateway, are_left=are_left)
    clients = [await opened_soon(gateway), before]
    for client in clients:
        first = await client.tool("pid")
        os.kill(int(first), signal.SIGKILL)
        began = time.monotonic()
        while (answer := await client.call("tools/call", {"name": "pid", "arguments": {}})).get("error"):
            assert answer["error"]["code"] == -31002
        assert answer["result"]["content"][0]["text"] != first
        assert time.monotonic() - began < SOON
    assert await asyncio.to_thread(eventually, lambda: gateway.log.count("child ready") == 4, 3)


@on_loop
async def test_who_waits_comes_before_starts_that_were_left_even_of_the_same_token(gateway: Gateway) -> None:
    await many_starts(gateway, are_left=True)
    began = time.monotonic()
    assert "result" in (await Client(gateway, "slow").open()).greeted
    assert time.monotonic() - began < 2 * SLOW + SOON
