"""One child process: written to without waiting, listened to until its last line, and stopped with all it started.

    RUNNING ──exits──▶ DRAINING ──end of stdout, or a moment──▶ what it said is heard ──▶ GONE
       └──stop──▶ stdin closed ──▶ SIGTERM ──▶ SIGKILL ──▶ GONE

A grandchild may hold the pipes open for ever: an exit does not wait for their end.
"""

import asyncio
import logging
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from app.upstreams.backlog import Backlog
from app.upstreams.command import Command
from app.upstreams.framing import LineFramer
from app.upstreams.pipes import End, Input, Output
from app.upstreams.spawn import Spawned, spawn
from app.upstreams.stderr import StderrRing
from app.upstreams.sweeper import Sweeper
from app.upstreams.watch import Exit, Watch

__all__ = ["Child", "ChildLimits", "Exit", "Listener", "start"]

log = logging.getLogger("viaduct.child")

_LINGER_SECONDS = 0.15
"""How long stdout is read on after the exit, where somebody else still holds it open."""


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
    stderr_bytes: int = 65536
    """What is kept of stderr,"""
    stderr_rate: int = 50
    """and how many of its lines are logged in a second."""


async def start(name: str, command: Command, limits: ChildLimits, listener: Listener) -> "Child":
    """Start a process and listen to it. Lines may come before this returns; the exit comes after.

    Raises:
        Unavailable: it could not be started; nothing is left of the try.
    """
    child = Child(name, spawn(command), limits, listener)
    connecting = asyncio.get_running_loop().create_task(child.connect(), name=f"connect {name}")
    try:
        # A loop that is cancelled half-way loses count of its descriptors, so it never is.
        await asyncio.shield(connecting)
    except asyncio.CancelledError:
        child.abandon(connecting)
        raise
    child.watch()
    return child


class Child:
    """`exit` is set when the last line was heard."""

    def __init__(self, name: str, spawned: Spawned, limits: ChildLimits, listener: Listener) -> None:
        self._loop = asyncio.get_running_loop()
        self.name = name
        self.pid = spawned.process.pid
        self.exit: Exit | None = None
        self.stderr = StderrRing(name, self.pid, self._loop.time, limits.stderr_bytes, limits.stderr_rate)
        self._spawned = spawned
        self._limits = limits
        self._listener = listener
        self._framer = LineFramer(limits.line_bytes)
        self._backlog = Backlog(self._hear, self._pace)
        self._is_paused = False
        self._is_finished = False
        self._status: Exit | None = None
        self._exited = asyncio.Event()
        self._gone = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None
        self._linger: asyncio.TimerHandle | None = None
        self._watch = Watch(spawned.process, self._ended)
        self._stdin = Input(limits.queue_bytes, limits.queue_count)
        self._stdout = Output(spawned.stdout, self._read, self._stdout_ended)
        self._stderr = Output(spawned.stderr, self.stderr.feed, self.stderr.close)

    async def connect(self) -> None:
        """For `start`."""
        spawned, loop = self._spawned, self._loop
        await loop.connect_write_pipe(lambda: self._stdin, End(spawned.stdin, loop))
        await loop.connect_read_pipe(lambda: self._stderr, End(spawned.stderr, loop))
        await loop.connect_read_pipe(lambda: self._stdout, End(spawned.stdout, loop))

    def watch(self) -> None:
        """For `start`."""
        self._watch.start()

    def abandon(self, connecting: asyncio.Task[None]) -> None:
        """For `start`: nobody waits for this child any more, or wants to hear of it."""
        self._listener = _Nobody()
        self._stopping = self._loop.create_task(self._abandon(connecting), name=f"stop {self.name}")

    def write(self, line: bytes, key: int | None = None) -> bool:
        """At once if the pipe takes it, else into the queue; False where that is full or the child is gone.

        `key` names the line, so that it can be withdrawn while no byte of it was handed over.
        """
        return self._status is None and self._stdin.write(line, key)

    @property
    def is_ending(self) -> bool:
        """Whether it has ended, or is being stopped: either way its exit is still to be reported, or has been."""
        return self._status is not None or self._stopping is not None

    def listen(self, listener: Listener) -> None:
        """From now on `listener` hears what the child says, first of all what has been waiting."""
        self._listener = listener
        self._stdout.resume()

    @property
    def waiting_bytes(self) -> int:
        return self._stdin.waiting_bytes

    def withdraw(self, key: int) -> bool:
        return self._stdin.withdraw(key)

    def pause_reading(self) -> None:
        """Let the child wait until somebody has room for what it says; its end is heard all the same."""
        self._is_paused = True
        self._pace()

    def resume_reading(self) -> None:
        self._is_paused = False
        self._pace()

    def kill(self) -> None:
        """Now, with its whole group; the exit is reported as any other."""
        self._signal_group(signal.SIGKILL)

    async def wait(self) -> Exit:
        await self._gone.wait()
        assert self.exit is not None  # noqa: S101 - set before the event
        return self.exit

    async def stop(self) -> Exit:
        """Close stdin, wait, SIGTERM, wait, SIGKILL, and kill what escaped. One ladder, whoever waits for it."""
        await asyncio.shield(self._begin_stop())
        return await self.wait()

    # Exit.

    def _ended(self, status: Exit) -> None:
        if self._status is not None:
            # It was given up, and did die in the end.
            self._watch.let_go()
            return
        self._status = status
        self._exited.set()
        if self._stdout.is_open:
            self._linger = self._loop.call_later(_LINGER_SECONDS, self._finish)
        else:
            self._finish()

    def _stdout_ended(self) -> None:
        if self._status is not None:
            self._finish()
        else:
            # A server that has closed its stdout can never answer again.
            self._begin_stop()

    def _finish(self) -> None:
        if self._is_finished or self._status is None:
            return
        self._is_finished = True
        if self._linger is not None:
            self._linger.cancel()
        self._signal_group(signal.SIGKILL)
        if self._exited.is_set():
            self._watch.let_go()
        try:
            self._hear_the_rest()
        finally:
            for pipe in (self._stdin, self._stdout, self._stderr):
                pipe.close()
            self._pace()

    def _hear_the_rest(self) -> None:
        self._stderr.drain()
        self._stdout.drain()
        rest = self._framer.rest()
        if rest:
            self._backlog.add([rest])

    def _tell_exit(self, status: Exit) -> None:
        self.exit = status
        self._backlog.end()
        listener, self._listener = self._listener, _Nobody()
        self._gone.set()
        listener.on_exit(status)

    # Stopping.

    def _begin_stop(self) -> asyncio.Task[None]:
        if self._stopping is None:
            self._stdin.finish()
            self._stopping = self._loop.create_task(self._climb(), name=f"stop {self.name}")
        return self._stopping

    async def _abandon(self, connecting: asyncio.Task[None]) -> None:
        await connecting
        self.watch()
        self.kill()
        await self._climb()

    async def _climb(self) -> None:
        limits = self._limits
        if not await _happens(self._exited, limits.close_seconds):
            self._signal_group(signal.SIGTERM)
            if not await _happens(self._exited, limits.term_seconds):
                self._signal_group(signal.SIGKILL)
                if not await _happens(self._exited, limits.kill_seconds):
                    self._give_up()
        await self._gone.wait()
        await Sweeper.of(self._loop).clean(self._spawned.tag)

    def _give_up(self) -> None:
        log.error("child would not die", extra={"server": self.name, "pid": self.pid})
        self._status = Exit(None, None)
        self._finish()

    def _signal_group(self, number: signal.Signals) -> None:
        """The group outlives its leader, and its number is nobody else's until the leader is let go."""
        if not self._watch.is_let_go:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    # Reading.

    def _read(self, data: bytes) -> None:
        self._backlog.add(self._framer.feed(data))

    def _hear(self, line: bytes) -> None:
        if line:
            self._listener.on_line(line)
        else:
            self._listener.on_oversize()

    def _pace(self) -> None:
        """Read no faster than is heard. Once there is nothing more to read, its exit is told when all was heard."""
        if self._is_finished:
            if self._status is not None and self.exit is None and not self._backlog.is_behind:
                self._tell_exit(self._status)
        elif self._is_paused or self._backlog.is_behind:
            self._stdout.pause()
        else:
            self._stdout.resume()


class _Nobody:
    def on_line(self, _text: bytes, /) -> None: ...

    def on_oversize(self) -> None: ...

    def on_exit(self, _exit: Exit, /) -> None: ...


async def _happens(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
