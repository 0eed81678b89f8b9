"""Who may use a session, what it mixes up, and when it ends."""

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.chaos.conftest import Connect
from tests.support.client import Client, called, greeting
from tests.support.gateway import OTHER_TOKEN, TOKEN, Gateway, config, entry, eventually, serving
from tests.support.http import ACCEPT, Reply, on_loop, request, soon

CALL = "tools/call"
BRISK = {"stopTimeout": 0.5, "killTimeout": 0.5}
JSON = {"Content-Type": "application/json", "Accept": ACCEPT}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    servers = {
        "calm": entry(**BRISK),
        "second": entry(**BRISK, onExit="end"),
        "shared": entry(**BRISK, isolation="shared", onExit="end"),
        "slow": entry("--mode", "slow_start", "--n", "1", **BRISK),
        "stubborn": entry("--mode", "ignores_all", **BRISK),
    }
    with serving(config(servers, sessions={"shutdownGrace": 0.5}), tmp_path_factory.mktemp("sessions")) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def fleeting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Sessions that end soon when nobody uses them."""
    sessions = {"idleTimeout": 0.6, "confirmTimeout": 0.3}
    content = config({"stage": entry(**BRISK)}, sessions=sessions, streams={"keepAlive": 0.2})
    with serving(content, tmp_path_factory.mktemp("fleeting")) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    content = config({"stage": entry(**BRISK)}, sessions={"withoutId": "reject"})
    with serving(content, tmp_path_factory.mktemp("strict")) as gateway:
        yield gateway


def text_of(answer: Any) -> str:
    return str(answer["result"]["content"][0]["text"])


async def has_ended(client: Client) -> bool:
    return await client.status() == 404


# Ids.


@on_loop
async def test_one_id_many_times_in_flight_gets_each_post_its_own_answer(gateway: Gateway, connect: Connect) -> None:
    client = await connect()

    async def one(nonce: str, seconds: float) -> str:
        return text_of(await client.settle(await client.ask(CALL, called("sleep", seconds=seconds, nonce=nonce), 7), 7))

    nonces = [f"nonce {number}" for number in range(20)]
    pauses = [0.4 - number * 0.02 for number in range(20)]
    assert await asyncio.gather(*map(one, nonces, pauses)) == nonces


@on_loop
async def test_a_number_and_its_digits_are_two_ids(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    slow = await client.ask(CALL, called("sleep", seconds=0.3, nonce="number"), ident=1)
    fast = await client.ask(CALL, called("sleep", seconds=0.1, nonce="string"), ident="1")
    await client.tell("notifications/cancelled", {"requestId": "1"})
    answer = await client.settle(slow, 1)
    assert (text_of(answer), type(answer["id"])) == ("number", int)
    assert [message async for message in fast.messages()] == [] if fast.is_stream else True


@on_loop
async def test_an_id_may_be_used_again_after_its_answer(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    answers = [await client.settle(await client.ask(CALL, called("count"), ident=1), 1) for _ in range(3)]
    assert [text_of(answer) for answer in answers] == ["1", "2", "3"]


@on_loop
async def test_the_same_ids_in_two_sessions_never_meet(gateway: Gateway, connect: Connect) -> None:
    one, two = await connect(), await connect(token=OTHER_TOKEN)
    slow = await one.ask(CALL, called("sleep", seconds=0.3, nonce="secret of one"), ident=1)
    fast = await two.ask(CALL, called("echo", nonce="secret of two"), ident=1)
    assert text_of(await two.settle(fast, 1)) == "secret of two"
    assert text_of(await one.settle(slow, 1)) == "secret of one"


@on_loop
async def test_twenty_clients_of_one_shared_child_each_get_their_own(gateway: Gateway, connect: Connect) -> None:
    clients = await asyncio.gather(*(connect("shared", token=(TOKEN, OTHER_TOKEN)[n % 2]) for n in range(20)))

    async def calls(client: Client, name: int) -> bool:
        for number in range(15):
            nonce = f"{name}/{number}"
            reply = await client.ask(CALL, called("sleep", seconds=0.01, nonce=nonce), ident=1)
            if text_of(await client.settle(reply, 1)) != nonce:
                return False
        return True

    assert all(await asyncio.gather(*map(calls, clients, range(20))))
    assert len({await client.tool("pid") for client in clients[:3]}) == 1
    await clients[0].call(CALL, called("die"))


# Opening.


@on_loop
async def test_initialize_many_times_at_once_opens_as_many_sessions(gateway: Gateway, connect: Connect) -> None:
    clients = await asyncio.gather(*(connect() for _ in range(12)))
    assert len({client.session for client in clients}) == 12
    assert len(set(await asyncio.gather(*(client.tool("pid") for client in clients)))) == 12


@on_loop
async def test_initialize_within_a_session_is_refused_and_does_no_harm(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    reply = await client.post(greeting())
    assert (reply.status, (await reply.json())["error"]["code"]) == (400, -32600)
    assert await client.tool("echo", nonce="unharmed") == "unharmed"


@on_loop
async def test_before_the_server_is_ready_a_ping_is_answered_and_a_call_waits_for_its_turn(
    gateway: Gateway, undisturbed: list[Client]
) -> None:
    client = Client(gateway, "slow")
    undisturbed.append(client)
    opening = await client.post(greeting())
    client.session = opening.headers["mcp-session-id"]
    waiting = await client.ask(CALL, called("received"), ident=1)
    assert "result" in await client.settle(opening, 0)
    methods = [json.loads(line)["method"] for line in json.loads(text_of(await client.settle(waiting, 1)))]
    assert methods == ["initialize", CALL]
    assert (await client.call("ping"))["result"] == {}


@on_loop
async def test_initialize_cannot_be_cancelled(gateway: Gateway, undisturbed: list[Client]) -> None:
    client = Client(gateway, "slow")
    undisturbed.append(client)
    opening = await client.post(greeting())
    client.session = opening.headers["mcp-session-id"]
    await client.tell("notifications/cancelled", {"requestId": 0})
    assert "result" in await client.settle(opening, 0)
    assert [json.loads(line)["method"] for line in json.loads(await client.tool("received"))] == ["initialize", CALL]


@on_loop
async def test_a_client_that_names_no_session_has_one_child_however_many_requests_come_at_once(
    gateway: Gateway, undisturbed: list[Client]
) -> None:
    client = Client(gateway, "second")
    pids = set(await asyncio.gather(*(client.tool("pid") for _ in range(50))))
    assert len(pids) == 1
    slow = await client.ask(CALL, called("sleep", seconds=0.4), ident=1)
    assert (slow.is_stream, "mcp-session-id" in slow.headers) == (True, False)
    assert await Client(gateway, "second", OTHER_TOKEN).tool("pid") not in pids
    # It ends with the gateway, or when it is idle; here its server is told to go.
    for token in (TOKEN, OTHER_TOKEN):
        await Client(gateway, "second", token).call(CALL, called("die"))


@on_loop
async def test_a_client_that_never_echoes_the_session_id_is_served_after_its_handshake(
    gateway: Gateway, undisturbed: list[Client]
) -> None:
    client = Client(gateway, "second")
    greeted = await client.post(greeting())
    opened = Client(gateway, "second")
    opened.session = greeted.headers["mcp-session-id"]
    undisturbed.append(opened)
    await greeted.body()
    await client.tell("notifications/initialized")
    assert "tools" in (await client.call("tools/list"))["result"]
    assert (await client.listen()).status == 405
    await client.call(CALL, called("die"))


@on_loop
async def test_where_it_is_so_configured_a_request_without_a_session_is_400(strict: Gateway) -> None:
    client = Client(strict)
    reply = await client.ask("tools/list")
    assert (reply.status, (await reply.json())["error"]["code"]) == (400, -32600)
    assert strict.children() == []
    await (await (await client.open()).delete()).body()


# Owning.


async def tries(gateway: Gateway, ident: str, token: str, server: str = "calm") -> list[tuple[int, bytes]]:
    fields = {**JSON, "Mcp-Session-Id": ident}
    path = f"/servers/{server}/mcp"
    replies: list[Reply] = [
        await request(gateway.port, "POST", path, fields, b'{"jsonrpc":"2.0","id":1,"method":"ping"}', token),
        await request(gateway.port, "POST", path, fields, b'{"jsonrpc":"2.0","method":"notifications/x"}', token),
        await request(gateway.port, "GET", path, fields, b"", token),
        await request(gateway.port, "GET", path, {**fields, "Last-Event-ID": "00000000-1-1"}, b"", token),
        await request(gateway.port, "DELETE", path, fields, b"", token),
    ]
    return [(reply.status, await reply.body()) for reply in replies]


@on_loop
async def test_unknown_ended_and_foreign_sessions_cannot_be_told_apart(gateway: Gateway, connect: Connect) -> None:
    mine, theirs, ended = await connect(), await connect(token=OTHER_TOKEN), await connect()
    await (await ended.delete()).body()
    elsewhere = await connect("second")
    idents = ["unknown", "", "x" * 2000, str(theirs.session), str(ended.session), str(elsewhere.session)]
    seen = {answer for ident in idents if ident for answer in await tries(gateway, ident, TOKEN)}
    assert len(seen) == 1
    status, body = seen.pop()
    assert (status, json.loads(body)["error"]["code"]) == (404, -32001)
    assert await theirs.tool("echo", nonce="unharmed") == "unharmed"
    assert await mine.tool("echo", nonce="unharmed") == "unharmed"


# Ending.


@pytest.mark.parametrize("server", ["calm", "stubborn"])
@on_loop
async def test_deleting_a_session_gives_its_calls_a_last_word_and_its_child_an_end(
    gateway: Gateway, connect: Connect, server: str
) -> None:
    client = await connect(server)
    pid = int(await client.tool("pid"))
    call = await client.ask(CALL, called("sleep", seconds=60), ident="running")
    stream = await client.listen()
    began = time.monotonic()
    reply = await client.delete()
    assert reply.status == 204
    error = (await client.settle(call, "running"))["error"]
    assert (error["code"], error["data"]["executed"]) == (-31006, "unknown")
    with pytest.raises(EOFError):
        await stream.next_message(2)
    assert await has_ended(client)
    assert time.monotonic() - began < 1
    assert eventually(lambda: pid not in gateway.children(), 3)


@on_loop
async def test_many_sessions_that_nobody_ends_end_by_themselves(fleeting: Gateway) -> None:
    fds, clients = fleeting.fds(), [Client(fleeting) for _ in range(15)]
    await asyncio.gather(*(client.open() for client in clients))
    assert len(fleeting.children()) == 15
    assert eventually(lambda: not fleeting.children(), 5)
    assert eventually(lambda: fleeting.fds() <= fds, 5)
    assert {await client.status() for client in clients} == {404}


@on_loop
async def test_a_session_whose_id_nobody_ever_names_ends_soon(fleeting: Gateway) -> None:
    client = Client(fleeting)
    began = time.monotonic()
    await (await client.post(greeting())).body()
    assert len(fleeting.children()) == 1
    assert eventually(lambda: not fleeting.children(), 2)
    assert time.monotonic() - began < 1.5


@on_loop
async def test_a_session_is_not_idle_while_a_call_runs_or_a_stream_is_heard(fleeting: Gateway) -> None:
    listening, calling = await Client(fleeting).open(), await Client(fleeting).open()
    stream = await listening.listen()
    assert await calling.tool("sleep", seconds=1.5, nonce="at last") == "at last"
    answered = time.monotonic()
    assert await listening.status() == 200
    assert eventually(lambda: len(fleeting.children()) == 1, 4)
    assert time.monotonic() - answered > 0.5
    stream.drop()
    assert await soon(lambda: has_ended_unasked(fleeting, listening), 4)


async def has_ended_unasked(gateway: Gateway, client: Client) -> bool:
    """Asking would keep it alive, so its child is looked for."""
    return not gateway.children()


@on_loop
async def test_using_a_session_keeps_it(fleeting: Gateway) -> None:
    client = await Client(fleeting).open()
    pid = await client.tool("pid")
    for _ in range(4):
        await client.tool("sleep", seconds=0.3)
    assert await client.tool("pid") == pid
    await (await client.delete()).body()


@on_loop
async def test_shutdown_is_answered_takes_no_new_call_and_ends_after_its_grace(
    gateway: Gateway, connect: Connect
) -> None:
    client = await connect()
    pid = int(await client.tool("pid"))
    running = await client.ask(CALL, called("sleep", seconds=0.3, nonce="finished"), ident="running")
    assert (await client.call("shutdown"))["result"] == {}
    reply = await client.ask("tools/list")
    assert reply.status in (200, 400)
    assert "error" in await reply.json()
    assert text_of(await client.settle(running, "running")) == "finished"
    assert eventually(lambda: pid not in gateway.children(), 3)
    assert await has_ended(client)


# Two clients of HTTP+SSE.


@on_loop
async def test_sse_clients_come_and_go_without_disturbing_each_other(
    gateway: Gateway, undisturbed: list[Client]
) -> None:
    pid = gateway.pid

    async def opened() -> tuple[Reply, str]:
        stream = await request(gateway.port, "GET", "/servers/calm/sse", {"Accept": "text/event-stream"})
        return stream, (await stream.next_event()).data

    async def told(endpoint: str, message: Any) -> None:
        body = json.dumps(message).encode()
        reply = await request(gateway.port, "POST", f"/servers/calm/{endpoint}", JSON, body)
        assert reply.status == 202
        await reply.body()

    async def listed(stream: Reply, endpoint: str) -> None:
        await told(endpoint, greeting("2024-11-05"))
        assert "result" in await stream.next_message()
        await told(endpoint, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        await told(endpoint, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        answer = await stream.next_message()
        assert (answer["id"], "tools" in answer["result"]) == (1, True)

    first, second = await opened(), await opened()
    await listed(*first)
    first[0].drop()
    for _ in range(20):
        again = await opened()
        await listed(*again)
        again[0].drop()
    await listed(*second)
    assert gateway.pid == pid
    assert gateway.process.poll() is None


@on_loop
async def test_a_stream_of_http_sse_that_is_gone_ends_its_session_and_its_child(
    gateway: Gateway, undisturbed: list[Client]
) -> None:
    children = set(gateway.children())
    stream = await request(gateway.port, "GET", "/servers/calm/sse", {"Accept": "text/event-stream"})
    endpoint = (await stream.next_event()).data
    body = json.dumps(greeting("2024-11-05")).encode()
    await (await request(gateway.port, "POST", f"/servers/calm/{endpoint}", JSON, body)).body()
    assert "result" in await stream.next_message()
    assert set(gateway.children()) - children
    stream.drop()
    assert eventually(lambda: set(gateway.children()) <= children, 3)
    gone = await request(gateway.port, "POST", f"/servers/calm/{endpoint}", JSON, body)
    assert (gone.status, (await gone.json())["error"]["code"]) == (404, -32001)


@on_loop
async def test_an_endpoint_of_http_sse_is_its_owners_alone(gateway: Gateway, undisturbed: list[Client]) -> None:
    stream = await request(gateway.port, "GET", "/servers/calm/sse", {"Accept": "text/event-stream"})
    endpoint = (await stream.next_event()).data
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    foreign = await request(gateway.port, "POST", f"/servers/calm/{endpoint}", JSON, ping, OTHER_TOKEN)
    unknown = await request(gateway.port, "POST", f"/servers/calm/{endpoint}x", JSON, ping)
    elsewhere = await request(gateway.port, "POST", f"/servers/second/{endpoint}", JSON, ping)
    bodies = [(reply.status, await reply.body()) for reply in (foreign, unknown, elsewhere)]
    assert len(set(bodies)) == 1
    assert bodies[0][0] == 404
    stream.drop()


@on_loop
async def test_both_transports_serve_at_once(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    stream = await request(gateway.port, "GET", "/servers/calm/sse", {"Accept": "text/event-stream"})
    endpoint = (await stream.next_event()).data
    body = json.dumps(greeting("2024-11-05")).encode()
    await (await request(gateway.port, "POST", f"/servers/calm/{endpoint}", JSON, body)).body()
    assert (await stream.next_message())["result"]["serverInfo"]["name"] == "stage"
    assert await client.tool("echo", nonce="both") == "both"
    stream.drop()
