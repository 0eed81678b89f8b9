"""One child for all sessions of a server: who hears what, and what nobody may end."""

import json
from collections.abc import Iterator

import pytest

from tests.support.client import Client
from tests.support.gateway import OTHER_TOKEN, Gateway, config, entry, eventually, serving
from tests.support.http import on_loop


@pytest.fixture
def gateway(tmp_path: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    servers = {
        "stage": entry(isolation="shared"),
        "dying": entry(isolation="shared", onExit="end"),
        "folding": entry("--mode", "folds_names", isolation="shared"),
    }
    with serving(config(servers), tmp_path_factory.mktemp("shared")) as gateway:
        yield gateway


@on_loop
async def test_sessions_share_one_child_and_every_answer_finds_its_way(gateway: Gateway) -> None:
    one, two = await Client(gateway).open(), await Client(gateway, token=OTHER_TOKEN).open(version="2025-06-18")
    assert await one.tool("pid") == await two.tool("pid")
    assert len(gateway.children()) == 1
    assert (one.version, two.version) == ("2025-11-25", "2025-06-18")
    for n in range(50):
        assert await one.tool("echo", nonce=f"a{n}") == f"a{n}"
        assert await two.tool("echo", nonce=f"b{n}") == f"b{n}"


@on_loop
async def test_progress_under_one_token_reaches_only_who_asked(gateway: Gateway) -> None:
    one, two = await Client(gateway).open(), await Client(gateway).open()
    params = {"name": "progress", "arguments": {"n": 3, "interval": 0.02}, "_meta": {"progressToken": 1}}
    first, second = await one.ask("tools/call", params, ident=1), await two.ask("tools/call", params, ident=1)
    for reply in (first, second):
        seen = [message async for message in reply.messages()]
        assert [message["params"]["progress"] for message in seen[:-1]] == [1, 2, 3]


HIDDEN = {
    "another case": '{"_META":{"PROGRESSTOKEN":%d}}',
    "another case of the inner name": '{"_meta":{"ProgressToken":%d}}',
    "the first of two": '{"_meta":{"progressToken":%d},"_meta":null}',
    "the first of two inner ones": '{"_meta":{"progressToken":%d,"progressToken":null}}',
}


@pytest.mark.parametrize("kind", HIDDEN)
@on_loop
async def test_no_token_that_is_hidden_from_us_reports_on_somebody_elses_call(gateway: Gateway, kind: str) -> None:
    one, two = await Client(gateway, "folding").open(), await Client(gateway, "folding", OTHER_TOKEN).open()
    wanted = {"name": "progress", "arguments": {"n": 2, "interval": 0.5}, "_meta": {"progressToken": "mine"}}
    victim = await one.ask("tools/call", wanted, ident="v")
    [call] = [line for line in json.loads(await two.tool("received")) if '"interval"' in line]
    meta = (HIDDEN[kind] % json.loads(call)["id"])[1:-1]
    params = '{"name":"progress","arguments":{"n":50,"interval":0},' + meta + "}"
    attack = '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":' + params + "}"
    assert "result" in await two.settle(await two.post(attack.encode()), 9)
    seen = [message async for message in victim.messages()]
    assert [message["params"]["progress"] for message in seen[:-1]] == [1, 2]


@on_loop
async def test_changes_reach_everybody_and_updates_subscribers_only(gateway: Gateway) -> None:
    one, two = await Client(gateway).open(), await Client(gateway).open()
    first, second = await one.listen(), await two.listen()
    assert (await one.call("resources/subscribe", {"uri": "test://1"}))["result"] == {}
    await two.tool("updated", uri="test://1")
    assert (await first.next_message())["params"]["uri"] == "test://1"
    await one.tool("changed", what="tools")
    for stream in (first, second):
        assert (await stream.next_message())["method"] == "notifications/tools/list_changed"


@on_loop
async def test_the_child_is_asked_to_subscribe_once_and_to_unsubscribe_after_the_last(gateway: Gateway) -> None:
    one, two = await Client(gateway).open(), await Client(gateway).open()
    for client in (one, two):
        await client.call("resources/subscribe", {"uri": "test://1"})
    await one.call("resources/unsubscribe", {"uri": "test://1"})
    await two.delete()
    other = await Client(gateway).open()
    lines = await other.tool("received")
    assert lines.count("resources/subscribe") == 1
    assert lines.count("resources/unsubscribe") == 1


@on_loop
async def test_nobody_is_asked_and_log_messages_reach_no_client(gateway: Gateway) -> None:
    one = await Client(gateway).open()
    assert "-32601" in await one.tool("ask_sample")
    stream = await one.listen()
    await one.tool("log", n=3)
    await one.tool("changed", what="tools")
    assert (await stream.next_message())["method"] == "notifications/tools/list_changed"


@on_loop
async def test_no_sessions_end_stops_the_child(gateway: Gateway) -> None:
    one = await Client(gateway).open()
    pid = await one.tool("pid")
    await one.call("shutdown")
    await one.tell("notifications/exit")
    two = await Client(gateway).open()
    await two.delete()
    assert await (await Client(gateway).open()).tool("pid") == pid


@on_loop
async def test_its_death_ends_all_its_sessions_and_the_next_gets_a_new_one(gateway: Gateway) -> None:
    one, two = await Client(gateway, "dying").open(), await Client(gateway, "dying").open()
    pid = await one.tool("pid")
    waiting = await two.ask("tools/call", {"name": "sleep", "arguments": {"seconds": 30}}, ident=5)
    died = await one.call("tools/call", {"name": "die", "arguments": {"code": 9}})
    assert (died["error"]["code"], died["error"]["data"]["exitCode"]) == (-31002, 9)
    assert (await waiting.next_message())["error"]["code"] == -31002
    assert (await two.ask("ping")).status == 404
    assert await (await Client(gateway, "dying").open()).tool("pid") != pid
    assert eventually(lambda: len(gateway.children()) == 1, 3)
