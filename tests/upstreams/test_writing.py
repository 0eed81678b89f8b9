"""Writing never waits: what the pipe does not take stands in a bounded queue, and can be taken back (F14)."""

import asyncio
import os
import signal

from app.upstreams.child import Child, ChildLimits
from tests.upstreams.conftest import Run
from tests.upstreams.heard import PATIENT, python, running, shell

STALLS = "import sys, time\nsys.stdin.buffer.raw.read(1)\nprint('stalled', flush=True)\ntime.sleep(60)"
READS_WHEN_TOLD = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print('ready', flush=True)
signal.sigwait([signal.SIGUSR1])
for line in sys.stdin.buffer: os.write(1, line[:9] + b'\\n')
"""
SMALL = ChildLimits(queue_bytes=400_000, queue_count=50, close_seconds=0.1, term_seconds=1.0)


async def fill(child: Child, size: int) -> int:
    """How many lines were taken, in turns of the loop as they come, until one was not."""
    for taken in range(10_000):
        if not child.write(b"%08d" % taken + b"x" * (size - 8), taken):
            return taken
        await asyncio.sleep(0)
    raise AssertionError("the queue has no bound")


def test_a_child_that_never_reads_fills_a_queue_bounded_by_bytes(run: Run) -> None:
    async def work() -> None:
        async with running(*python(STALLS), limits=SMALL) as (child, _):
            taken = await fill(child, 20_000)
            assert 400_000 <= taken * 20_000 < 400_000 + 4 * 65536
            assert child.write(b"x" * 20_000) is False

    run(work())


def test_a_child_that_never_reads_fills_a_queue_bounded_by_count(run: Run) -> None:
    async def work() -> None:
        async with running(*python(STALLS), limits=SMALL) as (child, _):
            child.write(b"x" * 300_000)
            await asyncio.sleep(0)
            assert await fill(child, 10) == 50

    run(work())


def test_lines_of_one_turn_are_bounded_too(run: Run) -> None:
    async def work() -> None:
        async with running(*python(STALLS), limits=SMALL) as (child, _):
            taken = 0
            while child.write(b"x" * 20_000):
                taken += 1
            assert taken * 20_000 < 400_000 + 4 * 65536

    run(work())


def test_one_line_larger_than_the_queue_is_taken_where_nothing_waits(run: Run) -> None:
    async def work() -> None:
        async with running(*python(STALLS), limits=SMALL) as (child, _):
            assert child.write(b"a" * 300_000)
            assert child.write(b"b" * 1_000_000)
            assert child.write(b"c") is False

    run(work())


def test_lines_arrive_in_order_whether_they_waited_or_not(run: Run) -> None:
    sizes = [10, 70_000, 9, 65_536, 200_000, 11] * 40

    async def work() -> None:
        code = "import os, sys\nfor line in sys.stdin.buffer: os.write(1, b'%s %d\\n' % (line[:8], len(line)))"
        limits = ChildLimits(queue_bytes=64 << 20, queue_count=1000)
        async with running(*python(code), limits=limits) as (child, heard):
            for number, size in enumerate(sizes):
                assert child.write(b"%08d" % number + b"x" * (size - 8))
                if number % 3 == 0:
                    await asyncio.sleep(0)
            await heard.until(lambda heard: len(heard.lines) == len(sizes))
            assert heard.lines == [b"%08d %d" % (number, size + 1) for number, size in enumerate(sizes)]

    run(work())


def test_a_line_that_still_waits_can_be_taken_back_and_one_handed_over_cannot(run: Run) -> None:
    async def work() -> None:
        async with running(*python(READS_WHEN_TOLD), limits=PATIENT) as (child, heard):
            await heard.first()
            for key in range(40):
                assert child.write(b"%08d" % key + b"x" * 19_992, key)
                await asyncio.sleep(0)
            assert child.withdraw(0) is False
            assert [child.withdraw(39), child.withdraw(39), child.withdraw(37)] == [True, False, True]
            os.kill(child.pid, signal.SIGUSR1)
            await heard.until(lambda heard: len(heard.lines) == 39)
            assert [int(line[:8]) for line in heard.lines[1:]] == [*range(37), 38]

    run(work())


def test_room_that_was_taken_back_can_be_used_again(run: Run) -> None:
    async def work() -> None:
        async with running(*python(STALLS), limits=SMALL) as (child, _):
            taken = await fill(child, 20_000)
            assert child.withdraw(taken - 1)
            assert child.write(b"x" * 20_000)
            assert child.write(b"x" * 20_000) is False

    run(work())


def test_a_child_that_closed_its_stdin_breaks_nobody_who_writes(run: Run) -> None:
    async def work() -> None:
        async with running(*shell("exec 0<&-; echo closed; exec sleep 60")) as (child, heard):
            await heard.first()
            for _ in range(20):
                child.write(b"x" * 10_000)
                await asyncio.sleep(0)
            assert child.exit is None

    run(work())


def test_nothing_is_taken_once_the_child_is_being_stopped(run: Run) -> None:
    async def work() -> None:
        async with running("cat") as (child, _):
            stopping = asyncio.create_task(child.stop())
            await asyncio.sleep(0)
            assert child.write(b"late") is False
            await stopping

    run(work())
