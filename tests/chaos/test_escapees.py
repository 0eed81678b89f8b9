"""Of two hundred sessions nothing is left six seconds after their end, whichever end that is, and whatever their
servers do to stay.

A server here is a shell script, behind a launcher or not, that ignores the end of its input and SIGTERM or not, and
that leaves a process in a session of its own or not; every eighth is Python behind a shell.
"""

import asyncio
import itertools
import json
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.client import Client, greeting
from tests.support.gateway import STAGE, Gateway, config, entry, eventually, serving, stage
from tests.support.http import connection, head, on_loop
from tests.support.metrics import number
from tests.upstreams.heard import dies, is_alive

SLIGHT = STAGE.with_name("slight.sh")
SESSIONS = 200
WITHIN = 6.0
HABITS = ("", "leaves", "stays", "stays leaves")
MOODS = ("refuses", "exits", "silent")
ROOMY: dict[str, Any] = {
    "starts": SESSIONS,
    "restarts": {"deaths": 1_000_000, "backoff": 0.001, "maxBackoff": 0.001},
}


def entries() -> dict[str, dict[str, object]]:
    """Each server under a name that tells how it is."""
    named: dict[str, str] = {}
    for habits, mood in itertools.product(HABITS, ("", *MOODS)):
        script = f"sh {SLIGHT} {habits} {mood}".strip()
        name = "-".join(["slight", *habits.split(), *mood.split()])
        named[name] = f"exec {script}"
        named[f"launched-{name}"] = behind(script)
    named["launched-python"] = behind(" ".join(stage("--mode", "ignores_all")))
    return {
        name: {"command": "sh", "args": ["-c", code], "era": "legacy", "startTimeout": 1 if "silent" in name else 60}
        for name, code in named.items()
    }


def behind(script: str) -> str:
    return f"exec 3<&0; {script} <&3 & wait"


ENTRIES = entries()
GREETING = sorted(name for name in ENTRIES if not name.endswith(MOODS))
FAILING = sorted(name for name in ENTRIES if name.endswith(MOODS))


@contextmanager
def gateway_of(folder: Path, **sessions: float) -> Iterator[Gateway]:
    content = config({name: dict(server) for name, server in ENTRIES.items()}, **ROOMY)
    content["viaduct"]["sessions"] = {"max": 400, "maxPerPrincipal": 400, **sessions}
    with serving(content, folder) as gateway:
        yield gateway


def clients(gateway: Gateway, servers: list[str]) -> list[Client]:
    return [Client(gateway, server) for server in itertools.islice(itertools.cycle(servers), SESSIONS)]


async def for_all(clients: list[Client], act: Callable[[Client], Awaitable[object]]) -> None:
    turns = asyncio.Semaphore(100)

    async def in_turn(client: Client) -> None:
        async with turns:
            await act(client)

    await asyncio.gather(*map(in_turn, clients))


async def opened(gateway: Gateway) -> list[Client]:
    """Two hundred sessions with all their processes."""
    opening = clients(gateway, GREETING)
    began = time.monotonic()
    await for_all(opening, Client.open)
    assert all("result" in client.greeted for client in opening)
    print(f"{SESSIONS} sessions, {len(gateway.children())} processes in {time.monotonic() - began:.1f} s")
    return opening


def assert_nobody_is_left(gateway: Gateway, since: float, within: float = WITHIN) -> None:
    """No living process of any child, and while the gateway lives no zombie of one."""

    def nobody() -> bool:
        return not gateway.children() and (
            gateway.process.poll() is not None or set(gateway.direct_children()) == {gateway.guardian()}
        )

    gone = eventually(nobody, since + within - time.monotonic())
    print(f"{time.monotonic() - since:.2f} s")
    assert gone, f"{len(gateway.children())} processes, zombies and all {len(gateway.direct_children())}"


async def deleted(client: Client) -> None:
    reply = await client.delete()
    assert reply.status == 204
    await reply.body()


@on_loop
async def test_two_hundred_deleted_sessions_leave_nobody(tmp_path: Path) -> None:
    with gateway_of(tmp_path) as gateway:
        opening = await opened(gateway)
        began = time.monotonic()
        await for_all(opening, deleted)
        assert_nobody_is_left(gateway, began)


@on_loop
async def test_two_hundred_idle_sessions_leave_nobody(tmp_path: Path) -> None:
    idle = 3.0
    with gateway_of(tmp_path, idleTimeout=idle) as gateway:
        await opened(gateway)
        assert_nobody_is_left(gateway, time.monotonic() + idle)


@on_loop
async def test_two_hundred_clients_that_vanish_leave_nobody(tmp_path: Path) -> None:
    """Before the answer to `initialize`, after it, or from an open stream."""
    timeout = 1.0
    with gateway_of(tmp_path, idleTimeout=timeout, confirmTimeout=timeout) as gateway:
        leaving = clients(gateway, GREETING)
        for place, way in enumerate((left_unanswered, left_unconfirmed, left_listening)):
            await for_all(leaving[place::3], way)
        assert_nobody_is_left(gateway, time.monotonic() + timeout)
        # Some starts are taken over by who comes later.
        assert await number(gateway, "viaduct_child_starts_total") > SESSIONS / 2


async def left_unanswered(client: Client) -> None:
    _, writer = await connection(client.port)
    body = json.dumps(greeting()).encode()
    headers = {**client.headers(), "Content-Length": str(len(body))}
    writer.write(head(client.port, "POST", client.path, headers) + body)
    await writer.drain()
    writer.close()


async def left_unconfirmed(client: Client) -> None:
    reply = await client.post(greeting())
    assert reply.status == 200
    reply.drop()


async def left_listening(client: Client) -> None:
    await client.open()
    (await client.listen()).drop()


@on_loop
async def test_two_hundred_handshakes_that_fail_leave_nobody(tmp_path: Path) -> None:
    with gateway_of(tmp_path) as gateway:
        await for_all(clients(gateway, FAILING), refused)
        assert_nobody_is_left(gateway, time.monotonic())
        assert await number(gateway, "viaduct_child_starts_total") == SESSIONS


async def refused(client: Client) -> None:
    reply = await client.post(greeting())
    assert "error" in await client.settle(reply, 0)


@on_loop
async def test_a_gateway_that_is_stopped_with_two_hundred_sessions_leaves_nobody(tmp_path: Path) -> None:
    with gateway_of(tmp_path) as gateway:
        await opened(gateway)
        began = time.monotonic()
        gateway.process.send_signal(signal.SIGTERM)
        assert gateway.process.wait(WITHIN) == 0
        assert gateway.children() == []
        assert_nobody_is_left(gateway, began)


@on_loop
async def test_a_gateway_that_is_killed_with_two_hundred_sessions_leaves_nobody(tmp_path: Path) -> None:
    with gateway_of(tmp_path) as gateway:
        await opened(gateway)
        guardian = gateway.guardian()
        assert guardian is not None
        began = time.monotonic()
        gateway.process.kill()
        gateway.process.wait(WITHIN)
        assert_nobody_is_left(gateway, began)
        assert dies(guardian, WITHIN)


# What hides its tag: nobody can say whose it is, or that it is ours at all once we are gone.

HIDING = ["env", "-i", "setsid", "--fork", "sleep", "600"]


@on_loop
async def test_what_hid_its_tag_is_killed_once_no_child_that_lives_can_have_started_it(tmp_path: Path) -> None:
    with serving(config({"stage": entry(stopTimeout=0.3)}), tmp_path) as gateway:
        client = await Client(gateway).open()
        hidden = await hidden_by(client, gateway)
        younger = await Client(gateway).open()
        assert not dies(hidden, 1.5)
        await deleted(client)
        assert dies(hidden, 10)
        assert eventually(lambda: hidden not in gateway.direct_children(), 3)
        assert await younger.tool("echo", nonce="spared") == "spared"


@on_loop
async def test_what_hid_its_tag_is_killed_when_the_gateway_stops_at_the_latest(tmp_path: Path) -> None:
    with serving(config({"stage": entry(stopTimeout=0.3)}), tmp_path) as gateway:
        older = await Client(gateway).open()
        client = await Client(gateway).open()
        hidden = await hidden_by(client, gateway)
        await deleted(client)
        assert not dies(hidden, 1.5)
        assert await older.tool("echo", nonce="spared") == "spared"
        assert gateway.stop() == 0
        assert not is_alive(hidden)


async def hidden_by(client: Client, gateway: Gateway) -> int:
    """A process without a tag that a server has started in a session of its own, and left."""
    before = set(gateway.direct_children())
    await client.tool("spawn", argv=HIDING)
    assert eventually(lambda: set(gateway.direct_children()) - before, 3)
    [hidden] = set(gateway.direct_children()) - before
    return hidden
