"""The whole protocol over HTTP+SSE of 2024-11-05, as older clients speak it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.client import Client, called
from tests.support.gateway import OTHER_TOKEN, TOKEN, Gateway, config, entry, eventually, serving
from tests.support.http import ACCEPT, on_loop, request
from tests.support.sse_client import SseClient

CALL = "tools/call"
PONG: dict[str, Any] = {"jsonrpc": "2.0", "result": {}}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    servers = {"stage": entry(stopTimeout=0.5), "fails": entry("--mode", "exit_early")}
    content = config(servers, streams={"keepAlive": 0.3}, sessions={"shutdownGrace": 0.3})
    with serving(content, tmp_path_factory.mktemp("sse")) as gateway:
        yield gateway


@pytest.mark.parametrize("path", ["/servers/stage/sse", "/servers/stage/sse/"])
@on_loop
async def test_the_endpoint_is_a_relative_reference_from_both_spellings(gateway: Gateway, path: str) -> None:
    client = await SseClient(gateway, path).open()
    assert client.target.startswith("/servers/stage/messages?")
    assert client.greeted["result"]["serverInfo"]["name"] == "stage"
    assert client.greeted["result"]["protocolVersion"] == "2024-11-05"
    client.stream.drop()


@on_loop
async def test_its_events_carry_no_ids_and_its_stream_is_kept_warm(gateway: Gateway) -> None:
    client = await SseClient(gateway).open()
    assert client.stream.headers["x-accel-buffering"] == "no"
    assert client.stream.headers["cache-control"] == "no-cache, no-transform"
    assert (await client.stream.anything(2)).comment is not None
    await client.ask("ping")
    event = await client.stream.next_event()
    assert (event.event in (None, "message"), event.id, event.message["result"]) == (True, None, {})
    client.stream.drop()


@on_loop
async def test_everything_that_is_listed_is_reached_page_by_page(gateway: Gateway) -> None:
    client = await SseClient(gateway).open()
    for method, key in (
        ("tools/list", "tools"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ):
        first = (await client.call(method))["result"]
        second = (await client.call(method, {"cursor": first["nextCursor"]}))["result"]
        assert len({item["name"] for item in first[key] + second[key]}) == len(first[key]) + len(second[key])
        assert "nextCursor" not in second
    client.stream.drop()


@on_loop
async def test_reading_prompting_completing_and_levels_pass_through(gateway: Gateway) -> None:
    client = await SseClient(gateway).open()
    assert (await client.call("resources/read", {"uri": "test://1"}))["result"]["contents"][0]["uri"] == "test://1"
    assert (await client.call("prompts/get", {"name": "p"}))["result"]["messages"][0]["content"]["text"] == "p"
    reference = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}
    assert (await client.call("completion/complete", reference))["result"]["completion"]["values"] == ["a", "b"]
    assert (await client.call("logging/setLevel", {"level": "debug"}))["result"] == {}
    assert (await client.call("no/such"))["error"]["code"] == -32601
    client.stream.drop()


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
    client = await SseClient(gateway).open()
    ident = await client.ask(CALL, called(tool))
    question = await client.hears(method)
    assert await client.post({"jsonrpc": "2.0", "id": question["id"], "result": answer}) == 202
    result = (await client.settle(202, ident))["result"]
    assert json.loads(result["content"][0]["text"]) == answer
    client.stream.drop()


@on_loop
async def test_progress_logs_and_news_arrive(gateway: Gateway) -> None:
    client = await SseClient(gateway).open()
    params = {**called("progress", n=3), "_meta": {"progressToken": "töken"}}
    assert "result" in await client.call(CALL, params)
    assert [message["params"] for message in client.heard] == [
        {"progressToken": "töken", "progress": number} for number in (1, 2, 3)
    ]
    await client.tool("log", n=1, level="warning", tag="t")
    assert (await client.hears("notifications/message"))["params"]["level"] == "warning"
    for what in ("tools", "prompts", "resources"):
        await client.tool("changed", what=what)
        await client.hears(f"notifications/{what}/list_changed")
    await client.tool("updated", uri="test://1")
    assert (await client.hears("notifications/resources/updated"))["params"] == {"uri": "test://1"}
    client.stream.drop()


@on_loop
async def test_cancelling_reaches_the_server_and_the_call_gets_no_answer(gateway: Gateway) -> None:
    client = await SseClient(gateway).open()
    await client.ask(CALL, called("sleep", seconds=0.3), ident="long")
    await client.tell("notifications/cancelled", {"requestId": "long"})
    assert len(json.loads(await client.tool("cancelled"))) == 1
    await client.tool("sleep", seconds=0.5)
    assert client.heard == []
    client.stream.drop()


@on_loop
async def test_one_id_twice_in_flight_is_answered_twice(gateway: Gateway) -> None:
    client = await SseClient(gateway).open()
    for seconds in (0.2, 0.1):
        await client.ask(CALL, called("sleep", seconds=seconds, nonce=str(seconds)), ident=1)
    await client.ask("ping", ident="1")
    answers = [await client.stream.next_message() for _ in range(3)]
    assert [answer["id"] for answer in answers] == ["1", 1, 1]
    assert [answer["result"]["content"][0]["text"] for answer in answers[1:]] == ["0.1", "0.2"]
    client.stream.drop()


@on_loop
async def test_a_payload_passes_byte_for_byte(gateway: Gateway) -> None:
    client = await SseClient(gateway).open()
    assert await client.post(b'{"jsonrpc":"2.0","id":1,"method":"future/echo","params":{"z":1.50,"a":1e3}}') == 202
    event = await client.stream.next_event()
    assert event.data.startswith('{"jsonrpc":"2.0","id":1,"result":{"z":1.0,"a":1e5,"big":12345678901234567890123,')
    assert '\\"params\\":{\\"z\\":1.50,\\"a\\":1e3}' in await client.tool("received")
    client.stream.drop()


@on_loop
async def test_what_is_refused_is_refused_on_the_post_and_harms_nothing(gateway: Gateway) -> None:
    client = await SseClient(gateway).open()
    refused = [
        b"{",
        b"[]",
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
        b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
    ]
    assert [await client.post(body) for body in refused] == [400] * 4
    assert await client.tool("echo", nonce="unharmed") == "unharmed"
    assert client.heard == []
    client.stream.drop()


@on_loop
async def test_two_clients_hear_only_their_own(gateway: Gateway) -> None:
    one, two = await SseClient(gateway).open(), await SseClient(gateway, token=OTHER_TOKEN).open()
    await one.ask(CALL, called("sleep", seconds=0.2, nonce="of one"), ident=1)
    await two.ask(CALL, called("sleep", seconds=0.1, nonce="of two"), ident=1)
    answers = [await one.settle(202, 1), await two.settle(202, 1)]
    assert [answer["result"]["content"][0]["text"] for answer in answers] == ["of one", "of two"]
    assert one.heard == two.heard == []
    assert await one.tool("pid") != await two.tool("pid")
    one.stream.drop()
    two.stream.drop()


@on_loop
async def test_a_server_that_does_not_start_is_told_on_the_stream_which_then_ends(gateway: Gateway) -> None:
    client = await SseClient(gateway, "/servers/fails/sse").open()
    assert client.greeted["error"]["code"] == -31001
    assert client.greeted["error"]["data"]["stderr"] == ["cannot find my settings"]
    with pytest.raises(EOFError):
        await client.stream.next_message(3)


@on_loop
async def test_shutdown_and_exit_end_the_stream_and_the_child(gateway: Gateway) -> None:
    client = await SseClient(gateway).open()
    pid = int(await client.tool("pid"))
    assert (await client.call("shutdown"))["result"] == {}
    await client.tell("notifications/exit")
    with pytest.raises(EOFError):
        await client.stream.next_message(3)
    assert eventually(lambda: pid not in gateway.children(), 3)


@on_loop
async def test_without_its_parameter_a_message_belongs_to_nobody(gateway: Gateway) -> None:
    for query in ("", "?", "?session_id=", "?session_id=a&session_id=b"):
        fields = {"Content-Type": "application/json"}
        reply = await request(gateway.port, "POST", f"/servers/stage/messages{query}", fields, b"{}")
        assert reply.status in (400, 404)
        assert (await reply.json())["error"]["code"] in (-32600, -32001)


@on_loop
async def test_a_session_is_reached_by_its_own_transport_only(gateway: Gateway) -> None:
    """Elsewhere it is what an unknown one is: there nobody would hear its answers."""
    old, new = await SseClient(gateway).open(), await Client(gateway).open()
    message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": called("echo", text="x")}
    bodies = {
        await refused(gateway, "POST", f"{old.path[:-3]}messages?session_id={ident}", message)
        for ident in ("no", new.session)
    }
    stranger = Client(gateway)
    for method in ("POST", "GET", "DELETE"):
        for ident in ("no", old.target.split("=")[1]):
            bodies.add(await refused(gateway, method, stranger.path, message, Mcp_Session_Id=ident))
    assert len(bodies) == 1
    assert (await old.call("ping"), await new.call("ping")) == (PONG | {"id": 1}, PONG | {"id": 1})
    old.stream.drop()


async def refused(gateway: Gateway, method: str, path: str, message: Any, **headers: str) -> bytes:
    fields = {"Content-Type": "application/json", "Accept": ACCEPT}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    body = json.dumps(message).encode() if method == "POST" else b""
    reply = await request(gateway.port, method, path, fields, body, TOKEN)
    assert reply.status == 404
    return await reply.body()
