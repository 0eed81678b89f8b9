"""What a child writes that is no message, or hardly one."""

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.chaos.conftest import Connect
from tests.support.client import Client, called, greeting
from tests.support.gateway import Gateway, config, entry, eventually, serving
from tests.support.http import on_loop, soon

CALL = "tools/call"
BRISK = {"stopTimeout": 0.5, "killTimeout": 0.5}
LINE = 4 << 20
NOTE = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    servers = {
        "calm": entry(**BRISK, onExit="end"),
        "garbage": entry("--mode", "garbage", **BRISK),
        "babbling": entry("--mode", "too_much_garbage", "--n", "30", **BRISK, onExit="end"),
        "endless": entry("--mode", "endless_line", "--n", "3200", **BRISK),
        "dripping": entry("--mode", "one_byte", **BRISK),
        "twice": entry("--mode", "answers_twice", **BRISK),
        "chatty": entry("--mode", "answers_notifications", **BRISK),
    }
    limits = {"line": LINE, "badLines": 20, "body": LINE, "longLines": 2, "recoverTimeout": 1}
    with serving(config(servers, limits=limits), tmp_path_factory.mktemp("framing")) as gateway:
        yield gateway


async def after_writing(client: Client, text: str) -> list[Any]:
    """All that the client hears when its server writes `text` before it answers a call with id x."""
    written = text.encode("utf-8", "surrogateescape").hex()
    reply = await client.ask(CALL, called("raw", hex=written), ident="x")
    return [message async for message in reply.messages()] if reply.is_stream else [await reply.json()]


@on_loop
async def test_banners_blank_lines_colours_numbers_and_bad_bytes_are_skipped(
    gateway: Gateway, connect: Connect
) -> None:
    lines = len(gateway.log_lines)
    client = await connect("garbage")
    assert await client.tool("echo", nonce="fine") == "fine"
    assert eventually(lambda: gateway.own_log(lines).count("no message") >= 8, 5)
    assert "banner" not in gateway.own_log(lines)


NONSENSE = {
    "text": "starting...\n",
    "text and then a message on one line": 'x {"jsonrpc":"2.0","method":"notifications/x"}\n',
    "carriage returns": "\r\r\n",
    "a byte order mark before a message": "\ufeff" + NOTE,
    "a NUL": "\0\n",
    "a NUL within a message": '{"jsonrpc":"2.0","method":"a\0b"}\n',
    "a number": "42\n",
    "another object": '{"level":"info","msg":"ready"}\n',
    "null": "null\n",
    "an empty array": "[]\n",
    "invalid UTF-8": '{"jsonrpc":"2.0","method":"\udcff"}\n',
    "a surrogate in UTF-8": '{"jsonrpc":"2.0","method":"\udced\udca0\udc80"}\n',
    "an escaped lone surrogate": '{"jsonrpc":"2.0","method":"\\ud800"}\n',
    "NaN": '{"jsonrpc":"2.0","method":"x","params":{"n":NaN}}\n',
    "depth": '{"jsonrpc":"2.0","method":"x","params":{"a":' + "[" * 5000 + "]" * 5000 + "}}\n",
    "trailing data": '{"jsonrpc":"2.0","method":"x"}{}\n',
    "half a message": '{"jsonrpc":"2.0","id":1,\n',
}


@pytest.mark.parametrize("kind", NONSENSE)
@on_loop
async def test_a_line_that_is_no_message_is_dropped_and_the_next_is_read(
    gateway: Gateway, connect: Connect, kind: str
) -> None:
    client = await connect()
    messages = await after_writing(client, NONSENSE[kind])
    assert [message["id"] for message in messages] == ["x"]


@on_loop
async def test_too_many_bad_lines_end_the_server_and_its_calls_learn_why(gateway: Gateway, connect: Connect) -> None:
    client = await connect("calm")
    pid = int(await client.tool("pid"))
    waiting = await client.ask(CALL, called("sleep", seconds=60), ident=1)
    await (await client.ask(CALL, called("raw", hex=b"bad\n".hex() * 30), ident=2)).body()
    error = (await client.settle(waiting, 1))["error"]
    assert (error["code"], error["data"]["executed"]) == (-31004, "unknown")
    assert eventually(lambda: pid not in gateway.children(), 3)
    assert await client.status() == 404


@on_loop
async def test_a_server_that_babbles_from_the_start_is_ended_too(gateway: Gateway, undisturbed: list[Client]) -> None:
    client = Client(gateway, "babbling")
    reply = await client.post(greeting())
    client.session = reply.headers.get("mcp-session-id", "none was issued, for it had ended already")
    assert "result" in await client.settle(reply, 0)

    async def has_ended() -> bool:
        return await client.status() == 404

    assert await soon(has_ended, 3)


UNREADABLE = {
    "too deep": '{"jsonrpc":"2.0","id":IDENT,"result":{"x":' + "[" * 64 + "]" * 64 + "}}",
    "too deep, and its id behind": '{"result":{"x":' + "[" * 64 + "]" * 64 + '},"jsonrpc":"2.0","id":IDENT}',
    "deep beyond all measure": '{"jsonrpc":"2.0","id":IDENT,"error":' + "[" * 50_000 + "]" * 50_000 + "}",
    "not UTF-8": '{"jsonrpc":"2.0","id":IDENT,"result":{"x":"\udcff"}}',
    "a NaN": '{"jsonrpc": "2.0", "id": IDENT, "result": {"x": NaN}}',
    "cut by a literal newline": '{"jsonrpc":"2.0","id":IDENT,"result":{"x":"a\nb"}}',
    "result and error": '{"jsonrpc":"2.0","id":IDENT,"result":{},"error":{}}',
}


@pytest.mark.parametrize("kind", UNREADABLE)
@on_loop
async def test_an_answer_that_cannot_be_passed_on_fails_its_call_at_once_and_no_other(
    gateway: Gateway, connect: Connect, kind: str
) -> None:
    client = await connect()
    other = await client.ask(CALL, called("sleep", seconds=0.5, nonce="other"), ident="other")
    written = (UNREADABLE[kind] + "\n").encode("utf-8", "surrogateescape").hex()
    async with asyncio.timeout(5):
        error = (await client.call(CALL, called("raw", hex=written, answers=True)))["error"]
    assert error["code"] == -31004
    data = {"reason": "unreadable_answer", "executed": "unknown", "server": "calm"}
    assert {name: error["data"][name] for name in data} == data
    assert (await client.settle(other, "other"))["result"]["content"][0]["text"] == "other"


@pytest.mark.parametrize("size", [65_000, 65_535, 65_536, 65_537, 131_072, 1 << 20, 3_900_000])
@on_loop
async def test_long_lines_arrive_whole_and_the_next_is_read(gateway: Gateway, connect: Connect, size: int) -> None:
    client = await connect()
    assert len(await client.tool("echo", size=size)) == size
    assert await client.tool("echo", nonce="next") == "next"


@on_loop
async def test_lines_over_the_cap_are_borne_a_few_times(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    rss = gateway.rss()
    for number in range(2):
        await client.tell("notifications/nothing")
        reply = await client.ask(CALL, called("echo", size=LINE + 10), ident=f"lost {number}")
        assert await client.tool("echo", nonce="next") == "next"
        reply.drop()
    assert gateway.rss() - rss < 2 * LINE
    last = await client.ask(CALL, called("echo", size=LINE + 10), ident="last")
    error = (await client.settle(last, "last"))["error"]
    assert (error["code"], error["data"]["executed"]) == (-31004, "unknown")
    assert await client.status() == 404


@on_loop
async def test_a_line_without_end_costs_no_memory_and_ends_its_server(gateway: Gateway, connect: Connect) -> None:
    rss = gateway.rss()
    client = await connect("endless")
    error = (await client.call(CALL, called("echo", nonce="x")))["error"]
    assert (error["code"], error["data"]["executed"]) == (-31004, "unknown")
    assert gateway.rss() - rss < 2 * LINE


@on_loop
async def test_a_server_that_says_nothing_good_after_a_line_over_the_cap_is_ended(
    gateway: Gateway, connect: Connect
) -> None:
    client = await connect()
    began = time.monotonic()
    call = await client.ask(CALL, called("echo", size=LINE + 10), ident=1)
    error = (await client.settle(call, 1))["error"]
    assert (error["code"], error["data"]["executed"]) == (-31004, "unknown")
    assert 0.9 < time.monotonic() - began < 4


@on_loop
async def test_text_arrives_intact_however_the_bytes_do(gateway: Gateway, connect: Connect) -> None:
    client = await connect("dripping")
    text = "ą€🙂漢\u2028\u0085\\n" + "x" * 200
    assert await client.tool("echo", nonce=text) == text


STRAYS = {
    "an unknown id": '{"jsonrpc":"2.0","id":99999,"result":{}}\n',
    "a null id": '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}\n',
    "no id": '{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}\n',
    "ids of another JSON type": "".join(f'{{"jsonrpc":"2.0","id":"{n}","result":{{"stray":1}}}}\n' for n in range(9)),
    "a fractional id": '{"jsonrpc":"2.0","id":2.0,"result":{"stray":1}}\n',
    "progress of nobody": '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7}}\n',
    "a cancellation of nothing": '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}\n',
}


@pytest.mark.parametrize("kind", STRAYS)
@on_loop
async def test_an_answer_that_nobody_waits_for_is_dropped(gateway: Gateway, connect: Connect, kind: str) -> None:
    client = await connect()
    messages = await after_writing(client, STRAYS[kind])
    assert [message["result"]["content"][0]["text"] for message in messages] == ["written"]


@on_loop
async def test_of_two_answers_the_first_counts(gateway: Gateway, connect: Connect) -> None:
    client = await connect("twice")
    assert [await client.tool("echo", nonce=str(number)) for number in range(5)] == ["0", "1", "2", "3", "4"]


@on_loop
async def test_errors_that_answer_notifications_do_no_harm(gateway: Gateway, connect: Connect) -> None:
    client = await connect("chatty")
    stream = await client.listen()
    for _ in range(5):
        await client.tell("notifications/roots/list_changed")
    assert await client.tool("echo", nonce="fine") == "fine"
    await client.tool("changed", what="tools")
    assert (await stream.next_message())["method"] == "notifications/tools/list_changed"


@on_loop
async def test_an_array_line_is_taken_for_its_members(gateway: Gateway, connect: Connect) -> None:
    batch = '[{"jsonrpc":"2.0","method":"notifications/a"},{"jsonrpc":"2.0","method":"notifications/b"}]\n'
    messages = await after_writing(await connect(), batch)
    assert [message.get("method") for message in messages] == ["notifications/a", "notifications/b", None]


@on_loop
async def test_an_array_of_very_many_is_dropped_and_holds_up_nobody(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    many = ",".join(['{"jsonrpc":"2.0","method":"x"}'] * 40_000)
    assert len(await after_writing(client, f"[{many}]\n")) == 1


@on_loop
async def test_what_a_server_writes_pretty_printed_is_nonsense_and_does_no_harm(
    gateway: Gateway, connect: Connect
) -> None:
    client = await connect()
    pretty = json.dumps({"jsonrpc": "2.0", "method": "notifications/x"}, indent=1) + "\n"
    assert len(await after_writing(client, pretty)) == 1
