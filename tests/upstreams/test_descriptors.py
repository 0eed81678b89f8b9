"""The descriptor of a pipe is closed once: a second time it would be what another thread has opened meanwhile."""

import asyncio
import os
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

from tests.upstreams.heard import running, shell

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


class Contended:
    """A pipe's end whose number is taken by somebody else as soon as it is free."""

    def __init__(self, end: Any, lost: list[int]) -> None:
        self._end = end
        self._lost = lost
        self._fd = end.fileno()

    def fileno(self) -> int:
        return int(self._fd)

    def close(self) -> None:
        opened = [os.open(os.devnull, os.O_RDONLY)]
        while opened[-1] < self._fd:
            opened.append(os.open(os.devnull, os.O_RDONLY))
        self._end.close()
        for fd in opened:
            try:
                os.close(fd)
            except OSError:
                self._lost.append(fd)


@pytest.mark.parametrize("name", LOOPS)
def test_what_is_opened_while_the_pipes_of_a_child_are_closed_stays_open(name: str) -> None:
    lost: list[int] = []

    async def live() -> None:
        await one_life()  # What the loop opens for itself is open now.
        loop, before = asyncio.get_running_loop(), os.listdir("/proc/self/fd")
        for method in ("connect_read_pipe", "connect_write_pipe"):
            contend(loop, method, lost)
        await one_life()
        assert len(os.listdir("/proc/self/fd")) == len(before)

    with asyncio.Runner(loop_factory=LOOPS[name]) as runner:
        runner.run(live())
    assert lost == []


async def one_life() -> None:
    async with running(*shell("echo x; read line")) as (_, heard):
        await heard.first()


def contend(loop: asyncio.AbstractEventLoop, method: str, lost: list[int]) -> None:
    connect = getattr(loop, method)
    setattr(loop, method, lambda protocol, end: connect(protocol, Contended(end, lost)))
