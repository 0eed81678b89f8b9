"""What has ended is gone at once: no memory of it waits for the garbage collector, which comes when it likes."""

import asyncio
import gc
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvloop

from app.core.deadlines import Deadlines
from app.gateway.gateway import Gateway
from app.gateway.live import LiveSession
from app.gateway.settings import EraSetting, GatewaySettings, Isolation, OnExit, UpstreamSettings
from app.gateway.stream import Outlet
from app.protocol import methods
from app.protocol.jsonrpc import Notification, Request, payload
from app.stores.sqlite import SqliteStore
from app.upstreams.child import ChildLimits
from app.upstreams.command import Command
from tests.support.gateway import STAGE, STATELESS_STAGE

Run = Callable[[Coroutine[Any, Any, None]], None]
OF_SESSIONS = (
    "LiveSession Session Outlets EventLog Stream OwnChild Share _Talk Translation InOrder Link Conversation Anteroom "
    "Child Input Output LineFramer StderrRing Watch CommonChild Sharing Relay Heard LastingSeat Revival Ward Journal "
    "_Patient"
).split()
PATIENCE = 10


class Heard(Outlet):
    """What one connection was given, and when."""

    def __init__(self) -> None:
        self.said: list[bytes] = []
        self._news = asyncio.Event()

    def answer(self, body: bytes) -> None:
        self.event(None, body)

    def begin(self, prime: str | None) -> None: ...

    def event(self, ident: str | None, data: bytes) -> None:
        self.said.append(data)
        self._news.set()

    def end(self) -> None:
        self._news.set()

    async def until(self, part: bytes) -> None:
        async with asyncio.timeout(PATIENCE):
            while not any(part in data for data in self.said):
                self._news.clear()
                await self._news.wait()


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    gc.collect()
    gc.disable()
    gc.freeze()  # What other tests keep does not count.
    try:
        with asyncio.Runner(loop_factory=request.param) as runner:
            yield runner.run
    finally:
        gc.unfreeze()
        gc.enable()


def left() -> Counter[str]:
    """By their kinds, what there is of sessions."""
    kinds = Counter(
        type(thing).__name__ for thing in gc.get_objects() if str(type(thing).__module__).startswith(("app.", __name__))
    )
    return Counter({kind: count for kind, count in kinds.items() if kind in OF_SESSIONS})


def upstream(*command: object, isolation: Isolation = "session", era: EraSetting = "auto") -> UpstreamSettings:
    argv = (sys.executable, "-I", "-S", *map(str, command))
    limits = ChildLimits(close_seconds=2.0, term_seconds=0.5)
    return UpstreamSettings("x", Command(argv), isolation, Deadlines(probe=0.5), limits=limits, era=era)


async def used(live: LiveSession) -> None:
    """It has answers, streams and a log, as sessions have."""
    first = Heard()
    live.ask(methods.introduction(0, "test", "1", "2025-11-25"), first, takes_json=True, takes_stream=True)
    await first.until(b'"id":0')
    live.tell(Notification(methods.INITIALIZED))
    listener, events, answer = Heard(), Heard(), Heard()
    live.listen(listener)
    call = payload({"name": "progress", "arguments": {"n": 2}, "_meta": {"progressToken": "p"}})
    live.ask(Request(1, "tools/call", call), events, takes_json=False, takes_stream=True)
    await events.until(b'"id":1')
    live.ask(Request(2, "tools/list"), answer, takes_json=True, takes_stream=True)
    await answer.until(b'"id":2')


SERVERS = {
    "handshake": upstream(STAGE, era="legacy"),
    "told apart": upstream(STAGE),
    "stateless": upstream(STATELESS_STAGE),
    "stateless, known": upstream(STATELESS_STAGE, era="modern"),
    "shared": upstream(STAGE, isolation="shared"),
    "shared, stateless": upstream(STATELESS_STAGE, isolation="shared"),
}


@pytest.mark.parametrize("server", SERVERS)
def test_of_a_session_that_was_closed_nothing_is_left(run: Run, server: str) -> None:
    async def work() -> None:
        settings = SERVERS[server]
        gateway = Gateway(GatewaySettings((settings,)))
        gateway.start()
        for _ in range(2):
            live = gateway.open(settings, "somebody")
            await used(live)
            live.close("deleted")
            del live
        if settings.isolation == "session":
            await gateway._tasks.finish()
            assert left() == {}
        else:
            assert {kind: count for kind, count in left().items() if kind in OF_SESSIONS[:8]} == {}
        await gateway.stop()
        assert left() == {}

    run(work())


@pytest.mark.parametrize("server", ["handshake", "stateless", "shared"])
def test_of_a_session_that_was_kept_and_taken_up_again_nothing_is_left(run: Run, server: str, tmp_path: Path) -> None:
    async def work() -> None:
        settings = SERVERS[server]
        gateway = Gateway(GatewaySettings((settings,)), SqliteStore(tmp_path / "sessions.db"))
        gateway.start()
        live = gateway.open(settings, "somebody")
        ident = live.ident
        await used(live)
        del live
        await gateway.stop()
        assert left() == {}
        again = Gateway(GatewaySettings((settings,)), SqliteStore(tmp_path / "sessions.db"))
        again.start()
        await again.wake(ident, settings, "somebody")
        live, answer = again.find(ident, "x", "somebody"), Heard()
        live.ask(Request(3, "tools/list"), answer, takes_json=True, takes_stream=True)
        await answer.until(b'"id":3')
        live.close("deleted")
        del live, answer
        await again.stop()
        assert left() == {}

    run(work())


@pytest.mark.parametrize("on_exit", ["end", "restart"])
@pytest.mark.parametrize("server", ["handshake", "told apart", "stateless", "shared", "shared, stateless"])
def test_of_a_session_whose_child_died_nothing_is_left(run: Run, server: str, on_exit: OnExit) -> None:
    async def work() -> None:
        settings = replace(SERVERS[server], on_exit=on_exit)
        gateway = Gateway(GatewaySettings((settings,)))
        live = gateway.open(settings, "somebody")
        await used(live)
        last = Heard()
        live.ask(
            Request(3, "tools/call", payload({"name": "die", "arguments": {}})),
            last,
            takes_json=True,
            takes_stream=True,
        )
        await last.until(b"-31002")
        if on_exit == "restart":
            again = Heard()
            live.ask(Request(4, "tools/list"), again, takes_json=True, takes_stream=True)
            await again.until(b'"id":4')
            live.close("deleted")
            del again
        assert live.is_over
        del live, last
        await gateway._tasks.finish()
        await gateway.stop()
        assert left() == {}

    run(work())


@pytest.mark.parametrize("command", [("-c", "print('no')"), ("-c", "import time; time.sleep(60)"), ("/nowhere",)])
@pytest.mark.parametrize("isolation", ["session", "shared"])
def test_of_a_session_whose_child_did_not_start_nothing_is_left(
    run: Run, isolation: Isolation, command: tuple[str, ...]
) -> None:
    async def work() -> None:
        settings = upstream(*command, isolation=isolation)
        gateway = Gateway(GatewaySettings((settings,)))
        live = gateway.open(settings, "somebody")
        answer = Heard()
        live.ask(methods.introduction(0, "test", "1", "2025-11-25"), answer, takes_json=True, takes_stream=True)
        if "sleep" not in command[-1]:
            await answer.until(b"-31001")
        live.close("deleted")
        del live, answer
        await gateway.stop()
        assert left() == {}

    run(work())
