"""The numbers of the real gateway, after things that are known to have happened."""

import asyncio
import os
import re
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from app.telemetry.tally import METHODS, OTHER, OUTCOMES, SERVER_STATES
from tests.support.client import Client, called
from tests.support.gateway import OTHER_TOKEN, ROOT, TOKEN, Gateway, config, entry, eventually, serving
from tests.support.http import connection, on_loop, raw, request, soon
from tests.support.metrics import number, numbers, shown, text_of
from tests.support.sse_client import SseClient
from tests.support.stateless import CALL, StatelessClient, answers

PAGES = [(ROOT / f"docs/reference/{page}.md").read_text() for page in ("errors", "metrics")]
STREAMS = {"logCount": 4, "streamAfter": 0.05}


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    servers = {
        "stage": entry(),
        "shared": entry(isolation="shared", era="legacy", onExit="end"),
        "deaf": entry("--mode", "never_reads", "--discover", "-32601", requestTimeout=60),
        "gone": {"command": "no-such-command"},
    }
    with serving(config(servers, streams=STREAMS), tmp_path) as gateway:
        yield gateway


async def calls(gateway: Gateway, server: str = "stage") -> dict[tuple[str, str, str], float]:
    """How many, by era, method and outcome."""
    told = (await numbers(gateway)).get("viaduct_calls_total", {})
    found = {}
    for labels, value in told.items():
        named = dict(labels)
        if named["server"] == server:
            found[named["era"], named["method"], named["outcome"]] = value
    return found


async def comes_true(gateway: Gateway, value: float, name: str, **labels: str) -> bool:
    async def claim() -> bool:
        return await number(gateway, name, **labels) == value

    return await soon(claim)


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


@on_loop
async def test_children_that_die_and_are_replaced_are_counted(gateway: Gateway) -> None:
    for round_ in (1, 2, 3):
        client = await Client(gateway, "shared").open(capabilities={})
        assert await number(gateway, "viaduct_child_restarts_total", server="shared") == round_ - 1
        answer = await client.call("tools/call", called("die"))
        assert answer["error"]["code"] == -31002
    assert (await calls(gateway, "shared"))["legacy", "tools/call", "exited"] == 3
    assert await number(gateway, "viaduct_child_ends_total", server="shared", reason="exited") == 3
    assert await number(gateway, "viaduct_child_starts_total", server="shared") == 3
    assert await comes_true(gateway, 0, "viaduct_children", server="shared")


@on_loop
async def test_a_stateless_clients_child_that_died_is_replaced(gateway: Gateway) -> None:
    client = StatelessClient(gateway, capabilities={})
    pid = int(await client.tool("pid"))
    assert await number(gateway, "viaduct_child_restarts_total", server="stage") == 0
    os.kill(pid, signal.SIGKILL)
    assert await comes_true(gateway, 1, "viaduct_child_ends_total", server="stage", reason="exited")
    assert int(await client.tool("pid")) != pid
    assert await number(gateway, "viaduct_child_restarts_total", server="stage") == 1
    await StatelessClient(gateway).tool("pid")
    assert await number(gateway, "viaduct_child_starts_total", server="stage") == 3
    assert await number(gateway, "viaduct_child_restarts_total", server="stage") == 1


@on_loop
async def test_a_command_that_cannot_be_started_is_counted_as_such(gateway: Gateway) -> None:
    await Client(gateway, "gone").open()
    assert await number(gateway, "viaduct_child_ends_total", server="gone", reason="command_not_found") == 1
    assert await number(gateway, "viaduct_child_start_seconds_count", server="gone") == 0
    assert await number(gateway, "viaduct_children", server="gone") == 0
    assert await calls(gateway, "gone") == {("legacy", "initialize", "unavailable"): 1}


@on_loop
async def test_what_a_server_does_not_read_is_seen_in_bytes(gateway: Gateway) -> None:
    client = await Client(gateway, "deaf").open(capabilities={})
    assert await number(gateway, "viaduct_child_queue_bytes", server="deaf") == 0
    asked = [asyncio.ensure_future(client.ask("ping", {"pad": "x" * 200_000})) for _ in range(3)]
    await asyncio.wait(asked)
    assert 400_000 < await number(gateway, "viaduct_child_queue_bytes", server="deaf") < 601_000
    assert await number(gateway, "viaduct_calls_in_flight", server="deaf") == 3
    await client.delete()
    assert await comes_true(gateway, 3, "viaduct_calls_total", server="deaf", method="ping", outcome="shutting_down")
    assert await comes_true(gateway, 0, "viaduct_child_queue_bytes", server="deaf")


def test_what_waits_for_another_child_is_seen_in_bytes(tmp_path: Path) -> None:
    @on_loop
    async def waits(gateway: Gateway) -> None:
        client = await Client(gateway).open()
        os.kill(int(await client.tool("pid")), signal.SIGKILL)
        assert eventually(lambda: "session waits for another child" in gateway.log)
        asked = [asyncio.ensure_future(client.ask("ping", {"pad": "x" * 200_000})) for _ in range(3)]
        assert await soon(partial(is_about, gateway, 600_000))
        for reply in await asyncio.gather(*asked):
            assert await reply.body()
        assert await comes_true(gateway, 0, "viaduct_child_queue_bytes", server="stage")

    async def is_about(gateway: Gateway, size: int) -> bool:
        return size < await number(gateway, "viaduct_child_queue_bytes", server="stage") < size * 1.01

    with serving(config({"stage": entry()}, restarts={"backoff": 2}), tmp_path) as gateway:
        waits(gateway)


def test_messages_for_which_there_is_no_room_are_counted(tmp_path: Path) -> None:
    @on_loop
    async def check() -> None:
        client = await Client(gateway, "deaf").open(capabilities={})
        asked = [asyncio.ensure_future(client.ask("ping", {"pad": "x" * 200_000})) for _ in range(3)]
        await asyncio.wait(asked)
        await client.tell("notifications/x", {"pad": "x" * 200_000})
        assert await number(gateway, "viaduct_child_undelivered_total", server="deaf") == 2
        assert (await calls(gateway, "deaf"))["legacy", "ping", "overloaded"] == 1

    servers = {"deaf": entry("--mode", "never_reads", stopTimeout=0.3, killTimeout=0.3)}
    with serving(config(servers, limits={"queueCount": 1}, drain=0.1), tmp_path) as gateway:
        check()


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


@on_loop
async def test_lines_that_are_no_messages_are_counted(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    await client.tool("raw", hex=b"nonsense\nmore\n".hex())
    assert await number(gateway, "viaduct_child_bad_lines_total", server="stage") == 2


# Labels.


@on_loop
async def test_nothing_that_a_client_invents_becomes_a_label(gateway: Gateway) -> None:
    session, stateless = await Client(gateway).open(), StatelessClient(gateway)

    async def invent(count: int) -> None:
        await session.call(f"evil/{count}")
        await session.call("tools/call", called(f'evil-{count}"}} 1\nevil 2'))
        await stateless.call(f"evil/{count}")
        await stateless.call(CALL, called(f"evil-{count}"))
        reply = await request(gateway.port, "POST", f"/servers/evil-{count}/mcp", {"Mcp-Session-Id": f"evil-{count}"})
        assert reply.status == 404
        await stateless.post({"evil": count}, {"MCP-Protocol-Version": f"evil-{count}"})
        await request(gateway.port, "GET", "/metrics", {"Host": f"evil-{count}"}, token=f"evil-{count}")

    await invent(0)
    few = await text_of(gateway)
    for count in range(1, 40):
        await invent(count)
    many = await text_of(gateway)
    assert len(many.splitlines()) == len(few.splitlines())
    assert "evil" not in many
    assert TOKEN not in many
    expected = {
        "server": {"stage", "shared", "deaf", "gone", "/mcp", ""},
        "method": METHODS | {OTHER},
        "era": {"legacy", "modern"},
        "outcome": OUTCOMES,
        "state": set(SERVER_STATES),
    }
    for values in shown(many).values():
        for labels in values:
            for name, value in labels:
                assert value in expected.get(name, {value}), (name, value)


@on_loop
async def test_every_reason_that_is_told_is_in_the_reference(gateway: Gateway) -> None:
    await Client(gateway, "gone").open()
    client = await Client(gateway).open()
    await client.delete()
    await client.status()
    told = re.findall(r'reason="([^"]*)"', await text_of(gateway))
    assert len(told) >= 4
    assert [reason for reason in told if not any(f"`{reason}`" in page for page in PAGES)] == []


# Who may read them.


@pytest.mark.parametrize("token", [None, "nobody's", TOKEN[:-1]])
@on_loop
async def test_without_a_token_nobody_reads_them(gateway: Gateway, token: str | None) -> None:
    reply = await request(gateway.port, "GET", "/metrics", token=token)
    body = await reply.body()
    assert (reply.status, reply.headers["www-authenticate"]) == (401, "Bearer")
    assert b"stage" not in body
    assert b"viaduct_" not in body


@on_loop
async def test_whoever_has_a_token_reads_them_under_either_spelling(gateway: Gateway) -> None:
    for path, token in (("/metrics", TOKEN), ("/metrics/", OTHER_TOKEN)):
        reply = await request(gateway.port, "GET", path, token=token)
        assert (reply.status, reply.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert b'viaduct_sessions{server="stage"} 0.0' in await reply.body()


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("POST", 405), ("DELETE", 405), ("OPTIONS", 405)])
@on_loop
async def test_they_are_there_to_be_read(gateway: Gateway, method: str, status: int) -> None:
    reply = await request(gateway.port, method, "/metrics")
    assert reply.status == status
    assert status == 200 or reply.headers["allow"] == "GET, HEAD"


@on_loop
async def test_a_token_in_the_url_is_refused_here_too(gateway: Gateway) -> None:
    assert (await request(gateway.port, "GET", f"/metrics?token={TOKEN}", token=None)).status == 400


@pytest.mark.parametrize(("who", "status"), [("token", 401), ("open", 200), ("off", 404)])
def test_the_operator_says_who_may_read_them(who: str, status: int, tmp_path: Path) -> None:
    @on_loop
    async def check() -> None:
        assert (await request(gateway.port, "GET", "/metrics", token=None)).status == status

    with serving(config({"stage": entry()}, metrics=who), tmp_path) as gateway:
        check()
