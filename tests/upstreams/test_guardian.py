"""A guardian that cannot be is said to be missing, once, and nothing waits for it."""

import logging
import os
import subprocess
import sys

import pytest

from app.upstreams import guardian as module
from app.upstreams import proc, vigil
from app.upstreams.guardian import Guardian
from app.upstreams.sweep import TAG
from app.upstreams.watch import OURS
from tests.support.http import on_loop, soon
from tests.upstreams.heard import dies, is_alive


async def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    async def is_said() -> bool:
        return bool(caplog.messages)

    assert await soon(is_said, 5)
    return caplog.messages


@on_loop
async def test_one_that_ends_at_once_is_not_started_over_and_over(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    fds, guardian = set(os.listdir("/proc/self/fd")), Guardian()
    guardian.start()
    [sentence] = await said(caplog)
    assert sentence.startswith("the guardian cannot run")
    assert guardian.pid is None
    await guardian.end()
    assert set(os.listdir("/proc/self/fd")) == fds
    assert caplog.records[0].levelno == logging.ERROR


@on_loop
async def test_one_that_is_killed_right_after_its_start_is_replaced_after_a_pause(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_TRIAL_SECONDS", 0.3)
    guardian, killed = Guardian(), set[int]()
    guardian.start()

    async def another() -> bool:
        return guardian.pid is not None and guardian.pid not in killed

    for _ in range(2):
        assert await soon(another, 5)
        assert guardian.pid is not None
        killed.add(guardian.pid)
        os.kill(guardian.pid, 9)
    assert await soon(another, 5)
    assert [sentence.startswith("the guardian cannot run") for sentence in caplog.messages] == [True]
    await guardian.end()


@on_loop
async def test_who_ends_while_the_next_one_waits_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TRIAL_SECONDS", 0.1)
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    guardian = Guardian()
    guardian.start()
    await guardian.end()
    monkeypatch.undo()

    async def is_there() -> bool:
        return guardian.pid is not None

    assert not await soon(is_there, 0.3)


@on_loop
async def test_one_that_cannot_be_started_is_missed_and_no_more(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    fds, guardian = set(os.listdir("/proc/self/fd")), Guardian()
    guardian.start()
    [sentence] = await said(caplog)
    assert sentence.startswith("no guardian")
    await guardian.end()
    assert set(os.listdir("/proc/self/fd")) == fds


@on_loop
async def test_where_there_is_nothing_to_sweep_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proc, "pids", list)
    guardian = Guardian()
    guardian.start()
    assert guardian.pid is None
    await guardian.end()


@on_loop
async def test_one_that_is_replaced_or_ended_leaves_no_descriptor_and_no_number(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_TRIAL_SECONDS", 0.0)
    fds, ours, guardian = set(os.listdir("/proc/self/fd")), set(OURS), Guardian()
    guardian.start()
    first = guardian.pid
    assert first is not None
    os.kill(first, 9)
    assert (await said(caplog))[0].startswith("the guardian was ended")
    assert guardian.pid not in (None, first)
    await guardian.end()
    assert (set(os.listdir("/proc/self/fd")), OURS) == (fds, ours)


def test_a_vigil_ends_with_all_that_carries_the_tag_of_its_run_and_with_nobody_else() -> None:
    run = f"run{os.getpid()}"
    tags = (f"{run}:1", f"{run}:2", f"{run}0:1", "")
    processes = [subprocess.Popen(["sleep", "60"], env={"PATH": os.environ["PATH"], TAG: tag}) for tag in tags]
    try:
        vigil.clear(run)
        assert [is_alive(process.pid) for process in processes] == [False, False, True, True]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_a_vigil_begins_with_the_end_of_its_pipe_and_is_small() -> None:
    code = "import sys; sys.path.append(sys.argv[1]); from app.upstreams.vigil import keep; keep('nobody')\n"
    code += "print(sorted({'asyncio', 'typing', 'subprocess'} & set(sys.modules)))"
    command = [sys.executable, "-I", "-S", "-c", code, os.getcwd()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert not dies(process.pid, 0.3)
        assert process.communicate(timeout=5)[0] == "[]\n"
