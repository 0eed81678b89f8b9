"""What a child says on stderr is always read, kept to a bound, logged at a bounded rate, and blocks nobody (F20)."""

import asyncio
import logging
import time

import pytest

from app.upstreams.stderr import StderrRing
from tests.upstreams.conftest import Run
from tests.upstreams.heard import PATIENT, running, shell


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ring(clock: Clock, caplog: pytest.LogCaptureFixture) -> StderrRing:
    caplog.set_level(logging.INFO)
    return StderrRing("stage", 7, clock, bytes_max=1000, rate=5)


def logged(caplog: pytest.LogCaptureFixture) -> list[object]:
    """Lines as text, and how many were suppressed as numbers."""
    records = [record.__dict__ for record in caplog.records if record.name == "viaduct.child"]
    assert all((record["server"], record["pid"]) == ("stage", 7) for record in records)
    return [record["line"] if "line" in record else record["suppressed"] for record in records]


def test_lines_are_logged_as_they_are_completed(ring: StderrRing, caplog: pytest.LogCaptureFixture) -> None:
    for piece in (b"one\ntw", b"o\n", b"\n  \n", b"three"):
        ring.feed(piece)
    assert logged(caplog) == ["one", "two"]
    assert ring.tail() == ["one", "two", "three"]
    ring.close()
    ring.close()
    assert logged(caplog) == ["one", "two", "three"]


def test_the_last_lines_are_kept_and_no_half_one(ring: StderrRing) -> None:
    for number in range(200):
        ring.feed(b"line %05d\n" % number)
    assert ring.tail(3) == ["line 00197", "line 00198", "line 00199"]
    assert ring.tail(500) == [f"line {number:05d}" for number in range(110, 200)]


def test_of_each_second_some_lines_are_logged_and_the_others_counted(
    ring: StderrRing, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    ring.feed(b"".join(b"%d\n" % number for number in range(8)))
    ring.feed(b"8\n9\nten")
    clock.now += 1
    ring.feed(b"th\neleventh\n")
    ring.close()
    assert logged(caplog) == ["0", "1", "2", "3", "4", 5, "tenth", "eleventh"]


def test_a_long_line_is_logged_to_a_bound(ring: StderrRing, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(100):
        ring.feed(b"x" * 1000)
    ring.feed(b"\nnext\n")
    assert logged(caplog) == ["x" * 8192, "next"]
    assert ring.tail() == ["next"]


def test_what_is_no_text_and_what_would_move_a_cursor_is_made_visible(ring: StderrRing) -> None:
    ring.feed(b"\x1b[31mred\x1b[0m\ta\0b \xff\xe6\xbc\xa2 \xc2\x9b\r\n")
    assert ring.tail() == ["\\x1b[31mred\\x1b[0m\ta\\x00b \N{REPLACEMENT CHARACTER}漢 \\x9b"]


@pytest.mark.parametrize("flood", ["head -c 100000000 /dev/zero", "yes '' | head -c 100000000"], ids=["line", "lines"])
def test_a_flood_blocks_neither_the_child_nor_the_loop(run: Run, flood: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def work() -> None:
        loop, gaps = asyncio.get_running_loop(), [0.0]
        last = loop.time()

        def tick() -> None:
            nonlocal last, ticking
            now = loop.time()
            gaps.append(now - last)
            last = now
            ticking = loop.call_later(0.005, tick)

        ticking = loop.call_soon(tick)
        async with running(*shell(f"{flood} >&2; echo done"), limits=PATIENT) as (child, heard):
            began = time.monotonic()
            assert await heard.first() == b"done"
            assert time.monotonic() - began < 15
            await child.wait()
            ticking.cancel()
            assert max(gaps) < 0.2
            assert sum(len(line) for line in child.stderr.tail(1000)) <= 65536

    run(work())
    assert len(caplog.records) < 1000


def test_what_is_hidden_is_shown_neither_in_the_log_nor_in_the_tail(caplog: pytest.LogCaptureFixture) -> None:
    ring = StderrRing("stage", 7, lambda: 0.0, hidden=("secret", "secret-2", "abc"))
    with caplog.at_level("INFO", logger="viaduct.child"):
        ring.feed(b"a secret-2 and a secret, abc\n")
    assert ring.tail() == ["a *** and a ***, abc"]
    assert [getattr(record, "line", None) for record in caplog.records] == ["a *** and a ***, abc"]
