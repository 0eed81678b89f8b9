"""However much children write, the loop is held up for a moment in each turn only; and nothing is lost for it."""

import asyncio
import time
from collections.abc import Callable

import pytest

from app.upstreams import backlog
from app.upstreams.backlog import Backlog
from app.upstreams.child import Exit
from tests.upstreams.conftest import Run
from tests.upstreams.heard import Heard, python, running

FLOOD = "import os\nfor n in range(0, 2000, 100): os.write(1, b''.join(b'%d\\n' % m for m in range(n, n + 100)))"


class Slow(Heard):
    """Each line makes half a millisecond of work."""

    def on_line(self, text: bytes, /) -> None:
        time.sleep(0.0005)
        super().on_line(text)


class Turns:
    """Counts the turns of the loop."""

    def __init__(self) -> None:
        self.count = 0
        self._again()

    def _again(self) -> None:
        self.count += 1
        self._handle = asyncio.get_running_loop().call_soon(self._again)

    def stop(self) -> None:
        self._handle.cancel()


def test_a_flood_is_heard_in_its_order_and_before_the_exit_and_others_have_their_turns(run: Run) -> None:
    async def work() -> None:
        async with running(*python(FLOOD), heard=Slow()) as (child, heard):
            turns = Turns()
            await child.wait()
            turns.stop()
            assert heard.order == [*(b"%d" % number for number in range(2000)), Exit(0, None)]
            assert turns.count > 100

    run(work())


def test_reading_goes_on_once_all_was_heard_and_not_before(run: Run) -> None:
    code = "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(line * 500); sys.stdout.flush()"

    async def work() -> None:
        async with running(*python(code), heard=Slow()) as (child, heard):
            for number in range(3):
                child.write(b"%d" % number)
                await heard.until(lambda heard, number=number: len(heard.lines) == 500 * (number + 1))
            assert heard.lines == [b"%d" % number for number in range(3) for _ in range(500)]

    run(work())


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Time passes only where it is said to."""
    now = 0.0

    def pass_by(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(backlog, "monotonic", lambda: now)
    return pass_by


def test_many_that_flood_share_what_one_may_have(run: Run, clock: Callable[[float], None]) -> None:
    async def work() -> None:
        heard: list[tuple[int, bytes]] = []
        turned: list[int] = []

        def hear(name: int) -> Callable[[bytes], None]:
            return lambda line: (clock(0.0004), heard.append((name, line)))[1]

        lines = [b"%d" % number for number in range(10)]
        backlogs = [Backlog(hear(name), lambda name=name: turned.append(name)) for name in range(8)]
        for each in backlogs:
            each.add(lines)
        assert len(heard) == 2
        backlogs[3].add([b"late"])
        counts = []
        while any(each.is_behind for each in backlogs):
            before = len(heard)
            await asyncio.sleep(0)
            counts.append(len(heard) - before)
        assert max(counts) <= 6
        for name in range(8):
            assert [line for other, line in heard if other == name] == [*lines, *([b"late"] if name == 3 else [])]
        assert sorted(turned) == sorted([*range(8)] * 2)

    run(work())


def test_a_bug_in_who_hears_costs_that_line_only(run: Run, clock: Callable[[float], None]) -> None:
    async def work() -> None:
        heard: list[bytes] = []

        def hear(line: bytes) -> None:
            clock(1)
            if line == b"1":
                raise ValueError("a bug")
            heard.append(line)

        complaints: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: complaints.append(context))
        each = Backlog(hear, lambda: None)
        each.add([b"0", b"1", b"2"])
        while each.is_behind:  # noqa: ASYNC110 - turns are what is counted
            await asyncio.sleep(0)
        assert (heard, len(complaints)) == ([b"0", b"2"], 1)

    run(work())
