"""An exit is seen at once and told after the last line, whoever still holds the pipes (F02, F06, F22, F26, F27)."""

import asyncio
import os
import signal
import time

import pytest

from app.upstreams import watch
from app.upstreams.child import ChildLimits, Exit
from app.upstreams.watch import Watch
from tests.upstreams.conftest import Run
from tests.upstreams.heard import PATIENT, Heard, dies, is_alive, python, running, shell

LAST_WORDS = "import os; os.write(1, b'first\\n'); os.write(2, b'alas\\n'); os.write(1, b'last\\n'); os._exit(1)"
FILLED = """
import fcntl, os
fcntl.fcntl(1, 1031, 1 << 20)
for n in range(1000): os.write(1, b'%-999d\\n' % n)
os._exit(0)
"""


def test_a_child_that_ends_at_once_is_told_after_its_start(run: Run) -> None:
    async def work() -> None:
        async with running(*shell("echo broken >&2")) as (child, heard):
            assert heard.order == []
            assert await child.wait() == Exit(0, None)
            assert heard.order == [Exit(0, None)]
            assert child.stderr.tail() == ["broken"]

    run(work())


def test_the_line_before_a_crash_is_never_lost(run: Run) -> None:
    async def work() -> None:
        for _ in range(15):
            async with running(*python(LAST_WORDS)) as (child, heard):
                await child.wait()
                assert heard.order == [b"first", b"last", Exit(1, None)]
                assert child.stderr.tail() == ["alas"]

    run(work())


def test_a_last_line_without_its_end_is_heard(run: Run) -> None:
    async def work() -> None:
        async with running(*shell("printf 'one\\n{\"two\":2}'")) as (child, heard):
            await child.wait()
            assert heard.order == [b"one", b'{"two":2}', Exit(0, None)]

    run(work())


def test_a_full_pipe_is_read_to_its_end_although_the_loop_was_busy(run: Run) -> None:
    class Busy(Heard):
        def on_line(self, text: bytes, /) -> None:
            if len(self.order) % 200 == 0:
                time.sleep(0.2)  # longer than a child that has ended is listened to
            super().on_line(text)

    async def work() -> None:
        async with running(*shell("sleep 60 & exec " + _quoted(FILLED)), heard=Busy()) as (child, heard):
            await child.wait()
            assert [int(line) for line in heard.lines] == list(range(1000))

    run(work())


def test_the_end_of_a_long_complaint_is_kept(run: Run) -> None:
    async def work() -> None:
        code = FILLED.replace("fcntl(1", "fcntl(2").replace("write(1", "write(2")
        async with running(*python(code)) as (child, _):
            assert dies(child.pid)  # the loop waits, so that all is unread when the exit is seen
            await child.wait()
            assert [int(line) for line in child.stderr.tail(2)] == [998, 999]

    run(work())


def test_what_nobody_read_while_reading_was_paused_is_heard_at_the_end(run: Run) -> None:
    async def work() -> None:
        async with running(*python("import os; os.read(0, 1); os.write(1, b'a\\nb\\n')")) as (child, heard):
            child.pause_reading()
            child.write(b"go")
            await child.wait()
            assert heard.order == [b"a", b"b", Exit(0, None)]

    run(work())


def test_a_paused_child_waits_and_is_heard_again(run: Run) -> None:
    async def work() -> None:
        async with running("cat", limits=PATIENT) as (child, heard):
            child.pause_reading()
            child.write(b"a")
            assert dies(child.pid, 0.1) is False
            for _ in range(20):
                await asyncio.sleep(0)
            assert heard.order == []
            child.resume_reading()
            assert await heard.first() == b"a"

    run(work())


def test_an_exit_is_seen_although_a_grandchild_keeps_the_pipes_and_that_one_dies(run: Run) -> None:
    async def work() -> None:
        began = time.monotonic()
        async with running(*shell("sleep 60 & echo $!; exit 3")) as (child, heard):
            assert await child.wait() == Exit(3, None)
            assert time.monotonic() - began < 0.6
            assert dies(int(heard.lines[0]))

    run(work())


def test_an_exit_is_seen_although_a_grandchild_writes_without_end(run: Run) -> None:
    async def work() -> None:
        async with running(*shell("yes & exit 3")) as (child, _):
            async with asyncio.timeout(5):
                assert await child.wait() == Exit(3, None)

    run(work())


def test_what_a_filter_of_the_group_still_has_to_say_is_heard(run: Run) -> None:
    async def work() -> None:
        code = "mkfifo $0/p; tr a-z A-Z <$0/p & exec >$0/p; echo shout"
        folder = f"/tmp/viaduct-{os.getpid()}"
        os.mkdir(folder)
        try:
            async with running("sh", "-c", code, folder) as (child, heard):
                await child.wait()
                assert heard.lines == [b"SHOUT"]
        finally:
            os.unlink(f"{folder}/p")
            os.rmdir(folder)

    run(work())


def test_a_child_that_closes_its_stdout_is_stopped(run: Run) -> None:
    async def work() -> None:
        async with running(*shell("exec 1>&-; exec sleep 60")) as (child, heard):
            assert await child.wait() == Exit(None, signal.SIGTERM)
            assert heard.order == [Exit(None, signal.SIGTERM)]

    run(work())


@pytest.mark.parametrize("is_halted", [False, True])
def test_a_killed_child_is_told_by_its_signal(run: Run, is_halted: bool) -> None:
    async def work() -> None:
        async with running("cat") as (child, heard):
            if is_halted:
                os.kill(child.pid, signal.SIGSTOP)
            child.kill()
            status = await child.wait()
            assert (status, status.describe()) == (Exit(None, signal.SIGKILL), "killed by SIGKILL")
            assert heard.exits == [status]
            assert child.write(b"late") is False

    run(work())


def test_a_kernel_without_pidfds_is_polled(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_pid: int) -> int:
        raise OSError(38, "no such call")

    async def work() -> None:
        async with running(*shell("sleep 0.1; exit 3")) as (child, _):
            assert await child.wait() == Exit(3, None)

    monkeypatch.setattr(os, "pidfd_open", missing)
    monkeypatch.setattr(watch, "_POLL_SECONDS", 0.01)
    run(work())


def test_a_status_that_somebody_else_read_is_an_exit_nobody_saw(run: Run) -> None:
    async def work() -> None:
        async with running(*shell("exit 3")) as (child, _):
            child._spawned.process.wait()
            status = await child.wait()
            assert status.describe() == "nobody could see it end"

    run(work())


def test_a_child_that_will_not_die_is_given_up_and_let_go_when_it_does(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    limits = ChildLimits(close_seconds=0.05, term_seconds=0.05, kill_seconds=0.05)

    async def work() -> None:
        with monkeypatch.context() as blind:
            blind.setattr(Watch, "_peek", lambda _watch: None)
            async with running("cat", limits=limits) as (child, heard):
                assert await child.stop() == Exit(None, None)
                assert heard.order == [Exit(None, None)]
        while not child._watch.is_let_go:  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0)
        assert heard.order == [Exit(None, None)]
        assert not is_alive(child.pid)

    run(work())
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == ["child would not die"]


def _quoted(code: str) -> str:
    *command, script = python(code)
    return " ".join(command) + f' "{script}"'
