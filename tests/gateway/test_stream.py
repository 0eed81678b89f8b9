"""A stream goes on over a new connection, and a client can always say where it was."""

from app.core.replay import EventLog
from app.gateway.stream import Outlet, Stream
from app.protocol.jsonrpc import Notification


class Recorded(Outlet):
    """What one connection was given."""

    def __init__(self, room: int = 100) -> None:
        self.seen: list[tuple[str, str | None]] = []
        self._room = room

    def answer(self, body: bytes) -> None:
        self.seen.append(("answer", None))

    def begin(self, prime: str | None) -> None:
        self.seen.append(("begin", prime))

    def event(self, ident: str | None, data: bytes) -> None:
        self.seen.append(("event", ident))

    def end(self) -> None:
        self.seen.append(("end", None))

    def has_room(self) -> bool:
        return len(self.seen) <= self._room


def resumed(*, primes: bool, says: int, room: int = 100) -> Recorded:
    """The second connection of a stream that said so much after what the client last heard."""
    log = EventLog(bytes_max=1000, count_max=10)
    stream = Stream(7, first := Recorded(), log, "tag", primes=primes)
    stream.begin()
    stream.say(Notification("notifications/progress"))
    heard = 2 if primes else 1
    stream.detach(first)
    for _ in range(says):
        stream.say(Notification("notifications/progress"))
    second = Recorded(room)
    stream.attach(second, log.after(7, heard))
    return second


def test_a_resumed_connection_with_nothing_to_repeat_begins_with_an_id_to_resume_from() -> None:
    assert resumed(primes=True, says=0).seen == [("begin", "tag-7-3")]


def test_a_resumed_connection_with_events_to_repeat_has_its_ids_from_them() -> None:
    assert resumed(primes=True, says=1).seen == [("begin", None), ("event", "tag-7-3")]


def test_a_connection_that_cannot_take_all_that_is_to_be_repeated_gets_what_it_can_and_ends() -> None:
    said = [("begin", None), ("event", "tag-7-3"), ("event", "tag-7-4"), ("end", None)]
    assert resumed(primes=True, says=5, room=2).seen == said


def test_a_revision_that_does_not_prime_resumes_with_a_comment() -> None:
    assert resumed(primes=False, says=0).seen == [("begin", None)]
