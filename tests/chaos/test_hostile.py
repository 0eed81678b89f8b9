"""Clients and servers that mean harm, or are wrong in ways of their own, and a gateway that is halted itself."""

import asyncio
import json
import os
import signal
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.conftest import Connect
from tests.chaos.planting import program
from tests.support.client import Client, called
from tests.support.gateway import OTHER_TOKEN, Gateway, config, entry, eventually, serving, stateless_entry
from tests.support.http import connection, head, on_loop
from tests.support.stateless import ACCEPTED, CALL, StatelessClient, said

BRISK = {"stopTimeout": 0.3, "killTimeout": 0.3}
DECLINED = {"action": "decline"}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    servers = {"calm": entry(**BRISK), "shared": entry(**BRISK, isolation="shared"), "modern": stateless_entry(**BRISK)}
    content = config(servers, streams={"streamAfter": 0.1}, stateless={"idleTimeout": 0.3})
    with serving(content, tmp_path_factory.mktemp("hostile")) as gateway:
        yield gateway


async def lines(client: Client) -> list[Any]:
    """What its child was sent, up to this question."""
    return [json.loads(line) for line in json.loads(await client.tool("received"))]


# Answers to questions that were asked of somebody else, or of nobody.


@on_loop
async def test_an_answer_to_a_question_that_nobody_asked_never_reaches_the_server(
    gateway: Gateway, connect: Connect
) -> None:
    asked, forger = await connect(), await connect(token=OTHER_TOKEN)
    reply = await asked.ask(CALL, called("ask_form"), ident=1)
    question = await reply.next_message()
    for ident in (question["id"], "q1", 1, 0, "q99"):
        await forger.answer(ident, {"forged": True})
    await asked.answer("q2", {"forged": True})
    assert [line for line in await lines(forger) if "method" not in line] == []
    await asked.answer(question["id"], ACCEPTED)
    for _ in range(3):
        await asked.answer(question["id"], {"forged": True})
    answer = await asked.settle(reply, 1)
    assert json.loads(answer["result"]["content"][0]["text"]) == ACCEPTED
    assert [line["result"] for line in await lines(asked) if "method" not in line] == [ACCEPTED]


@on_loop
async def test_two_questions_under_one_id_are_two_questions(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    question = {"jsonrpc": "2.0", "id": "same", "method": "elicitation/create", "params": {"message": "?"}}
    both = (json.dumps(question) + "\n").encode() * 2
    reply = await client.ask(CALL, called("raw", hex=both.hex(), answers=True), ident=1)
    asked = [await reply.next_message(), await reply.next_message()]
    assert [message["method"] for message in asked] == ["elicitation/create"] * 2
    for message in asked:
        await client.answer(message["id"], DECLINED)
    told = [line for line in await lines(client) if "method" not in line]
    assert {line["id"] for line in told} == {"same"}
    assert len(told) in (1, 2)
    reply.drop()
    assert await client.tool("echo", nonce="alive") == "alive"


@on_loop
async def test_an_answer_that_comes_after_its_call_was_answered_does_no_harm(
    gateway: Gateway, connect: Connect
) -> None:
    client = await connect()
    question = b'{"jsonrpc":"2.0","id":"late","method":"elicitation/create","params":{"message":"?"}}\n'
    reply = await client.ask(CALL, called("raw", hex=question.hex()), ident=1)
    messages = [message async for message in reply.messages()]
    assert messages[-1]["result"]["content"][0]["text"] == "written"
    for message in messages[:-1]:
        await client.answer(message["id"], ACCEPTED)
    assert await client.tool("echo", nonce="alive") == "alive"


# Races for one session.


@on_loop
async def test_of_many_who_delete_a_session_at_once_one_does(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    running = [await client.ask(CALL, called("sleep", seconds=30), ident=n) for n in range(5)]
    racing = [client.ask(CALL, called("sleep", seconds=30), ident=100 + n) for n in range(10)]
    asked = asyncio.gather(*racing)
    deleted = await asyncio.gather(*(client.delete() for _ in range(10)))
    assert sorted(reply.status for reply in deleted) == [204] + [404] * 9
    await asked
    for n, reply in enumerate(running):
        assert (await client.settle(reply, n))["error"]["code"] == -31006
    assert await client.status() == 404


# Bodies that are broken off.


@pytest.mark.parametrize("era", ["legacy", "modern"])
@on_loop
async def test_a_body_that_is_broken_off_is_never_acted_on(gateway: Gateway, connect: Connect, era: str) -> None:
    client, modern = await connect(), StatelessClient(gateway, "calm", capabilities={})
    message = modern.message(CALL, called("count"), 1)
    headers = client.headers() if era == "legacy" else modern.headers(message)
    body = json.dumps(message).encode()
    for part in range(0, len(body), 11):
        _, writer = await connection(gateway.port)
        sized = {**headers, "Content-Length": str(len(body) + 1)}
        writer.write(head(gateway.port, "POST", client.path, sized) + body[:part])
        await writer.drain()
        option = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, option)
        writer.transport.abort()
    assert await client.tool("count") == "1"
    assert said(await modern.call(CALL, called("count"))) == "1"


# Servers.


@on_loop
async def test_a_server_cannot_answer_calls_before_they_are_asked(gateway: Gateway, connect: Connect) -> None:
    """Ids towards a server rise, so that it can guess them."""
    client = await connect()
    early = "".join(
        json.dumps({"jsonrpc": "2.0", "id": n, "result": {"content": [{"type": "text", "text": "early"}]}}) + "\n"
        for n in range(200)
    )
    assert await client.tool("raw", hex=early.encode().hex()) in ("written", "early")
    assert await client.tool("sleep", seconds=0.2, nonce="asked") == "asked"


@on_loop
async def test_what_outlives_a_server_speaks_for_nobody(gateway: Gateway, connect: Connect) -> None:
    """A process that left the group, and holds its parent's stdout."""
    client = await connect()
    forged = json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "forged": True})
    code = f"trap '' TERM HUP; while sleep 0.02; do echo '{forged}' || exit; done"
    pid = int(await client.tool("spawn", argv=["sh", "-c", code], setsid=True))
    stream = await client.listen()
    assert (await stream.next_message())["method"] == "notifications/tools/list_changed"
    await client.call(CALL, called("die"))
    assert await client.tool("echo", nonce="next") == "next"
    assert eventually(lambda: pid not in gateway.children(), 4)
    stream.drop()
    fresh = await client.listen()
    with pytest.raises(TimeoutError):
        await fresh.next_message(0.5)


# The gateway itself is halted, as by a debugger, a pause of its machine or a want of CPU.


HELD_UP = """
    import time
    from app.core.session import Session
    ask = Session.ask
    def slow(self, request, stream, now):
        if request.method == "freeze":
            time.sleep(1.5)
        return ask(self, request, stream, now)
    Session.ask = slow
"""


@pytest.mark.parametrize("how", ["halted", "held up"])
@on_loop
async def test_what_was_answered_while_the_gateway_heard_nothing_is_answered_in_time(tmp_path: Path, how: str) -> None:
    servers = {"stage": entry(**BRISK, requestTimeout=1, maxRequestTimeout=1, pingTimeout=0.3)}
    with serving(config(servers, streams={"streamAfter": 0.1}), tmp_path, program=program(HELD_UP)) as gateway:
        client, other = StatelessClient(gateway, capabilities={}), await Client(gateway).open()
        reply = await client.ask(CALL, called("sleep", seconds=0.5, nonce="slept"), ident=1)
        assert reply.is_stream
        if how == "halted":
            os.kill(gateway.pid, signal.SIGSTOP)
            await asyncio.sleep(1.5)  # longer than the call may take
            os.kill(gateway.pid, signal.SIGCONT)
        else:
            await (await other.ask("freeze")).body()
        [answer] = [message async for message in reply.messages()]
        assert said(answer) == "slept"
        assert await client.tool("echo", nonce="goes on") == "goes on"


@on_loop
async def test_a_gateway_that_is_halted_between_calls_ends_no_session_and_no_child(tmp_path: Path) -> None:
    servers = {"stage": entry(**BRISK, pingTimeout=0.2)}
    with serving(config(servers, sessions={"idleTimeout": 5, "confirmTimeout": 0.5}), tmp_path) as gateway:
        client = await Client(gateway).open()
        pid = await client.tool("pid")
        os.kill(gateway.pid, signal.SIGSTOP)
        await asyncio.sleep(1)  # longer than all but what ends a session that is known
        os.kill(gateway.pid, signal.SIGCONT)
        assert await client.tool("pid") == pid
