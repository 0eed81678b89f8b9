"""An ordered run of messages that ends once, and the one connection, if any, that carries it now."""

import re
from collections.abc import Callable
from typing import Protocol

from app.core.effects import StreamId
from app.core.replay import EventLog, Replay
from app.protocol import methods
from app.protocol.faults import EventsLost, InvalidRequest, UnknownSession
from app.protocol.jsonrpc import Failure, Message, Notification, RequestId, Result, encode, failure


class Outlet(Protocol):
    """The edge's end of one HTTP response."""

    def answer(self, body: bytes) -> None:
        """`body` is all there is to say."""

    def begin(self, prime: str | None) -> None:
        """Events will follow; `prime` is an event id to begin with."""

    def event(self, ident: str | None, data: bytes) -> None:
        """One more event. Where the connection cannot take it, the connection closes."""

    def end(self) -> None:
        """Nothing more will be said here."""

    def has_room(self) -> bool:
        """Whether the connection can take one more event."""
        return True

    def skips(self) -> bool:
        """Whether so much waits that what may be missed is better left out; each yes is counted as one left out."""
        return False


class Stream:
    """With a log its events have ids and can be said again; without one, what a broken connection lost is lost.

    Whatever is said to an outlet goes `through` something first, where that is given.
    """

    __slots__ = (
        "_answers",
        "_begun",
        "_carrier",
        "_is_batch",
        "_log",
        "_outlet",
        "_primes",
        "_tag",
        "_takes_json",
        "_through",
        "ident",
    )

    def __init__(
        self,
        ident: StreamId,
        outlet: Outlet | None,
        log: EventLog | None,
        tag: str,
        *,
        primes: bool = False,
        is_batch: bool = False,
        takes_json: bool = False,
        through: Callable[[Outlet], Outlet] | None = None,
    ) -> None:
        self.ident = ident
        self._through = through
        self._carrier = outlet
        self._outlet = outlet if outlet is None or through is None else through(outlet)
        self._log = log
        self._tag = tag
        self._primes = primes
        self._is_batch = is_batch
        self._takes_json = takes_json
        self._begun = False
        self._answers: list[Result | Failure] = []

    @property
    def is_attached(self) -> bool:
        return self._outlet is not None

    @property
    def is_streaming(self) -> bool:
        """Whether there is a connection, and it carries events."""
        return self._begun and self._outlet is not None

    def say(self, message: Message) -> None:
        """What comes first decides the form: answers alone become JSON, anything else an event stream."""
        if not self._begun:
            if self._takes_json and isinstance(message, Result | Failure):
                self._answers.append(message)
                return
            self.begin()
        self._event(message)

    def begin(self) -> None:
        if self._begun:
            return
        self._go_on()
        if self._outlet is not None:
            self._outlet.begin(self._prime())
        for answer in self._answers:
            self._event(answer)

    def end(self) -> None:
        if not self._begun and self._answers:
            self._answer()
        else:
            self.begin()
        self.close()
        if self._outlet is not None:
            self._outlet.end()
            self._carrier = self._outlet = None

    def close(self) -> None:
        """Nothing more will be said on it."""
        if self._log is not None:
            self._log.close(self.ident)

    def attach(self, outlet: Outlet, replay: Replay, server: str = "") -> None:
        """Say again what a broken connection lost, then go on here; an older connection is closed.

        With nothing to say again the new connection is primed too: some clients forget, when it ends, what they
        had heard on the one before.
        """
        if self._outlet is not None:
            self._outlet.end()
        self._carrier = outlet
        self._outlet = outlet = outlet if self._through is None else self._through(outlet)
        self._go_on()
        outlet.begin(None if replay.events or replay.lost else self._prime())
        for ident in replay.lost:
            details = {"server": server}
            fault = EventsLost("the answer was sent, but is no longer kept", executed="unknown", details=details)
            outlet.event(None, encode(failure(ident, fault)))
        for event in replay.events:
            if not outlet.has_room():
                outlet.end()  # Whoever comes again goes on from here; one that was closed would begin anew for ever.
                return
            outlet.event(self._event_id(event.number), event.data)

    def detach(self, outlet: Outlet) -> bool:
        """The connection is gone; whether it was the one that carried the stream."""
        if self._carrier is not outlet or self._outlet is None:
            return False
        self._carrier = self._outlet = None
        return True

    def _go_on(self) -> None:
        self._begun = True
        if self._log is not None:
            self._log.open(self.ident)

    def _answer(self) -> None:
        if self._outlet is None:
            return
        bodies = [encode(answer) for answer in self._answers]
        self._outlet.answer(b"[%s]" % b",".join(bodies) if self._is_batch else bodies[0])

    def _event(self, message: Message) -> None:
        if _may_be_missed(message) and self._outlet is not None and self._outlet.skips():
            return
        data = encode(message)
        ident = None
        if self._log is not None:
            ident = self._event_id(self._log.append(self.ident, data, _answered(message)))
        if self._outlet is not None:
            self._outlet.event(ident, data)

    def _prime(self) -> str | None:
        if self._log is None or not self._primes:
            return None
        return self._event_id(self._log.mark(self.ident))

    def _event_id(self, number: int) -> str:
        return f"{self._tag}-{self.ident}-{number}"


def _may_be_missed(message: Message) -> bool:
    return isinstance(message, Notification) and message.method in methods.MISSABLE


def _answered(message: Message) -> RequestId | None:
    return message.id if isinstance(message, Result | Failure) else None


def event_of(event_id: str, tag: str, log: EventLog) -> tuple[StreamId, int]:
    """The stream of an event, and its number there, of the session with that tag.

    Raises:
        InvalidRequest: no event of this session.
        UnknownSession: an event of another session.
    """
    parts = _EVENT_ID.fullmatch(event_id)
    if parts is None:
        raise InvalidRequest("Last-Event-ID is no event id of ours", reason="unknown_event")
    if parts[1] != tag:
        raise UnknownSession
    ident, number = int(parts[2]), int(parts[3])
    if not log.holds(ident, number):
        raise InvalidRequest("Last-Event-ID is no event of this session", reason="unknown_event")
    return ident, number


_EVENT_ID = re.compile(r"([0-9a-f]{8})-([0-9]{1,15})-([0-9]{1,15})")


class Unheard(Outlet):
    """For an answer that nobody waits for."""

    def answer(self, body: bytes) -> None:
        pass

    def begin(self, prime: str | None) -> None:
        pass

    def event(self, ident: str | None, data: bytes) -> None:
        pass

    def end(self) -> None:
        pass
