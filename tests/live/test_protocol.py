"""The whole protocol through the real gateway: what goes in comes out, both ways."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.client import Client
from tests.support.gateway import Gateway, config, entry, eventually, serving
from tests.support.http import on_loop

CALL = "tools/call"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    servers = {
        "stage": entry(),
        "old": entry("--version", "2024-11-05"),
        "batching": entry("--version", "2025-03-26"),
        "polite": entry("--mode", "knows_shutdown"),
        "chatty": entry("--mode", "answers_notifications"),
        "batch": entry("--mode", "batch"),
    }
    with serving(config(servers), tmp_path_factory.mktemp("live")) as gateway:
        yield gateway


@on_loop
async def test_the_servers_own_greeting_reaches_the_client_unchanged(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    assert client.greeted["result"]["serverInfo"] == {"name": "stage", "version": "1", "extra": "ünïcode"}
    assert client.greeted["result"]["instructions"] == "be kind"
    assert client.greeted["result"]["capabilities"]["experimental"] == {"future": {"n": 1.0}}
    assert (await Client(gateway, "old").open()).version == "2024-11-05"


@pytest.mark.parametrize(
    ("method", "key"),
    [
        ("tools/list", "tools"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ],
)
@on_loop
async def test_every_page_of_every_list_is_reachable(gateway: Gateway, method: str, key: str) -> None:
    client = await Client(gateway).open()
    first = (await client.call(method))["result"]
    second = (await client.call(method, {"cursor": first["nextCursor"]}))["result"]
    names = [item["name"] for item in first[key] + second[key]]
    assert len(names) == len(set(names)) >= 4
    assert "nextCursor" not in second


@on_loop
async def test_reading_prompting_completing_and_subscribing_pass_through(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    assert (await client.call("resources/read", {"uri": "test://1"}))["result"]["contents"][0]["text"] == "content"
    assert (await client.call("prompts/get", {"name": "p1"}))["result"]["messages"][0]["content"]["text"] == "p1"
    completed = await client.call("completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {}})
    assert completed["result"]["completion"]["values"] == ["a", "b"]
    for method in ("resources/subscribe", "resources/unsubscribe"):
        assert (await client.call(method, {"uri": "test://1"}))["result"] == {}
    assert (await client.call("logging/setLevel", {"level": "debug"}))["result"] == {}
    assert (await client.call("ping"))["result"] == {}


@on_loop
async def test_unknown_methods_and_fields_pass_byte_for_byte(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    sent = (
        b'{"jsonrpc":"2.0","id":"a b","method":"future/echo","params":{"z":[1.50,1e3],"a":"\\u00e9","_meta":{"x":1.0}}}'
    )
    body = await (await client.post(sent)).body()
    assert body.startswith(b'{"jsonrpc":"2.0","id":"a b","result":{"z":1.0,"a":1e5,"big":12345678901234567890123,')
    lines = await client.tool("received")
    assert '\\"params\\":{\\"z\\":[1.50,1e3],\\"a\\":\\"\\\\u00e9\\",\\"_meta\\":{\\"x\\":1.0}}' in lines
    assert (await client.call("no/such"))["error"]["code"] == -32601


@on_loop
async def test_a_pretty_printed_message_reaches_the_server_as_one_line(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    sent = b'{\r\n "jsonrpc": "2.0",\n "id": 1,\n "method": "tools/call",\n "params": {\n "name": "pid"\n }\n}'
    reply = await client.post(sent)
    assert (await reply.json())["result"]["content"][0]["text"].isdigit()


@pytest.mark.parametrize(
    ("tool", "method", "answer"),
    [
        ("ask_form", "elicitation/create", {"action": "accept", "content": {"name": "张三"}}),
        ("ask_url", "elicitation/create", {"action": "decline"}),
        ("ask_sample", "sampling/createMessage", {"role": "assistant", "content": {"type": "text", "text": "x"}}),
        ("ask_roots", "roots/list", {"roots": [{"uri": "file:///x"}]}),
        ("ask_ping", "ping", {}),
    ],
)
@on_loop
async def test_a_question_in_mid_call_reaches_the_client_and_its_answer_the_server(
    gateway: Gateway, tool: str, method: str, answer: dict[str, Any]
) -> None:
    client = await Client(gateway).open()
    reply = await client.ask(CALL, {"name": tool}, ident=9)
    question = await reply.next_message()
    assert question["method"] == method
    await client.answer(question["id"], answer)
    import json

    final = await reply.next_message()
    assert final["id"] == 9
    assert json.loads(final["result"]["content"][0]["text"]) == answer


@on_loop
async def test_a_client_that_cannot_be_asked_is_not(gateway: Gateway) -> None:
    client = await Client(gateway).open(capabilities={})
    assert "-32601" in await client.tool("ask_sample")


@on_loop
async def test_progress_comes_with_the_clients_own_token_and_stops_with_the_answer(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    params = {"name": "progress", "arguments": {"n": 3, "after": True}, "_meta": {"progressToken": "töken"}}
    reply = await client.ask(CALL, params, ident="p")
    seen = [message async for message in reply.messages()]
    assert [message["params"]["progressToken"] for message in seen[:-1]] == ["töken"] * 3
    assert seen[-1]["id"] == "p"


@on_loop
async def test_one_id_twice_in_flight_gets_each_its_own_answer(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    import asyncio

    async def one(nonce: str, seconds: float) -> str:
        params = {"name": "sleep", "arguments": {"seconds": seconds, "nonce": nonce}}
        answer = await client.settle(await client.ask(CALL, params, ident=1), 1)
        return answer["result"]["content"][0]["text"]

    assert await asyncio.gather(one("slow", 0.4), one("fast", 0.1), one("mid", 0.2)) == ["slow", "fast", "mid"]


@pytest.mark.parametrize("ident", [0, -5, 2**63, "1", "ü", "x" * 256])
@on_loop
async def test_an_id_comes_back_as_it_was(gateway: Gateway, ident: int | str) -> None:
    client = await Client(gateway).open()
    answer = await (await client.ask("ping", ident=ident)).json()
    assert answer["id"] == ident
    assert type(answer["id"]) is type(ident)


@on_loop
async def test_cancelling_reaches_the_server_under_its_own_id_and_leaves_it_alive(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    reply = await client.ask(CALL, {"name": "sleep", "arguments": {"seconds": 30}}, ident="long")
    await client.tell("notifications/cancelled", {"requestId": "long", "reason": "enough"})
    assert [message["error"]["code"] async for message in reply.messages()] == [-31009]
    cancelled = await client.tool("cancelled")
    assert len(cancelled) > 2
    assert "long" not in cancelled


@pytest.mark.parametrize("what", ["tools", "prompts", "resources"])
@on_loop
async def test_list_changed_reaches_a_get_stream_once(gateway: Gateway, what: str) -> None:
    client = await Client(gateway).open()
    stream = await client.listen()
    await client.tool("changed", what=what)
    assert (await stream.next_message())["method"] == f"notifications/{what}/list_changed"
    stream.drop()


@on_loop
async def test_of_several_get_streams_each_message_takes_exactly_one(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    one, two = await client.listen(), await client.listen()
    await client.tool("changed", what="tools")
    await client.tool("updated", uri="test://9")
    messages = {(await two.next_message())["method"], (await two.next_message())["method"]}
    assert messages == {"notifications/tools/list_changed", "notifications/resources/updated"}
    two.drop()
    one.drop()


@on_loop
async def test_shutdown_is_answered_for_a_server_that_does_not_know_it_and_exit_ends_the_session(
    gateway: Gateway,
) -> None:
    client = await Client(gateway).open()
    pid = int(await client.tool("pid"))
    assert (await client.call("shutdown"))["result"] == {}
    refused = await client.ask("tools/list")
    assert refused.status == 400
    await client.tell("notifications/exit")
    assert (await client.ask("ping")).status == 404
    assert eventually(lambda: pid not in gateway.children(), 6)


@on_loop
async def test_a_server_that_knows_shutdown_answers_it_itself(gateway: Gateway) -> None:
    client = await Client(gateway, "polite").open()
    assert (await client.call("shutdown"))["result"] == {"bye": True}


@on_loop
async def test_initialized_without_its_prefix_is_understood(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    await client.tell("initialized")
    assert '\\"method\\":\\"initialized\\"' not in await client.tool("received")


@on_loop
async def test_a_server_that_answers_notifications_does_no_harm(gateway: Gateway) -> None:
    client = await Client(gateway, "chatty").open()
    await client.tell("notifications/roots/list_changed")
    assert await client.tool("echo", nonce="fine") == "fine"


@on_loop
async def test_an_array_line_of_a_server_is_unpacked(gateway: Gateway) -> None:
    client = await Client(gateway, "batch").open()
    stream = await client.listen()
    assert (await stream.next_message())["method"] == "notifications/tools/list_changed"
    assert (await stream.next_message())["method"] == "notifications/x"
    stream.drop()


@on_loop
async def test_batches_are_answered_where_the_revision_has_them_and_refused_elsewhere(gateway: Gateway) -> None:
    batch = [{"jsonrpc": "2.0", "id": n, "method": "ping"} for n in (1, "1")]
    client = await Client(gateway, "batching").open(version="2025-03-26")
    answers = await (await client.post(batch)).json()
    assert sorted((answer["id"] for answer in answers), key=str) == [1, "1"]
    told = await client.post([{"jsonrpc": "2.0", "method": "notifications/x"}])
    assert (told.status, await told.body()) == (202, b"")
    assert (await client.post([])).status == 400
    assert (await (await Client(gateway).open()).post(batch)).status == 400


@on_loop
async def test_a_client_that_names_no_session_is_served_by_one_of_its_own(gateway: Gateway) -> None:
    one, other = Client(gateway), Client(gateway, token="the-token-of-somebody-else-entirely")
    assert [await one.tool("count"), await one.tool("count"), await other.tool("count")] == ["1", "2", "1"]
    await one.tell("notifications/roots/list_changed")
    assert (await one.listen()).status == 405
