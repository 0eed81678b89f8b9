"""Two seconds after the end no memory of it is left, although nobody collects garbage (invariant 5)."""

import json
import os
import re
import signal
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.chaos.planting import program
from tests.support.client import Client, called
from tests.support.gateway import Gateway, config, entry, eventually, serving, stateless_entry
from tests.support.http import close_all, on_loop
from tests.support.sse_client import SseClient
from tests.support.stateless import CALL, StatelessClient, answers

COUNTING = """
    import collections, gc, json, os, signal, threading
    gc.disable()
    def count():
        kinds = [type(thing) for thing in gc.get_objects()]
        ours = collections.Counter(kind.__name__ for kind in kinds if str(kind.__module__).startswith("app."))
        os.write(2, f"COUNTED {json.dumps(ours)}\\n".encode())
    signal.signal(signal.SIGUSR1, lambda *_: count())
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    servers = {
        "stage": entry(stopTimeout=0.5, era="legacy"),
        "modern": stateless_entry(stopTimeout=0.5),
        "common": entry(isolation="shared"),
    }
    content = config(servers, streams={"streamAfter": 0.05}, stateless={"idleTimeout": 0.2})
    folder = tmp_path_factory.mktemp("memory")
    with serving(content, folder, program=program(COUNTING)) as gateway:
        yield gateway


def counted(gateway: Gateway) -> dict[str, int]:
    since = len(gateway.log_lines)
    os.kill(gateway.pid, signal.SIGUSR1)
    with urllib.request.urlopen(f"{gateway.url}/healthz", timeout=5):
        pass  # uvloop sleeps through a signal that is not its own.
    assert eventually(lambda: "COUNTED" in "".join(gateway.log_lines[since:]))
    [told] = re.findall(r"COUNTED (.*)", "\n".join(gateway.log_lines[since:]))
    kinds: dict[str, int] = json.loads(told)
    return kinds


async def converse(client: Client) -> None:
    """With an answer of each form, a stream that is listened to, a call that is left, and an end."""
    await client.open()
    await client.call("tools/list")
    listener = await client.listen()
    reply = await client.ask(CALL, {**called("progress", n=2), "_meta": {"progressToken": "p"}}, ident="events")
    await client.settle(reply, "events")
    left = await client.ask(CALL, called("sleep", seconds=60))
    await left.anything(5)
    left.drop()
    assert (await client.delete()).status == 204
    listener.drop()


async def over_sse(gateway: Gateway) -> None:
    client = await SseClient(gateway).open()
    await client.call("tools/list")
    client.stream.drop()


async def ask(client: StatelessClient) -> None:
    """Each way in which a stateless request is answered or left."""
    await client.call("tools/list")
    await client.call(CALL, called("progress", n=2), progressToken="p")
    asks = await client.asked("interview", rounds=[["form"]])
    await client.retry(asks, answers(asks), "interview", rounds=[["form"]])
    listening = await client.listen(toolsListChanged=True)
    listening.drop()
    left = await client.ask(CALL, called("sleep", seconds=60))
    await left.anything(5)
    left.drop()


async def everything(gateway: Gateway) -> None:
    for server in ("stage", "modern", "common"):
        await converse(Client(gateway, server))
    await over_sse(gateway)
    for server in ("stage", "modern"):
        await ask(StatelessClient(gateway, server))
    await close_all()


@on_loop
async def test_of_what_has_ended_no_object_is_left(gateway: Gateway) -> None:
    await everything(gateway)  # What stays for good is there now.
    assert eventually(lambda: len(gateway.children()) == 1)
    before = counted(gateway)
    for _ in range(2):
        await everything(gateway)
    assert eventually(lambda: len(gateway.children()) == 1)
    grown: dict[str, Any] = {}

    def is_as_before() -> bool:
        grown.clear()
        grown.update({kind: n - before.get(kind, 0) for kind, n in counted(gateway).items() if n > before.get(kind, 0)})
        return not grown

    assert eventually(is_as_before, 3.0), grown
