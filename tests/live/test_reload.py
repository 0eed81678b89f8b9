"""Another configuration while clients are connected: what becomes of servers, their sessions and who is let in."""

import asyncio
import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.auth.tokens import hash_of
from tests.live.reloadable import CONTENT, QUICK, as_it_was, environment, other, renewed, status
from tests.support.client import Client, KeptAlive, called, greeting
from tests.support.gateway import OTHER_TOKEN, Gateway, config, entry, eventually, serving
from tests.support.http import Reply, on_loop, request, soon
from tests.support.metrics import numbers
from tests.support.reloading import reloaded
from tests.support.sse_client import SseClient
from tests.support.stateless import CALL, StatelessClient


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with serving(CONTENT, tmp_path_factory.mktemp("reload")) as gateway:
        yield gateway


@pytest.fixture
def gateway(running: Gateway) -> Iterator[Gateway]:
    with as_it_was(running) as gateway:
        yield gateway


async def rest(stream: Reply) -> list[Any]:
    """What it still says before it ends."""
    return [message async for message in stream.messages()]


# Servers.


@on_loop
async def test_a_server_that_is_the_same_keeps_its_sessions_and_every_child(gateway: Gateway) -> None:
    client, shared = await Client(gateway, "calm").open(), await Client(gateway, "common").open()
    modern, stateless = StatelessClient(gateway, "calm"), StatelessClient(gateway, "stateless")
    clients = client, shared, modern, stateless
    before = [await each.tool("pid") for each in clients]
    await reloaded(gateway, other(stage=renewed(), added=entry(**QUICK)))
    assert [await each.tool("pid") for each in clients] == before


@on_loop
async def test_a_server_that_is_added_serves_at_once_in_both_eras(gateway: Gateway) -> None:
    assert await status(gateway, "/servers/added/mcp") == 404
    await reloaded(gateway, other(added=entry(**QUICK)))
    assert await (await Client(gateway, "added").open()).tool("echo", nonce="a") == "a"
    assert await StatelessClient(gateway, "added").tool("echo", nonce="b") == "b"
    assert frozenset({("server", "added")}) in (await numbers(gateway))["viaduct_sessions"]


@on_loop
async def test_a_server_that_is_removed_ends_its_calls_and_leaves_nothing(gateway: Gateway) -> None:
    client, sse = await Client(gateway, "stage").open(), await SseClient(gateway, "/servers/stage/sse").open()
    idle = await Client(gateway, "stage").open()
    stream = await idle.listen()
    await StatelessClient(gateway, "stage").tool("pid")
    pids = [int(await each.tool("pid")) for each in (client, sse, idle)]
    calls = [
        asyncio.create_task(client.tool("sleep", seconds=1, nonce="legacy")),
        asyncio.create_task(sse.tool("sleep", seconds=1, nonce="sse")),
        asyncio.create_task(StatelessClient(gateway, "stage").tool("sleep", seconds=1, nonce="modern")),
    ]
    fds = gateway.fds()

    async def are_on_their_way() -> bool:
        return sum((await numbers(gateway))["viaduct_calls_in_flight"].values()) == 3

    assert await soon(are_on_their_way)
    await reloaded(gateway, other(stage=None))
    assert (await Client(gateway, "stage").post(greeting())).status == 404
    assert (await Client(gateway, "stage").post({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status == 404
    answer = await StatelessClient(gateway, "stage").ask(CALL, called("pid"))
    assert answer.status == 404
    assert await rest(stream) == []
    assert await asyncio.gather(*calls) == ["legacy", "sse", "modern"]
    assert eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), 3)
    assert await status(gateway, "/servers/stage/mcp") == 404
    assert await idle.status() == 404
    assert "server_removed" in gateway.log
    assert frozenset({("server", "stage")}) not in (await numbers(gateway))["viaduct_sessions"]
    assert eventually(lambda: gateway.fds() <= fds, 3)


@on_loop
async def test_a_call_that_outlasts_the_drain_of_its_server_hears_so(gateway: Gateway) -> None:
    short = other()
    short["viaduct"]["drain"] = 0.2
    await reloaded(gateway, short)
    client = await Client(gateway, "stage").open()
    call = asyncio.create_task(client.call("tools/call", called("sleep", seconds=20)))
    modern = asyncio.create_task(StatelessClient(gateway, "stage").call(CALL, called("sleep", seconds=20)))
    await client.tool("pid")
    short["mcpServers"].pop("stage")
    await reloaded(gateway, short)
    for answer in await asyncio.gather(call, modern):
        assert answer["error"]["data"]["executed"] == "unknown"


@on_loop
async def test_a_session_goes_on_with_a_child_of_the_new_configuration(gateway: Gateway) -> None:
    client = await Client(gateway, "stage").open()
    assert "REVISION" not in await environment(client)
    call = asyncio.create_task(client.tool("sleep", seconds=0.5, nonce="kept"))
    modern = StatelessClient(gateway, "stage")
    assert "REVISION" not in await modern.tool("env")
    await reloaded(gateway, other(stage=renewed(7)))
    assert (await environment(await Client(gateway, "stage").open()))["REVISION"] == "7"
    assert '"REVISION": "7"' in await modern.tool("env")
    assert await call == "kept"

    async def is_new() -> bool:
        return (await environment(client)).get("REVISION") == "7"

    assert await soon(is_new, 3)


@on_loop
async def test_sessions_of_a_shared_child_go_on_at_the_next_one(gateway: Gateway) -> None:
    clients = [await Client(gateway, "common").open() for _ in range(2)]
    [pid] = {await client.tool("pid") for client in clients}
    await reloaded(gateway, other(common=renewed(isolation="shared")))
    [later] = {await client.tool("pid") for client in (*clients, await Client(gateway, "common").open())}
    assert later != pid
    assert eventually(lambda: not Path(f"/proc/{pid}").exists(), 3)


@on_loop
async def test_who_listens_at_a_server_that_changed_is_told_that_its_lists_may_have(gateway: Gateway) -> None:
    client = await Client(gateway, "stage").open()
    stream = await client.listen()
    await reloaded(gateway, other(stage=renewed()))
    assert (await stream.next_message())["method"] == "notifications/tools/list_changed"


@on_loop
async def test_a_session_that_cannot_go_on_ends(gateway: Gateway) -> None:
    client = await Client(gateway, "stage").open()
    await reloaded(gateway, other(stage=renewed(isolation="shared")))

    async def is_over() -> bool:
        return await client.status() == 404

    assert await soon(is_over, 3)
    assert (await environment(await Client(gateway, "stage").open()))["REVISION"] == "1"


@on_loop
async def test_a_server_that_is_disabled_is_removed_and_comes_back(gateway: Gateway) -> None:
    client = await Client(gateway, "stage").open()
    await reloaded(gateway, other(stage=entry(disabled=True)))
    assert await client.status() == 404
    await reloaded(gateway, CONTENT)
    assert await client.status() == 404
    assert await (await Client(gateway, "stage").open()).tool("echo", nonce="x") == "x"


@on_loop
async def test_warm_children_are_those_of_the_last_configuration(gateway: Gateway) -> None:
    await reloaded(gateway, other(warm=renewed(warm=2)))

    def revisions() -> list[bool]:
        return [b"REVISION=1" in Path(f"/proc/{pid}/environ").read_bytes() for pid in gateway.direct_children()
                if b"stage.py" in Path(f"/proc/{pid}/cmdline").read_bytes()]  # fmt: skip

    assert eventually(lambda: sum(revisions()) == 2, 5), revisions()


@on_loop
async def test_what_a_parked_call_asked_can_be_answered_though_its_server_changed(gateway: Gateway) -> None:
    client = StatelessClient(gateway, "stage")
    asked = await client.asked("ask_form", nonce="n")
    await reloaded(gateway, other(stage=renewed()))
    key = next(iter(asked["inputRequests"]))
    answer = await client.retry(asked, {key: {"action": "accept", "content": {}}}, "ask_form", nonce="n")
    assert answer["result"]["resultType"] == "complete"


# Who is let in.


def without(content: dict[str, Any], name: str) -> dict[str, Any]:
    tokens = content["viaduct"]["auth"]["tokens"]
    content["viaduct"]["auth"]["tokens"] = [token for token in tokens if token["name"] != name]
    return content


@on_loop
async def test_a_token_that_is_taken_out_ends_what_it_opened_and_admits_nobody(gateway: Gateway) -> None:
    mine, theirs = await Client(gateway).open(), await Client(gateway, token=OTHER_TOKEN).open()
    kept, ended = await mine.listen(), await theirs.listen()
    subscription = await StatelessClient(gateway, token=OTHER_TOKEN).listen(toolsListChanged=True)
    connection = KeptAlive(gateway)
    for ident in range(3):
        assert (await connection.post(theirs, {"jsonrpc": "2.0", "id": ident, "method": "ping"}))[0].status == 200
    await reloaded(gateway, without(other(), "other"))
    assert await rest(ended) == []
    assert [message.keys() for message in await rest(subscription)][-1] == {"jsonrpc", "id", "result"}
    assert (await connection.post(theirs, {"jsonrpc": "2.0", "id": 9, "method": "ping"}))[0].status == 401
    assert await theirs.status() == 401
    await mine.tool("updated", uri="test://1")
    assert (await kept.next_message())["method"] == "notifications/resources/updated"


@on_loop
async def test_a_token_that_is_added_is_let_in(gateway: Gateway) -> None:
    fresh = "a-token-that-was-not-there-before"
    assert await Client(gateway, token=fresh).status() == 401
    content = other()
    content["viaduct"]["auth"]["tokens"].append({"name": "fresh", "hash": hash_of(fresh)})
    await reloaded(gateway, content)
    assert await (await Client(gateway, token=fresh).open()).tool("echo", nonce="x") == "x"


@on_loop
async def test_a_policy_holds_in_sessions_that_are_open(gateway: Gateway) -> None:
    client, elsewhere = await Client(gateway, "stage").open(), await Client(gateway, "calm").open()
    subscription = await StatelessClient(gateway, "stage").listen(toolsListChanged=True)
    content = other()
    content["viaduct"]["policy"] = [{"allow": ["stage/echo"]}]
    await reloaded(gateway, content)
    assert await client.tool("echo", nonce="x") == "x"
    assert "unknown tool" in (await client.call("tools/call", called("pid")))["error"]["message"]
    assert await elsewhere.status() == 404
    assert [message.keys() for message in await rest(subscription)][-1] == {"jsonrpc", "id", "result"}
    await reloaded(gateway, CONTENT)
    assert int(await client.tool("pid"))
    assert await elsewhere.status() == 404


@on_loop
async def test_hosts_origins_and_numbers_are_others_at_once_on_old_connections(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    connection = KeptAlive(gateway)
    for ident in range(3):
        assert (await connection.post(client, {"jsonrpc": "2.0", "id": ident, "method": "ping"}))[0].status == 200
    content = other()
    content["viaduct"] |= {"allowedOrigins": ["https://app.example.com"], "metrics": "open"}
    content["viaduct"]["limits"] = {"batch": 7}
    content["viaduct"]["sessions"] = {"withoutId": "reject", "maxPerPrincipal": 1}
    await reloaded(gateway, content)
    reply, answer = await connection.post(client, {"jsonrpc": "2.0", "id": 5, "method": "ping"})
    assert (reply.status, answer["result"]) == (200, {})
    assert (
        await client.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, Origin="https://app.example.com")
    ).status == 200
    assert (await Client(gateway).post({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status == 400
    assert (await Client(gateway).post(greeting())).status == 429
    assert (await request(gateway.port, "GET", "/metrics", token=None)).status == 200


def test_a_session_in_the_store_sleeps_on_while_its_server_is_not_configured(tmp_path: Path) -> None:
    """Nobody reaches it, and nothing fails for it; when the server is back, so is the session."""
    both = config(
        {"stage": entry(**QUICK), "calm": entry(**QUICK)}, watchInterval=0.05, store=f"sqlite://{tmp_path}/s.db"
    )
    one = copy.deepcopy(both)
    del one["mcpServers"]["stage"]
    clients: list[Client] = []

    async def begin() -> None:
        clients.append(await Client(gateway, "stage").open())

    async def go_on() -> None:
        [client] = clients
        client.port = gateway.port
        assert await client.status() == 404
        assert frozenset({("server", "stage")}) not in (await numbers(gateway))["viaduct_sessions_asleep"]
        await reloaded(gateway, both)
        assert await client.tool("echo", nonce="x") == "x"

    with serving(both, tmp_path) as gateway:
        on_loop(begin)()
        assert gateway.stop() == 0
    with serving(one, tmp_path) as gateway:
        on_loop(go_on)()
