"""A deadline looks only at what has come, and not at how late it is heard."""

import asyncio
import gc
import socket
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
import uvloop

from app.gateway.patient import LATE_SECONDS, PatientTimer

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield lambda work: runner.run(asyncio.wait_for(work, 10))


def held_up() -> None:
    threading.Event().wait(3 * LATE_SECONDS)


def test_what_has_come_while_the_loop_was_held_up_is_heard_first(run: Run) -> None:
    async def work() -> None:
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours)

        async def hear() -> None:
            order.append((await reader.readline()).decode())

        def overdue() -> None:
            order.append("overdue")
            done.set()

        hearing = asyncio.create_task(hear())
        await asyncio.sleep(0)
        PatientTimer(loop, loop.time() + 0.01, overdue)
        theirs.sendall(b"answer\n")
        held_up()
        await done.wait()
        await hearing
        theirs.close()
        writer.close()
        await writer.wait_closed()

    order: list[str] = []
    run(work())
    assert order == ["answer\n", "overdue"]


def test_it_rings_in_time(run: Run) -> None:
    async def work() -> None:
        loop, rung = asyncio.get_running_loop(), asyncio.Event()
        began = loop.time()
        PatientTimer(loop, began + 0.05, rung.set)
        await rung.wait()
        assert loop.time() - began > 0.045

    run(work())


@pytest.mark.parametrize("is_late", [True, False])
def test_once_it_was_cancelled_it_does_not_ring(run: Run, is_late: bool) -> None:
    async def work() -> None:
        loop, later, rings = asyncio.get_running_loop(), asyncio.Event(), list[str]()
        timer = PatientTimer(loop, loop.time() + 0.001, lambda: rings.append("rung"))
        if is_late:
            held_up()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        timer.cancel()
        loop.call_later(0.1, later.set)
        await later.wait()
        assert rings == []

    run(work())


class Owner:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.rung = asyncio.Event()
        self.timer = PatientTimer(loop, loop.time() + 0.01, self.ring)

    def ring(self) -> None:
        self.rung.set()


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_it_keeps_nobody_afterwards(run: Run, is_cancelled: bool) -> None:
    async def work() -> None:
        owner = Owner(asyncio.get_running_loop())
        known = weakref.ref(owner)
        if is_cancelled:
            owner.timer.cancel()
        else:
            await owner.rung.wait()
            await asyncio.sleep(0)
        del owner
        assert known() is None

    gc.disable()
    try:
        run(work())
    finally:
        gc.enable()
