"""What passes is what was sent: payloads, tokens, ids and members of batches, each with its own way back."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.client import Client, called
from tests.support.gateway import OTHER_TOKEN, Gateway, config, entry, serving
from tests.support.http import on_loop, soon

CALL = "tools/call"
JSON_ONLY = {"Accept": "application/json"}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    servers = {
        "stage": entry(stopTimeout=0.5),
        "shared": entry(stopTimeout=0.5, isolation="shared"),
        "levels": entry(stopTimeout=0.5, isolation="shared"),
    }
    with serving(config(servers), tmp_path_factory.mktemp("fidelity")) as gateway:
        yield gateway


def text(answer: Any) -> str:
    return str(answer["result"]["content"][0]["text"])


async def received(client: Client) -> list[str]:
    """The lines that the server has read, as they were."""
    lines: list[str] = json.loads(await client.tool("received"))
    return lines


PAYLOADS = [
    b'{"z":1,"a":2,"m":{"y":1.50,"b":[1e3,-0,0.10]}}',
    b'{"big":123456789012345678901234567890,"small":1e-400,"precise":0.1000000000000000055511151231257827}',
    b'{"text":"\\u00e9\xc3\xa9\\/\\n\xe2\x80\xa8","empty":"","nul":"\\u0000"}',
    b'{"_meta":{"vendor/x":{"deep":[[],{}]},"traceparent":"00-1"},"unknown":null}',
    b'{"a":1,"a":2}',
    b"{}",
]


@pytest.mark.parametrize("params", PAYLOADS)
@pytest.mark.parametrize("server", ["stage", "shared"])
@on_loop
async def test_parameters_reach_the_server_byte_for_byte(gateway: Gateway, server: str, params: bytes) -> None:
    client = await Client(gateway, server).open()
    body = b'{"jsonrpc":"2.0","id":1,"method":"no/such","params":%b}' % params
    assert (await (await client.post(body)).json())["error"]["code"] == -32601
    lines = [line for line in await received(client) if '"method":"no/such"' in line]
    assert lines[-1].rstrip("\n").endswith(f'"params":{params.decode()}}}')


@on_loop
async def test_a_progress_token_is_replaced_and_what_stands_beside_it_is_not(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    meta = b'{"a":1.50,"progressToken":"mine","z":[1e3]}'
    params = b'{"name":"progress","_meta":%b,"arguments":{"n":1,"interval":0.0}}' % meta
    reply = await client.post(b'{"jsonrpc":"2.0","id":"x","method":"tools/call","params":%b}' % params)
    messages = [message async for message in reply.messages()]
    assert messages[0]["params"]["progressToken"] == "mine"
    line = next(line for line in await received(client) if "progressToken" in line)
    assert "mine" not in line
    assert '"name":"progress"' in line
    assert '"a":1.50' in line
    assert '"z":[1e3]' in line
    assert '"arguments":{"n":1,"interval":0.0}' in line


@pytest.mark.parametrize("tokens", [("t", "t"), (1, 1), (1, "1"), (0, -1), ("", "x" * 300)])
@pytest.mark.parametrize("server", ["stage", "shared"])
@on_loop
async def test_each_call_hears_its_own_progress_under_its_own_token(
    gateway: Gateway, server: str, tokens: tuple[int | str, int | str]
) -> None:
    client = await Client(gateway, server).open()

    async def heard(token: int | str, count: int) -> list[Any]:
        params = {**called("progress", n=count, interval=0.02), "_meta": {"progressToken": token}}
        reply = await client.ask(CALL, params, ident=1)
        return [message async for message in reply.messages()]

    for token, count, messages in zip(
        tokens, (3, 5), await asyncio.gather(heard(tokens[0], 3), heard(tokens[1], 5)), strict=True
    ):
        assert [message["params"] for message in messages[:-1]] == [
            {"progressToken": token, "progress": number + 1} for number in range(count)
        ]
        assert {type(message["params"]["progressToken"]) for message in messages[:-1]} == {type(token)}


@on_loop
async def test_no_progress_is_sent_that_nobody_asked_for_or_after_the_answer(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    stream = await client.listen()
    assert text(await client.call(CALL, called("progress", n=2))) == "done"
    params = {**called("progress", n=1, after=True), "_meta": {"progressToken": 1}}
    assert text(await client.call(CALL, params)) == "done"
    with pytest.raises(TimeoutError):
        await stream.next_message(0.3)


@on_loop
async def test_a_client_that_takes_json_only_is_asked_nothing_and_gets_its_answer(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    asking = {"jsonrpc": "2.0", "id": 1, "method": CALL, "params": called("ask_sample")}
    answer = await (await client.post(asking, **JSON_ONLY)).json()
    assert "error" in json.loads(text(answer))
    params = {**called("progress", n=3), "_meta": {"progressToken": 1}}
    reporting = {"jsonrpc": "2.0", "id": 2, "method": CALL, "params": params}
    assert text(await (await client.post(reporting, **JSON_ONLY)).json()) == "done"


@on_loop
async def test_a_cancelled_call_of_a_client_that_takes_json_only_still_gets_a_last_word(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    sleeping = {"jsonrpc": "2.0", "id": "x", "method": CALL, "params": called("sleep", seconds=60)}
    waiting = asyncio.create_task(client.post(sleeping, **JSON_ONLY))

    async def has_arrived() -> bool:
        return any('"sleep"' in line for line in await received(client))

    assert await soon(has_arrived)
    await client.tell("notifications/cancelled", {"requestId": "x"})
    answer = await (await waiting).json()
    assert (answer["id"], answer["error"]["data"]["source"]) == ("x", "gateway")


@on_loop
async def test_cancelling_an_id_that_is_in_flight_twice_cancels_the_newest(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    older = await client.ask(CALL, called("sleep", seconds=0.8, nonce="older"), ident=1)
    newer = await client.ask(CALL, called("sleep", seconds=0.8, nonce="newer"), ident=1)
    await client.tell("notifications/cancelled", {"requestId": 1})
    assert [message["error"]["code"] async for message in newer.messages()] == [-31009]
    assert text(await client.settle(older, 1)) == "older"


@on_loop
async def test_cancelling_what_is_not_in_flight_reaches_nobody(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    strange: list[Any] = [99, "99", None, 1.5, [], {}]
    for ident in strange:
        await client.tell("notifications/cancelled", {"requestId": ident})
    await client.tell("notifications/cancelled")
    assert json.loads(await client.tool("cancelled")) == []
    assert not [line for line in await received(client) if "cancelled" in line and "tools/call" not in line]


@on_loop
async def test_two_questions_at_once_are_answered_in_any_order(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    replies = [await client.ask(CALL, called("ask_form"), ident=number) for number in range(2)]
    listener = await client.listen()
    questions = [await replies[0].next_message(), await replies[1].next_message()]
    assert len({question["id"] for question in questions}) == 2
    for number in (1, 0):
        await client.answer(questions[number]["id"], {"action": "accept", "content": {"n": str(number)}})
    answers = [json.loads(text(await client.settle(reply, number))) for number, reply in enumerate(replies)]
    assert [answer["content"]["n"] for answer in answers] == ["0", "1"]
    listener.drop()


@on_loop
async def test_an_answer_to_a_question_that_nobody_asked_reaches_nobody(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    for ident in (1, "q1", "nothing"):
        await client.answer(ident, {"action": "accept"})
    assert not [line for line in await received(client) if '"result"' in line]


@on_loop
async def test_an_error_that_answers_a_question_passes_as_it_is(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    reply = await client.ask(CALL, called("ask_sample"), ident=1)
    question = await reply.next_message()
    error = {"code": -1, "message": "user rejected sampling request", "data": {"x": [1]}}
    answered = await client.post({"jsonrpc": "2.0", "id": question["id"], "error": error})
    assert answered.status == 202
    assert json.loads(text(await client.settle(reply, 1))) == {"error": error}


@on_loop
async def test_log_messages_come_at_the_level_that_the_client_set(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    assert (await client.call("logging/setLevel", {"level": "warning"}))["result"] == {}
    reply = await client.ask(CALL, called("log", n=2, level="warning", tag="t"), ident=1)
    messages = [message async for message in reply.messages()]
    assert [message["params"]["data"] for message in messages[:-1]] == [{"n": 0, "tag": "t"}, {"n": 1, "tag": "t"}]
    asked = [json.loads(line) for line in await received(client) if "logging/setLevel" in line]
    assert [message["params"] for message in asked] == [{"level": "warning"}]


@on_loop
async def test_a_shared_child_is_asked_for_the_most_detailed_level_that_any_session_wants(gateway: Gateway) -> None:
    one, two = await Client(gateway, "levels").open(), await Client(gateway, "levels", OTHER_TOKEN).open()
    for client, level in ((one, "error"), (two, "info"), (one, "warning"), (two, "debug"), (two, "critical")):
        assert (await client.call("logging/setLevel", {"level": level}))["result"] == {}
    asked = [json.loads(line)["params"]["level"] for line in await received(one) if "logging/setLevel" in line]
    assert asked == ["error", "info", "debug", "warning"]


# Batches.


def member(ident: int | str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": ident, "method": CALL, "params": called(name, **arguments)}


@on_loop
async def test_a_batch_reaches_the_server_as_single_lines_and_is_answered_as_one(gateway: Gateway) -> None:
    client = await Client(gateway).open(version="2025-03-26")
    note = {"jsonrpc": "2.0", "method": "notifications/x", "params": {"n": 1}}
    batch = [member(1, "echo", nonce="a"), note, member("1", "echo", nonce="b"), member(1, "no such tool")]
    answers = await (await client.post(batch)).json()
    assert [(answer["id"], "result" in answer) for answer in answers] == [(1, True), ("1", True), (1, False)]
    lines = [json.loads(line) for line in await received(client)]
    assert all(isinstance(line, dict) for line in lines)
    assert [line["method"] for line in lines[2:6]] == [CALL, "notifications/x", CALL, CALL]


@on_loop
async def test_a_batch_of_which_one_member_is_slow_becomes_a_stream_with_every_answer(gateway: Gateway) -> None:
    client = await Client(gateway).open(version="2025-03-26")
    reply = await client.post([member(1, "sleep", seconds=0.5, nonce="slow"), member(2, "echo", nonce="quick")])
    assert reply.is_stream
    assert {message["id"]: text(message) async for message in reply.messages()} == {1: "slow", 2: "quick"}


@on_loop
async def test_a_batch_that_asks_for_nothing_gets_an_empty_202(gateway: Gateway) -> None:
    client = await Client(gateway).open(version="2025-03-26")
    reply = await client.post(
        [{"jsonrpc": "2.0", "method": "notifications/x"}, {"jsonrpc": "2.0", "id": 1, "result": {}}]
    )
    assert (reply.status, await reply.body()) == (202, b"")


@pytest.mark.parametrize(
    "batch",
    [
        [],
        [[member(1, "echo")]],
        [1],
        [member(1, "echo"), {"jsonrpc": "2.0", "id": None, "method": "ping"}],
        [member(1, "echo"), {"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {}}],
    ],
)
@on_loop
async def test_a_batch_with_a_bad_member_is_refused_as_a_whole(gateway: Gateway, batch: Any) -> None:
    client = await Client(gateway).open(version="2025-03-26")
    reply = await client.post(batch)
    assert (reply.status, (await reply.json())["error"]["code"]) == (400, -32600)
    assert len(await received(client)) == 3


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
@on_loop
async def test_other_revisions_have_no_batches(gateway: Gateway, version: str) -> None:
    client = await Client(gateway).open(version=version)
    for batch in ([], [member(1, "echo")], [{"jsonrpc": "2.0", "method": "notifications/x"}]):
        reply = await client.post(batch)
        assert (reply.status, (await reply.json())["error"]["code"]) == (400, -32600)
    assert len(await received(client)) == 3
