"""The numbers of calls, streams and refusals, after things that are known to have happened."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.counted import calls, comes_true, counting
from tests.support.client import Client, called
from tests.support.gateway import Gateway, config, entry, serving
from tests.support.http import connection, on_loop, raw, request, soon
from tests.support.metrics import number, numbers
from tests.support.sse_client import SseClient
from tests.support.stateless import CALL, StatelessClient, answers


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with counting(tmp_path) as gateway:
        yield gateway


@on_loop
async def test_a_session_and_its_calls_are_counted(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    for nonce in "abc":
        assert await client.tool("echo", nonce=nonce) == nonce
    await client.call("tools/call", called("no_such_tool"))
    assert await calls(gateway) == {
        ("legacy", "initialize", "ok"): 1,
        ("legacy", "tools/call", "ok"): 3,
        ("legacy", "tools/call", "error"): 1,
    }
    told = await numbers(gateway)
    assert told["viaduct_call_seconds_count"][frozenset({("server", "stage"), ("method", "tools/call")})] == 4
    assert 0 < told["viaduct_call_seconds_sum"][frozenset({("server", "stage"), ("method", "tools/call")})] < 5
    assert await number(gateway, "viaduct_sessions", server="stage") == 1
    assert await number(gateway, "viaduct_children", server="stage", state="ready") == 1
    assert await number(gateway, "viaduct_child_starts_total", server="stage") == 1
    assert await number(gateway, "viaduct_child_start_seconds_count", server="stage") == 1
    assert (await client.delete()).status == 204
    assert await comes_true(gateway, 0, "viaduct_children", server="stage")
    assert await number(gateway, "viaduct_sessions", server="stage") == 0
    assert await number(gateway, "viaduct_sessions_opened_total") == 1
    assert await number(gateway, "viaduct_sessions_ended_total", server="stage", reason="deleted") == 1
    assert await number(gateway, "viaduct_child_ends_total", server="stage", reason="released") == 1
    assert await number(gateway, "viaduct_child_restarts_total") == 0


@on_loop
async def test_the_members_of_a_batch_are_counted_each(gateway: Gateway) -> None:
    client = await Client(gateway).open(version="2025-03-26")
    batch = [{"jsonrpc": "2.0", "id": ident, "method": method} for ident, method in ((1, "ping"), ("1", "tools/list"))]
    await (await client.post([*batch, {"jsonrpc": "2.0", "method": "notifications/x"}])).body()
    assert await calls(gateway) == {
        ("legacy", "initialize", "ok"): 1,
        ("legacy", "ping", "ok"): 1,
        ("legacy", "tools/list", "ok"): 1,
    }
    assert await number(gateway, "viaduct_calls_in_flight") == 0


@on_loop
async def test_the_calls_of_http_sse_are_counted_one_by_one(gateway: Gateway) -> None:
    client = await SseClient(gateway).open()
    assert await client.tool("echo", nonce="n") == "n"
    ident = await client.ask("tools/call", called("swallow"))
    assert await number(gateway, "viaduct_calls_in_flight", server="stage") == 1
    assert await number(gateway, "viaduct_streams", server="stage") == 1
    await client.tell("notifications/cancelled", {"requestId": ident})
    assert await calls(gateway) == {
        ("legacy", "initialize", "ok"): 1,
        ("legacy", "tools/call", "ok"): 1,
        ("legacy", "tools/call", "cancelled"): 1,
    }
    assert await number(gateway, "viaduct_calls_in_flight") == 0
    await client.ask("initialize", {})
    assert await comes_true(gateway, 1, "viaduct_refusals_total", server="stage", reason="invalid_request")
    client.stream.drop()
    assert await comes_true(gateway, 1, "viaduct_sessions_ended_total", server="stage", reason="disconnected")
    assert await number(gateway, "viaduct_streams", server="stage") == 0


@on_loop
async def test_a_stateless_call_is_counted_and_again_when_it_comes_back_with_answers(gateway: Gateway) -> None:
    client = StatelessClient(gateway)
    assert await client.tool("echo", nonce="n") == "n"
    result = await client.asked("ask_form")
    assert await number(gateway, "viaduct_parked_calls", server="stage") == 1
    assert await calls(gateway) == {("modern", "tools/call", "ok"): 1, ("modern", "tools/call", "parked"): 1}
    await client.retry(result, answers(result), "ask_form")
    assert await number(gateway, "viaduct_parked_calls", server="stage") == 0
    assert await calls(gateway) == {("modern", "tools/call", "ok"): 2, ("modern", "tools/call", "parked"): 1}
    assert await number(gateway, "viaduct_sessions_opened_total") == 0


@on_loop
async def test_a_stateless_client_that_goes_has_cancelled(gateway: Gateway) -> None:
    client = StatelessClient(gateway)
    assert await client.tool("echo", nonce="n") == "n"
    reply = await client.ask(CALL, called("swallow"))
    assert reply.is_stream
    assert await number(gateway, "viaduct_calls_in_flight", server="stage", era="modern") == 1
    assert await number(gateway, "viaduct_streams", server="stage") == 1
    reply.drop()
    assert await comes_true(gateway, 0, "viaduct_calls_in_flight", server="stage", era="modern")
    assert await calls(gateway) == {("modern", "tools/call", "ok"): 1, ("modern", "tools/call", "cancelled"): 1}
    assert await number(gateway, "viaduct_streams", server="stage") == 0


def test_a_stateless_request_that_is_refused_is_no_call(tmp_path: Path) -> None:
    @on_loop
    async def check() -> None:
        client = StatelessClient(gateway)
        await client.asked("ask_form")
        assert (await client.ask("tools/list")).status == 429
        assert await calls(gateway) == {("modern", "tools/call", "parked"): 1}
        assert await number(gateway, "viaduct_refusals_total", server="stage", reason="stateless.maxRequests") == 1
        assert await number(gateway, "viaduct_calls_in_flight") == 0

    with serving(config({"stage": entry()}, stateless={"maxRequests": 1}), tmp_path) as gateway:
        check()


@on_loop
async def test_a_subscription_is_a_call_that_lasts_as_long_as_it_does(gateway: Gateway) -> None:
    client = StatelessClient(gateway)
    stream = await client.listen(toolsListChanged=True)
    assert await number(gateway, "viaduct_calls_in_flight", server="stage", era="modern") == 1
    stream.drop()
    assert await comes_true(gateway, 1, "viaduct_calls_total", method="subscriptions/listen", outcome="cancelled")


def test_connections_that_are_turned_away_are_counted(tmp_path: Path) -> None:
    @on_loop
    async def check() -> None:
        (_, idle), (_, also_idle) = await connection(gateway.port), await connection(gateway.port)
        assert (await request(gateway.port, "GET", "/healthz")).status == 503
        idle.close()
        also_idle.close()

        async def is_told() -> bool:
            reply = await request(gateway.port, "GET", "/metrics")
            text = (await reply.body()).decode()
            return 'viaduct_refusals_total{reason="limits.connections",server=""} ' in text

        assert await soon(is_told)

    with serving(config({"stage": entry()}, limits={"connections": 2}), tmp_path) as gateway:
        check()


@on_loop
async def test_event_streams_are_counted_while_they_have_a_connection(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    stream = await client.listen()
    assert await number(gateway, "viaduct_streams", server="stage") == 1
    stream.drop()
    assert await comes_true(gateway, 0, "viaduct_streams", server="stage")


@on_loop
async def test_events_that_are_said_again_or_lost_are_counted(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    call = await client.ask("tools/call", called("sleep", seconds=0.2), ident=9)
    prime = await call.next_event()
    assert (await call.next_message())["id"] == 9
    assert (await (await client.listen(prime.id)).next_message())["id"] == 9
    assert await number(gateway, "viaduct_events_replayed_total", server="stage") == 1
    assert await number(gateway, "viaduct_events_lost_total", server="stage") == 0
    others = await client.ask("tools/call", called("log", n=5))
    assert [event async for event in others.events()][-1].message["result"]
    assert (await (await client.listen(prime.id)).next_message())["error"]["code"] == -31008
    assert await number(gateway, "viaduct_events_replayed_total", server="stage") == 1
    assert await number(gateway, "viaduct_events_lost_total", server="stage") == 1


@on_loop
async def test_refusals_are_counted_by_server_and_reason(gateway: Gateway) -> None:
    client = Client(gateway)
    client.session = "no-such-session"
    assert await client.status() == 404
    await Client(gateway, token="nobody's").post({})
    await request(gateway.port, "GET", "/nowhere")
    await request(gateway.port, "GET", "/healthz", {"Host": "evil.example"})
    await raw(gateway.port, b"garbage\r\n\r\n")
    assert (await numbers(gateway))["viaduct_refusals_total"] == {
        frozenset({("server", server), ("reason", reason)}): 1
        for server, reason in (
            ("stage", "unknown_session"),
            ("stage", "unauthorized"),
            ("", "unknown_path"),
            ("", "wrong_host"),
            ("", "bad_http"),
        )
    }
