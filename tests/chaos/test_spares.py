"""All places are taken by children that nobody uses: whoever needs one gets it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import Client, called, greeting
from tests.support.gateway import OTHER_TOKEN, Gateway, config, entry, serving
from tests.support.http import on_loop, soon
from tests.support.metrics import number
from tests.support.stateless import CALL, StatelessClient

BRISK = {"stopTimeout": 0.3, "killTimeout": 0.3, "era": "legacy"}
CHILDREN = 4


def servers(**settings: Any) -> dict[str, Any]:
    content = config({"stage": entry(**BRISK), "other": entry(**BRISK)}, limits={"children": CHILDREN}, **settings)
    content["viaduct"]["drain"] = 0.2
    return content


@pytest.fixture(name="gateway")
def running(tmp_path: Path) -> Iterator[Gateway]:
    with serving(servers(), tmp_path) as gateway:
        yield gateway


async def leave_idle(gateway: Gateway, count: int = CHILDREN, server: str = "stage") -> None:
    """So many children of one token."""
    for each in range(count):
        client = StatelessClient(gateway, server, capabilities={"experimental": {"n": {"n": each}}})
        await client.tool("echo", nonce="n")


@on_loop
async def test_somebody_else_opens_sessions_until_none_of_them_is_left(gateway: Gateway) -> None:
    await leave_idle(gateway)
    clients = [await Client(gateway, "other", OTHER_TOKEN).open() for _ in range(CHILDREN)]
    assert [await client.tool("echo", nonce="n") for client in clients] == ["n"] * CHILDREN
    reply = await Client(gateway, "other", OTHER_TOKEN).post(greeting())
    assert (reply.status, (await reply.json())["error"]["data"]["reason"]) == (503, "limits.children")
    assert await number(gateway, "viaduct_children", server="stage") == 0


@on_loop
async def test_somebody_elses_stateless_request_is_served(gateway: Gateway) -> None:
    await leave_idle(gateway)
    assert await StatelessClient(gateway, "other", OTHER_TOKEN).tool("echo", nonce="n") == "n"
    assert gateway.log.count("child started") == CHILDREN + 1


@on_loop
async def test_one_that_somebody_uses_is_not_given_up(gateway: Gateway) -> None:
    used = asyncio.create_task(StatelessClient(gateway, capabilities={}).tool("sleep", seconds=1.5))
    assert await soon(lambda: is_busy(gateway))
    await leave_idle(gateway, CHILDREN - 1)
    for _ in range(CHILDREN - 1):
        await Client(gateway, "other", OTHER_TOKEN).open()
    assert (await Client(gateway, "other", OTHER_TOKEN).post(greeting())).status == 503
    assert await used == "slept"


def test_a_session_whose_child_died_gets_the_place_of_one_that_nobody_uses(tmp_path: Path) -> None:
    @on_loop
    async def check() -> None:
        session = await Client(gateway, "other", OTHER_TOKEN).open()
        await leave_idle(gateway, CHILDREN - 1)
        assert (await session.call(CALL, called("die")))["error"]["code"] == -31002
        assert await soon(lambda: has_children(gateway, CHILDREN - 1))
        await Client(gateway, "other", OTHER_TOKEN).open()
        assert await number(gateway, "viaduct_children", server="stage") == CHILDREN - 1
        assert await session.tool("echo", nonce="n") == "n"
        assert await number(gateway, "viaduct_children", server="stage") == CHILDREN - 2

    with serving(servers(restarts={"backoff": 1.0}), tmp_path) as gateway:
        check()


async def is_busy(gateway: Gateway) -> bool:
    return await number(gateway, "viaduct_children", server="stage", state="busy") == 1


async def has_children(gateway: Gateway, count: int) -> bool:
    return await number(gateway, "viaduct_children") == count


def test_what_is_kept_warm_makes_room_too(tmp_path: Path) -> None:
    content = servers()
    content["mcpServers"]["stage"]["warm"] = CHILDREN

    @on_loop
    async def check() -> None:
        assert await soon(lambda: is_warm(gateway, 3))
        clients = [await Client(gateway, "other", OTHER_TOKEN).open() for _ in range(CHILDREN)]
        assert [await client.tool("echo", nonce="n") for client in clients] == ["n"] * CHILDREN

    with serving(content, tmp_path) as gateway:
        check()


async def is_warm(gateway: Gateway, count: int) -> bool:
    return await number(gateway, "viaduct_children", server="stage", state="warm") == count


def test_who_has_as_many_as_one_may_have_gives_up_ones_own(tmp_path: Path) -> None:
    @on_loop
    async def check() -> None:
        somebody = StatelessClient(gateway, "other", OTHER_TOKEN)
        first = await somebody.tool("pid")
        await leave_idle(gateway, 2)
        await leave_idle(gateway, 2, "other")
        assert await somebody.tool("pid") == first
        assert await soon(lambda: has_children(gateway, 3))

    with serving(servers(stateless={"maxChildrenPerPrincipal": 2}), tmp_path) as gateway:
        check()
