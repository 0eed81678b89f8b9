"""The gateway's own end: asked for, forced, or nearly brought about by a bug."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.planting import program
from tests.support.client import Client, called, greeting
from tests.support.gateway import Gateway, config, entry, eventually, serving
from tests.support.http import ACCEPT, Reply, on_loop, request

CALL = "tools/call"
BRISK = {"stopTimeout": 0.3, "killTimeout": 0.3}
JSON = {"Content-Type": "application/json", "Accept": ACCEPT}


def servers() -> dict[str, dict[str, object]]:
    return {
        "stage": entry(**BRISK),
        "stubborn": entry("--mode", "ignores_all", **BRISK),
        "shared": entry(**BRISK, isolation="shared"),
    }


async def answered(client: Client, ident: int, seconds: float) -> Coroutine[Any, Any, Any]:
    """A call that is in flight when this returns; awaiting what it returns gives its answer."""
    reply = await client.ask(CALL, called("sleep", seconds=seconds, nonce=f"slept {seconds}"), ident)
    return client.settle(reply, ident)


def ended(gateway: Gateway, within: float) -> tuple[int, float]:
    """Its exit code, and when that came."""
    began = time.monotonic()
    code = gateway.process.wait(within)
    return code, time.monotonic() - began


async def sse(gateway: Gateway, server: str) -> tuple[Reply, str]:
    """A greeted client of HTTP+SSE: its stream, and where it posts."""
    stream = await request(gateway.port, "GET", f"/servers/{server}/sse", {"Accept": "text/event-stream"})
    target = f"/servers/{server}/{(await stream.next_event()).data}"
    await posted(gateway, target, greeting("2024-11-05"))
    assert "result" in await stream.next_message()
    return stream, target


async def posted(gateway: Gateway, target: str, message: Any) -> None:
    reply = await request(gateway.port, "POST", target, JSON, json.dumps(message).encode())
    assert reply.status == 202
    await reply.body()


@on_loop
async def test_asked_to_stop_while_idle_it_ends_at_once_although_streams_are_open(tmp_path: Path) -> None:
    with serving(config(servers()), tmp_path) as gateway:
        client, shared = await Client(gateway).open(), await Client(gateway, "shared").open()
        streams = [await client.listen(), await shared.listen(), (await sse(gateway, "stage"))[0]]
        idle = await client.ask("ping")
        await idle.rest()
        gateway.process.send_signal(signal.SIGTERM)
        for stream in streams:
            with pytest.raises(EOFError):
                await stream.next_message(3)
        code, seconds = ended(gateway, 5)
        assert (code, gateway.children()) == (0, [])
        assert seconds < 3


@on_loop
async def test_asked_to_stop_under_load_it_takes_nothing_new_and_lets_what_runs_finish(tmp_path: Path) -> None:
    with serving(config(servers(), drain=1.5, streams={"streamAfter": 0.05}), tmp_path) as gateway:
        clients = await asyncio.gather(*(Client(gateway).open() for _ in range(4)))
        listening = await clients[0].listen()
        stream, target = await sse(gateway, "stage")
        long = await asyncio.gather(*(answered(client, 2, 60) for client in clients))
        quick = await asyncio.gather(*(answered(client, 1, 0.8) for client in clients))
        await posted(
            gateway, target, {"jsonrpc": "2.0", "id": 3, "method": CALL, "params": called("sleep", seconds=60)}
        )
        began = time.monotonic()
        gateway.process.send_signal(signal.SIGTERM)
        assert eventually(lambda: "draining" in gateway.log, 2)
        assert await statuses(gateway) == {"/healthz": 200, "/readyz": 503}
        for refused in (await Client(gateway).post(greeting()), await clients[0].ask("tools/list")):
            assert (refused.status, (await refused.json())["error"]["code"]) == (503, -31006)
            assert "retry-after" in refused.headers
        assert [text(await answer) for answer in quick] == ["slept 0.8"] * 4
        last_words = [await answer for answer in long] + [await stream.next_message()]
        assert [(word["error"]["code"], word["error"]["data"]["executed"]) for word in last_words] == [
            (-31006, "unknown")
        ] * 5
        assert time.monotonic() - began >= 1.4
        with pytest.raises(EOFError):
            await listening.next_message(3)
        code, _ = ended(gateway, 6)
        assert (code, gateway.children()) == (0, [])
        assert time.monotonic() - began < 1.5 + 6


def text(answer: Any) -> str:
    return str(answer["result"]["content"][0]["text"])


async def statuses(gateway: Gateway) -> dict[str, int]:
    paths = ("/healthz", "/readyz")
    return {path: (await request(gateway.port, "GET", path, token=None)).status for path in paths}


@on_loop
async def test_it_waits_no_longer_than_its_calls_take(tmp_path: Path) -> None:
    with serving(config(servers(), drain=600), tmp_path) as gateway:
        client = await Client(gateway).open()
        call = await answered(client, 1, 0.5)
        gateway.process.send_signal(signal.SIGTERM)
        assert text(await call) == "slept 0.5"
        assert ended(gateway, 5)[0] == 0


@on_loop
async def test_a_question_can_still_be_answered_while_it_waits_for_the_call_that_asked(tmp_path: Path) -> None:
    with serving(config(servers(), drain=600), tmp_path) as gateway:
        client = await Client(gateway).open()
        reply = await client.ask(CALL, called("ask_form"), ident=1)
        question = await reply.next_message()
        gateway.process.send_signal(signal.SIGTERM)
        assert eventually(lambda: "draining" in gateway.log, 2)
        await client.answer(question["id"], {"action": "cancel"})
        assert json.loads(text(await client.settle(reply, 1))) == {"action": "cancel"}
        assert ended(gateway, 5)[0] == 0


@on_loop
async def test_nobody_who_will_not_go_keeps_it_from_ending(tmp_path: Path) -> None:
    with serving(config(servers(), drain=0.2), tmp_path) as gateway:
        stream, target = await sse(gateway, "stubborn")
        await posted(gateway, target, {"jsonrpc": "2.0", "id": 3, "method": CALL, "params": called("swallow")})
        client = await Client(gateway, "stubborn").open()
        escaped = int(await client.tool("spawn", argv=["sleep", "600"], setsid=True))
        gateway.process.send_signal(signal.SIGTERM)
        assert (await stream.next_message())["error"]["code"] == -31006
        assert ended(gateway, 5)[0] == 0
        assert escaped not in gateway.children()


@on_loop
async def test_a_killed_gateway_leaves_no_child_behind_and_its_sessions_are_unknown_to_the_next(
    tmp_path: Path,
) -> None:
    with serving(config(servers()), tmp_path) as gateway:
        client, stubborn = await Client(gateway).open(), await Client(gateway, "stubborn").open()
        shared = await Client(gateway, "shared").open()
        assert len(gateway.children()) == 3
        running = await client.ask(CALL, called("sleep", seconds=60), ident=1)
        gateway.process.kill()
        gateway.process.wait(5)
        assert eventually(lambda: not gateway.children(), 1)
        with pytest.raises(EOFError):
            await running.next_message(2)
    with serving(config(servers()), tmp_path) as again:
        for old in (client, stubborn, shared):
            old.port = again.port
            assert await old.status() == 404
        assert await (await Client(again).open()).tool("echo", nonce="anew") == "anew"


@on_loop
async def test_what_a_gateway_that_was_killed_with_its_guardian_left_ends_with_its_input_or_at_the_next_start(
    tmp_path: Path,
) -> None:
    # They see no process of other gateways, and no other that starts meanwhile takes this one's.
    alone = program(f"from app.upstreams import proc; proc.pid_namespace = lambda: '{os.getpid()}0'")
    with serving(config(servers()), tmp_path, program=alone) as gateway:
        client = await Client(gateway).open()
        sleeper = int(await client.tool("spawn", argv=["sleep", "600"], setsid=True))
        # The last, for it reads what is meant for its parent.
        reader = int(await client.tool("spawn", argv=["tail", "-f", "-"]))
        assert eventually(lambda: {reader, sleeper} <= set(gateway.children()), 2)
        guardian = gateway.guardian()
        assert guardian is not None
        # Halted, it starts no other.
        gateway.process.send_signal(signal.SIGSTOP)
        os.kill(guardian, signal.SIGKILL)
        gateway.process.kill()
        gateway.process.wait(5)
        with serving(config(servers()), tmp_path, program=alone) as again:
            assert eventually(lambda: not gateway.children(), 3)
            assert eventually(lambda: "a gateway that is gone" in again.log, 3)


# Bugs, planted in the real program.

PLANTED = {
    "hearing a child": """
        from app.core.session import Session
        deliver = Session.deliver
        def bug(self, message, *rest):
            if getattr(message, "method", "") == "notifications/tools/list_changed":
                raise RuntimeError("planted")
            return deliver(self, message, *rest)
        Session.deliver = bug
    """,
    "answering a client": """
        from app.gateway.stream import Stream
        say = Stream.say
        def bug(self, message):
            if b"soon" in bytes(getattr(message, "result", b"")):
                raise RuntimeError("planted")
            return say(self, message)
        Stream.say = bug
    """,
    "writing a stream": """
        from app.edge.responses import Response
        event = Response.event
        def bug(self, ident, data):
            if b"list_changed" in data:
                raise RuntimeError("planted")
            return event(self, ident, data)
        Response.event = bug
    """,
}


@pytest.mark.parametrize("where", PLANTED)
@on_loop
async def test_a_bug_costs_its_own_session_at_most(tmp_path: Path, where: str) -> None:
    with serving(config(servers()), tmp_path, program=program(PLANTED[where])) as gateway:
        gateway.has_planted_bug = True
        spared, struck = await Client(gateway).open(), await Client(gateway).open()
        stream = await struck.listen()
        reply = await struck.ask(CALL, called("changed", what="tools"), ident=1)
        assert eventually(lambda: "planted" in gateway.log, 3)
        for answer in (stream, reply):
            answer.drop()
        assert await spared.tool("echo", nonce="spared") == "spared"
        assert await (await Client(gateway).open()).tool("echo", nonce="new") == "new"
        assert (await statuses(gateway))["/healthz"] == 200
        assert (await struck.delete()).status in (204, 404)
        assert eventually(lambda: len(gateway.children()) == 2, 3)


@on_loop
async def test_a_bug_in_a_request_is_an_internal_error_that_tells_nothing(tmp_path: Path) -> None:
    plant = """
        from app.core.session import Session
        ask = Session.ask
        def bug(self, request, stream, now):
            if request.method == "boom":
                raise RuntimeError("planted")
            return ask(self, request, stream, now)
        Session.ask = bug
    """
    with serving(config(servers()), tmp_path, program=program(plant)) as gateway:
        gateway.has_planted_bug = True
        client = await Client(gateway).open()
        reply = await client.ask("boom")
        assert reply.status == 500
        body = await reply.body()
        assert json.loads(body)["error"]["code"] == -32603
        assert b"planted" not in body
        assert b"Traceback" not in body
        assert await (await Client(gateway).open()).tool("echo", nonce="others") == "others"


@on_loop
async def test_a_bug_in_the_keeping_of_time_ends_its_session_and_its_calls_get_a_last_word(tmp_path: Path) -> None:
    plant = """
        from app.core.session import Session
        def bug(self, *rest):
            raise RuntimeError("planted")
        Session._expired = bug
    """
    settings = {**servers(), "hasty": entry(**BRISK, requestTimeout=0.6)}
    with serving(config(settings), tmp_path, program=program(plant)) as gateway:
        gateway.has_planted_bug = True
        client = await Client(gateway, "hasty").open()
        error = (await client.call(CALL, called("swallow")))["error"]
        assert (error["data"]["source"], error["data"]["executed"]) == ("gateway", "unknown")
        assert "planted" not in json.dumps(error)
        assert await client.status() == 404
        assert eventually(lambda: not gateway.children(), 3)
        assert await (await Client(gateway).open()).tool("echo", nonce="others") == "others"


@on_loop
async def test_a_bug_while_a_child_is_started_is_answered_and_stays_alone(tmp_path: Path) -> None:
    plant = """
        from app.upstreams import child
        start = child.start
        async def bug(name, *rest):
            if name == "stubborn":
                raise RuntimeError("planted")
            return await start(name, *rest)
        child.start = bug
    """
    settings = {name: {**server, "startTimeout": 1} for name, server in servers().items()}
    with serving(config(settings), tmp_path, program=program(plant)) as gateway:
        gateway.has_planted_bug = True
        unlucky = Client(gateway, "stubborn")
        answer = await unlucky.settle(await unlucky.post(greeting()), 0)
        assert "error" in answer
        assert "planted" not in json.dumps(answer)
        assert await (await Client(gateway).open()).tool("echo", nonce="others") == "others"
