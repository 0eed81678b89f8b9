"""What was committed is what is read, whatever the order of things was."""

import asyncio
import resource
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from app.core.replay import Event, EventLog, Evicted, Fact, Forgotten, Lost, Mark, Replay
from app.core.revival import Told
from app.stores import rows
from app.stores.port import Ended, Opened, Saved, Sleeper, Used, Way
from app.stores.port import Fact as Kept
from app.stores.schema import StoreUnusable, open_file
from app.stores.sealed import Key
from app.stores.sqlite import SqliteStore

KEY = Key("a session")
OPENED = Opened("me", "stage", "cafe0123", 100.0)
TOLD = Told(Raw(b'{"a": 1.0}'), Raw(b'{"b":[]}'), True, Raw(b'{"level":"info"}'), {"x:y": Raw(b'{"uri":"x:y"}')})


@pytest.fixture
def file(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(open_file(tmp_path / "sessions.db")) as connection:
        yield connection


def saved(file: sqlite3.Connection, *facts: Kept) -> Saved | None:
    rows.write(file, KEY, [OPENED, *facts])
    return rows.read(file, KEY)


def test_a_session_is_read_as_it_was_told(file: sqlite3.Connection) -> None:
    facts: list[Kept] = [TOLD, Way(3, 1, (7, "7")), Mark(1, 3), Event(2, 3, b"\xffraw", 7), Way(4, 3, None), Mark(3, 4)]
    assert saved(file, *facts) == Saved(
        "cafe0123",
        TOLD,
        0,
        3,
        [Way(3, 1, (7, "7")), Way(4, 3, None)],
        [Mark(1, 3), Mark(2, 3), Mark(3, 4), Mark(3, 4), Event(2, 3, b"\xffraw", 7)],
    )


def test_what_was_told_last_counts(file: sqlite3.Connection) -> None:
    later = Told(Raw(b"{}"), Raw(b"{}"))
    read = saved(file, TOLD, later)
    assert read is not None
    assert read.told == later


def test_of_an_evicted_answer_its_request_is_remembered_and_of_other_events_nothing(file: sqlite3.Connection) -> None:
    said: list[Kept] = [
        TOLD,
        Way(1, 1, ("a",)),
        Event(1, 1, b"one"),
        Event(2, 1, b"two", "a"),
        Evicted(1),
        Lost(2, 1, "a"),
    ]
    read = saved(file, *said)
    assert read is not None
    assert read.history == [Mark(1, 1), Mark(2, 1), Lost(2, 1, "a")]


def test_nothing_is_left_of_what_was_forgotten_or_ended(file: sqlite3.Connection) -> None:
    assert saved(file, TOLD, Way(1, 1, None), Event(1, 1, b"one"), Forgotten(1)) == Saved(
        "cafe0123", TOLD, 0, 1, [], []
    )
    rows.write(file, KEY, [Ended(), Event(2, 1, b"late"), TOLD])
    assert rows.read(file, KEY) is None
    for table in ("session", "stream", "event"):
        assert file.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_whoever_takes_a_session_up_uses_no_number_that_another_may_have_used(file: sqlite3.Connection) -> None:
    saved(file, TOLD, Way(1, 1, None), Event(1, 1, b"one"))
    lives = [rows.take_up(file, KEY) for _ in range(3)]
    assert [(life.times, life.number) for life in lives if life is not None] == [
        (number, 1 + number * (1 << 30)) for number in (1, 2, 3)
    ]


def test_before_anything_was_told_there_is_nothing_to_go_on_with(file: sqlite3.Connection) -> None:
    assert saved(file) is None


def test_sleepers_are_known_in_the_order_in_which_they_were_used(file: sqlite3.Connection) -> None:
    other = Key("another")
    rows.write(file, KEY, [OPENED, Used(300.0)])
    rows.write(file, other, [Opened("you", "time", "0", 200.0)])
    assert [*rows.sleepers(file, 250.0).items()] == [
        (other.name, Sleeper("you", "time", 200.0)),
        (KEY.name, Sleeper("me", "stage", 250.0)),
    ]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.sampled_from([None, 1, "1"]), st.integers(0, 30)), max_size=60),
    st.integers(1, 60),
    st.integers(1, 12),
)
def test_a_log_that_is_made_again_says_what_the_first_would_have(
    said: list[tuple[int, int | str | None, int]], bytes_max: int, count_max: int
) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_tables())
        first = EventLog(bytes_max, count_max)
        noted: list[Kept] = [OPENED, TOLD]
        first.note = lambda fact: noted.extend(_with_way(fact, noted))
        for stream, answers, size in said:
            if size == 0:
                first.mark(stream)
            else:
                first.append(stream, b"x" * size, answers)
        rows.write(connection, KEY, noted)
        read = rows.read(connection, KEY)
    assert read is not None
    again = EventLog(bytes_max, count_max, read.history, read.number)
    for stream in {stream for stream, _, _ in said}:
        for number in range(len(said) + 2):
            assert again.holds(stream, number) == first.holds(stream, number)
            if first.holds(stream, number):
                assert again.after(stream, number) == first.after(stream, number)
    assert again.append(9, b"next") == first.append(9, b"next")


def _tables() -> str:
    from app.stores import schema

    return schema._TABLES


def _with_way(fact: Fact, noted: list[Kept]) -> list[Kept]:
    if isinstance(fact, Event | Mark) and not any(isinstance(way, Way) and way.stream == fact.stream for way in noted):
        return [Way(fact.stream, fact.number, None), fact]
    return [fact]


# The thread.


def on_loop(work: Callable[[Path], Coroutine[None, None, None]]) -> Callable[[Path], None]:
    def test(tmp_path: Path) -> None:
        asyncio.run(work(tmp_path))

    test.__name__ = work.__name__
    return test


def kept(store: SqliteStore, key: Key, *facts: Kept) -> Awaitable[None]:
    done = asyncio.get_running_loop().create_future()
    store.keep(key, list(facts), lambda: done.set_result(None))
    return done


@contextmanager
def limited_to(size: int) -> Iterator[None]:
    """No file of this process grows beyond that."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


@on_loop
async def test_what_was_kept_is_there_for_the_next_store(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "sessions.db")
    store.start()
    await kept(store, KEY, OPENED, TOLD)
    await store.close()
    again = SqliteStore(tmp_path / "sessions.db")
    assert [*again.sleepers] == [KEY.name]
    again.start()
    assert await again.take_up(KEY) == Saved("cafe0123", TOLD, 1, 1 << 30, [], [])
    assert await again.take_up(Key("unknown")) is None
    again.forget(KEY.name)
    assert await again.take_up(KEY) is None
    await again.close()


@on_loop
async def test_a_row_that_somebody_changed_is_not_taken_for_what_was_said(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(open_file(path)) as file:
        rows.write(file, KEY, [OPENED, TOLD, Way(1, 1, None), Event(1, 1, b"one"), Event(2, 1, b"two")])
        file.execute("UPDATE event SET said = (SELECT said FROM event WHERE number = 1) WHERE number = 2")
    store = SqliteStore(path)
    store.start()
    assert await store.take_up(KEY) is None
    await store.close()


@on_loop
async def test_everything_that_is_kept_is_said_to_be_done_in_its_order(tmp_path: Path) -> None:
    store, done = SqliteStore(tmp_path / "sessions.db"), list[int]()
    store.start()
    await kept(store, KEY, OPENED, TOLD)
    for number in range(1, 500):
        store.keep(KEY, [Event(number, 1, b"")], partial(done.append, number))
    await kept(store, KEY, Used(1.0))
    assert done == [*range(1, 500)]
    await store.close()


async def sleeping(path: Path) -> list[str]:
    """What the next gateway finds."""
    store = SqliteStore(path)
    found = [*store.sleepers]
    await store.close()
    return found


@on_loop
async def test_while_the_disk_refuses_nobody_waits_for_what_is_tried_again(tmp_path: Path) -> None:
    store, tries = SqliteStore(tmp_path / "sessions.db"), count()
    with limited_to(0):
        store.start()
        write = store._write
        store._write = lambda: (next(tries), write())[1]  # type: ignore[method-assign]
        for number in range(200):
            await kept(store, KEY, OPENED, TOLD) if not number else await kept(store, KEY, Used(number))
    assert next(tries) < 20
    await kept(store, KEY, Used(201.0))
    await store.close()
    assert await sleeping(tmp_path / "sessions.db") == [KEY.name]


@on_loop
async def test_of_what_waits_for_a_disk_that_hangs_no_more_is_kept_than_so_much(tmp_path: Path) -> None:
    store, others = SqliteStore(tmp_path / "sessions.db"), [Key(str(number)) for number in range(500)]
    greeted, hanging = Told(Raw(b'{"a":"%b"}' % (b"x" * (1 << 18)))), threading.Event()
    write = store._write
    store._write = lambda: (hanging.wait(5), write())[1]  # type: ignore[method-assign]
    store.start()
    for key in others:
        store.keep(key, [OPENED, greeted], lambda: None)
    await kept(store, others[-1], Used(1.0))
    assert store._jobs.qsize() <= len(others)
    hanging.set()
    await store.close()
    assert 200 < len(await sleeping(tmp_path / "sessions.db")) < 300


def test_should_a_bug_end_the_thread_nobody_waits_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bugs: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", bugs.append)

    async def work() -> None:
        store = SqliteStore(tmp_path / "sessions.db")
        store.start()
        await kept(store, KEY, OPENED, OPENED)  # Which nobody does: one name twice.
        await kept(store, KEY, TOLD)
        assert await store.take_up(KEY) is None
        assert store.is_failing
        await store.close()
        store._thread.join(5)

    asyncio.run(work())
    assert [bug.exc_type for bug in bugs] == [sqlite3.IntegrityError]


def test_a_file_in_use_is_refused(tmp_path: Path) -> None:
    with closing(open_file(tmp_path / "sessions.db")), pytest.raises(StoreUnusable, match="in use by another gateway"):
        SqliteStore(tmp_path / "sessions.db")


def test_a_file_where_none_can_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="cannot be opened: No such file or directory"):
        SqliteStore(tmp_path / "nowhere" / "sessions.db")


def test_replays_are_alike_where_their_logs_are() -> None:
    assert EventLog(1, 1, [Mark(1, 1), Mark(3, 1), Lost(2, 1, "a"), Event(3, 1, b"z")]).after(1, 1) == Replay(
        [Event(3, 1, b"z")], ["a"]
    )
