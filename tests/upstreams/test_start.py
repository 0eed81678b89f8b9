"""A child starts as its command says, with nothing of ours in its hands, or not at all and then without trace (F01)."""

import asyncio
import errno
import json
import logging
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.protocol.faults import Unavailable
from app.upstreams import protections
from app.upstreams.child import ChildLimits, Command, start
from app.upstreams.command import environment
from tests.upstreams.conftest import Run
from tests.upstreams.heard import PATIENT, Heard, dies, is_alive, python, running, shell

GATEWAY = """
import asyncio, sys
from app.upstreams.child import ChildLimits, Command, start
from tests.upstreams.heard import Heard

async def work():
    heard = Heard()
    child = await start("stage", Command(("sh", "-c", "echo ready; exec sleep 60")), ChildLimits(), heard)
    await heard.first()
    print(child.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(work())
"""


def forget_tools() -> None:
    protections._setpriv.cache_clear()
    protections._tool.cache_clear()


async def refusal(*argv: str) -> Unavailable:
    with pytest.raises(Unavailable) as caught:
        await start("stage", Command(argv), ChildLimits(), Heard())
    return caught.value


@contextmanager
def few_descriptors(spare: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(entry.name) for entry in Path("/proc/self/fd").iterdir())
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(highest)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(held) + 1 + spare, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in held:
            os.close(fd)


def test_a_command_that_is_not_here_is_refused(run: Run) -> None:
    async def work() -> None:
        assert (await refusal("no-such-server")).reason == "command_not_found"

    run(work())


def test_a_file_that_no_machine_can_run_is_refused_and_not_given_to_a_shell(run: Run, tmp_path: Path) -> None:
    server = tmp_path / "server"
    server.write_text(f"touch {tmp_path}/was-run\n")
    server.chmod(0o755)

    async def work() -> None:
        fault = await refusal(str(server))
        assert fault.reason == "not_executable"
        assert fault.message == f"{str(server)!r} is no program that this machine can run"

    run(work())
    assert not (tmp_path / "was-run").exists()


def test_too_long_arguments_are_refused(run: Run) -> None:
    async def work() -> None:
        assert (await refusal("cat", "x" * (200 << 10))).reason == "bad_argument"

    run(work())


@pytest.mark.parametrize("spare", range(9))
def test_a_start_without_descriptors_is_refused_and_holds_none(run: Run, spare: int) -> None:
    async def work() -> None:
        async with running("cat"):
            pass
        with few_descriptors(spare):
            if spare < 8:
                assert (await refusal("cat")).reason == "no_resources"
                return
            async with running("cat") as (child, _):
                await child.stop()

    run(work())


@pytest.mark.parametrize(
    ("number", "reason"),
    [(errno.EAGAIN, "no_resources"), (errno.ENOMEM, "no_resources"), (errno.EIO, "cannot_start")],
)
def test_what_the_kernel_refuses_is_said(run: Run, monkeypatch: pytest.MonkeyPatch, number: int, reason: str) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    async def work() -> None:
        protections.wrapped(Command(("cat",)))
        monkeypatch.setattr(subprocess, "Popen", refuse)
        assert (await refusal("cat")).reason == reason

    run(work())


def test_a_child_gets_the_clean_environment_and_a_tag_and_nothing_else(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIADUCT_TOKEN", "secret")
    code = "print([w.decode() for w in open('/proc/self/environ', 'rb').read().split(b'\\0') if w].__repr__())"

    async def work() -> None:
        async with running(*python(code), env={"API_KEY": "k"}) as (_, heard):
            seen = dict(word.split("=", 1) for word in json.loads((await heard.first()).replace(b"'", b'"')))
        assert seen.pop("VIADUCT_CHILD").count(":") == 1
        assert seen == environment(Command(("x",), {"API_KEY": "k"}))
        assert "VIADUCT_TOKEN" not in seen

    run(work())


def test_a_child_holds_three_descriptors_and_none_of_ours(run: Run) -> None:
    async def work() -> None:
        inheritable = os.open("/dev/null", os.O_RDONLY)
        os.set_inheritable(inheritable, True)
        try:
            async with running("cat"), running("cat") as (child, heard):
                child.write(b"ready")
                await heard.first()
                assert sorted(os.listdir(f"/proc/{child.pid}/fd")) == ["0", "1", "2"]
        finally:
            os.close(inheritable)

    run(work())


def test_a_child_leads_a_session_of_its_own_and_may_gain_nothing(run: Run) -> None:
    code = "import os; print(os.getsid(0) == os.getpid(), 'NoNewPrivs:\\t1' in open('/proc/self/status').read())"

    async def work() -> None:
        async with running(*python(code)) as (child, heard):
            assert await heard.first() == b"True True"
            assert child.pid != os.getpid()

    run(work())


def test_a_child_is_the_first_to_go_where_memory_runs_out(run: Run) -> None:
    async def work() -> None:
        async with running("cat") as (child, _):
            assert _oom_score(child.pid) == "500"

    run(work())


def test_a_child_runs_where_it_is_told_to(run: Run, tmp_path: Path) -> None:
    async def work() -> None:
        async with running(*shell("pwd"), cwd=str(tmp_path)) as (_, heard):
            assert await heard.first() == bytes(tmp_path)

    run(work())


@pytest.mark.parametrize("has_another", [False, True])
def test_without_the_right_setpriv_children_start_all_the_same_and_one_line_says_what_is_lost(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, has_another: bool
) -> None:
    if has_another:
        (tmp_path / "setpriv").write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "setpriv").chmod(0o755)
    forget_tools()
    monkeypatch.setenv("PATH", str(tmp_path))

    async def work() -> None:
        for _ in range(2):
            async with running("/bin/echo", "hello") as (_, heard):
                assert await heard.first() == b"hello"

    try:
        run(work())
    finally:
        forget_tools()
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert ["install util-linux" in record.message for record in warnings] == [True]


def test_a_gateway_that_is_killed_takes_its_children_along() -> None:
    with subprocess.Popen([sys.executable, "-c", GATEWAY], stdout=subprocess.PIPE) as gateway:
        assert gateway.stdout is not None
        pid = int(gateway.stdout.readline())
        assert is_alive(pid)
        gateway.send_signal(signal.SIGKILL)
        assert dies(pid, 2)


@pytest.mark.parametrize("turns", range(8))
def test_a_start_that_is_cancelled_leaves_no_process(run: Run, turns: int) -> None:
    async def work() -> None:
        heard = Heard()
        starting = asyncio.create_task(start("stage", Command(("cat",)), PATIENT, heard))
        for _ in range(turns):
            await asyncio.sleep(0)
        starting.cancel()
        try:
            await (await starting).stop()
        except asyncio.CancelledError:
            left = [task for task in asyncio.all_tasks() if task.get_name() == "stop stage"]
            await asyncio.gather(*left)
            assert heard.order == []

    run(work())


def _oom_score(pid: int) -> str:
    return Path(f"/proc/{pid}/oom_score_adj").read_text().strip()
