"""What strikes the requests of stateless clients: their children, their connections, and what they are sent."""

import asyncio
import json
import os
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.planting import program
from tests.chaos.test_http import HOSTILE
from tests.live.test_stateless import REFUSED
from tests.support.client import Client, called
from tests.support.gateway import Gateway, config, entry, eventually, serving, stateless_entry
from tests.support.http import Reply, on_loop, request, soon
from tests.support.metrics import number
from tests.support.stateless import CALL, StatelessClient, answers, said

BRISK = {"stopTimeout": 0.3, "killTimeout": 0.3}
HASTY = {**BRISK, "requestTimeout": 0.8, "maxRequestTimeout": 2, "pingTimeout": 0.4}
SERVERS = pytest.mark.parametrize("server", ["legacy", "modern"])
UNDISTURBED = pytest.mark.usefixtures("undisturbed")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    servers = {
        "calm": entry(**BRISK),
        "legacy": entry(**BRISK),
        "modern": stateless_entry(**BRISK),
        "hasty-legacy": entry(**HASTY),
        "hasty-modern": stateless_entry(**HASTY),
        "deaf": entry("--mode", "never_reads", **HASTY),
        "flooding": entry(**BRISK, maxRequestTimeout=30),
    }
    settings = {
        "stateless": {"idleTimeout": 0.4, "maxChildren": 4},
        "streams": {"streamAfter": 0.1, "keepAlive": 0.3, "queueBytes": 1 << 20},
        "limits": {"sendTimeout": 1, "queueCount": 20, "queueBytes": 1 << 20, "body": 1 << 20},
        "restarts": {"backoff": 0.02},
    }
    with serving(config(servers, **settings), tmp_path_factory.mktemp("stateless")) as gateway:
        yield gateway


async def received(client: StatelessClient) -> list[Any]:
    """What one child of it was sent, up to this question."""
    return [json.loads(line) for line in json.loads(await client.tool("received"))]


def about(nonce: str, lines: list[Any]) -> list[str]:
    """The methods of what a child was sent about the call of that nonce."""
    [ident] = [line["id"] for line in lines if nonce in json.dumps(line)]
    others = [line for line in lines if (line.get("params") or {}).get("requestId") == ident]
    return [line["method"] for line in lines if line.get("id") == ident] + [line["method"] for line in others]


# Clients that vanish.


def _drop(reply: Reply) -> None:
    reply.drop()


def _reset(reply: Reply) -> None:
    option = struct.pack("ii", 1, 0)
    reply.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, option)
    reply.writer.transport.abort()


def _close_half(reply: Reply) -> None:
    reply.writer.get_extra_info("socket").shutdown(socket.SHUT_WR)


VANISHING: dict[str, Callable[[Reply], None]] = {"closes": _drop, "resets": _reset, "closes its half": _close_half}


@pytest.mark.parametrize("how", VANISHING)
@SERVERS
@UNDISTURBED
@on_loop
async def test_a_client_that_vanishes_in_mid_call_cancels_it_at_once_and_nothing_more_is_sent(
    gateway: Gateway, server: str, how: str
) -> None:
    client, nonce = StatelessClient(gateway, server, capabilities={}), f"<{how}>"
    reply = await client.ask(CALL, called("progress", n=30, interval=0.1, nonce=nonce), progressToken="p")
    assert (await reply.next_message())["params"]["progress"] == 1
    VANISHING[how](reply)

    async def is_cancelled() -> bool:
        return len(about(nonce, await received(client))) == 2

    assert await soon(is_cancelled, 1)
    if how == "closes its half":
        assert all("progress" in message["params"] for message in [each async for each in reply.messages()])
    # The call goes on at the server, which was only asked to stop; what it says of it is nobody's.
    assert await client.tool("sleep", seconds=0.5, nonce="others") == "others"
    assert about(nonce, await received(client)) == [CALL, "notifications/cancelled"]


@SERVERS
@UNDISTURBED
@on_loop
async def test_a_hundred_calls_of_which_some_are_broken_off_leave_no_child(gateway: Gateway, server: str) -> None:
    before = set(gateway.children())
    for round_ in range(10):
        clients = [StatelessClient(gateway, server) for _ in range(10)]
        replies = await asyncio.gather(*(client.ask(CALL, called("sleep", seconds=0.15)) for client in clients))
        for n, (client, reply) in enumerate(zip(clients, replies, strict=True)):
            if n % 5 == round_ % 5:
                reply.drop()
            else:
                assert said(await client.settle(reply)) == "slept"
    assert eventually(lambda: set(gateway.children()) == before, 5)


@UNDISTURBED
@on_loop
async def test_a_reader_that_never_reads_costs_a_bounded_queue_and_its_call(gateway: Gateway) -> None:
    client, before = StatelessClient(gateway, "flooding", capabilities={}), gateway.rss()
    message = client.message(CALL, called("progress", n=200_000, interval=0), 1, progressToken="p" * 400)
    body = json.dumps(message).encode()
    stuck = await request(gateway.port, "POST", client.path, client.headers(message), body, receive_buffer=4096)
    assert stuck.status == 200

    async def is_cut_off() -> bool:
        return await number(gateway, "viaduct_calls_total", server="flooding", outcome="cancelled") == 1

    assert await soon(is_cut_off)
    assert gateway.rss() - before < 12 << 20


# Children.


@SERVERS
@UNDISTURBED
@on_loop
async def test_a_crash_fails_every_call_in_flight_at_once_and_the_next_is_served(gateway: Gateway, server: str) -> None:
    client = StatelessClient(gateway, server, capabilities={})
    pid = int(await client.tool("pid"))
    waiting = await asyncio.gather(*(client.ask(CALL, called("swallow"), ident=1) for _ in range(50)))
    began = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    for answer in await asyncio.gather(*map(client.settle, waiting)):
        assert (answer["error"]["code"], answer["error"]["data"]["executed"]) == (-31002, "unknown")
    assert time.monotonic() - began < 1
    assert int(await client.tool("pid")) != pid


@SERVERS
@UNDISTURBED
@on_loop
async def test_a_call_that_is_never_answered_times_out_and_the_server_is_told(gateway: Gateway, server: str) -> None:
    client = StatelessClient(gateway, f"hasty-{server}", capabilities={})
    began = time.monotonic()
    answer = await client.call(CALL, called("sleep", seconds=1.2, nonce="too late"))
    assert (answer["error"]["code"], answer["error"]["data"]["executed"]) == (-31003, "unknown")
    assert 0.7 < time.monotonic() - began < 1.8
    assert about("too late", await received(client)) == [CALL, "notifications/cancelled"]
    # The late answer comes now, and finds nobody: the next call gets its own.
    assert await client.tool("sleep", seconds=0.5, nonce="own") == "own"


@SERVERS
@UNDISTURBED
@on_loop
async def test_progress_keeps_a_call_alive_until_the_last_deadline(gateway: Gateway, server: str) -> None:
    client = StatelessClient(gateway, f"hasty-{server}", capabilities={})
    began = time.monotonic()
    reply = await client.ask(CALL, called("progress", n=100, interval=0.2), progressToken=1)
    messages = [message async for message in reply.messages()]
    assert 1.8 < time.monotonic() - began < 3.5
    assert messages[-1]["error"]["code"] == -31003
    assert len(messages) > 5


@SERVERS
@UNDISTURBED
@on_loop
async def test_a_stopped_process_is_found_out_by_its_silence(gateway: Gateway, server: str) -> None:
    client = StatelessClient(gateway, f"hasty-{server}", capabilities={})
    pid = int(await client.tool("pid"))
    os.kill(pid, signal.SIGSTOP)
    answer = await client.call(CALL, called("echo", nonce="x"))
    assert (answer["error"]["code"], answer["error"]["data"]["executed"]) == (-31003, "unknown")
    assert eventually(lambda: pid not in gateway.children(), 4)
    assert int(await client.tool("pid")) != pid


@UNDISTURBED
@on_loop
async def test_what_a_server_that_reads_nothing_never_saw_is_said_not_to_have_run(gateway: Gateway) -> None:
    client = StatelessClient(gateway, "deaf", capabilities={})
    calls = [client.call(CALL, called("echo", nonce="x" * 20_000)) for _ in range(60)]
    told = [(answer["error"]["code"], answer["error"]["data"]["executed"]) for answer in await asyncio.gather(*calls)]
    assert set(told) == {(-31003, "no")}


# What they send.


@SERVERS
@UNDISTURBED
@on_loop
async def test_one_id_many_times_in_flight_gets_each_post_its_own_answer(gateway: Gateway, server: str) -> None:
    client = StatelessClient(gateway, server, capabilities={})

    async def nonce_of(n: int, ident: int | str) -> None:
        reply = await client.ask(CALL, called("sleep", seconds=0.3 / (n + 1), nonce=f"n{n}"), ident=ident)
        messages = [message async for message in reply.messages()] if reply.is_stream else [await reply.json()]
        assert [(message["id"], said(message)) for message in messages] == [(ident, f"n{n}")]

    await asyncio.gather(*(nonce_of(n, (7, "7")[n % 2]) for n in range(20)))


@pytest.mark.parametrize("last", ["1-1", "", "nonsense", "9" * 10_000], ids=len)
@SERVERS
@UNDISTURBED
@on_loop
async def test_an_event_id_means_nothing_to_a_stateless_request(gateway: Gateway, server: str, last: str) -> None:
    client = StatelessClient(gateway, server)
    message = client.message(CALL, called("echo", nonce="n"), 1)
    fields = [*client.headers(message).items(), ("Last-Event-ID", last)]
    reply = await request(gateway.port, "POST", client.path, fields, json.dumps(message).encode())
    assert (reply.status, said(await client.settle(reply))) == (200, "n")


@on_loop
async def test_the_event_id_of_a_session_replays_nothing_to_a_stateless_request(gateway: Gateway) -> None:
    session, client = await Client(gateway, "legacy").open(), StatelessClient(gateway, "legacy")
    stream = await session.ask(CALL, called("progress", n=2, interval=0.2), ident=1)
    prime = await stream.next_event()
    assert prime.id is not None
    assert "result" in [message async for message in stream.messages()][-1]
    reply = await client.ask(CALL, called("sleep", seconds=0.3, nonce="own"), headers={"Last-Event-ID": prime.id})
    assert [said(message) async for message in reply.messages()] == ["own"]
    await (await session.delete()).body()


@UNDISTURBED
@on_loop
async def test_hostile_json_is_refused_and_the_server_never_sees_it(gateway: Gateway) -> None:
    client = StatelessClient(gateway, "modern")
    keeping = await client.ask(CALL, called("sleep", seconds=30))  # Or its child might be idle for too long.
    for kind, (body, code) in HOSTILE.items():
        reply = await client.post(body, {"Mcp-Method": CALL, "Mcp-Name": "echo"})
        wrong = (await reply.json())["error"]
        assert (reply.status, wrong["code"], wrong["data"]["executed"]) == (400, code, "no"), kind
    assert [line["method"] for line in await received(client)].count(CALL) == 2
    keeping.drop()


NEVER_PASSED = [kind for kind, (*_, code) in REFUSED.items() if code != -32601]


@SERVERS
@UNDISTURBED
@on_loop
async def test_what_is_refused_for_its_headers_or_its_envelope_never_reaches_the_server(
    gateway: Gateway, server: str
) -> None:
    client = StatelessClient(gateway, server)
    await client.tool("pid")
    for kind in NEVER_PASSED:
        message, headers, status, _ = REFUSED[kind]
        reply = await client.post(message, headers)
        assert reply.status == status, kind
        await reply.body()
    broken = client.message(CALL, called("echo"), "x")
    for name in ("=?base64?!!!?=", "=?base64?ZWNobw", "=?base64??="):
        reply = await client.post(broken, {"Mcp-Name": name})
        body = await reply.json()
        assert (reply.status, body["error"]["code"], body["id"]) == (400, -32020, "x"), name
    tools = [line["params"]["name"] for line in await received(client) if line["method"] == CALL]
    assert tools == ["pid", "received"]


# The gateway's own end.


def servers() -> dict[str, dict[str, object]]:
    return {"legacy": entry(**BRISK), "modern": stateless_entry(**BRISK)}


@SERVERS
@on_loop
async def test_a_killed_gateway_leaves_no_child_and_what_it_sealed_begins_nothing_twice(
    tmp_path: Path, server: str
) -> None:
    with serving(config(servers()), tmp_path) as gateway:
        client = StatelessClient(gateway, server)
        asks = await client.asked("interview", rounds=[["form"]], nonce="n")
        running = await client.ask(CALL, called("swallow"))
        gateway.process.kill()
        gateway.process.wait(5)
        assert eventually(lambda: not gateway.children(), 1)
        with pytest.raises(EOFError):
            await running.next_message(2)
    with serving(config(servers()), tmp_path) as again:
        client.port = again.port
        answer = await client.retry(asks, answers(asks), "interview", rounds=[["form"]], nonce="n")
        if server == "modern":
            # All that such a server remembers was with the client.
            assert json.loads(said(answer))["nonce"] == "n"
        else:
            assert answer["error"]["code"] == -32602
            assert answer["error"]["data"]["executed"] == "no"
        assert await client.tool("echo", nonce="anew") == "anew"


PLANTED = {
    "hearing a child": "Exchange.deliver",
    "keeping time": "Exchange._expired",
}


@pytest.mark.parametrize("where", PLANTED)
@SERVERS
@on_loop
async def test_a_bug_costs_its_own_request_at_most_and_is_counted(tmp_path: Path, server: str, where: str) -> None:
    plant = f"""
        from app.core.exchange import Exchange
        right = {PLANTED[where]}
        def bug(self, *rest, **more):
            if b"struck" in bytes(self._request.params):
                raise RuntimeError("planted")
            return right(self, *rest, **more)
        {PLANTED[where]} = bug
    """
    hasty = {name: {**settings, "requestTimeout": 0.6} for name, settings in servers().items()}
    with serving(config(hasty), tmp_path, program=program(plant)) as gateway:
        gateway.has_planted_bug = True
        client = StatelessClient(gateway, server, capabilities={})
        tool = "echo" if where == "hearing a child" else "swallow"
        struck = await client.ask(CALL, called(tool, nonce="struck"))
        assert eventually(lambda: "planted" in gateway.log, 3)
        struck.drop()
        assert await client.tool("echo", nonce="spared") == "spared"
        assert await number(gateway, "viaduct_internal_errors_total") >= 1
        assert (await request(gateway.port, "GET", "/healthz", token=None)).status == 200


@SERVERS
@UNDISTURBED
@on_loop
async def test_nobody_hears_the_log_of_a_call_that_its_client_has_left(gateway: Gateway, server: str) -> None:
    """Not even the next call of the same token: a message names no call, and what is left of them comes late."""
    client = StatelessClient(gateway, server)
    for _ in range(3):
        left = await client.ask(CALL, called("log", level="error", tag="left", n=3000), logLevel="error")
        await left.next_message()
        left.drop()
        reply = await client.ask(CALL, called("log", level="error", tag="mine", n=2), logLevel="error")
        assert "left" not in json.dumps([message async for message in reply.messages()])
