"""One child process: written to without waiting, listened to until its last line, and stopped with all it started.

    RUNNING ──exits──▶ DRAINING ──end of stdout, or a moment──▶ GONE
       └──stop──▶ stdin closed ──▶ SIGTERM ──▶ SIGKILL ──▶ GONE

The exit is seen through a pidfd, never through the pipes: a grandchild may hold those open for ever.
"""

import asyncio
import logging
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from app.upstreams.command import Command
from app.upstreams.framing import LineFramer
from app.upstreams.pipes import Input, Output
from app.upstreams.spawn import Spawned, spawn
from app.upstreams.stderr import StderrRing
from app.upstreams.sweep import Sweeper

log = logging.getLogger("viaduct.child")

_LINGER_SECONDS = 0.2
"""How long stdout is read on after the exit, where somebody else still holds it open."""
_POLL_SECONDS = 0.25

_sweepers: dict[asyncio.AbstractEventLoop, Sweeper] = {}


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended; neither code nor signal where it would not die."""

    code: int | None
    signal: int | None

    def describe(self) -> str:
        if self.signal is not None:
            return f"killed by signal {self.signal}"
        return "did not die" if self.code is None else f"exit code {self.code}"


class Listener(Protocol):
    def on_line(self, text: bytes, /) -> None: ...

    def on_oversize(self) -> None:
        """A line was longer than allowed, and is lost."""

    def on_exit(self, exit: Exit, /) -> None:  # noqa: A002
        """Once, after the last line."""


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """`close` and `term` are what a child has after its stdin was closed, and after SIGTERM."""

    line_bytes: int = 16 << 20
    queue_bytes: int = 8 << 20
    queue_count: int = 256
    close_seconds: float = 2.0
    term_seconds: float = 2.0
    kill_seconds: float = 5.0


async def start(name: str, command: Command, limits: ChildLimits, listener: Listener) -> "Child":
    """Start a process and listen to it.

    Raises:
        Unavailable: it could not be started; nothing is left of the try.
    """
    spawned = spawn(command)
    child = Child(name, spawned, limits, listener)
    await child.connect()
    return child


class Child:
    def __init__(self, name: str, spawned: Spawned, limits: ChildLimits, listener: Listener) -> None:
        self._loop = asyncio.get_running_loop()
        self.name = name
        self.pid = spawned.process.pid
        self.exit: Exit | None = None
        self.stderr = StderrRing(name, self.pid, self._loop.time)
        self._spawned = spawned
        self._limits = limits
        self._listener = listener
        self._framer = LineFramer(limits.line_bytes)
        self._status: Exit | None = None
        self._exited = asyncio.Event()
        self._gone = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None
        self._linger: asyncio.TimerHandle | None = None
        self._pidfd = -1
        self.stdin = Input(limits.queue_bytes, limits.queue_count)
        self._stdout = Output(self._read, self._stdout_ended)
        self._stderr = Output(self.stderr.feed, self.stderr.close)

    async def connect(self) -> None:
        spawned = self._spawned
        await self._loop.connect_write_pipe(lambda: self.stdin, os.fdopen(spawned.stdin, "wb", 0))
        await self._loop.connect_read_pipe(lambda: self._stderr, os.fdopen(spawned.stderr, "rb", 0))
        await self._loop.connect_read_pipe(lambda: self._stdout, os.fdopen(spawned.stdout, "rb", 0))
        self._watch()

    def write(self, line: bytes, key: int | None = None) -> bool:
        """At once if the pipe takes it, else into the queue; False where that is full or the child is gone.

        `key` names the line, so that it can be withdrawn while no byte of it was handed over.
        """
        return self._status is None and self.stdin.write(line, key)

    def withdraw(self, key: int) -> bool:
        return self.stdin.withdraw(key)

    def kill(self) -> None:
        """Now, with its whole group; the exit is reported as any other."""
        if self.exit is None:
            self._signal_group(signal.SIGKILL)

    async def wait(self) -> Exit:
        await self._gone.wait()
        assert self.exit is not None  # noqa: S101 - set before the event
        return self.exit

    async def stop(self) -> Exit:
        """Close stdin, wait, SIGTERM, wait, SIGKILL, and kill what escaped. One ladder, whoever waits for it."""
        if self._stopping is None:
            self._stopping = self._loop.create_task(self._climb(), name=f"stop {self.name}")
        await asyncio.shield(self._stopping)
        return await self.wait()

    # Exit.

    def _watch(self) -> None:
        try:
            self._pidfd = os.pidfd_open(self.pid)
        except (OSError, AttributeError):
            self._poll()
            return
        self._loop.add_reader(self._pidfd, self._reap)

    def _poll(self) -> None:
        """Where the kernel has no pidfd."""
        if self._spawned.process.poll() is None:
            self._loop.call_later(_POLL_SECONDS, self._poll)
        else:
            self._reap()

    def _reap(self) -> None:
        if self._status is not None:
            return
        code = self._spawned.process.poll()
        if code is None:
            return
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
        self._status = Exit(code, None) if code >= 0 else Exit(None, -code)
        self._exited.set()
        if self._stdout.is_open:
            self._linger = self._loop.call_later(_LINGER_SECONDS, self._finish)
        else:
            self._finish()

    def _stdout_ended(self) -> None:
        if self._status is not None:
            self._finish()
        elif self._stopping is None:
            # A server that has closed its stdout can never answer again.
            self._stopping = self._loop.create_task(self._climb(), name=f"stop {self.name}")

    def _finish(self) -> None:
        if self.exit is not None or self._status is None:
            return
        self.exit = self._status
        if self._linger is not None:
            self._linger.cancel()
        self._signal_group(signal.SIGKILL)
        rest = self._framer.rest()
        if rest:
            self._listener.on_line(rest)
        self._close_pipes()
        self._gone.set()
        self._listener.on_exit(self.exit)

    def _close_pipes(self) -> None:
        for pipe in (self.stdin, self._stdout, self._stderr):
            pipe.close()

    # Stopping.

    async def _climb(self) -> None:
        limits = self._limits
        self.stdin.finish()
        if not await _happens(self._exited, limits.close_seconds):
            self._signal_group(signal.SIGTERM)
            if not await _happens(self._exited, limits.term_seconds):
                self._signal_group(signal.SIGKILL)
                if not await _happens(self._exited, limits.kill_seconds):
                    log.error("child would not die", extra={"server": self.name, "pid": self.pid})
                    self._status = Exit(None, None)
                    self._finish()
        await self._gone.wait()
        await _sweeper(self._loop).clean(self._spawned.tag)

    def _signal_group(self, number: signal.Signals) -> None:
        """The group outlives its leader, and its number is not given away while a member lives."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    # Reading.

    def _read(self, data: bytes) -> None:
        framer, listener = self._framer, self._listener
        oversized = framer.oversized
        for line in framer.feed(data):
            listener.on_line(line)
        for _ in range(framer.oversized - oversized):
            listener.on_oversize()


def _sweeper(loop: asyncio.AbstractEventLoop) -> Sweeper:
    for old in [known for known in _sweepers if known.is_closed()]:
        del _sweepers[old]
    return _sweepers.setdefault(loop, Sweeper())


async def _happens(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
