"""Facts as rows, and rows as facts: what of a session is in which table, and what of it is sealed."""

import sqlite3

from msgspec import Struct, msgpack
from msgspec.json import Decoder, Encoder

from app.core.replay import Event, Evicted, Forgotten, Lost, Mark
from app.core.revival import Told
from app.protocol.jsonrpc import RequestId
from app.stores.port import Ended, Fact, Opened, Saved, Sleeper, Used, Way
from app.stores.sealed import Key

_encoder = Encoder()
_told: Decoder[Told] = Decoder(Told)
_owed: Decoder[tuple[RequestId, ...]] = Decoder(tuple[RequestId, ...])
_TOLD = b"told"
_LEAP = 1 << 30
"""How far the numbers of one gateway are from those of the next: a disk that refused knows less than was said."""


class _Said(Struct, array_like=True):
    """An event, or what is left of it."""

    answers: RequestId | None
    data: bytes


_packer = msgpack.Encoder()
_unpacker: msgpack.Decoder[_Said] = msgpack.Decoder(_Said)


def sleepers(connection: sqlite3.Connection, now: float) -> dict[bytes, Sleeper]:
    """A clock that was set back makes nobody sleep for ever."""
    rows = connection.execute("SELECT name, owner, server, used_at FROM session ORDER BY used_at")
    return {name: Sleeper(owner, server, min(used_at, now)) for name, owner, server, used_at in rows}


def write(connection: sqlite3.Connection, key: Key, facts: list[Fact]) -> None:
    """Within the caller's transaction. What is told of a session that is not kept is not kept either."""
    session = _session(connection, key.name)
    for fact in facts:
        if isinstance(fact, Opened):
            session = _open(connection, key.name, fact)
        elif session is None:
            continue
        elif isinstance(fact, Ended):
            forget(connection, key.name)
            session = None
        else:
            _write(connection, key, session, fact)


def forget(connection: sqlite3.Connection, name: bytes) -> None:
    connection.execute("DELETE FROM session WHERE name = ?", (name,))


def take_up(connection: sqlite3.Connection, key: Key) -> Saved | None:
    """Within the caller's transaction, without which no number of it may be used.

    Raises:
        Unreadable, msgspec.DecodeError: as `read`.
    """
    query = "UPDATE session SET times = times + 1, number = number + ? WHERE name = ?"
    connection.execute(query, (_LEAP, key.name))
    return read(connection, key)


def read(connection: sqlite3.Connection, key: Key) -> Saved | None:
    """
    Raises:
        Unreadable: a row was not written with that key.
        msgspec.DecodeError: nor by this program.
    """
    query = "SELECT id, tag, times, number, told FROM session WHERE name = ?"
    row = connection.execute(query, (key.name,)).fetchone()
    if row is None or row[4] is None:
        return None
    session, tag, times, number, told = row
    history: list[Event | Mark | Lost] = []
    ways: list[Way] = []
    query = "SELECT stream, first, last, owed FROM stream WHERE session = ? ORDER BY stream"
    for stream, first, last, owed in connection.execute(query, (session,)):
        history += [Mark(first, stream), Mark(last, stream)]
        ways.append(Way(stream, first, None if owed is None else _unsealed_owed(key, owed, stream)))
    query = "SELECT number, stream, is_lost, said FROM event WHERE session = ? ORDER BY number"
    for at, stream, is_lost, sealed in connection.execute(query, (session,)):
        said = _unpacker.decode(key.unseal(sealed, _place(b"said", at)))
        if is_lost and said.answers is not None:
            history.append(Lost(at, stream, said.answers))
        else:
            history.append(Event(at, stream, said.data, said.answers))
    return Saved(tag, _told.decode(key.unseal(told, _TOLD)), times, number, ways, history)


def _session(connection: sqlite3.Connection, name: bytes) -> int | None:
    row = connection.execute("SELECT id FROM session WHERE name = ?", (name,)).fetchone()
    return None if row is None else row[0]


def _open(connection: sqlite3.Connection, name: bytes, fact: Opened) -> int:
    values = (name, fact.owner, fact.server, fact.tag, fact.used_at)
    query = "INSERT INTO session (name, owner, server, tag, used_at) VALUES (?, ?, ?, ?, ?) RETURNING id"
    session: int = connection.execute(query, values).fetchone()[0]
    return session


def _write(connection: sqlite3.Connection, key: Key, session: int, fact: Fact) -> None:
    run = connection.execute
    match fact:
        case Used():
            run("UPDATE session SET used_at = ? WHERE id = ?", (fact.at, session))
        case Told():
            sealed = key.seal(_encoder.encode(fact), _TOLD)
            run("UPDATE session SET told = ? WHERE id = ?", (sealed, session))
        case Way():
            owed = None if fact.owed is None else key.seal(_encoder.encode(fact.owed), _place(b"owed", fact.stream))
            values = (session, fact.stream, fact.first, fact.first, owed)
            run("INSERT OR REPLACE INTO stream VALUES (?, ?, ?, ?, ?)", values)
        case Mark():
            _number(connection, session, fact.stream, fact.number)
        case Event():
            _number(connection, session, fact.stream, fact.number)
            _say(connection, key, session, fact, fact.data)
        case Lost():
            _number(connection, session, fact.stream, fact.number)
            _say(connection, key, session, fact, None)
        case Evicted():
            run("DELETE FROM event WHERE session = ? AND number = ?", (session, fact.number))
        case Forgotten():
            run("DELETE FROM stream WHERE session = ? AND stream = ?", (session, fact.stream))
            run("DELETE FROM event WHERE session = ? AND stream = ?", (session, fact.stream))
        case _:
            raise AssertionError(fact)


def _number(connection: sqlite3.Connection, session: int, stream: int, number: int) -> None:
    query = "UPDATE stream SET last = max(last, ?) WHERE session = ? AND stream = ?"
    connection.execute(query, (number, session, stream))
    connection.execute("UPDATE session SET number = max(number, ?) WHERE id = ?", (number, session))


def _say(connection: sqlite3.Connection, key: Key, session: int, fact: Event | Lost, data: bytes | None) -> None:
    said = key.seal(_packer.encode(_Said(fact.answers, data or b"")), _place(b"said", fact.number))
    values = (session, fact.number, fact.stream, data is None, said)
    connection.execute("INSERT OR REPLACE INTO event VALUES (?, ?, ?, ?, ?)", values)


def _unsealed_owed(key: Key, owed: bytes, stream: int) -> tuple[RequestId, ...]:
    return _owed.decode(key.unseal(owed, _place(b"owed", stream)))


def _place(what: bytes, number: int) -> bytes:
    return what + b"%d" % number
