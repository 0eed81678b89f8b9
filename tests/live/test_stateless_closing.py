"""Closing the response is how a stateless client cancels: the child hears of it, and nothing is left of the call."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.client import called
from tests.support.gateway import Gateway, config, entry, eventually, serving, stateless_entry
from tests.support.http import ACCEPT, connection, head, on_loop, read_reply, soon
from tests.support.stateless import CALL, StatelessClient


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    servers = {"stage": entry(stopTimeout=0.5), "stateless": stateless_entry(stopTimeout=0.5)}
    content = config(servers, streams={"streamAfter": 0.1}, debugPayloads=True)
    with serving(content, tmp_path_factory.mktemp("closing"), "--log-level", "debug") as gateway:
        yield gateway


SERVERS = pytest.mark.parametrize("server", ["stage", "stateless"])


class Line:
    """One connection, whose requests all have the same head."""

    def __init__(self, client: StatelessClient, accept: str) -> None:
        self._client = client
        self._accept = accept

    async def open(self) -> "Line":
        self.reader, self.writer = await connection(self._client.port)
        return self

    def send(self, name: str, **arguments: Any) -> None:
        message = self._client.message(CALL, called(name, **arguments))
        body = json.dumps(message).encode()
        fields = self._client.headers(message) | {"Accept": self._accept, "Content-Length": str(len(body))}
        self.writer.write(head(self._client.port, "POST", self._client.path, fields) + body)

    async def close(self) -> None:
        """Everything was sent, and the other side may see that it is over."""
        await self.writer.drain()
        self.writer.close()
        await self.writer.wait_closed()


async def was_cancelled(client: StatelessClient, nonce: str) -> bool:
    """Whether the child was told to forget the call of that nonce."""
    lines = json.loads(await client.tool("received"))
    [ident] = [json.loads(line)["id"] for line in lines if nonce in line]
    return ident in json.loads(await client.tool("cancelled"))


async def has_come(client: StatelessClient, nonce: str) -> bool:
    return any(nonce in line for line in json.loads(await client.tool("received")))


@pytest.mark.parametrize("accept", [ACCEPT, "application/json", "text/event-stream"])
@pytest.mark.parametrize("is_known", [False, True])
@SERVERS
@on_loop
async def test_a_connection_that_closes_before_the_answer_cancels(
    gateway: Gateway, server: str, accept: str, is_known: bool
) -> None:
    client = StatelessClient(gateway, server, capabilities={})
    nonce = f"<{accept}, {is_known}>"
    line = await Line(client, accept).open()
    for _ in range(3 if is_known else 0):
        line.send("sleep", seconds=0.01, nonce="earlier")
        await (await read_reply(line.reader, line.writer)).rest()
    line.send("sleep", seconds=30.0, nonce=nonce)
    assert await soon(lambda: has_come(client, nonce))
    assert not await was_cancelled(client, nonce)
    await line.close()
    assert await soon(lambda: was_cancelled(client, nonce), 3)


@SERVERS
@on_loop
async def test_a_stream_that_is_closed_cancels_its_call_and_no_other(gateway: Gateway, server: str) -> None:
    client = StatelessClient(gateway, server, capabilities={})
    other = await client.ask(CALL, called("sleep", seconds=1, nonce="the other"), ident="o")
    closed = await client.ask(CALL, called("sleep", seconds=30, nonce="the closed"), ident="o")
    assert (other.is_stream, closed.is_stream) == (True, True)
    closed.drop()
    assert await soon(lambda: was_cancelled(client, "the closed"), 3)
    assert not await was_cancelled(client, "the other")
    assert (await other.next_message())["result"]["content"][0]["text"] == "the other"


@pytest.mark.parametrize("accept", [ACCEPT, "application/json"])
@on_loop
async def test_a_child_that_may_still_ask_about_a_cancelled_call_is_stopped(gateway: Gateway, accept: str) -> None:
    client = StatelessClient(gateway)
    pid = int(await client.tool("pid"))
    line = await Line(client, accept).open()
    began = len(gateway.log_lines)
    line.send("sleep", seconds=30.0, nonce="alone")
    await line.writer.drain()
    assert eventually(lambda: "alone" in "\n".join(gateway.log_lines[began:]))
    await line.close()
    assert eventually(lambda: "notifications/cancelled" in "\n".join(gateway.log_lines[began:]), 3)
    assert eventually(lambda: pid not in gateway.children(), 5)
    assert int(await client.tool("pid")) != pid


@on_loop
async def test_who_goes_while_waiting_for_a_child_leaves_nothing(gateway: Gateway) -> None:
    client = StatelessClient(gateway, "stateless", capabilities={})
    await client.tool("pid")
    fds, children = gateway.fds(), set(gateway.children())
    lines = [await Line(client, "application/json").open() for _ in range(20)]
    for line in lines:
        line.send("swallow")
        await line.close()
    assert eventually(lambda: gateway.fds() <= fds, 3)
    assert set(gateway.children()) == children


@SERVERS
@on_loop
async def test_a_subscription_ends_with_its_connection(gateway: Gateway, server: str) -> None:
    client = StatelessClient(gateway, server, capabilities={})
    began = len(gateway.log_lines)
    stream = await client.listen(resourceSubscriptions=["test://1"])
    stream.drop()
    word = "resources/unsubscribe" if server == "stage" else "notifications/cancelled"
    assert eventually(lambda: word in "\n".join(gateway.log_lines[began:]), 3)


@SERVERS
@on_loop
async def test_no_descriptor_is_left_of_streams_that_were_dropped(gateway: Gateway, server: str) -> None:
    client = StatelessClient(gateway, server, capabilities={})
    await client.tool("pid")
    fds, children = gateway.fds(), set(gateway.children())
    for _ in range(5):
        streams = [await client.listen(toolsListChanged=True), await client.ask(CALL, called("swallow"))]
        for stream in streams:
            stream.drop()
    assert eventually(lambda: gateway.fds() <= fds, 5)
    assert set(gateway.children()) <= children
