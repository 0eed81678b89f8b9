"""What of a session is kept in the store, and who may speak only when it is.

An event is committed before it is sent, and so is what a client is told of its session at all: while something is on
its way to the store, whatever the client hears next waits for it, in its order (docs/adr/0010).
"""

import asyncio
import time
from collections.abc import Callable, Hashable
from functools import partial

from app.core.effects import StreamId
from app.core.replay import Event, EventLog, Evicted, Forgotten, Lost, Mark
from app.core.replay import Fact as Change
from app.core.revival import Told
from app.gateway.stream import Outlet
from app.protocol.jsonrpc import RequestId
from app.stores.port import Ended, Fact, Opened, Store, Used, Way
from app.stores.sealed import Key

Say = Callable[[], None]
Owed = Callable[[StreamId], tuple[RequestId, ...] | None]
"""What a stream is for: the answers to these requests, or, with None, whatever answers no request."""


class Journal:
    """Of one session. Nothing is kept before its server has greeted it: until then there is nothing to go on with.

    One commit is on its way at a time. What changes meanwhile waits for the next, and of an event that is evicted
    meanwhile only the number, so that no more waits than the log may hold.
    """

    def __init__(
        self,
        store: Store,
        key: Key,
        opened: Opened,
        bytes_max: int,
        patience_seconds: float,
        log: EventLog,
        owed: Owed,
        *,
        is_kept: bool,
    ) -> None:
        self.bytes_max = bytes_max
        self._patience_seconds = patience_seconds
        self._store = store
        self._key = key
        self._opened = opened
        self._log = log
        self._owed = owed
        self._loop = asyncio.get_running_loop()
        self._is_kept = is_kept
        self._is_left = False
        self._ways: set[StreamId] = set()
        self._facts: dict[Hashable, Fact] = {}
        self._is_committing = self._is_late = False
        self._timer: asyncio.TimerHandle | None = None
        self._now: list[Say] = []
        """Who speaks after the commit that is on its way,"""
        self._next: list[Say] = []
        """and who after the one that follows."""

    def take_up(self, ways: list[Way]) -> None:
        """Another gateway has left it."""
        self._ways.update(way.stream for way in ways)
        self._log.note = self._note
        self.used()

    def remember(self, told: Told) -> None:
        """What its server was told by now."""
        if not self._is_kept:
            self._is_kept = True
            self._put(self._opened)
            for fact in self._log.history():
                self._note(fact)
            self._log.note = self._note
        self._put(told)

    def used(self) -> None:
        """Nobody needs to wait for that."""
        if self._is_kept:
            self._store.keep(self._key, [Used(time.time())], _done)

    def leave(self) -> None:
        """The session ends for this gateway; the next one goes on with it."""
        self.used()
        self._is_left = True

    def end(self) -> None:
        """The session is over. What of it was still to be kept needs not be, and who waits for a disk holds no log."""
        if self._is_kept and not self._is_left:
            self._facts.clear()
            self._put(Ended())
        self._is_kept = False
        self._log.note, self._owed = _unnoted, _nothing
        self._log = EventLog(0, 0)

    def outlet(self, outlet: Outlet) -> Outlet:
        """The same, heard when what was noted before is committed."""
        return _Patient(self, outlet)

    def then(self, say: Say) -> None:
        """Now, or when what was noted until now is committed, or a disk that hangs has been waited for long enough."""
        if self._is_late:
            say()
        elif self._facts or self._next:
            self._next.append(say)
            self._commit()
        elif self._is_committing:
            self._now.append(say)
        else:
            say()

    def _note(self, change: Change) -> None:
        match change:
            case Event(number, stream) | Mark(number, stream):
                if stream not in self._ways:
                    self._ways.add(stream)
                    self._put(Way(stream, number, self._owed(stream)), ("way", stream))
                self._put(change, number if isinstance(change, Event) else ("mark", stream))
            case Evicted(number):
                event = self._facts.pop(number, None)
                if isinstance(event, Event):
                    self._put(Mark(number, event.stream), ("mark", event.stream))
                else:
                    self._put(change, number)
            case Lost(number):
                self._put(change, number)
            case _:
                self._forget(change)

    def _forget(self, forgotten: Forgotten) -> None:
        """What was not on its way yet never needs to be."""
        stream = forgotten.stream
        self._ways.discard(stream)
        was_kept = ("way", stream) not in self._facts
        self._facts = {key: fact for key, fact in self._facts.items() if not _is_of(fact, stream)}
        if was_kept:
            self._put(forgotten, ("forgotten", stream))

    def _put(self, fact: Fact, key: Hashable = None) -> None:
        if not self._facts:
            self._loop.call_soon(self._commit)
        self._facts[key or type(fact).__name__] = fact

    def _commit(self) -> None:
        if self._is_committing or not self._facts:
            return
        self._is_committing = True
        facts, self._facts = [*self._facts.values()], {}
        self._now, self._next = self._next, []
        self._timer = self._loop.call_later(self._patience_seconds, self._overdue)
        self._store.keep(self._key, facts, self._committed)

    def _committed(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._is_late = False
        try:
            self._speak()
        finally:
            self._is_committing = False
            self._commit()

    def _overdue(self) -> None:
        """Until the disk answers nobody waits for it."""
        self._store.is_late()
        self._speak()
        self._is_late, self._now, self._next = True, self._next, []
        self._speak()

    def _speak(self) -> None:
        """While they speak, more may come that is to be said after them."""
        try:
            for say in self._now:
                say()
        finally:
            self._now = []


def _unnoted(_change: Change) -> None:
    """The log is nobody's any more: if it knew its session, only the garbage collector could end both."""


def _is_of(fact: Fact, stream: StreamId) -> bool:
    return isinstance(fact, Way | Event | Mark | Lost) and fact.stream == stream


def _done() -> None: ...


def _nothing(_stream: StreamId) -> None:
    """The same."""


class _Patient(Outlet):
    def __init__(self, journal: Journal, outlet: Outlet) -> None:
        self._journal = journal
        self._outlet = outlet
        self._bytes = 0
        self._is_cut_off = False

    def answer(self, body: bytes) -> None:
        self._journal.then(partial(self._outlet.answer, body))

    def begin(self, prime: str | None) -> None:
        self._journal.then(partial(self._outlet.begin, prime))

    def event(self, ident: str | None, data: bytes) -> None:
        """What waits counts like what its connection has not taken yet: one that falls too far behind is closed."""
        if self._is_cut_off:
            return
        if self._bytes > self._journal.bytes_max:
            self._is_cut_off = True
            self._outlet.end()
            return
        self._bytes += len(data)
        self._journal.then(partial(self._event, ident, data))

    def end(self) -> None:
        self._journal.then(self._outlet.end)

    def has_room(self) -> bool:
        return self._bytes <= self._journal.bytes_max and self._outlet.has_room()

    def skips(self) -> bool:
        return self._bytes > self._journal.bytes_max // 2 or self._outlet.skips()

    def _event(self, ident: str | None, data: bytes) -> None:
        self._bytes -= len(data)
        self._outlet.event(ident, data)
