"""Many servers behind one URL, of which one does to a session what it should not: no child too many is left, and what
it offers is known when it is well again."""

from pathlib import Path
from typing import Any

from tests.live.test_joined_failures import GOOD, LISTS, at, is_well, joined, opened, tools
from tests.support.client import called
from tests.support.gateway import Gateway, eventually, serving
from tests.support.http import Reply, on_loop
from tests.support.shelves import shelf, shelves


def test_an_error_that_answers_nothing_does_not_cost_a_session_its_server(tmp_path: Path) -> None:
    """As a server answers what it cannot read."""

    @on_loop
    async def goes_on(gateway: Gateway) -> None:
        client = await opened(gateway)
        before = await client.tool("bad__pid")
        assert '"tool": "mutter"' in await client.tool("bad__mutter")
        assert await client.tool("bad__pid") == before
        assert eventually(lambda: len(gateway.children()) == 1), gateway.children()
        await is_well(client)

    with serving(joined(shelf("bad", "pid", "mutter")), tmp_path) as gateway:
        goes_on(gateway)


def test_a_child_that_refuses_to_be_greeted_is_stopped_and_another_may_be_had(tmp_path: Path) -> None:
    flag = tmp_path / "refuses"

    @on_loop
    async def recovers(gateway: Gateway) -> None:
        client = await opened(gateway)
        assert "bad__pid" in await tools(client)
        assert eventually(lambda: gateway.children() == [])
        flag.touch()
        for _ in range(3):
            answer = await client.call("tools/call", called("bad__pid"))
            assert "not now" in answer["error"]["message"]
        assert eventually(lambda: gateway.children() == []), gateway.children()
        flag.unlink()
        assert (await client.tool("bad__pid")).isdigit()
        assert len(gateway.children()) == 1

    with serving(joined(at("initialize", f"refuse while {flag}", "pid")), tmp_path) as gateway:
        recovers(gateway)


def test_lists_that_a_child_died_over_are_read_from_the_next(tmp_path: Path) -> None:
    """This client sees less than others: it cannot be asked for samples."""
    flag = tmp_path / "hangs"
    bad = at("tools/list", f"hang while {flag}", "pid", "exit", quiet=True, needs="sampling", more=["sample"])

    @on_loop
    async def reads_on(gateway: Gateway) -> None:
        client = await opened(gateway, capabilities={})
        stream = await client.listen()
        assert await tools(client) == ["bad__pid", "bad__exit", "bad__sample", "good__find", "good__pid"]
        flag.touch()
        await client.tool("good__pid")
        answer = await client.call("tools/call", called("bad__exit"))
        assert "error" in answer
        flag.unlink()
        told = await anext(stream.messages())
        assert told["method"] == "notifications/tools/list_changed"
        assert await tools(client) == ["bad__pid", "bad__exit", "good__find", "good__pid"]

    with serving(shelves(("bad", bad), GOOD, catalog=LISTS, restarts={"backoff": 0.3}), tmp_path) as gateway:
        reads_on(gateway)


def test_the_members_of_a_batch_go_each_to_whose_they_are_and_are_answered_together(tmp_path: Path) -> None:
    @on_loop
    async def answers(gateway: Gateway) -> None:
        client = await opened(gateway, version="2025-03-26")
        asked = {
            1: ("tools/call", called("bad__find")),
            "1": ("tools/call", called("good__find")),
            2: ("tools/list", {}),
            3: ("tools/call", called("nobody__find")),
            4: ("logging/setLevel", {"level": "loud"}),
            5: ("ping", {}),
        }
        batch = [{"jsonrpc": "2.0", "id": ident, "method": each[0], "params": each[1]} for ident, each in asked.items()]
        batch.insert(1, {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
        answered = {each["id"]: each for each in await said_of(await client.post(batch))}
        assert answered.keys() == asked.keys()
        assert '"server": "bad"' in str(answered[1]["result"])
        assert '"server": "good"' in str(answered["1"]["result"])
        assert len(answered[2]["result"]["tools"]) == 3
        assert [answered[ident]["error"]["code"] for ident in (3, 4)] == [-32602, -32602]
        assert answered[5]["result"] == {}

    with serving(joined(shelf("bad", "find")), tmp_path) as gateway:
        answers(gateway)


async def said_of(reply: Reply) -> list[dict[str, Any]]:
    """The answers to a batch, in whichever form they come."""
    if not reply.is_stream:
        return list(await reply.json())
    found: list[dict[str, Any]] = []
    async for message in reply.messages():
        found += message if isinstance(message, list) else [message]
    return found


def test_a_session_that_is_shut_down_ends_with_all_its_children_and_those_that_are_shared_go_on(tmp_path: Path) -> None:
    @on_loop
    async def ends(gateway: Gateway) -> None:
        other = await opened(gateway)
        shared = await other.tool("bad__pid")
        client = await opened(gateway)
        own = await client.tool("good__pid")
        assert await client.tool("bad__pid") == shared
        assert (await client.call("shutdown"))["result"] == {}
        await client.tell("notifications/exit")
        assert await client.status() == 404
        assert eventually(lambda: gateway.children() == [int(shared)]), (gateway.children(), own)
        assert await other.tool("bad__pid") == shared

    with serving(joined(shelf("bad", "pid", settings={"isolation": "shared"})), tmp_path) as gateway:
        ends(gateway)
