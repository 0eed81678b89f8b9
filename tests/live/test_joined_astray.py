"""Many servers behind one URL, of which one does to a session what it should not: no child too many is left, and what
it offers is known when it is well again."""

from pathlib import Path

from tests.live.test_joined_failures import GOOD, LISTS, at, is_well, joined, opened, tools
from tests.support.client import called
from tests.support.gateway import Gateway, eventually, serving
from tests.support.http import on_loop
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
