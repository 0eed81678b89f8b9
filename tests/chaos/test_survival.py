"""Sessions outlive their gateway: it is asked to stop, killed, finds its file torn, or its disk full."""

import asyncio
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import Client, called, greeting
from tests.support.gateway import OTHER_TOKEN, TOKEN, Gateway, config, entry, eventually, serving, stage
from tests.support.http import Event, Reply, on_loop, soon
from tests.support.metrics import number

CALL = "tools/call"
BRISK = {"stopTimeout": 0.3, "killTimeout": 0.3}
CANARY = "canary-in-what-was-said"


def content(folder: Path, **viaduct: Any) -> dict[str, Any]:
    servers = {"stage": entry(**BRISK), "shared": entry(**BRISK, isolation="shared")}
    return config(servers, store=f"sqlite://{folder}/sessions.db", **viaduct)


@contextmanager
def kept(folder: Path, **viaduct: Any) -> Iterator[Gateway]:
    with serving(content(folder, **viaduct), folder) as gateway:
        yield gateway


def kill(gateway: Gateway) -> None:
    gateway.process.kill()
    gateway.process.wait(5)
    assert eventually(lambda: not gateway.children(), 2)


def ended(gateway: Gateway, how: signal.Signals) -> None:
    if how is signal.SIGKILL:
        kill(gateway)
    else:
        assert gateway.stop(how) == 0


async def said_on(reply: Reply) -> list[Event]:
    """To its end."""
    return [event async for event in reply.events() if event.data]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
@on_loop
async def test_an_old_session_is_served_by_a_child_that_is_started_when_somebody_wants_it(
    tmp_path: Path, how: signal.Signals
) -> None:
    with kept(tmp_path) as gateway:
        clients = [await Client(gateway).open(), await Client(gateway, "shared").open()]
        assert [await client.tool("echo", nonce="before") for client in clients] == ["before", "before"]
        ended(gateway, how)
    with kept(tmp_path) as again:
        for client in clients:
            client.port = again.port
            assert await client.tool("echo", nonce="after") == "after"
        assert len(again.children()) == 2


@on_loop
async def test_sessions_outlive_a_server_that_cannot_be_started_when_they_are_taken_up(tmp_path: Path) -> None:
    flag = tmp_path / "net"
    command = ["-c", f"test -e {flag} || exit 9; exec {' '.join(stage())}"]
    servers = {"later": {"command": "sh", "args": command, **BRISK}}
    restarts = {"backoff": 0.05, "maxBackoff": 0.5, "deaths": 3, "coolDown": 0.5}
    told = config(servers, store=f"sqlite://{tmp_path}/sessions.db", restarts=restarts)
    flag.touch()
    with serving(told, tmp_path) as gateway:
        clients = [await Client(gateway, "later").open() for _ in range(6)]
        kill(gateway)
    flag.unlink()
    with serving(told, tmp_path) as again:
        for client in clients:
            client.port = again.port
        refused = await asyncio.gather(*(client.status() for client in clients))
        assert set(refused) <= {200, 503}
        assert eventually(lambda: "server failed" in again.log, 5)
        flag.touch()

        async def all_are_served() -> bool:
            said = await asyncio.gather(*(client.status() for client in clients))
            assert set(said) <= {200, 503}
            return set(said) == {200} and len(again.children()) == 6

        assert await soon(all_are_served, 10)
        assert {await client.tool("echo", nonce="after") for client in clients} == {"after"}


@on_loop
async def test_no_child_is_started_before_that_and_none_for_who_only_ends_its_session(tmp_path: Path) -> None:
    with kept(tmp_path) as gateway:
        client, other = await Client(gateway).open(), await Client(gateway).open()
        kill(gateway)
    with kept(tmp_path) as again:
        client.port = other.port = again.port
        assert await number(again, "viaduct_sessions_asleep", server="stage") == 2
        await (await Client(again).open()).tool("echo", nonce="another")
        assert len(again.children()) == 1
        reply = await client.delete()
        await reply.body()
        assert reply.status == 204
        assert len(again.children()) == 1
        assert await client.status() == 404
        assert await other.status() == 200
        assert len(again.children()) == 2


@on_loop
async def test_the_next_child_is_told_what_the_one_before_it_knew(tmp_path: Path) -> None:
    with kept(tmp_path) as gateway:
        client = await Client(gateway).open(capabilities={"roots": {}})
        await client.call("logging/setLevel", {"level": "error"})
        await client.call("resources/subscribe", {"uri": "test://one"})
        await client.call("resources/subscribe", {"uri": "test://two"})
        await client.call("resources/unsubscribe", {"uri": "test://one"})
        kill(gateway)
    with kept(tmp_path) as again:
        client.port = again.port
        received = [json.loads(line) for line in json.loads(await client.tool("received"))]
    methods = [message["method"] for message in received]
    assert methods == [
        "initialize",
        "notifications/initialized",
        "logging/setLevel",
        "resources/subscribe",
        "tools/call",
    ]
    assert received[0]["params"]["capabilities"] == {"roots": {}}
    assert received[2]["params"] == {"level": "error"}
    assert received[3]["params"] == {"uri": "test://two"}


@on_loop
async def test_the_client_hears_on_its_stream_that_its_lists_may_be_others(tmp_path: Path) -> None:
    with kept(tmp_path) as gateway:
        client = await Client(gateway).open()
        stream = await client.listen()
        last = (await stream.next_event()).id
        kill(gateway)
    with kept(tmp_path) as again:
        client.port = again.port
        resumed = await client.listen(last)
        told = {(await resumed.next_message())["method"] for _ in range(3)}
        assert told == {f"notifications/{what}/list_changed" for what in ("tools", "prompts", "resources")}


@on_loop
async def test_what_a_stream_said_after_the_last_event_that_was_heard_is_said_again_by_the_next_gateway(
    tmp_path: Path,
) -> None:
    with kept(tmp_path) as gateway:
        client = await Client(gateway).open()
        message = called("progress", n=6, interval=0.01) | {"_meta": {"progressToken": "p"}}
        reply = await client.ask(CALL, message, 7)
        events = await said_on(reply)
        assert len(events) == 7
        kill(gateway)
    with kept(tmp_path) as again:
        client.port = again.port
        resumed = await client.listen(events[3].id)
        said = await said_on(resumed)
        assert [(event.id, event.data) for event in said] == [(event.id, event.data) for event in events[4:]]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
@on_loop
async def test_a_call_that_was_in_flight_is_answered_on_its_stream_with_what_is_known(
    tmp_path: Path, how: signal.Signals
) -> None:
    with kept(tmp_path, streams={"streamAfter": 0.05}, drain=0.1) as gateway:
        client = await Client(gateway).open()
        reply = await client.ask(CALL, called("sleep", seconds=60), "mine")
        first = await reply.next_event()
        ended(gateway, how)
    with kept(tmp_path) as again:
        client.port = again.port
        resumed = await client.listen(first.id)
        answers = await said_on(resumed)
        assert [answer.message["id"] for answer in answers] == ["mine"]
        error = answers[0].message["error"]
        assert (error["code"], error["data"]["executed"]) in {(-31006, "unknown"), (-31002, "unknown")}
        assert error["code"] == (-31002 if how is signal.SIGKILL else -31006)
        once_more = await client.listen(answers[0].id)
        assert await said_on(once_more) == []


@on_loop
async def test_event_ids_are_never_used_again(tmp_path: Path) -> None:
    used: list[str] = []
    client: Client | None = None
    for _ in range(3):
        with kept(tmp_path) as gateway:
            client = await Client(gateway).open() if client is None else client
            client.port = gateway.port
            for _ in range(3):
                stream = await client.listen()
                used += [str((await stream.next_event()).id)]
                stream.close()
            kill(gateway)
    numbers = [int(ident.rpartition("-")[2]) for ident in used]
    assert numbers == sorted(set(numbers))
    assert len({ident.split("-")[0] for ident in used}) == 1


@on_loop
async def test_a_late_answer_to_a_question_of_before_meets_no_question_of_now(tmp_path: Path) -> None:
    with kept(tmp_path, streams={"streamAfter": 0.05}) as gateway:
        client = await Client(gateway).open()
        asked = await client.ask(CALL, called("ask_roots"), 1)
        old = await question(asked)
        kill(gateway)
    with kept(tmp_path) as again:
        client.port = again.port
        asked = await client.ask(CALL, called("ask_roots"), 2)
        new = await question(asked)
        assert new != old
        await client.answer(old, {"roots": [{"uri": "file:///late"}]})
        await client.answer(new, {"roots": [{"uri": "file:///right"}]})
        assert "file:///right" in json.dumps(await client.settle(asked, 2))


async def question(reply: Reply) -> Any:
    while True:
        message = await reply.next_message()
        if message.get("method") == "roots/list":
            return message["id"]


@on_loop
async def test_nobody_but_its_client_takes_it_up(tmp_path: Path) -> None:
    with kept(tmp_path) as gateway:
        client = await Client(gateway).open()
        kill(gateway)
    with kept(tmp_path) as again:
        client.port = again.port
        client.token = OTHER_TOKEN
        foreign = await client.ask("ping")
        client.token, client.path = TOKEN, "/servers/shared/mcp"
        elsewhere = await client.ask("ping")
        unknown = Client(again, "shared")
        unknown.session = "never-heard-of"
        none = await unknown.ask("ping")
        bodies = {(reply.status, await reply.body()) for reply in (foreign, elsewhere, none)}
        assert len(bodies) == 1
        assert foreign.status == 404
        client.path = "/servers/stage/mcp"
        assert await client.status() == 200


@on_loop
async def test_many_who_come_back_at_once_with_one_id_find_one_session(tmp_path: Path) -> None:
    with kept(tmp_path) as gateway:
        client = await Client(gateway).open()
        kill(gateway)
    with kept(tmp_path) as again:
        client.port = again.port
        pids = await asyncio.gather(*(client.tool("pid") for _ in range(20)))
        assert len(set(pids)) == 1
        assert len(again.children()) == 1


@on_loop
async def test_a_session_that_is_woken_by_what_cannot_be_read_lives_as_long_as_any_other(tmp_path: Path) -> None:
    with kept(tmp_path) as gateway:
        client = await Client(gateway).open()
        kill(gateway)
    with kept(tmp_path, sessions={"confirmTimeout": 0.3}) as again:
        client.port = again.port
        assert (await client.post(b"{")).status == 400
        new = await Client(again).post(greeting())
        assert await new.body()
        assert eventually(lambda: "reason=unconfirmed" in again.log, 5)
        assert await client.tool("echo", nonce="alive") == "alive"


@on_loop
async def test_what_was_ended_or_not_used_for_too_long_is_not_taken_up(tmp_path: Path) -> None:
    with kept(tmp_path) as gateway:
        ended_one, unused, used = [await Client(gateway).open() for _ in range(3)]
        await (await ended_one.delete()).body()
        kill(gateway)
    with kept(tmp_path, sessions={"idleTimeout": 4}) as again:
        for client in (ended_one, unused, used):
            client.port = again.port
        assert await ended_one.status() == 404
        stream = await used.listen()
        assert eventually(lambda: "a session of before is forgotten" in again.log, 10)
        assert await unused.status() == 404
        assert await used.status() == 200
        stream.close()


@on_loop
async def test_sessions_that_were_left_count_and_of_too_many_the_longest_unused_go(
    tmp_path: Path,
) -> None:
    with kept(tmp_path) as gateway:
        clients = [await Client(gateway).open() for _ in range(3)]
        kill(gateway)
    with kept(tmp_path, sessions={"maxPerPrincipal": 2}) as again:
        for client in clients:
            client.port = again.port
        assert [await client.status() for client in clients] == [404, 200, 200]
        reply = await Client(again).post(greeting())
        assert reply.status == 429
        reply.close()
        await (await clients[1].delete()).body()
        assert await (await Client(again).open()).tool("echo", nonce="room") == "room"


@on_loop
async def test_nobody_makes_room_with_the_sessions_of_others_and_everybody_with_their_own(tmp_path: Path) -> None:
    with kept(tmp_path, sessions={"max": 4, "maxPerPrincipal": 3}) as gateway:
        mine = [await Client(gateway).open() for _ in range(3)]
        theirs = await Client(gateway, token=OTHER_TOKEN).open()
        kill(gateway)
    with kept(tmp_path, sessions={"max": 4, "maxPerPrincipal": 3}) as again:
        for client in (*mine, theirs):
            client.port = again.port
        fresh = await Client(again, token=OTHER_TOKEN).open()
        assert await fresh.tool("echo", nonce="in its own place") == "in its own place"
        reply = await Client(again, token=OTHER_TOKEN).post(greeting())
        assert reply.status == 503
        reply.close()
        assert [await client.status() for client in mine] == [200, 200, 200]
        assert await theirs.status() == 404
