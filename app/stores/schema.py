"""The store's file: whether it is one of ours and whole, and the tables in it."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

_APPLICATION = 0x56494144
"""Of every file of ours, so that no other program's is taken for one."""
_VERSION = 1
_MAGIC = b"SQLite format 3\0"
_HEAD_BYTES = 100
_AT_APPLICATION = slice(68, 72)
"""Where the number of a file's application is (sqlite.org/fileformat.html#application_id)."""

_TABLES = """
CREATE TABLE session (
  id INTEGER PRIMARY KEY,
  name BLOB NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  server TEXT NOT NULL,
  tag TEXT NOT NULL,
  used_at REAL NOT NULL,
  times INTEGER NOT NULL DEFAULT 0,
  number INTEGER NOT NULL DEFAULT 0,
  told BLOB
) STRICT;
CREATE TABLE stream (
  session INTEGER NOT NULL REFERENCES session ON DELETE CASCADE,
  stream INTEGER NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  owed BLOB,
  PRIMARY KEY (session, stream)
) STRICT, WITHOUT ROWID;
CREATE TABLE event (
  session INTEGER NOT NULL REFERENCES session ON DELETE CASCADE,
  number INTEGER NOT NULL,
  stream INTEGER NOT NULL,
  is_lost INTEGER NOT NULL,
  said BLOB NOT NULL,
  UNIQUE (session, number)
) STRICT;
"""


class StoreUnusable(Exception):
    """One sentence that says why, and what to change."""


def open_file(path: Path) -> sqlite3.Connection:
    """The connection that owns the file from now on, alone.

    Raises:
        StoreUnusable: it cannot be opened, is somebody else's, is damaged, or is in use.
    """
    try:
        _claim(path)
    except OSError as wrong:
        raise StoreUnusable(f"the store {path} cannot be opened: {wrong.strerror}") from wrong
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=1.0)
    try:
        _prepare(connection, path)
    except sqlite3.DatabaseError as wrong:
        connection.close()
        raise StoreUnusable(_sentence(path, wrong)) from wrong
    except StoreUnusable:
        connection.close()
        raise
    return connection


def _claim(path: Path) -> None:
    """Make it, where it is not there; whatever is in it is for its owner only."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with closing(os.fdopen(descriptor, "rb", 0)) as file:
        head = file.read(_HEAD_BYTES)
    if head and not head.startswith(_MAGIC):
        raise StoreUnusable(f"the store {path} is no file of Viaduct's; name another file")
    if head and head[_AT_APPLICATION] != _APPLICATION.to_bytes(4):
        # Opened, its log would be written into it.
        raise StoreUnusable(f"the store {path} is another program's; name another file")


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    connection.execute("BEGIN IMMEDIATE")  # From here on nobody else can.
    is_new = _value(connection, "application_id") == 0
    connection.execute("COMMIT")
    if is_new:
        marks = f"PRAGMA application_id={_APPLICATION};PRAGMA user_version={_VERSION};"
        connection.executescript(f"BEGIN IMMEDIATE;{marks}{_TABLES}COMMIT;")
    else:
        _check(connection, path)
    connection.execute("PRAGMA journal_mode=WAL")
    # A commit is on the disk when it returns, also where the power fails (sqlite.org/pragma.html#pragma_synchronous).
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA journal_size_limit=67108864")


def _check(connection: sqlite3.Connection, path: Path) -> None:
    version = _value(connection, "user_version")
    if version != _VERSION:
        raise StoreUnusable(f"the store {path} is of another version of Viaduct ({version}); name another file")
    if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",) or _tables(connection) != _wanted_tables():
        raise StoreUnusable(_damaged(path))


def _value(connection: sqlite3.Connection, name: str) -> int:
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value


def _tables(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return {(name, " ".join(sql.split())) for name, sql in rows}


def _wanted_tables() -> set[tuple[str, str]]:
    with closing(sqlite3.connect(":memory:")) as model:
        model.executescript(_TABLES)
        return _tables(model)


def _sentence(path: Path, wrong: sqlite3.DatabaseError) -> str:
    match wrong.sqlite_errorname:
        case "SQLITE_BUSY" | "SQLITE_LOCKED":
            return f"the store {path} is in use by another gateway; give each one a file of its own"
        case "SQLITE_CORRUPT" | "SQLITE_NOTADB" | "SQLITE_IOERR_SHORT_READ":
            return _damaged(path)
        case _:
            return f"the store {path} cannot be used: {wrong}"


def _damaged(path: Path) -> str:
    return f"the store {path} is damaged, so nothing of it is used; move it away to begin with an empty one"
