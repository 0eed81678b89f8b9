"""Somebody who listens to a child, small commands to listen to, and a look at processes from outside."""

import asyncio
import os
import select
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from app.upstreams.child import Child, ChildLimits, Command, Exit, start

SHORT = ChildLimits(close_seconds=0.3, term_seconds=0.3, kill_seconds=3.0)
PATIENT = ChildLimits(close_seconds=10.0, term_seconds=10.0)
READS = "import sys\nfor line in sys.stdin.buffer:\n    "


class Heard:
    """`order` is all that was said: lines as bytes, `None` for one too long, and at last the exit."""

    def __init__(self) -> None:
        self.order: list[bytes | Exit | None] = []
        self._news = asyncio.Event()

    @property
    def lines(self) -> list[bytes]:
        return [said for said in self.order if isinstance(said, bytes)]

    @property
    def oversized(self) -> int:
        return self.order.count(None)

    @property
    def exits(self) -> list[Exit]:
        return [said for said in self.order if isinstance(said, Exit)]

    def on_line(self, text: bytes, /) -> None:
        self._add(text)

    def on_oversize(self) -> None:
        self._add(None)

    def on_exit(self, exit: Exit, /) -> None:  # noqa: A002
        self._add(exit)

    async def until(self, claim: Callable[["Heard"], bool]) -> None:
        while not claim(self):
            self._news.clear()
            await self._news.wait()

    async def first(self) -> bytes:
        await self.until(lambda heard: bool(heard.lines))
        return self.lines[0]

    def _add(self, said: bytes | Exit | None) -> None:
        self.order.append(said)
        self._news.set()


@asynccontextmanager
async def running(
    *argv: str,
    limits: ChildLimits = SHORT,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    heard: Heard | None = None,
) -> AsyncIterator[tuple[Child, Heard]]:
    heard = heard or Heard()
    child = await start("stage", Command(argv, env or {}, cwd), limits, heard)
    try:
        yield child, heard
    finally:
        child.kill()
        await child.stop()


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", code)


def shell(code: str) -> tuple[str, ...]:
    return ("sh", "-c", code)


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def dies(pid: int, seconds: float = 5.0) -> bool:
    """Wait for it; a zombie is dead."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        waiting = select.poll()
        waiting.register(handle, select.POLLIN)
        return bool(waiting.poll(seconds * 1000))
    finally:
        os.close(handle)
