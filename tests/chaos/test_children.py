"""Child processes that crash, hang, flood or will not go, and what they know of each other and of us."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Iterator

import pytest

from tests.chaos.conftest import Connect
from tests.support.client import Client, called, greeting
from tests.support.gateway import STAGE, Gateway, config, entry, eventually, serving
from tests.support.http import Reply, on_loop, soon
from tests.support.invariants import CANARY

CALL = "tools/call"
BRISK = {"stopTimeout": 0.5, "killTimeout": 0.5}
HASTY = {**BRISK, "requestTimeout": 1, "maxRequestTimeout": 2.5, "pingTimeout": 0.5}
LAUNCHER = f"exec 3<&0; {sys.executable} -I -S {STAGE} <&3 & wait"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    servers = {
        "calm": entry(**BRISK),
        "ending": entry(**BRISK, onExit="end"),
        "hasty": entry(**HASTY),
        "crashing": entry("--mode", "crash_on_call", "--n", "2", **BRISK, onExit="end"),
        "fickle": entry("--mode", "crash_on_initialized", **BRISK),
        "deaf": entry("--mode", "never_reads", **HASTY),
        "ignores_eof": entry("--mode", "ignores_eof", **BRISK),
        "ignores_term": entry("--mode", "ignores_term", **BRISK),
        "ignores_both": entry("--mode", "ignores_all", **BRISK),
        "mute": entry("--mode", "closes_stdout", **BRISK),
        "launched": {"command": "sh", "args": ["-c", LAUNCHER], **BRISK},
    }
    limits = {"queueCount": 20, "queueBytes": 1 << 20, "body": 1 << 20, "stderrRate": 10}
    with serving(
        config(servers, limits=limits, streams={"keepAlive": 0.3}, restarts={"backoff": 0.02}),
        tmp_path_factory.mktemp("children"),
    ) as gateway:
        yield gateway


async def fault_of(client: Client, reply: Reply, ident: int | str) -> tuple[int, str, str]:
    """Code, reason and whether it was executed, of the error that answers `ident`."""
    error = (await client.settle(reply, ident))["error"]
    assert error["data"]["source"] == "gateway"
    assert error["data"]["server"] == client.path.split("/")[2]
    return error["code"], error["data"]["reason"], error["data"]["executed"]


async def has_ended(client: Client) -> bool:
    async def is_unknown() -> bool:
        return await client.status() == 404

    return await soon(is_unknown, 2)


@on_loop
async def test_a_crash_fails_every_call_in_flight_at_once_and_ends_the_session(
    gateway: Gateway, connect: Connect
) -> None:
    client, other = await connect("ending"), await connect("ending")
    pid = int(await client.tool("pid"))
    stream = await client.listen()
    spared = await other.ask(CALL, called("sleep", seconds=0.5, nonce="spared"), ident=1)
    sleep = called("sleep", seconds=60)
    calls = await asyncio.gather(*(client.ask(CALL, sleep, ident=number) for number in range(50)))
    began = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    faults = await asyncio.gather(*(fault_of(client, reply, number) for number, reply in enumerate(calls)))
    assert time.monotonic() - began < 1
    assert faults == [(-31002, "exited", "unknown")] * 50
    with pytest.raises(EOFError):
        await stream.next_message(2)
    assert await client.status() == 404
    assert (await other.settle(spared, 1))["result"]["content"][0]["text"] == "spared"


@on_loop
async def test_the_last_line_of_a_crashing_server_is_never_lost(gateway: Gateway, connect: Connect) -> None:
    clients = await asyncio.gather(*(connect("ending") for _ in range(10)))
    words = await asyncio.gather(*(client.tool("die", answer_first=True) for client in clients))
    assert words == ["last words"] * 10
    assert all(await asyncio.gather(*(has_ended(client) for client in clients)))


@on_loop
async def test_a_crash_in_mid_call_is_told_and_a_new_session_starts_anew(gateway: Gateway, connect: Connect) -> None:
    client = await connect("crashing")
    assert await client.tool("count") == "1"
    error = (await client.call(CALL, called("count")))["error"]
    assert (error["code"], error["data"]["exitCode"]) == (-31002, 3)
    assert await client.status() == 404
    assert await (await connect("crashing")).tool("count") == "1"


@on_loop
async def test_a_crash_at_the_end_of_each_handshake_ends_the_session_in_the_end(
    gateway: Gateway, connect: Connect
) -> None:
    client = await connect("fickle")
    assert await has_ended(client)


@on_loop
async def test_a_server_that_closes_its_stdout_is_stopped(gateway: Gateway, undisturbed: list[Client]) -> None:
    client = Client(gateway, "mute")
    opening = await client.post(greeting())
    client.session = opening.headers.get("mcp-session-id", "none, for it has ended already")
    assert "result" in await client.settle(opening, 0)
    assert await has_ended(client)


@on_loop
async def test_a_call_that_is_never_answered_times_out_and_the_server_is_told(
    gateway: Gateway, connect: Connect
) -> None:
    client = await connect("hasty")
    began = time.monotonic()
    reply = await client.ask(CALL, called("sleep", seconds=1.4, nonce="too late"), ident="x")
    assert await fault_of(client, reply, "x") == (-31003, "timed_out", "unknown")
    assert 0.9 < time.monotonic() - began < 2
    assert len(json.loads(await client.tool("cancelled"))) == 1
    # The late answer comes now, and finds nobody: the next call gets its own.
    assert await client.tool("sleep", seconds=0.6, nonce="own") == "own"


@on_loop
async def test_progress_keeps_a_call_alive_until_the_last_deadline(gateway: Gateway, connect: Connect) -> None:
    client = await connect("hasty")
    began = time.monotonic()
    params = {**called("progress", n=100, interval=0.2), "_meta": {"progressToken": 1}}
    reply = await client.ask(CALL, params, ident="x")
    messages = [message async for message in reply.messages()]
    assert 2.3 < time.monotonic() - began < 4
    assert messages[-1]["error"]["code"] == -31003
    assert len(messages) > 6


@on_loop
async def test_a_server_that_reads_nothing_costs_a_bounded_queue_and_what_it_never_saw_is_said_not_to_have_run(
    gateway: Gateway, connect: Connect
) -> None:
    client = await connect("deaf", capabilities={})
    padding = "x" * 20_000

    async def outcome(number: int) -> tuple[float, tuple[int, str, str]]:
        began = time.monotonic()
        reply = await client.ask(CALL, called("echo", nonce=padding), ident=number)
        return time.monotonic() - began, await fault_of(client, reply, number)

    outcomes = await asyncio.gather(*map(outcome, range(60)))
    full = [(seconds, fault) for seconds, fault in outcomes if fault[0] == -31005]
    late = [fault for _, fault in outcomes if fault[0] == -31003]
    assert len(full) + len(late) == 60
    assert len(full) > 20
    assert all(seconds < 0.9 and fault[2] == "no" for seconds, fault in full)
    assert late.count((-31003, "timed_out", "no")) > 5
    assert late.count((-31003, "timed_out", "unknown")) > 0


@on_loop
async def test_a_flood_on_stderr_blocks_nobody_and_is_logged_in_part(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    lines, rss = len(gateway.log_lines), gateway.rss()
    assert await client.tool("stderr", size=5_000_000) == "said"
    assert (await client.delete()).status == 204
    assert eventually(lambda: any("suppressed" in line for line in gateway.log_lines[lines:]), 3)
    said = [line for line in gateway.log_lines[lines:] if "event=" not in line and "sssss" in line]
    assert 10 <= len(said) <= 30
    assert gateway.rss() - rss < 8 << 20


@on_loop
async def test_a_flood_on_stdout_costs_no_memory_and_no_answer(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    rss = gateway.rss()
    for _ in range(4):
        # No more at once than the queue of a connection holds, for this client may be slow.
        assert await client.tool("log", n=25_000, tag="y" * 100) == "logged"
    assert await client.tool("echo", nonce="still here") == "still here"
    assert gateway.rss() - rss < 32 << 20


@on_loop
async def test_a_grandchild_that_holds_the_pipes_hides_no_exit_and_goes_with_its_parent(
    gateway: Gateway, connect: Connect
) -> None:
    client = await connect()
    grandchild = int(await client.tool("spawn", argv=["sleep", "600"]))
    reply = await client.ask(CALL, called("sleep", seconds=60), ident=1)
    began = time.monotonic()
    await client.ask(CALL, called("die"), ident=2)
    assert (await fault_of(client, reply, 1))[0] == -31002
    assert time.monotonic() - began < 1
    assert eventually(lambda: grandchild not in gateway.children(), 2)


LADDER = {"calm": (0, 0.4), "ignores_eof": (0.4, 1.0), "ignores_term": (0.8, 1.6), "ignores_both": (0.8, 1.6)}


@pytest.mark.parametrize("server", LADDER)
@on_loop
async def test_whoever_will_not_go_is_made_to_step_by_step(gateway: Gateway, connect: Connect, server: str) -> None:
    client = await connect(server)
    pid = int(await client.tool("pid"))
    began = time.monotonic()
    assert (await client.delete()).status == 204
    assert eventually(lambda: pid not in gateway.children(), 5)
    earliest, latest = LADDER[server]
    assert earliest <= time.monotonic() - began < latest + 1


@pytest.mark.parametrize("setsid", [False, True])
@on_loop
async def test_deleting_a_session_ends_all_that_its_server_started(
    gateway: Gateway, connect: Connect, setsid: bool
) -> None:
    client = await connect()
    started = {int(await client.tool("pid")), int(await client.tool("spawn", argv=["sleep", "600"], setsid=setsid))}
    assert eventually(lambda: started <= set(gateway.children()), 2)
    assert (await client.delete()).status == 204
    assert eventually(lambda: not started & set(gateway.children()), 6)


@on_loop
async def test_a_server_behind_a_launcher_goes_with_it(gateway: Gateway, connect: Connect) -> None:
    before = set(gateway.children())
    client = await connect("launched")
    assert await client.tool("echo", nonce="behind a shell") == "behind a shell"
    assert len(set(gateway.children()) - before) == 2
    await client.delete()
    assert eventually(lambda: set(gateway.children()) <= before, 6)


@on_loop
async def test_a_stopped_process_is_found_out_by_its_silence(gateway: Gateway, connect: Connect) -> None:
    client = await connect("hasty")
    pid = int(await client.tool("pid"))
    os.kill(pid, signal.SIGSTOP)
    reply = await client.ask(CALL, called("echo", nonce="x"), ident=1)
    assert await fault_of(client, reply, 1) == (-31003, "timed_out", "unknown")
    assert eventually(lambda: pid not in gateway.children(), 4)
    assert int(await client.tool("pid")) != pid


@on_loop
async def test_state_stays_within_a_session_and_one_child_serves_it(gateway: Gateway, connect: Connect) -> None:
    one, two = await connect(), await connect()
    assert [await one.tool("count") for _ in range(5)] == ["1", "2", "3", "4", "5"]
    assert await two.tool("count") == "1"
    assert len({await one.tool("pid"), await one.tool("pid"), await two.tool("pid")}) == 2


@on_loop
async def test_a_child_sees_a_clean_environment_and_no_descriptor_of_ours(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    seen = json.loads(await client.tool("env"))
    passed = {"PATH", "HOME", "LANG", "HTTPS_PROXY", "https_proxy", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"}
    assert passed & set(os.environ) <= set(seen)
    assert seen["PYTHONUNBUFFERED"] == "1"
    assert not {"VIADUCT_TOKEN", "VIADUCT_CONFIG", "PYTHONWARNINGS"} & set(seen)
    # 3 is the listing of the directory itself.
    assert set(json.loads(await client.tool("fds"))) <= {"0", "1", "2", "3"}


@on_loop
async def test_no_payload_is_logged_whatever_becomes_of_it(gateway: Gateway, connect: Connect) -> None:
    client = await connect("hasty")
    assert await client.tool("echo", nonce=CANARY) == CANARY
    await client.call(CALL, called(CANARY, secret=CANARY))
    await client.call(CANARY, {"x": CANARY})
    await client.call(CALL, called("swallow", nonce=CANARY))
    await client.call(CALL, called("die", nonce=CANARY))
    await (await client.post(b'{"broken": "' + CANARY.encode())).body()
