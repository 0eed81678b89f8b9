"""Streams on the real gateway: which form an answer takes, and what survives a broken connection."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.support.client import Client
from tests.support.gateway import OTHER_TOKEN, Gateway, config, entry, serving
from tests.support.http import on_loop, request

SLEEP = "sleep"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    streams = {"streamAfter": 0.1, "keepAlive": 0.2, "logCount": 8, "maxPerSession": 3, "retry": 0.05}
    with serving(config({"stage": entry()}, streams=streams), tmp_path_factory.mktemp("streams")) as gateway:
        yield gateway


def slow(seconds: float, nonce: str = "slept") -> dict[str, object]:
    return {"name": SLEEP, "arguments": {"seconds": seconds, "nonce": nonce}}


@on_loop
async def test_an_answer_that_comes_first_is_json(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    reply = await client.ask("ping")
    assert reply.headers["content-type"] == "application/json"


@on_loop
async def test_an_answer_that_takes_its_time_is_a_stream_that_no_proxy_may_hold_back(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    reply = await client.ask("tools/call", slow(0.5), ident=3)
    assert reply.is_stream
    assert reply.headers["x-accel-buffering"] == "no"
    assert reply.headers["cache-control"] == "no-cache, no-transform"
    events = [event async for event in reply.events()]
    assert (events[0].data, events[0].retry, bool(events[0].id)) == ("", 50, True)
    assert any(event.comment is not None for event in events)
    assert events[-1].message["id"] == 3


@on_loop
async def test_streams_of_earlier_revisions_begin_with_a_comment(gateway: Gateway) -> None:
    client = await Client(gateway).open(version="2025-06-18")
    reply = await client.ask("tools/call", slow(0.3))
    events = [event async for event in reply.events()]
    assert events[0].comment is not None
    assert all(event.data for event in events if event.comment is None)


@pytest.mark.parametrize(
    ("accept", "status", "kind"),
    [
        ("application/json", 200, "application/json"),
        ("text/event-stream", 200, "text/event-stream"),
        ("*/*", 200, "application/json"),
        ("application/*", 200, "application/json"),
        ("application/json;q=0.1, text/event-stream", 200, "application/json"),
        ("text/html", 406, "application/json"),
        ("application/json;q=0, text/html", 406, "application/json"),
    ],
)
@on_loop
async def test_accept_is_read_leniently(gateway: Gateway, accept: str, status: int, kind: str) -> None:
    client = await Client(gateway).open()
    reply = await client.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, Accept=accept)
    assert (reply.status, reply.headers["content-type"]) == (status, kind)


@on_loop
async def test_a_call_of_a_client_that_takes_json_only_waits_for_its_answer(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": slow(0.4)}
    assert (await (await client.post(message, Accept="application/json")).json())["id"] == 1


@on_loop
async def test_a_call_goes_on_without_its_client_and_its_answer_is_fetched_later(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    reply = await client.ask("tools/call", slow(0.5, "late"), ident="x")
    prime = await reply.next_event()
    reply.drop()
    resumed = await client.listen(last=prime.id)
    answer = await resumed.next_message()
    assert (answer["id"], answer["result"]["content"][0]["text"]) == ("x", "late")
    assert [event async for event in resumed.events() if event.data] == []


@on_loop
async def test_resuming_says_exactly_what_came_after_and_then_goes_on(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    params = {"name": "progress", "arguments": {"n": 4, "interval": 0.05}, "_meta": {"progressToken": 1}}
    reply = await client.ask("tools/call", params, ident=7)
    first = await reply.next_event()
    second = await reply.next_event()
    reply.drop()
    resumed = await client.listen(last=second.id)
    seen = [event async for event in resumed.events() if event.data]
    progress = [event.message["params"]["progress"] for event in seen[:-1]]
    assert progress == list(range(second.message["params"]["progress"] + 1, 5))
    assert seen[-1].message["id"] == 7
    ids = [first.id, second.id, *(event.id for event in seen)]
    assert len(set(ids)) == len(ids)


@on_loop
async def test_resuming_twice_closes_the_older_connection(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    reply = await client.ask("tools/call", slow(0.6), ident=1)
    prime = await reply.next_event()
    newer = await client.listen(last=prime.id)
    assert [event async for event in reply.events() if event.data] == []
    assert (await newer.next_message())["id"] == 1


@on_loop
async def test_an_evicted_answer_is_named_as_lost(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    reply = await client.ask("tools/call", slow(0.3), ident="lost")
    prime = await reply.next_event()
    answer = await reply.next_message()
    assert answer["id"] == "lost"
    stream = await client.listen()
    for _ in range(10):
        await client.tool("changed", what="tools")
        await stream.next_message()
    resumed = await client.listen(last=prime.id)
    lost = await resumed.next_message()
    assert (lost["id"], lost["error"]["code"], lost["error"]["data"]["executed"]) == ("lost", -31008, "unknown")


@pytest.mark.parametrize(
    ("last", "status"),
    [("nonsense", 400), ("00000000-1-1", 404), ("x" * 9000, 400), ("{tag}-1-999999", 400), ("{tag}-999-1", 400)],
)
@on_loop
async def test_a_last_event_id_of_no_event_here_is_refused(gateway: Gateway, last: str, status: int) -> None:
    client = await Client(gateway).open()
    stream = await client.listen()
    tag = ((await stream.next_event()).id or "").split("-")[0]
    assert (await client.listen(last=last.replace("{tag}", tag))).status == status


@on_loop
async def test_an_event_of_somebody_elses_session_is_as_unknown_as_any(gateway: Gateway) -> None:
    mine, theirs = await Client(gateway).open(), await Client(gateway, token=OTHER_TOKEN).open()
    event = await (await mine.listen()).next_event()
    assert (await theirs.listen(last=event.id)).status == 404
    theirs.session = mine.session
    assert (await theirs.listen(last=event.id)).status == 404


@on_loop
async def test_news_that_comes_while_nobody_listens_waits_for_the_next_stream(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    await client.tool("changed", what="prompts")
    await (await Client(gateway).open()).tool("sleep", seconds=0.2)
    stream = await client.listen()
    assert (await stream.next_message())["method"] == "notifications/prompts/list_changed"


@on_loop
async def test_more_streams_than_a_session_may_have_are_refused(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    streams = [await client.listen() for _ in range(3)]
    refused = await client.listen()
    assert (refused.status, "retry-after" in refused.headers) == (429, True)
    for stream in streams:
        stream.drop()


@on_loop
async def test_a_get_stream_that_is_closed_does_not_end_its_session(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    for _ in range(20):
        stream = await client.listen()
        await stream.next_event()
        stream.drop()
    assert await client.tool("echo", nonce="alive") == "alive"


@on_loop
async def test_http_with_sse_serves_the_same_protocol_on_one_stream(gateway: Gateway) -> None:
    for path, base in (("/servers/stage/sse", "/servers/stage/"), ("/sse/", "/")):
        stream = await request(gateway.port, "GET", path, {"Accept": "text/event-stream"})
        endpoint = await stream.next_event()
        assert endpoint.event == "endpoint"
        target = base + endpoint.data.removeprefix("../")
        assert endpoint.data.startswith("../") == path.endswith("/")

        async def post(body: bytes, target: str = target) -> int:
            return (await request(gateway.port, "POST", target, {"Content-Type": "application/json"}, body)).status

        greeting = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05"}}'
        assert await post(greeting) == 202
        assert (await stream.next_message())["result"]["protocolVersion"] == "2024-11-05"
        assert await post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}') == 202
        assert await post(b'{"jsonrpc":"2.0","id":"e","method":"ping"}') == 202
        assert await stream.next_message() == {"jsonrpc": "2.0", "id": "e", "result": {}}
        assert await post(b'{"jsonrpc":"2.0","id":2,"method":') == 400
        stream.drop()
        for _ in range(100):
            if await post(greeting) == 404:
                break
            await asyncio.sleep(0.02)
        assert await post(greeting) == 404
