"""A session outlives its child: what it knew is told to the next one, and its client goes on."""

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.conftest import Connect
from tests.support import metrics
from tests.support.client import Client, called
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
from tests.support.http import Reply, on_loop, soon

CALL = "tools/call"
BRISK = {"stopTimeout": 0.3, "killTimeout": 0.3}
RESTARTS = {"backoff": 0.1, "maxBackoff": 0.5, "deaths": 4, "coolDown": 0.5}
LISTS = {f"notifications/{what}/list_changed" for what in ("tools", "prompts", "resources")}


def script(path: Path) -> Path:
    path.write_text(f"#!/bin/sh\nexec {' '.join(stage())}\n")
    path.chmod(0o755)
    return path


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("revival")
    servers = {
        "calm": entry(**BRISK),
        "ending": entry(**BRISK, onExit="end"),
        "nameless": entry(**BRISK),
        "shared": entry(**BRISK, isolation="shared"),
        "modern": stateless_entry(**BRISK),
        "fickle": entry("--mode", "crash_on_initialized", "--once", str(folder / "fickle"), **BRISK),
        "changing": entry("--mode", "changes", "--once", str(folder / "changing"), **BRISK),
        "refusing": entry("--mode", "refuses_later", "--once", str(folder / "refusing"), **BRISK),
        "failing": {
            "command": "sh",
            "args": ["-c", f"test -e {folder}/out && exit 5; exec {' '.join(stage())}"],
            **BRISK,
        },
        "moving": {"command": str(script(folder / "moving")), **BRISK},
    }
    with serving(config(servers, restarts=RESTARTS), folder) as gateway:
        yield gateway


async def kill(gateway: Gateway, client: Client) -> int:
    """The child of the client; its end has been noticed."""
    pid, before = int(await client.tool("pid")), exits(gateway)
    os.kill(pid, signal.SIGKILL)
    assert await asyncio.to_thread(eventually, lambda: exits(gateway) > before, 3)
    return pid


def exits(gateway: Gateway) -> int:
    return gateway.log.count("child exited")


async def ended(client: Client) -> bool:
    async def is_unknown() -> bool:
        return await client.status() == 404

    return await soon(is_unknown, 3)


async def heard(stream: Reply, number: int) -> list[str]:
    return [(await stream.next_message(3))["method"] for _ in range(number)]


@on_loop
async def test_a_session_outlives_its_child_and_the_next_call_is_served_by_another(
    gateway: Gateway, connect: Connect
) -> None:
    client, other = await connect(), await connect()
    spared = await other.ask(CALL, called("sleep", seconds=0.5, nonce="spared"), ident=1)
    pid = int(await client.tool("pid"))
    sleep = called("sleep", seconds=60)
    calls = await asyncio.gather(*(client.ask(CALL, sleep, ident=number) for number in range(20)))
    os.kill(pid, signal.SIGKILL)
    for number, reply in enumerate(calls):
        error = (await client.settle(reply, number))["error"]
        assert (error["code"], error["data"]["signal"], error["data"]["executed"]) == (-31002, 9, "unknown")
    assert int(await client.tool("pid")) != pid
    assert await client.tool("count") == "1"
    assert (await other.settle(spared, 1))["result"]["content"][0]["text"] == "spared"


@on_loop
async def test_the_next_child_is_told_what_the_one_before_it_knew(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    await client.call("logging/setLevel", {"level": "warning"})
    await client.call("logging/setLevel", {"level": "error"})
    for uri in ("test://1", "test://2", "test://3"):
        await client.call("resources/subscribe", {"uri": uri})
    await client.call("resources/unsubscribe", {"uri": "test://2"})
    first = [json.loads(line) for line in json.loads(await client.tool("received"))]
    await kill(gateway, client)
    second = [json.loads(line) for line in json.loads(await client.tool("received"))]
    told = [(message["method"], message.get("params")) for message in second[:-1]]
    assert told == [
        ("initialize", first[0]["params"]),
        ("notifications/initialized", None),
        ("logging/setLevel", {"level": "error"}),
        ("resources/subscribe", {"uri": "test://1"}),
        ("resources/subscribe", {"uri": "test://3"}),
    ]
    assert not {message.get("id") for message in first} & {message["id"] for message in second if "id" in message}


@pytest.mark.parametrize("server", ["calm", "shared", "modern"])
@on_loop
async def test_its_client_hears_that_the_lists_may_be_others_and_of_nothing_that_did_not_happen(
    gateway: Gateway, server: str
) -> None:
    client = await Client(gateway, server).open()
    offered = client.greeted["result"]["capabilities"]
    declared = {f"notifications/{name}/list_changed" for name, more in offered.items() if more.get("listChanged")}
    assert declared
    stream = await client.listen()
    await kill(gateway, client)
    assert set(await heard(stream, len(declared))) == declared
    await client.tool("changed", what="tools")
    assert await heard(stream, 1) == ["notifications/tools/list_changed"]


@on_loop
async def test_a_subscription_goes_on_with_the_next_child(gateway: Gateway) -> None:
    for server in ("calm", "shared"):
        client = await Client(gateway, server).open()
        await client.call("resources/subscribe", {"uri": "test://1"})
        stream = await client.listen()
        await kill(gateway, client)
        assert set(await heard(stream, 3)) == LISTS
        await client.tool("updated", uri="test://1")
        assert (await stream.next_message(3))["params"]["uri"] == "test://1"


@on_loop
async def test_sessions_of_one_child_all_go_on_with_the_next(gateway: Gateway) -> None:
    one, two, other = [await Client(gateway, "shared", token).open() for token in (TOKEN, TOKEN, OTHER_TOKEN)]
    pid = await kill(gateway, one)
    pids = await asyncio.gather(*(client.tool("pid") for client in (one, two, other)))
    assert len(set(pids)) == 1
    assert int(pids[0]) != pid
    nonces = [f"n{number}" for number in range(30)]
    said = await asyncio.gather(*((one, two, other)[n % 3].tool("echo", nonce=nonce) for n, nonce in enumerate(nonces)))
    assert said == nonces


@on_loop
async def test_a_crash_between_initialize_and_initialized_costs_nothing(gateway: Gateway, connect: Connect) -> None:
    before = exits(gateway)
    client = await connect("fickle")
    assert await asyncio.to_thread(eventually, lambda: exits(gateway) > before, 3)
    assert await client.tool("echo", nonce="after all") == "after all"


@on_loop
async def test_calls_that_come_meanwhile_wait_for_their_turn(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    await kill(gateway, client)
    answers = await asyncio.gather(*(client.tool("echo", nonce=str(number)) for number in range(20)))
    assert answers == [str(number) for number in range(20)]


@pytest.mark.parametrize("server", ["changing", "refusing"])
@on_loop
async def test_a_server_that_is_not_the_one_it_was_ends_the_session(
    gateway: Gateway, connect: Connect, server: str
) -> None:
    first = await connect(server)  # it changes at the second handshake
    await kill(gateway, first)
    error = (await first.call("tools/list"))["error"]
    assert (error["code"], error["data"]["reason"], error["data"]["executed"]) == (-31001, "not_revived", "no")
    assert await ended(first)


@on_loop
async def test_a_server_that_does_not_start_for_a_while_ends_no_session(gateway: Gateway, connect: Connect) -> None:
    clients = [await connect("failing") for _ in range(6)]
    pids = [int(await client.tool("pid")) for client in clients]
    (gateway.folder / "out").touch()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    await asyncio.gather(*(client.call("tools/list") for client in clients))  # Some may meet a child that dies.
    answers = await asyncio.gather(*(client.call("tools/list") for client in clients))
    for error in (answer["error"] for answer in answers):
        assert (error["code"], error["data"]["executed"]) == (-31001, "no")
        assert error["data"]["reason"] in {"failed", "exited_before_ready"}
    (gateway.folder / "out").unlink()

    async def is_served(client: Client) -> bool:
        return "result" in await client.call("tools/list")

    assert [await soon(partial(is_served, client), 10) for client in clients] == [True] * 6


@on_loop
async def test_while_a_command_is_missing_calls_hear_so_at_once_and_the_session_goes_on(
    gateway: Gateway, connect: Connect
) -> None:
    client, command = await connect("moving"), gateway.folder / "moving"
    command.rename(gateway.folder / "moved")
    await kill(gateway, client)
    for _ in range(2):
        error = (await client.call("tools/list"))["error"]
        assert (error["code"], error["data"]["reason"], error["data"]["executed"]) == (
            -31001,
            "command_not_found",
            "no",
        )
    (gateway.folder / "moved").rename(command)

    async def is_served() -> bool:
        return "result" in await client.call("tools/list")

    assert await soon(is_served, 5)


@on_loop
async def test_who_crashes_its_child_again_and_again_loses_its_session_and_nobody_else_does(
    gateway: Gateway, connect: Connect
) -> None:
    client, other = await connect(), await connect()
    for _ in range(3):
        await kill(gateway, client)
    await kill(gateway, client)
    assert await ended(client)
    assert await other.tool("echo", nonce="spared") == "spared"
    assert await (await connect()).tool("echo", nonce="open") == "open"


@on_loop
async def test_where_it_is_so_configured_a_session_ends_with_its_child(gateway: Gateway, connect: Connect) -> None:
    client = await connect("ending")
    await kill(gateway, client)
    assert await ended(client)


@on_loop
async def test_a_question_of_the_child_that_died_is_taken_back(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    pid = int(await client.tool("pid"))
    reply = await client.ask(CALL, called("ask_form"), ident="x")
    question = await reply.next_message(3)
    os.kill(pid, signal.SIGKILL)
    withdrawn, failed = await reply.next_message(3), await reply.next_message(3)
    assert withdrawn["method"] == "notifications/cancelled"
    assert withdrawn["params"]["requestId"] == question["id"]
    assert (failed["id"], failed["error"]["code"]) == ("x", -31002)
    await client.answer(question["id"], {"action": "decline"})
    assert await client.tool("echo", nonce="goes on") == "goes on"


@on_loop
async def test_a_session_is_deleted_while_its_child_backs_off(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    await kill(gateway, client)
    assert (await client.delete()).status == 204
    assert await client.status() == 404


@on_loop
async def test_a_client_without_a_session_does_not_notice(gateway: Gateway, undisturbed: list[Client]) -> None:
    client: Any = Client(gateway, "nameless", OTHER_TOKEN)
    pid = await kill(gateway, client)
    assert int(await client.tool("pid")) != pid
    # Its session has no id to be deleted by, and ends with one death too many.
    while await metrics.number(gateway, "viaduct_sessions", server="nameless"):
        await kill(gateway, client)
