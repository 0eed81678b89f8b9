"""Handshake clients of a server that knows no handshake: its questions are asked, and all else is as they know it."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.client import Client, called
from tests.support.gateway import Gateway, config, eventually, serving, stateless_entry
from tests.support.http import Reply, on_loop, soon
from tests.support.stateless import ACCEPTED, ANSWERS, CALL, PREFIX, VERSION


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    servers = {
        "stateless": stateless_entry(stopTimeout=0.5),
        "shared-stateless": stateless_entry(stopTimeout=0.5, isolation="shared"),
        "hasty": stateless_entry(stopTimeout=0.5, maxRequestTimeout=1),
    }
    content = config(servers, streams={"streamAfter": 0.1, "questionWait": 0.5})
    with serving(content, tmp_path_factory.mktemp("handshake")) as gateway:
        yield gateway


SERVERS = pytest.mark.parametrize("server", ["stateless", "shared-stateless"])


def text(answer: Any) -> str:
    shown: str = answer["result"]["content"][0]["text"]
    return shown


async def question(reply: Reply) -> Any:
    message = await reply.next_message()
    assert "id" in message, message
    assert message["method"] in ANSWERS, message
    return message


async def requests_of(client: Client) -> list[Any]:
    """The calls that the child was sent, but for those that look."""
    lines = [json.loads(line) for line in json.loads(await client.tool("received"))]
    return [line for line in lines if line.get("method") == CALL and line["params"]["name"] == "interview"]


@SERVERS
@on_loop
async def test_initialize_is_answered_from_what_was_discovered(gateway: Gateway, server: str) -> None:
    for version in ("2025-11-25", "2025-06-18", "2025-03-26"):
        client = await Client(gateway, server).open(version=version)
        greeted = client.greeted["result"]
        assert greeted["protocolVersion"] == version
        assert greeted["serverInfo"]["name"] == "stateless stage"
        assert greeted["capabilities"]["resources"] == {"subscribe": True, "listChanged": True}
        assert set(greeted) == {"protocolVersion", "serverInfo", "capabilities"}


@SERVERS
@on_loop
async def test_questions_are_asked_on_the_stream_of_their_call_and_answered_by_one_retry(
    gateway: Gateway, server: str
) -> None:
    client = await Client(gateway, server).open()
    before = len(await requests_of(client))
    rounds = [["form", "sample", "roots"], ["form"]]
    reply = await client.ask(CALL, called("interview", rounds=rounds, nonce="n"), ident="i")
    for expected in (3, 1):
        for asked in [await question(reply) for _ in range(expected)]:
            await client.answer(asked["id"], ANSWERS[asked["method"]])
    last = await reply.next_message()
    assert last["id"] == "i"
    assert "resultType" not in last["result"]
    told = json.loads(text(last))["said"]
    assert [sorted(each) for each in told] == [["form", "roots", "sample"], ["form"]]
    assert told[0]["form"] == ACCEPTED
    sent = (await requests_of(client))[before:]
    assert [len(each["params"].get("inputResponses", {})) for each in sent] == [0, 3, 1]
    assert len({each["id"] for each in sent}) == 3


@SERVERS
@on_loop
async def test_every_request_says_who_asks(gateway: Gateway, server: str) -> None:
    client = await Client(gateway, server).open(capabilities={"roots": {"listChanged": True}})
    reply = await client.ask(CALL, called("interview", rounds=[["roots"]]))
    await client.answer((await question(reply))["id"], ANSWERS["roots/list"])
    assert "result" in await reply.next_message()
    for sent in (await requests_of(client))[-2:]:
        meta = sent["params"]["_meta"]
        assert meta[PREFIX + "protocolVersion"] == VERSION
        assert meta[PREFIX + "clientCapabilities"] == {"roots": {"listChanged": True}}
        assert meta[PREFIX + "clientInfo"] == {"name": "test", "version": "1"}
        assert PREFIX + "logLevel" not in meta


@SERVERS
@on_loop
async def test_a_url_gets_the_name_that_handshake_clients_expect(gateway: Gateway, server: str) -> None:
    client = await Client(gateway, server).open()
    reply = await client.ask(CALL, called("interview", rounds=[["url"], ["url"]]))
    names = []
    for _ in range(2):
        asked = await question(reply)
        assert asked["params"]["mode"] == "url"
        names.append(asked["params"]["elicitationId"])
        await client.answer(asked["id"], {"action": "accept"})
    assert "result" in await reply.next_message()
    assert len(set(names)) == 2


@on_loop
async def test_two_calls_at_once_are_asked_each_on_its_own_stream(gateway: Gateway) -> None:
    client = await Client(gateway, "stateless").open()
    first = await client.ask(CALL, called("interview", rounds=[["form"]], nonce="one"), ident=1)
    second = await client.ask(CALL, called("interview", rounds=[["roots"]], nonce="two"), ident=1)
    asked = [await question(reply) for reply in (first, second)]
    assert [each["method"] for each in asked] == ["elicitation/create", "roots/list"]
    for each in reversed(asked):
        await client.answer(each["id"], ANSWERS[each["method"]])
    assert [json.loads(text(await reply.next_message()))["nonce"] for reply in (first, second)] == ["one", "two"]


@on_loop
async def test_a_retry_that_needs_no_answer_asks_nobody(gateway: Gateway) -> None:
    client = await Client(gateway, "stateless").open()
    answer = await client.call(CALL, called("interview", rounds=[[], []], nonce="n"))
    assert json.loads(text(answer)) == {"nonce": "n", "said": [{}, {}]}


@SERVERS
@on_loop
async def test_a_question_that_is_refused_ends_the_call_or_is_a_cancelled_form(gateway: Gateway, server: str) -> None:
    client = await Client(gateway, server).open()
    for what, expected in (("form", None), ("sample", -1)):
        reply = await client.ask(CALL, called("interview", rounds=[[what]]), ident=what)
        asked = await question(reply)
        refusal = {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "no"}}
        assert (await client.post(refusal)).status == 202
        last = await reply.next_message()
        if expected is None:
            assert json.loads(text(last))["said"] == [{"form": {"action": "cancel"}}]
        else:
            assert last["error"]["code"] == expected


@SERVERS
@on_loop
async def test_cancelling_reaches_the_child_and_ends_a_call_that_is_asking(gateway: Gateway, server: str) -> None:
    client = await Client(gateway, server).open()
    await client.ask(CALL, called("swallow", nonce="swallowed"), ident="s")
    await client.tell("notifications/cancelled", {"requestId": "s"})

    async def is_told() -> bool:
        lines = [json.loads(line) for line in json.loads(await client.tool("received"))]
        [ours] = [line["id"] for line in lines if line.get("params", {}).get("arguments") == {"nonce": "swallowed"}]
        return ours in json.loads(await client.tool("cancelled"))

    assert await soon(is_told, 3)
    reply = await client.ask(CALL, called("interview", rounds=[["form"]]), ident="i")
    asked = await question(reply)
    await client.tell("notifications/cancelled", {"requestId": "i"})
    assert (await reply.next_message())["error"]["data"]["reason"] == "cancelled"
    await client.answer(asked["id"], ACCEPTED)
    assert await client.tool("echo", nonce="n") == "n"


@on_loop
async def test_a_question_is_over_with_its_call(gateway: Gateway) -> None:
    client = await Client(gateway, "hasty").open()
    reply = await client.ask(CALL, called("interview", rounds=[["form"]]), ident="i")
    asked = await question(reply)
    rest = [message async for message in reply.messages()]
    assert rest[-1]["error"]["code"] == -31003
    await client.answer(asked["id"], ACCEPTED)
    assert await client.tool("echo", nonce="n") == "n"


@on_loop
async def test_the_log_level_of_a_session_is_its_own_and_travels_with_each_request(gateway: Gateway) -> None:
    one, two = await Client(gateway, "stateless").open(), await Client(gateway, "stateless").open()
    silent = await one.ask(CALL, called("log", tag="before"))
    assert not silent.is_stream
    assert (await one.call("logging/setLevel", {"level": "loud"}))["error"]["code"] == -32602
    assert (await one.call("logging/setLevel", {"level": "error"}))["result"] == {}
    reply = await one.ask(CALL, called("log", tag="mine"), ident="l")
    messages = [message async for message in reply.messages()]
    assert [message["params"]["data"] for message in messages[:-1]] == ["mine"] * (len(messages) - 1)
    assert messages[-1]["id"] == "l"
    assert len(messages) > 1
    assert not (await two.ask(CALL, called("log", tag="theirs"))).is_stream


@SERVERS
@on_loop
async def test_ping_is_answered_here_and_never_reaches_the_child(gateway: Gateway, server: str) -> None:
    client = await Client(gateway, server).open()
    assert (await client.call("ping"))["result"] == {}
    await client.tell("notifications/roots/list_changed")
    methods = [json.loads(line).get("method") for line in json.loads(await client.tool("received"))]
    assert not {"ping", "notifications/roots/list_changed", "notifications/initialized"} & set(methods)


@SERVERS
@on_loop
async def test_progress_is_told_under_the_clients_own_token_whatever_the_round(gateway: Gateway, server: str) -> None:
    client = await Client(gateway, server).open()
    params = {**called("progress", n=3), "_meta": {"progressToken": "mine"}}
    *notes, last = [message async for message in (await client.ask(CALL, params, ident="p")).messages()]
    assert [(note["params"]["progressToken"], note["params"]["progress"]) for note in notes] == [
        ("mine", n) for n in (1, 2, 3)
    ]
    assert last["id"] == "p"


@SERVERS
@on_loop
async def test_changes_and_updates_are_heard_on_the_get_stream(gateway: Gateway, server: str) -> None:
    client = await Client(gateway, server).open()
    stream = await client.listen()
    assert (await client.call("resources/subscribe", {"uri": "test://1"}))["result"] == {}

    async def updated() -> Any:
        await client.tool("updated", uri="test://2")
        await client.tool("updated", uri="test://1")
        return (await stream.next_message(3))["params"]

    assert await updated() == {"uri": "test://1"}
    await client.tool("changed", what="tools")
    assert (await stream.next_message(3))["method"] == "notifications/tools/list_changed"
    assert (await client.call("resources/unsubscribe", {"uri": "test://1"}))["result"] == {}
    await client.tool("updated", uri="test://1")
    await client.tool("changed", what="prompts")
    assert (await stream.next_message(3))["method"] == "notifications/prompts/list_changed"


@on_loop
async def test_a_subscription_that_the_server_ends_is_renewed(gateway: Gateway) -> None:
    client = await Client(gateway, "stateless").open()
    stream = await client.listen()
    await client.tool("end_subscriptions")

    async def is_renewed() -> bool:
        return len([line for line in json.loads(await client.tool("received")) if "/listen" in line]) == 2

    assert await soon(is_renewed, 5)
    await client.tool("changed", what="tools")
    assert (await stream.next_message(3))["method"] == "notifications/tools/list_changed"


@on_loop
async def test_nothing_is_left_of_a_session_that_was_being_asked(gateway: Gateway) -> None:
    before = set(gateway.children())
    clients = [await Client(gateway, "stateless").open() for _ in range(3)]
    replies = await asyncio.gather(
        *(client.ask(CALL, called("interview", rounds=[["form"]]), ident="i") for client in clients)
    )
    for reply, client in zip(replies, clients, strict=True):
        await question(reply)
        assert (await client.delete()).status == 204
    assert eventually(lambda: set(gateway.children()) <= before, 5)
