"""Fifty sessions with calls in flight, a gateway that is killed in the midst of them, and another on the same store.

Every old session is served, every call has one outcome that its client knows or is told that nobody knows it, no
event comes twice, and none that was heard is missing from what is said again.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import Client, called
from tests.support.gateway import Gateway, config, entry, eventually, serving
from tests.support.http import Event, Reply, bounded, soon

SESSIONS = 50
CALL = "tools/call"
BROKEN = (OSError, EOFError, asyncio.IncompleteReadError, AssertionError, json.JSONDecodeError)


@dataclass
class Caller:
    """A client with a long call on a stream, a silent one on another, and short ones that count."""

    client: Client
    name: str
    file: Path
    heard: dict[str, list[Event]] = field(default_factory=dict)
    """What came on the streams that may be resumed."""
    told: list[str] = field(default_factory=list)
    """Nonces of which a result came."""

    async def work(self) -> None:
        await asyncio.gather(
            self._listen("long", self._progress()), self._listen("silent", self._sleep()), self._count()
        )

    async def _progress(self) -> Reply:
        params = called("progress", n=60, interval=0.05) | {"_meta": {"progressToken": self.name}}
        return await self.client.ask(CALL, params, "long")

    async def _sleep(self) -> Reply:
        return await self.client.ask(CALL, called("sleep", seconds=60), "silent")

    async def _listen(self, name: str, asking: Any) -> None:
        reply = await asking
        with suppress(*BROKEN):
            while True:
                event = await reply.next_event()
                self.heard.setdefault(name, []).append(event)
        reply.close()

    async def _count(self) -> None:
        with suppress(*BROKEN):
            for number in range(1000):
                nonce = f"{self.name}-{number}"
                if await self.client.tool("incr", file=str(self.file), nonce=nonce) == nonce:
                    self.told.append(nonce)

    async def resume(self, port: int) -> dict[str, list[Event]]:
        """Each stream from its first event."""
        self.client.port = port
        return {name: await self._again(events[0]) for name, events in self.heard.items()}

    async def _again(self, first: Event) -> list[Event]:
        reply = await self.client.listen(first.id)
        events = [event async for event in reply.events() if event.data]
        reply.close()
        return events


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("many")


@pytest.fixture(scope="module")
def callers(folder: Path) -> list[Caller]:
    with serving(content(folder), folder) as gateway:
        callers: list[Caller] = []
        bounded(until_killed(gateway, folder, callers), 60)
        assert eventually(lambda: not gateway.children(), 5)
    return callers


def content(folder: Path) -> dict[str, Any]:
    limits = {"streamAfter": 0.1}
    return config({"stage": entry()}, store=f"sqlite://{folder}/sessions.db", streams=limits, starts=8)


async def until_killed(gateway: Gateway, folder: Path, callers: list[Caller]) -> None:
    clients = await asyncio.gather(*(Client(gateway).open() for _ in range(SESSIONS)))
    callers += [Caller(client, f"c{number}", folder / "executed") for number, client in enumerate(clients)]
    working = [asyncio.create_task(caller.work()) for caller in callers]

    async def in_the_midst() -> bool:
        return all(len(caller.heard.get("long", ())) > 5 and caller.heard.get("silent") for caller in callers)

    assert await soon(in_the_midst)
    gateway.process.kill()
    gateway.process.wait(5)
    await asyncio.gather(*working)


@pytest.fixture(scope="module")
def again(callers: list[Caller], folder: Path) -> Iterator[list[dict[str, list[Event]]]]:
    """What each caller hears when it resumes its streams, after which every session has been served."""
    with serving(content(folder), folder) as gateway:
        said: list[dict[str, list[Event]]] = []

        async def come_back() -> None:
            said.extend(await asyncio.gather(*(caller.resume(gateway.port) for caller in callers)))
            echoes = await asyncio.gather(*(caller.client.tool("echo", nonce=caller.name) for caller in callers))
            assert echoes == [caller.name for caller in callers]

        bounded(come_back(), 60)
        yield said


def test_every_old_session_is_served_and_every_stream_comes_to_an_end(again: list[dict[str, list[Event]]]) -> None:
    assert [sorted(said) for said in again] == [["long", "silent"]] * SESSIONS


def test_every_call_that_was_in_flight_has_one_outcome(again: list[dict[str, list[Event]]]) -> None:
    for said in again:
        for name, events in said.items():
            answers = [event.message for event in events if "method" not in event.message]
            assert [answer["id"] for answer in answers] == [name]
            assert answers[0]["error"]["code"] == -31002
            assert answers[0]["error"]["data"]["executed"] == "unknown"
            assert answers[0]["error"]["data"]["reason"] == "gateway_restarted"


def test_what_was_heard_is_said_again_as_it_was_and_nothing_twice(
    callers: list[Caller], again: list[dict[str, list[Event]]]
) -> None:
    for caller, said in zip(callers, again, strict=True):
        for name, events in said.items():
            before = [(event.id, event.data) for event in caller.heard[name] if event.data]
            now = [(event.id, event.data) for event in events]
            assert now[: len(before)] == before
            assert len({ident for ident, _ in now}) == len(now)
            numbers = [int(str(ident).rpartition("-")[2]) for ident, _ in now]
            assert numbers == sorted(numbers)
            progress = [event.message["params"]["progress"] for event in events if "method" in event.message]
            assert progress == list(range(1, len(progress) + 1))


def test_what_was_answered_was_executed_once_and_nothing_was_twice(callers: list[Caller], folder: Path) -> None:
    executed = Counter((folder / "executed").read_text().split())
    told = [nonce for caller in callers for nonce in caller.told]
    assert len(told) > SESSIONS
    assert set(executed.values()) == {1}
    assert set(told) <= set(executed)
