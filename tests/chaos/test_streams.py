"""Connections that break, crawl or are resumed, and streams that live on without them."""

import asyncio
import json
import random
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests.chaos.conftest import Connect
from tests.support.client import Client, called
from tests.support.gateway import OTHER_TOKEN, Gateway, config, entry, eventually, serving
from tests.support.http import Event, Reply, connection, head, on_loop, request, soon

CALL = "tools/call"
BRISK = {"stopTimeout": 0.5, "killTimeout": 0.5}


@pytest.fixture(scope="module")
def gateway(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Its parameter is `sendTimeout`."""
    streams = {"keepAlive": 0.3, "logCount": 20, "logBytes": 1 << 20, "maxPerSession": 4, "queueBytes": 1 << 20}
    content = config({"calm": entry(**BRISK)}, streams=streams, limits={"sendTimeout": getattr(request, "param", 1)})
    with serving(content, tmp_path_factory.mktemp("streams")) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def polled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Closes connections, not streams, after a moment."""
    content = config({"stage": entry(**BRISK)}, streams={"closeStreamAfter": 0.4, "retry": 0.2})
    with serving(content, tmp_path_factory.mktemp("polled")) as gateway:
        yield gateway


def text_of(answer: Any) -> str:
    return str(answer["result"]["content"][0]["text"])


def progress(count: int, interval: float = 0.02) -> dict[str, Any]:
    return {**called("progress", n=count, interval=interval), "_meta": {"progressToken": "p"}}


async def next_with_id(reply: Reply) -> Event:
    while True:
        event = await reply.next_event()
        if event.id is not None:
            return event


# Clients that vanish.


@pytest.mark.parametrize("half", [False, True])
@on_loop
async def test_a_call_goes_on_although_its_client_has_gone_and_its_answer_can_be_fetched(
    gateway: Gateway, connect: Connect, half: bool
) -> None:
    client = await connect()
    reply = await client.ask(CALL, called("sleep", seconds=0.6, nonce="kept"), ident="x")
    prime = await next_with_id(reply)
    if half:
        reply.writer.get_extra_info("socket").shutdown(socket.SHUT_WR)
    else:
        reply.drop()
    assert json.loads(await client.tool("cancelled")) == []
    resumed = await client.listen(prime.id)
    answer = await resumed.next_message()
    assert (answer["id"], text_of(answer)) == ("x", "kept")
    with pytest.raises(EOFError):
        await resumed.next_message()


@on_loop
async def test_a_client_that_leaves_before_a_quick_answer_disturbs_nobody(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    for _ in range(20):
        _, writer = await connection(gateway.port)
        body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count"}}'
        fields = [*client.headers().items(), ("Content-Length", str(len(body)))]
        writer.write(head(gateway.port, "POST", client.path, fields) + body)
        await writer.drain()
        writer.get_extra_info("socket").shutdown(socket.SHUT_RDWR)

    async def all_counted() -> bool:
        return int(await client.tool("count")) > 20

    # Each accepted request runs once, and one that came with its end may not have been accepted.
    await soon(all_counted, 1)
    assert await client.tool("echo", nonce="alive") == "alive"


@on_loop
async def test_a_client_that_closes_its_half_is_answered_nothing_and_harms_nobody(
    gateway: Gateway, connect: Connect
) -> None:
    client = await connect()
    reader, writer = await connection(gateway.port)
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sleep","arguments":{"seconds":0.3}}}'
    fields = [*client.headers().items(), ("Content-Length", str(len(body)))]
    writer.write(head(gateway.port, "POST", client.path, fields) + body)
    writer.write_eof()
    async with asyncio.timeout(5):
        await reader.read()
    assert await client.tool("echo", nonce="alive") == "alive"


# Clients that read slowly.


@on_loop
async def test_a_reader_that_never_reads_costs_a_bounded_queue_and_then_its_connection(
    gateway: Gateway, connect: Connect
) -> None:
    client = await connect()
    rss = gateway.rss()
    stuck = await client.listen(receive_buffer=4096)
    for _ in range(40):
        assert await client.tool("log", n=400, tag="x" * 400) == "logged"
    assert gateway.rss() - rss < 12 << 20
    assert await client.tool("echo", nonce="alive") == "alive"
    stuck.drop()


@pytest.mark.parametrize("gateway", [30], indirect=True)
@on_loop
async def test_a_reader_that_falls_behind_misses_log_messages_and_never_its_answer(
    gateway: Gateway, connect: Connect
) -> None:
    client = await connect()
    flood = {"jsonrpc": "2.0", "id": "x", "method": CALL, "params": called("log", n=30_000, tag="y" * 100)}
    body, before = json.dumps(flood).encode(), len(gateway.log_lines)
    reply = await request(gateway.port, "POST", client.path, client.headers(), body, receive_buffer=4096)
    meanwhile = {"jsonrpc": "2.0", "id": 1, "method": CALL, "params": called("count")}
    assert await soon(lambda: _is_answered(client, meanwhile))
    messages = [message async for message in reply.messages()]
    assert text_of(messages[-1]) == "logged"
    numbers = [message["params"]["data"]["n"] for message in messages[:-1]]
    assert numbers == sorted(set(numbers))
    assert 100 < len(numbers) < 30_000
    assert eventually(lambda: "left out" in gateway.own_log(before), 2)


async def _is_answered(client: Client, call: Any) -> bool:
    """Of a child that answers in order, whatever was asked before has been answered too."""
    return "result" in await (await client.post(call, Accept="application/json")).json()


@on_loop
async def test_a_large_answer_to_a_slow_reader_holds_up_nobody_and_ends_with_its_patience(
    gateway: Gateway, connect: Connect
) -> None:
    client = await connect()
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": CALL, "params": called("echo", size=8_000_000)}).encode()
    fds = gateway.fds()
    slow = await request(gateway.port, "POST", client.path, client.headers(), body, receive_buffer=4096)
    assert slow.status == 200
    assert await client.tool("echo", nonce="alive") == "alive"
    assert eventually(lambda: gateway.fds() <= fds, 6)


# Resuming.


@pytest.mark.parametrize("seed", range(3))
@on_loop
async def test_however_often_a_connection_breaks_every_event_comes_once_and_in_order(
    gateway: Gateway, connect: Connect, seed: int
) -> None:
    chance = random.Random(seed)
    client = await connect()
    reply = await client.ask(CALL, progress(19), ident="x")
    last, numbers, idents = "", list[int](), list[str]()
    while True:
        patience = chance.randrange(1, 5)
        try:
            for _ in range(patience):
                event = await next_with_id(reply)
                last = str(event.id)
                if event.data:
                    idents.append(last)
                    numbers.append(event.message.get("params", {}).get("progress", 0))
        except EOFError:
            break
        reply.drop()
        reply = await client.listen(last)
    assert numbers == [*range(1, 20), 0]
    order = [int(ident.rsplit("-", 1)[1]) for ident in idents]
    assert order == sorted(set(order))


@on_loop
async def test_an_answer_larger_than_any_queue_or_log_can_be_fetched(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    nonce = "x" * 3_000_000
    reply = await client.ask(CALL, called("sleep", seconds=0.5, nonce=nonce), ident=1)
    last = (await next_with_id(reply)).id
    reply.drop()
    meanwhile = {"jsonrpc": "2.0", "id": 2, "method": CALL, "params": called("sleep", seconds=0.6)}
    await (await client.post(meanwhile, Accept="application/json")).body()
    resumed = await client.listen(last)
    assert text_of(await resumed.next_message()) == nonce


@on_loop
async def test_where_an_answer_is_no_longer_kept_its_loss_is_told_and_the_stream_goes_on(
    gateway: Gateway, connect: Connect
) -> None:
    client = await connect(version="2025-03-26")
    early = {"jsonrpc": "2.0", "id": "early", "method": CALL, "params": progress(1)}
    late = {"jsonrpc": "2.0", "id": "late", "method": CALL, "params": called("sleep", seconds=1.5, nonce="late")}
    reply = await client.post([early, late])
    before = str((await next_with_id(reply)).id)
    assert (await reply.next_message())["id"] == "early"
    reply.drop()
    # One log serves all streams of a session: so much of anything pushes the answer to `early` out.
    await client.call(CALL, progress(25, 0))
    resumed = await client.listen(before)
    messages = [message async for message in resumed.messages()]
    lost = messages[0]
    assert (lost["id"], lost["error"]["code"], lost["error"]["data"]["executed"]) == ("early", -31008, "unknown")
    assert [text_of(message) for message in messages[1:]] == ["late"]


@on_loop
async def test_an_event_id_of_another_stream_or_session_or_principal_replays_nothing(
    gateway: Gateway, connect: Connect
) -> None:
    mine, other, theirs = await connect(), await connect(), await connect(token=OTHER_TOKEN)
    reply = await mine.ask(CALL, called("sleep", seconds=0.3, nonce="secret"), ident=1)
    ident = str((await next_with_id(reply)).id)
    assert text_of(await mine.settle(reply, 1)) == "secret"
    bodies = set()
    for client in (other, theirs):
        refused = await client.listen(ident)
        assert refused.status == 404
        bodies.add(await refused.body())
    stolen = Client(gateway, "calm", OTHER_TOKEN)
    stolen.session = mine.session
    refused = await stolen.listen(ident)
    assert refused.status == 404
    bodies.add(await refused.body())
    assert len(bodies) == 1


MALFORMED = ["", " ", "nonsense", "1", "-1", "0-0", "../../etc", "\xe9", "{}", "%00", "1e9", "x" * 10_000, "9" * 400]


@pytest.mark.parametrize("last", MALFORMED)
@on_loop
async def test_a_malformed_event_id_is_400(gateway: Gateway, connect: Connect, last: str) -> None:
    client = await connect()
    reply = await client.listen(last)
    assert (reply.status, (await reply.json())["error"]["code"]) == (400, -32600)
    assert (await client.listen()).status == 200


@on_loop
async def test_resuming_takes_the_stream_over_and_closes_its_older_connection(
    gateway: Gateway, connect: Connect
) -> None:
    client = await connect()
    older = await client.listen()
    ident = (await next_with_id(older)).id
    newer = await client.listen(ident)
    with pytest.raises(EOFError):
        await older.next_message(3)
    await client.tool("changed", what="tools")
    assert (await newer.next_message())["method"] == "notifications/tools/list_changed"


# What proxies and clients need.


@on_loop
async def test_every_event_stream_forbids_buffering_and_begins_at_once(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    sse = {"Accept": "text/event-stream"}
    replies = [
        await client.listen(),
        await client.ask(CALL, called("sleep", seconds=0.5), ident=1),
        await request(gateway.port, "GET", "/servers/calm/sse", sse),
    ]
    for reply in replies:
        assert reply.headers["content-type"].startswith("text/event-stream")
        assert reply.headers["x-accel-buffering"] == "no"
        assert reply.headers["cache-control"] == "no-cache, no-transform"
        await reply.anything(0.5)
    replies[2].drop()


@on_loop
async def test_quiet_streams_are_kept_warm_by_comments(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    stream = await client.listen()
    call = await client.ask(CALL, called("sleep", seconds=1.5), ident=1)
    for reply in (stream, call):
        await next_with_id(reply)
        comments = [await reply.anything(2) for _ in range(3)]
        assert all(event.comment is not None and not event.data for event in comments)
        assert comments[-1].at - comments[0].at < 1.5


@on_loop
async def test_a_closed_connection_is_not_the_end_of_its_stream(polled: Gateway) -> None:
    client = await Client(polled).open()
    reply = await client.ask(CALL, called("sleep", seconds=1.2, nonce="polled"), ident="x")
    last, retries, connections = "", set[int](), 1
    messages: list[Any] = []
    while not messages:
        async for event in reply.events():
            last = event.id or last
            retries |= {event.retry} if event.retry is not None else set()
            messages += [event.message] if event.data else []
        if not messages:
            connections += 1
            reply = await client.listen(last)
    assert text_of(messages[0]) == "polled"
    assert connections >= 3
    assert retries == {200}
    await (await client.delete()).body()


@on_loop
async def test_a_get_stream_that_is_closed_by_us_ends_no_session(polled: Gateway) -> None:
    client = await Client(polled).open()
    for _ in range(2):
        stream = await client.listen()
        with pytest.raises(EOFError):
            await stream.next_message(3)
    assert await client.tool("echo", nonce="alive") == "alive"
    await (await client.delete()).body()


@on_loop
async def test_reopening_the_get_stream_over_and_over_leaves_nothing_behind(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    rss = gateway.rss()
    for _ in range(200):
        (await client.listen()).drop()
    await client.tool("changed", what="tools")
    assert await client.tool("echo", nonce="alive") == "alive"
    assert gateway.rss() - rss < 4 << 20


@on_loop
async def test_each_kind_of_news_comes_once_and_only_to_its_own_session(gateway: Gateway, connect: Connect) -> None:
    client, other = await connect(), await connect()
    stream, silent = await client.listen(), await other.listen()
    for what in ("tools", "prompts", "resources"):
        await client.tool("changed", what=what)
    await client.tool("updated", uri="test://1")
    methods = sorted([(await stream.next_message())["method"] for _ in range(4)])
    assert methods == [
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
        "notifications/tools/list_changed",
    ]
    for nothing_more in (stream, silent):
        with pytest.raises(TimeoutError):
            await nothing_more.next_message(0.5)


@on_loop
async def test_a_thousand_large_answers_are_not_kept(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    await client.tool("echo", size=50_000)
    rss = gateway.rss()
    for _ in range(50):
        await asyncio.gather(*(client.tool("echo", size=50_000) for _ in range(20)))
    assert gateway.rss() - rss < 8 << 20


@on_loop
async def test_no_more_connections_are_held_for_a_session_than_it_may_have(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    streams = [await client.listen() for _ in range(4)]
    refused = await client.listen()
    assert (refused.status, (await refused.json())["error"]["code"]) == (429, -31005)
    assert "retry-after" in refused.headers
    streams[0].drop()
    assert await soon(lambda: _is_served(client))


async def _is_served(client: Client) -> bool:
    return (await client.listen()).status == 200
