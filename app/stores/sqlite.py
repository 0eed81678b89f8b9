"""Sessions in one SQLite file. One thread writes and reads it; what comes meanwhile goes into its next transaction.

Where the disk refuses, what was to be kept is tried again, and whoever waits for it is let go on: a client is better
served than told to come back, though what it hears then may be unknown to the next gateway. The log says so.
"""

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic, time
from typing import TypeAlias

from msgspec import DecodeError

from app.core.replay import Event
from app.core.revival import Told
from app.protocol.faults import Overloaded
from app.stores import rows
from app.stores.port import Fact, Saved, Sleeper
from app.stores.schema import StoreUnusable, open_file
from app.stores.sealed import Key, Unreadable

__all__ = ["SqliteStore", "StoreUnusable"]

log = logging.getLogger("viaduct.store")

_AGAIN_SECONDS = 1.0
_TELL_SECONDS = 60.0
_AT_ONCE = 1000
_BEHIND_BYTES = 64 << 20
_BEHIND_COUNT = 100_000
"""Of what waits for a disk that takes nothing; beyond that the sessions concerned are not kept any more."""


@dataclass(frozen=True, slots=True)
class _Work:
    key: Key
    facts: list[Fact]
    done: Callable[[], None]

    @property
    def size(self) -> int:
        return sum(map(_size, self.facts))


@dataclass(frozen=True, slots=True)
class _Question:
    key: Key
    answer: "asyncio.Future[Saved | None]"


@dataclass(frozen=True, slots=True)
class _Farewell:
    name: bytes


_Answer: TypeAlias = "tuple[asyncio.Future[Saved | None], Saved | Overloaded | None]"


class SqliteStore:
    """
    Raises:
        StoreUnusable: the file is not what it must be, and was not touched.
    """

    def __init__(self, path: Path, patience_seconds: float = 5.0) -> None:
        self._path = path
        self._patience_seconds = patience_seconds
        self._file = open_file(path)
        self._inode = path.stat().st_ino
        try:
            self.sleepers: dict[bytes, Sleeper] = rows.sleepers(self._file, time())
        except sqlite3.DatabaseError as wrong:
            self._file.close()
            raise StoreUnusable(f"the store {path} cannot be read: {wrong}") from wrong
        self.is_failing = False
        self._told_at = self._looked_at = -_TELL_SECONDS
        self._gone = asyncio.Event()
        self._jobs: SimpleQueue[_Work | _Question | _Farewell | None] = SimpleQueue()
        self._jobs_left: list[_Work | _Question | _Farewell | None] = []
        """What was taken from the queue, and nobody was told of yet."""
        self._behind: list[_Work | _Farewell] = []
        self._given_up: set[bytes] = set()
        self._again_at = 0.0
        """Not before, what failed is tried again."""
        self._queued_count = self._queued_bytes = 0
        self._left_out: set[bytes] = set()
        """Sessions that are not kept any more, for too much was in the queue."""
        self._is_over = self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="store", daemon=True)
        self._loop: asyncio.AbstractEventLoop

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def keep(self, key: Key, facts: list[Fact], done: Callable[[], None]) -> None:
        work = _Work(key, facts, done)
        if self._is_over or key.name in self._left_out:
            self._loop.call_soon(done)
        elif self._queued_count > _BEHIND_COUNT or self._queued_bytes > _BEHIND_BYTES:
            self._left_out.add(key.name)
            self._jobs.put(_Farewell(key.name))
            self._loop.call_soon(done)
        else:
            self._queued_count += len(facts)
            self._queued_bytes += work.size
            self._jobs.put(work)

    def forget(self, name: bytes) -> None:
        if not self._is_over:
            self._jobs.put(_Farewell(name))

    async def take_up(self, key: Key) -> Saved | None:
        if self._is_over:
            return None
        answer: asyncio.Future[Saved | None] = self._loop.create_future()
        self._jobs.put(_Question(key, answer))
        try:
            async with asyncio.timeout(self._patience_seconds):
                return await answer
        except TimeoutError as late:
            self.is_late()
            raise _unreadable() from late

    def is_late(self) -> None:
        self._complain("the disk does not answer")

    async def close(self) -> None:
        """The thread is not waited for where its disk hangs: it keeps nobody from ending."""
        self._is_closing = True
        if not self._thread.is_alive():
            self._file.close()
            return
        self._jobs.put(None)
        try:
            async with asyncio.timeout(self._patience_seconds):
                await self._gone.wait()
        except TimeoutError:
            log.error("the store does not answer: going without what it has not written yet")  # noqa: TRY400

    # The thread.

    def _run(self) -> None:
        """Should a bug end it, nobody must wait for it."""
        try:
            self._serve()
        finally:
            self._file.close()
            with suppress(RuntimeError):  # The loop is closed: nobody waits.
                self._loop.call_soon_threadsafe(self._over)

    def _serve(self) -> None:
        is_open = True
        while is_open:
            jobs = self._jobs_left = self._next()
            is_open = None not in jobs
            self._behind += [job for job in jobs if isinstance(job, _Work | _Farewell)]
            if (self._behind or self._given_up) and (monotonic() >= self._again_at or not is_open):
                self._catch_up()
            works = [job for job in jobs if isinstance(job, _Work)]
            questions = [job for job in jobs if isinstance(job, _Question)]
            answers: list[_Answer] = [(question.answer, self._take_up(question.key)) for question in questions]
            self._look()
            if works or answers:
                self._loop.call_soon_threadsafe(self._tell, works, answers)
            self._jobs_left = []

    def _next(self) -> "list[_Work | _Question | _Farewell | None]":
        """What is there, as soon as there is anything, or it is time to try again what failed."""
        jobs: list[_Work | _Question | _Farewell | None] = []
        with suppress(Empty):
            jobs.append(self._jobs.get(timeout=_AGAIN_SECONDS if self._behind or self._given_up else None))
            while len(jobs) < _AT_ONCE:
                jobs.append(self._jobs.get_nowait())
        return jobs

    def _catch_up(self) -> None:
        """A part at a time: where the disk refuses, that is known soon, and not after all has been prepared."""
        try:
            while self._behind or self._given_up:
                self._write()
                del self._behind[:_AT_ONCE]
                if not self._behind:
                    self._given_up.clear()
        except sqlite3.OperationalError as wrong:
            self._failed(wrong)
        else:
            if self.is_failing:
                self.is_failing = False
                log.info("the store can be written again")

    def _write(self) -> None:
        with self._transaction():
            for name in self._given_up:
                rows.forget(self._file, name)
            for work in self._behind[:_AT_ONCE]:
                if isinstance(work, _Farewell):
                    rows.forget(self._file, work.name)
                elif work.key.name not in self._given_up:
                    rows.write(self._file, work.key, work.facts)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._file.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._file.execute("COMMIT")
        finally:
            if self._file.in_transaction:
                self._file.execute("ROLLBACK")

    def _complain(self, why: str) -> None:
        self.is_failing = True
        if self._told_at + _TELL_SECONDS < monotonic():
            self._told_at = monotonic()
            log.error("the store cannot be written: sessions may not survive a restart", extra={"why": why})

    def _look(self) -> None:
        """A file that was taken away is written on, and nobody will find it."""
        if self._looked_at + _TELL_SECONDS > monotonic():
            return
        self._looked_at = monotonic()
        with suppress(OSError):
            if self._path.stat().st_ino == self._inode:
                return
        self._complain("its file is not there any more")

    def _failed(self, wrong: sqlite3.Error) -> None:
        self._complain(str(wrong))
        self._again_at = monotonic() + _AGAIN_SECONDS
        works = [work for work in self._behind if isinstance(work, _Work)]
        if sum(len(work.facts) for work in works) > _BEHIND_COUNT or sum(work.size for work in works) > _BEHIND_BYTES:
            self._given_up |= {work.key.name for work in works}
            self._behind = [work for work in self._behind if isinstance(work, _Farewell)]

    def _take_up(self, key: Key) -> Saved | Overloaded | None:
        try:
            with self._transaction():
                return rows.take_up(self._file, key)
        except sqlite3.OperationalError as wrong:
            self._complain(str(wrong))
            return _unreadable()
        except (sqlite3.DatabaseError, Unreadable, DecodeError) as wrong:
            log.warning("a session in the store is damaged", extra={"why": f"{type(wrong).__name__}: {wrong}"})
            return None

    def _over(self) -> None:
        """On the loop: whoever still waits goes on."""
        self._is_over = True
        self._gone.set()
        if not self._is_closing:
            self.is_failing = True
            log.error("the store has failed: no session survives a restart any more")
        jobs = self._jobs_left
        while not self._jobs.empty():
            jobs.append(self._jobs.get_nowait())
        works = [job for job in jobs if isinstance(job, _Work)]
        self._tell(works, [(job.answer, None) for job in jobs if isinstance(job, _Question)])

    def _tell(self, works: list[_Work], answers: list[_Answer]) -> None:
        """On the loop: a bug in what one of them does is no other's."""
        for work in works:
            self._queued_count -= len(work.facts)
            self._queued_bytes -= work.size
            self._loop.call_soon(work.done)
        if not self._queued_count:
            self._left_out.clear()
        for answer, saved in answers:
            if answer.done():
                continue
            if isinstance(saved, Overloaded):
                answer.set_exception(saved)
            else:
                answer.set_result(saved)


def _size(fact: Fact) -> int:
    match fact:
        case Event():
            return len(fact.data)
        case Told():
            return len(fact.initialize or b"") + len(fact.greeted) + sum(map(len, fact.subscribed.values()))
        case _:
            return 0


def _unreadable() -> Overloaded:
    return Overloaded("the store cannot be read now", reason="store", retry_after=1.0)
