"""A stop is polite first and final at last, one for all who ask, and reaches everybody the child has started."""

import asyncio
import os
import signal
import time

import pytest

from app.upstreams.child import Exit
from tests.upstreams.conftest import Run
from tests.upstreams.heard import PATIENT, SHORT, Heard, dies, is_alive, python, running, shell

IGNORES_EOF = "import sys; print('ready', flush=True); sys.stdin.read(); import time; time.sleep(60)"
IGNORES_TERM = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {IGNORES_EOF}"
ESCAPES = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        null = os.open('/dev/null', os.O_RDWR)
        for fd in (0, 1, 2): os.dup2(null, fd)
        os.execvp('sleep', ['sleep', '60'])
    os._exit(0)
os.wait()
sys.stdin.read()
"""


def test_a_polite_child_ends_with_its_input(run: Run) -> None:
    async def work() -> None:
        async with running("cat", limits=PATIENT) as (child, heard):
            began = time.monotonic()
            assert await child.stop() == Exit(0, None)
            assert time.monotonic() - began < 2
            assert heard.order == [Exit(0, None)]

    run(work())


def test_one_that_ignores_the_end_of_its_input_gets_sigterm(run: Run) -> None:
    async def work() -> None:
        async with running(*python(IGNORES_EOF)) as (child, heard):
            await heard.first()
            began = time.monotonic()
            assert await child.stop() == Exit(None, signal.SIGTERM)
            assert SHORT.close_seconds <= time.monotonic() - began < SHORT.close_seconds + 1

    run(work())


@pytest.mark.parametrize("is_halted", [False, True])
def test_one_that_ignores_sigterm_or_is_halted_gets_sigkill(run: Run, is_halted: bool) -> None:
    async def work() -> None:
        async with running(*python(IGNORES_TERM)) as (child, heard):
            await heard.first()
            if is_halted:
                os.kill(child.pid, signal.SIGSTOP)
            began = time.monotonic()
            assert await child.stop() == Exit(None, signal.SIGKILL)
            patience = SHORT.close_seconds + SHORT.term_seconds
            assert patience <= time.monotonic() - began < patience + 1

    run(work())


def test_a_child_that_never_stops_talking_is_stopped(run: Run) -> None:
    async def work() -> None:
        async with running("yes") as (child, heard):
            await heard.first()
            assert await child.stop() == Exit(None, signal.SIGTERM)

    run(work())


@pytest.mark.parametrize(
    "code",
    [
        "sleep 60 & echo $!; sleep 60 & echo $!; wait",
        "sleep 60 & echo $!; (trap '' TERM; exec sleep 60) & echo $!; exec cat",
        "(trap '' TERM; exec sleep 60 >/dev/null 2>&1) & echo $!; echo $!; exit 0",
    ],
)
def test_nobody_of_the_group_outlives_a_stop(run: Run, code: str) -> None:
    async def work() -> None:
        async with running(*shell(code)) as (child, heard):
            await heard.until(lambda heard: len(heard.lines) == 2)
            await child.stop()
            assert [is_alive(pid) for pid in (child.pid, *map(int, heard.lines))] == [False] * 3

    run(work())


@pytest.mark.parametrize("has_pidfds", [True, False])
def test_one_that_left_the_group_is_found_by_its_tag(
    run: Run, monkeypatch: pytest.MonkeyPatch, has_pidfds: bool
) -> None:
    async def work() -> None:
        async with running("cat", limits=PATIENT) as (bystander, _), running(*python(ESCAPES)) as (child, heard):
            escaped = int(await heard.first())
            assert os.getsid(escaped) != child.pid
            if not has_pidfds:
                monkeypatch.delattr(os, "pidfd_open")
            await child.stop()
            monkeypatch.undo()
            assert dies(escaped)
            assert is_alive(bystander.pid)

    run(work())


def test_all_who_ask_wait_for_the_same_stop_and_none_can_take_it_back(run: Run) -> None:
    async def work() -> None:
        async with running(*python(IGNORES_EOF)) as (child, heard):
            await heard.first()
            first, second, third = (asyncio.create_task(child.stop()) for _ in range(3))
            await asyncio.sleep(0)
            first.cancel()
            assert await second == await third == await child.stop() == Exit(None, signal.SIGTERM)
            assert first.cancelled()
            assert heard.exits == [Exit(None, signal.SIGTERM)]

    run(work())


def test_what_was_written_before_a_stop_is_read_before_the_end(run: Run) -> None:
    async def work() -> None:
        code = "import sys, os\nos.write(1, b'%d' % len(sys.stdin.buffer.read()))"
        async with running(*python(code), limits=PATIENT) as (child, heard):
            assert child.write(b"x" * 499_999)
            assert await child.stop() == Exit(0, None)
            assert heard.lines == [b"500000"]

    run(work())


def test_a_child_that_does_not_read_is_stopped_all_the_same(run: Run) -> None:
    async def work() -> None:
        async with running("sleep", "60") as (child, _):
            while child.write(b"x" * 100_000):
                pass
            assert await child.stop() == Exit(None, signal.SIGTERM)

    run(work())


def test_thirty_starts_and_stops_leave_nothing(run: Run) -> None:
    async def once() -> None:
        async with running("cat") as (child, heard):
            child.write(b"x")
            await heard.first()
            await child.stop()

    async def work() -> None:
        for _ in range(10):
            await asyncio.gather(once(), once(), once())

    run(work())


@pytest.mark.parametrize("code", ["echo a; read line", "printf a"])
def test_an_exit_is_told_although_whoever_listens_has_a_defect(run: Run, code: str) -> None:
    class Defective(Heard):
        def on_line(self, text: bytes, /) -> None:
            super().on_line(text)
            raise LookupError("a defect")

    async def work() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
        async with running(*shell(code), heard=Defective()) as (child, heard):
            await heard.first()
            status = await child.stop()
            assert heard.exits == [status]

    run(work())
