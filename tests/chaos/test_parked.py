"""What strikes while a stateless client's call is parked at a child of the handshake, or while it listens."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import Client, called
from tests.support.gateway import OTHER_TOKEN, Gateway, config, entry, eventually, serving, stateless_entry
from tests.support.http import on_loop, request, soon
from tests.support.stateless import CALL, LISTEN, PREFIX, StatelessClient, answers, said

BRISK = {"stopTimeout": 0.3, "killTimeout": 0.3}
PARK = 4
CHILDREN = 3
FORM = {"rounds": [["form"]]}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    servers = {
        "calm": entry(**BRISK),
        "stage": entry(**BRISK),
        "patient": entry(**BRISK, requestTimeout=1.5),
        "stubborn": entry("--mode", "ignores_all", **BRISK),
    }
    stateless = {"parkTimeout": PARK, "idleTimeout": 0.5, "maxChildren": CHILDREN, "maxRequests": 8}
    with serving(config(servers, stateless=stateless), tmp_path_factory.mktemp("parked")) as gateway:
        yield gateway


async def parked(client: StatelessClient, number: int) -> list[Any]:
    """So many calls that wait for answers, each at a child of its own."""
    return [await client.asked("interview", **FORM, nonce=f"n{n}") for n in range(number)]


async def finish(client: StatelessClient, asks: Any, number: int) -> None:
    told = said(await client.retry(asks, answers(asks), "interview", **FORM, nonce=f"n{number}"))
    assert json.loads(told)["nonce"] == f"n{number}"


# Children.


@pytest.mark.usefixtures("undisturbed")
@on_loop
async def test_a_child_that_dies_while_a_call_is_parked_fails_the_retry_and_no_other(gateway: Gateway) -> None:
    client = StatelessClient(gateway)
    before = set(gateway.children())
    first, second = await parked(client, 2)
    children = sorted(set(gateway.children()) - before)
    assert len(children) == 2
    os.kill(children[0], signal.SIGKILL)
    assert eventually(lambda: children[0] not in gateway.children(), 3)
    outcomes = []
    for number, asks in enumerate((first, second)):
        answer = await client.retry(asks, answers(asks), "interview", **FORM, nonce=f"n{number}")
        outcomes.append(answer["error"]["code"] if "error" in answer else json.loads(said(answer))["nonce"])
    assert sorted(map(str, outcomes)) in (["-31002", "n0"], ["-31002", "n1"])


@pytest.mark.usefixtures("undisturbed")
@on_loop
async def test_a_child_that_dies_with_all_it_had_leaves_nothing_even_if_nobody_comes_back(gateway: Gateway) -> None:
    before = set(gateway.children())
    await parked(StatelessClient(gateway), 2)
    for child in set(gateway.children()) - before:
        os.kill(child, signal.SIGKILL)
    assert await StatelessClient(gateway).tool("echo", nonce="n") == "n"


@pytest.mark.usefixtures("undisturbed")
@on_loop
async def test_more_calls_than_children_wait_their_turn(gateway: Gateway) -> None:
    client = StatelessClient(gateway, "patient")
    asked = await parked(client, CHILDREN)
    waiting = await client.ask(CALL, called("echo", nonce="later"), ident="w")
    last = await client.ask(CALL, called("echo", nonce="last"), ident="l")
    assert (waiting.is_stream, last.is_stream) == (True, True)
    quick = await StatelessClient(gateway, "patient", OTHER_TOKEN).tool("echo", nonce="elsewhere")
    assert quick == "elsewhere"
    await finish(client, asked[0], 0)
    assert [said(await reply.next_message()) for reply in (waiting, last)] == ["later", "last"]
    for number, asks in enumerate(asked[1:], 1):
        await finish(client, asks, number)


@pytest.mark.usefixtures("undisturbed")
@on_loop
async def test_who_waits_too_long_for_a_child_hears_that_nothing_was_executed(gateway: Gateway) -> None:
    client = StatelessClient(gateway, "patient")
    asked = await parked(client, CHILDREN)
    answer = await client.call(CALL, called("echo", nonce="never"))
    assert (answer["error"]["code"], answer["error"]["data"]["executed"]) == (-31003, "no")
    for number, asks in enumerate(asked):
        await finish(client, asks, number)


@pytest.mark.usefixtures("undisturbed")
@on_loop
async def test_who_goes_while_waiting_makes_way(gateway: Gateway) -> None:
    client = StatelessClient(gateway, "patient")
    asked = await parked(client, CHILDREN)
    gone = await client.ask(CALL, called("incr", file="/nonexistent", nonce="gone"), ident="g")
    stays = await client.ask(CALL, called("echo", nonce="stays"), ident="s")
    gone.drop()
    await finish(client, asked[0], 0)
    assert said(await stays.next_message()) == "stays"
    for number, asks in enumerate(asked[1:], 1):
        await finish(client, asks, number)


@pytest.mark.usefixtures("undisturbed")
@on_loop
async def test_one_principal_cannot_park_without_bounds(gateway: Gateway) -> None:
    client = StatelessClient(gateway, "patient")
    asked = await parked(client, CHILDREN)
    waiting = [await client.ask(CALL, called("echo", nonce="w"), ident=n) for n in range(8 - CHILDREN)]
    refused = await client.ask(CALL, called("echo"), ident="x")
    body = await refused.json()
    assert (refused.status, body["id"], body["error"]["code"]) == (429, "x", -31005)
    assert refused.headers["retry-after"] == "1"
    assert await StatelessClient(gateway, "patient", OTHER_TOKEN).tool("echo", nonce="n") == "n"
    for reply in waiting:
        reply.drop()
    for number, asks in enumerate(asked):
        await finish(client, asks, number)
    assert await client.tool("echo", nonce="again") == "again"


@pytest.mark.usefixtures("undisturbed")
@on_loop
async def test_calls_that_are_abandoned_free_their_children_for_who_waits(gateway: Gateway) -> None:
    client = StatelessClient(gateway)
    await parked(client, CHILDREN)
    assert await client.tool("echo", nonce="after all") == "after all"


@pytest.mark.usefixtures("undisturbed")
@on_loop
async def test_a_child_that_will_not_stop_is_not_waited_for(gateway: Gateway) -> None:
    client = StatelessClient(gateway, "stubborn")
    reply = await client.ask(CALL, called("swallow"))
    reply.drop()
    assert await client.tool("echo", nonce="next") == "next"


# The gateway's own end.


def ended(gateway: Gateway, within: float = 8) -> tuple[int, float]:
    began = time.monotonic()
    code = gateway.process.wait(within)
    return code, time.monotonic() - began


def servers() -> dict[str, dict[str, object]]:
    return {"stage": entry(**BRISK), "stateless": stateless_entry(**BRISK)}


@on_loop
async def test_a_parked_call_does_not_keep_the_gateway(tmp_path: Path) -> None:
    with serving(config(servers()), tmp_path) as gateway:
        await parked(StatelessClient(gateway), 3)
        gateway.process.send_signal(signal.SIGTERM)
        code, seconds = ended(gateway)
        assert (code, gateway.children()) == (0, [])
        assert seconds < 4


@on_loop
async def test_a_gateway_that_stops_finishes_what_runs_and_takes_nothing_new(tmp_path: Path) -> None:
    with serving(config(servers()), tmp_path) as gateway:
        client = StatelessClient(gateway)
        asks = await client.asked("interview", **FORM)
        running = await client.ask(CALL, called("sleep", seconds=1.0, nonce="finished"), ident="r")
        idle = await client.ask("server/discover")
        await idle.rest()
        gateway.process.send_signal(signal.SIGTERM)
        assert await soon(lambda: unready(gateway), 3)
        refused = await client.ask(CALL, called("echo"), ident="x")
        body = await refused.json()
        assert (refused.status, body["id"], body["error"]["code"]) == (503, "x", -31006)
        retried = {**called("interview", **FORM), "inputResponses": answers(asks), "requestState": asks["requestState"]}
        assert (await client.call(CALL, retried))["error"]["code"] == -31006
        assert said(await running.next_message()) == "finished"
        assert ended(gateway)[0] == 0


async def unready(gateway: Gateway) -> bool:
    return (await request(gateway.port, "GET", "/readyz", token=None)).status == 503


@on_loop
async def test_a_call_that_outlasts_the_drain_gets_a_last_word(tmp_path: Path) -> None:
    with serving(config(servers(), drain=0.5), tmp_path) as gateway:
        replies = [
            await StatelessClient(gateway, server).ask(CALL, called("sleep", seconds=30), ident=server)
            for server in servers()
        ]
        gateway.process.send_signal(signal.SIGTERM)
        for reply, server in zip(replies, servers(), strict=True):
            last = await reply.next_message()
            assert (last["id"], last["error"]["code"]) == (server, -31006)
            assert last["error"]["data"]["executed"] == "unknown"
        assert ended(gateway)[0] == 0


@pytest.mark.parametrize("server", ["stage", "stateless"])
@on_loop
async def test_a_subscription_is_taken_down_in_good_order(tmp_path: Path, server: str) -> None:
    with serving(config(servers()), tmp_path) as gateway:
        stream = await StatelessClient(gateway, server).listen(toolsListChanged=True)
        gateway.process.send_signal(signal.SIGTERM)
        said_last = [message async for message in stream.messages()]
        [cancelled, result] = said_last
        assert (cancelled["method"], cancelled["params"]["requestId"]) == ("notifications/cancelled", "listen")
        assert (result["id"], result["result"]["resultType"]) == ("listen", "complete")
        for meta in (cancelled["params"]["_meta"], result["result"]["_meta"]):
            assert meta[PREFIX + "subscriptionId"] == "listen"
        code, seconds = ended(gateway)
        assert (code, gateway.children()) == (0, [])
        assert seconds < 4


@pytest.mark.parametrize("server", ["stage", "stateless"])
@on_loop
async def test_a_subscription_ends_in_good_order_with_its_child(tmp_path: Path, server: str) -> None:
    with serving(config(servers()), tmp_path) as gateway:
        client = StatelessClient(gateway, server, capabilities={})
        stream = await client.listen(toolsListChanged=True)
        died = await client.call(CALL, called("die"))
        assert died["error"]["code"] == -31002
        ends = [message async for message in stream.messages()]
        assert [message.get("method", "result") for message in ends] == ["notifications/cancelled", "result"]


@on_loop
async def test_a_second_signal_ends_everything_at_once(tmp_path: Path) -> None:
    with serving(config({"stage": entry("--mode", "ignores_all")}), tmp_path) as gateway:
        client = StatelessClient(gateway)
        await parked(client, 2)
        stream = await client.listen(toolsListChanged=True)
        running = await client.ask(CALL, called("sleep", seconds=30), ident="r")
        gateway.process.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.1)  # two signals at once would be one
        gateway.process.send_signal(signal.SIGTERM)
        code, seconds = ended(gateway)
        assert (code, gateway.children()) == (0, [])
        assert seconds < 3
        for reply in (stream, running):
            reply.drop()


@on_loop
async def test_the_sessions_of_others_do_not_notice_a_storm_of_parked_calls(tmp_path: Path) -> None:
    content = config(servers(), stateless={"parkTimeout": 0.5, "idleTimeout": 0.3})
    with serving(content, tmp_path) as gateway:
        legacy = await Client(gateway, token=OTHER_TOKEN).open()
        pid = await legacy.tool("pid")
        client = StatelessClient(gateway)
        await asyncio.gather(*(client.ask(CALL, called("interview", **FORM, nonce=f"{n}")) for n in range(12)))
        assert await legacy.tool("pid") == pid
        assert eventually(lambda: len(gateway.children()) == 1, 5)
        assert (await client.call(LISTEN, {"notifications": 5}))["error"]["code"] == -32602
