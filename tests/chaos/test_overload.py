"""More of everything than there may be: sessions, calls, connections, descriptors."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.conftest import Connect
from tests.chaos.planting import program
from tests.support.client import Client, KeptAlive, called, greeting
from tests.support.gateway import OTHER_TOKEN, Gateway, config, entry, eventually, serving
from tests.support.http import Reply, connection, head, on_loop, soon

CALL = "tools/call"
BRISK = {"stopTimeout": 0.5, "killTimeout": 0.5}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    content = config(
        {
            "calm": entry(**BRISK),
            "ending": entry(**BRISK, onExit="end"),
            "exits": entry("--mode", "exit0", **BRISK),
            "silent": entry("--mode", "never_levels", **BRISK),
            "asks": entry("--mode", "asks", "--n", "1000000", **BRISK),
        },
        sessions={"max": 6, "maxPerPrincipal": 4},
        limits={"inFlight": 5, "questions": 7, "batch": 3},
    )
    with serving(content, tmp_path_factory.mktemp("overload")) as gateway:
        yield gateway


async def refusal(reply: Reply) -> tuple[int, int, str, str]:
    """Status, code, whether it was executed, and that it may come back; nothing where it was served."""
    error = (await reply.json())["error"]
    assert int(reply.headers["retry-after"]) >= 1
    return reply.status, error["code"], error["data"]["executed"], error["data"]["reason"]


@on_loop
async def test_a_principal_gets_as_many_sessions_as_it_may_have_and_no_child_more(
    gateway: Gateway, connect: Connect
) -> None:
    before = len(gateway.children())

    async def opened() -> Client | tuple[int, int, str, str]:
        client = Client(gateway, "calm")
        reply = await client.post(greeting())
        if reply.status != 200:
            return await refusal(reply)
        client.session = reply.headers["mcp-session-id"]
        await reply.body()
        return client

    outcomes = await asyncio.gather(*(opened() for _ in range(40)))
    clients = [outcome for outcome in outcomes if isinstance(outcome, Client)]
    refusals = [outcome for outcome in outcomes if not isinstance(outcome, Client)]
    assert refusals == [(429, -31005, "no", "sessions.maxPerPrincipal")] * 36
    assert len(gateway.children()) == before + 4
    # The bystander is somebody else: it has one of six, and one is left.
    await connect(token=OTHER_TOKEN)
    over = await Client(gateway, "calm", OTHER_TOKEN).post(greeting())
    assert (await refusal(over))[:3] == (503, -31005, "no")
    for client in clients:
        assert (await client.delete()).status == 204
    assert await (await connect()).tool("echo", nonce="room again") == "room again"


@on_loop
async def test_what_was_asked_and_taken_back_is_not_kept(gateway: Gateway, connect: Connect) -> None:
    client = await connect("silent")
    rss = gateway.rss()
    for ident in range(12):
        asked = await client.ask("logging/setLevel", {"level": "info", "padding": "x" * (3 << 20)}, ident)
        await client.tell("notifications/cancelled", {"requestId": ident})
        assert await asked.body()
    assert gateway.rss() - rss < 24 << 20


@on_loop
async def test_what_nobody_hears_yet_is_kept_within_so_many_bytes(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    rss = gateway.rss()
    message = {"jsonrpc": "2.0", "id": 1, "method": CALL, "params": called("news", n=40, size=2 << 20)}
    assert await (await client.post(message, Accept="application/json")).body()
    assert gateway.rss() - rss < 40 << 20
    stream = await client.listen()
    assert (await stream.next_message())["params"]["uri"] == "test://37"


@on_loop
async def test_a_session_that_never_began_takes_no_room(gateway: Gateway, undisturbed: list[Client]) -> None:
    for _ in range(10):
        client = Client(gateway, "exits")
        reply = await client.post(greeting())
        assert (await client.settle(reply, 0))["error"]["code"] == -31001


@on_loop
async def test_calls_over_the_limit_are_refused_at_once_and_never_reach_the_server(
    gateway: Gateway, connect: Connect
) -> None:
    client = await connect()
    sleep = called("sleep", seconds=1, nonce="slept")
    running = await asyncio.gather(*(client.ask(CALL, sleep, ident=number) for number in range(5)))
    refused = await client.ask(CALL, called("count"), ident="over")
    assert (await refusal(refused))[:3] == (429, -31005, "no")
    answers = await asyncio.gather(*(client.settle(reply, number) for number, reply in enumerate(running)))
    assert [answer["result"]["content"][0]["text"] for answer in answers] == ["slept"] * 5
    assert await client.tool("count") == "1"


@on_loop
async def test_aborted_requests_without_a_session_leave_one_child_at_most(
    gateway: Gateway, undisturbed: list[Client]
) -> None:
    before, client = len(gateway.children()), Client(gateway, "ending")
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": CALL, "params": called("count")}).encode()
    for number in range(40):
        if number % 5:
            await client.tool("count")
            continue
        _, writer = await connection(gateway.port)
        fields = [*client.headers().items(), ("Content-Length", str(len(body)))]
        writer.write(head(gateway.port, "POST", client.path, fields) + body)
        await writer.drain()
        writer.transport.abort()
    assert len(gateway.children()) == before + 1
    await client.call(CALL, called("die"))


@on_loop
async def test_without_descriptors_left_a_session_is_refused_and_the_others_go_on(tmp_path: Path) -> None:
    plant = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48))"
    with serving(config({"stage": entry(**BRISK)}), tmp_path, program=program(plant)) as gateway:
        kept, clients = KeptAlive(gateway), list[Client]()
        while True:
            client = Client(gateway)
            reply, answer = await kept.post(client, greeting())
            assert reply.status in (200, 503)
            if "error" in answer:
                break
            client.session = reply.headers["mcp-session-id"]
            clients.append(client)
            assert len(clients) < 48
        assert answer["error"]["data"]["executed"] == "no"
        assert answer["error"]["code"] in (-31001, -31005)
        assert len(clients) > 2
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert (await kept.post(clients[0], ping))[1]["result"] == {}
        bye = {"jsonrpc": "2.0", "id": 2, "method": CALL, "params": called("die")}
        for old in clients[1:]:
            assert (await kept.post(old, bye))[1]["error"]["code"] == -31002
        assert eventually(lambda: len(gateway.children()) == 1, 4)

        async def serves_again() -> bool:
            return "result" in (await kept.post(Client(gateway), greeting()))[1]

        assert await soon(serves_again, 4)
        assert len(gateway.log_lines) < 400


@on_loop
async def test_a_server_that_floods_its_client_with_questions_is_told_so_at_once(
    gateway: Gateway, connect: Connect
) -> None:
    client = await connect()
    reply = await client.ask(CALL, called("ask_many", n=200, refused=193), ident="flood")
    async with asyncio.timeout(10):
        messages = [message async for message in reply.messages()]
    assert [message["method"] for message in messages[:-1]] == ["roots/list"] * 7
    assert json.loads(messages[-1]["result"]["content"][0]["text"]) == [-31005] * 193
    assert await client.tool("echo", nonce="still here") == "still here"


@on_loop
async def test_servers_that_ask_without_end_slow_nobody_else_down(gateway: Gateway, connect: Connect) -> None:
    """The bystander beats on beside them."""
    before = len(gateway.log_lines)
    for _ in range(3):
        await connect("asks", capabilities={})
    client = await connect(token=OTHER_TOKEN)
    for number in range(100):
        assert await client.tool("echo", nonce=str(number)) == str(number)
    assert len(gateway.log_lines) < before + 50


@on_loop
async def test_a_batch_of_more_than_may_be_is_refused_whole(gateway: Gateway, connect: Connect) -> None:
    client = await connect(version="2025-03-26")
    batch = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in range(4)]
    reply = await client.post(batch)
    assert (reply.status, (await reply.json())["error"]["code"]) == (400, -32600)
    answered = await client.post(batch[:3])
    assert sorted(message["id"] for message in await answered.json()) == [0, 1, 2]
