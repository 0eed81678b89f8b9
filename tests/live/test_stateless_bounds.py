"""What one stateless client may take of its server, and what it may not learn of the others."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.client import called
from tests.support.gateway import OTHER_TOKEN, TOKEN, Gateway, config, entry, eventually, serving, stateless_entry
from tests.support.http import on_loop
from tests.support.stateless import CALL, StatelessClient, answers, said

SETS = 2


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    servers = {
        "stage": entry(stopTimeout=0.3),
        "stateless": stateless_entry(stopTimeout=0.3),
        "slow": entry("--mode", "slow_start", "--n", "0.7", stopTimeout=0.3),
        "shared-stage": entry(stopTimeout=0.3, isolation="shared"),
        "shared-stateless": stateless_entry(stopTimeout=0.3, isolation="shared"),
    }
    content = config(servers, stateless={"idleTimeout": 0.5, "maxCapabilitySets": SETS}, streams={"streamAfter": 0.1})
    with serving(content, tmp_path_factory.mktemp("bounds")) as gateway:
        yield gateway


def declaring(n: int) -> dict[str, Any]:
    return {"sampling": {}, "experimental": {"n": n}}


@on_loop
async def test_other_capabilities_mean_another_child_and_there_are_only_so_many_sets_at_once(gateway: Gateway) -> None:
    clients = [StatelessClient(gateway, capabilities=declaring(n)) for n in range(SETS + 1)]
    asked = [await client.asked("interview", rounds=[["sample"]]) for client in clients[:SETS]]
    assert len({asks["requestState"] for asks in asked}) == SETS
    refused = await clients[SETS].ask(CALL, called("echo"), ident="x")
    body = await refused.json()
    assert (refused.status, body["id"], body["error"]["code"]) == (503, "x", -31005)
    assert await StatelessClient(gateway, "stage", OTHER_TOKEN, declaring(9)).tool("echo", nonce="n") == "n"
    last = await clients[0].retry(asked[0], answers(asked[0]), "interview", rounds=[["sample"]])
    assert json.loads(said(last))["said"] != []
    assert await clients[SETS].tool("echo", nonce="n") == "n"
    await clients[1].retry(asked[1], answers(asked[1]), "interview", rounds=[["sample"]])


@on_loop
async def test_at_a_stateless_server_any_number_of_sets_share_one_child(gateway: Gateway) -> None:
    clients = [StatelessClient(gateway, "stateless", capabilities=declaring(n)) for n in range(SETS + 3)]
    assert len({await client.tool("pid") for client in clients}) == 1


@on_loop
async def test_who_goes_before_the_child_is_ready_leaves_a_child_that_idles_out(gateway: Gateway) -> None:
    fds = gateway.fds()
    clients = [StatelessClient(gateway, "slow", token, {}) for token in (token_of(n) for n in range(6))]
    streams = await asyncio.gather(*(client.ask(CALL, called("echo")) for client in clients))
    for stream in streams:
        assert stream.is_stream
        stream.drop()
    assert eventually(lambda: gateway.fds() <= fds, 8)
    assert await clients[0].tool("echo", nonce="n") == "n"
    received = json.loads(await clients[0].tool("received"))
    assert len([line for line in received if '"echo"' in line]) <= 1


def token_of(n: int) -> str:
    return (TOKEN, OTHER_TOKEN)[n % 2]


@pytest.mark.parametrize("server", ["shared-stage", "shared-stateless"])
@on_loop
async def test_log_messages_of_a_shared_child_reach_no_client(gateway: Gateway, server: str) -> None:
    clients = [StatelessClient(gateway, server, token) for token in (token_of(0), token_of(1))]

    async def logged(client: StatelessClient, level: str) -> None:
        reply = await client.ask(CALL, called("log", level="error", n=2), ident=level, logLevel=level)
        said = [message async for message in reply.messages()] if reply.is_stream else [await reply.json()]
        assert [message.get("id") for message in said] == [level]

    await asyncio.gather(*(logged(client, level) for client in clients for level in ("debug", "error")))


@pytest.mark.parametrize("server", ["shared-stage", "shared-stateless"])
@on_loop
async def test_the_death_of_a_shared_child_fails_every_call_once_and_the_next_is_served(
    gateway: Gateway, server: str
) -> None:
    clients = [StatelessClient(gateway, server, token_of(n)) for n in range(4)]
    pid = await clients[0].tool("pid")
    waiting = [await client.ask(CALL, called("sleep", seconds=30), ident=n) for n, client in enumerate(clients)]
    died = await clients[0].call(CALL, called("die", code=9))
    assert (died["error"]["code"], died["error"]["data"]["exitCode"]) == (-31002, 9)
    for n, reply in enumerate(waiting):
        messages = [message async for message in reply.messages()]
        assert [(message["id"], message["error"]["code"]) for message in messages] == [(n, -31002)]
    assert await clients[1].tool("pid") != pid


@on_loop
async def test_a_retry_is_judged_by_its_headers_as_its_call_was(gateway: Gateway) -> None:
    client = StatelessClient(gateway)
    assert await client.tool("annotate", tool="interview") == "annotated"
    arguments = {"rounds": [["form"]], "nonce": "n"}
    mirrored = {"Mcp-Param-Nonce": "n"}
    asks = (await client.call(CALL, called("interview", **arguments), headers=mirrored))["result"]
    retry = {**called("interview", **arguments), "inputResponses": answers(asks), "requestState": asks["requestState"]}
    for headers in ({}, {"Mcp-Param-Nonce": "m"}):
        reply = await client.ask(CALL, retry, headers=headers)
        assert (reply.status, (await reply.json())["error"]["code"]) == (400, -32020)
    assert json.loads(said(await client.call(CALL, retry, headers=mirrored)))["nonce"] == "n"
