"""Standard streams that are closed, that nobody reads, and signals that come before anybody can heed them."""

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.chaos.planting import program
from tests.cli.test_serving import TOKEN, greet
from tests.cli.viaduct import SECONDS, environment
from tests.support.gateway import eventually

PIPE_FULL = 1 << 16


@contextmanager
def demo(*shell: str, **how: Any) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The demo and its URL, once it answers; `shell` may close streams for it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "app", "demo", "--port", str(port), "--token", TOKEN]
    start = ["sh", "-c", f'exec "$@" {" ".join(shell)}', "sh", *command] if shell else command
    with subprocess.Popen(start, text=True, env=environment(), **how) as process:
        try:
            assert eventually(lambda: status(f"{url}/healthz") == 200, SECONDS)
            yield process, url
        finally:
            process.kill()


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code
    except OSError:
        return 0


@pytest.mark.parametrize("closed", [("<&-",), (">&-",), ("2>&-",), ("<&-", ">&-", "2>&-")], ids=" ".join)
def test_it_serves_whatever_stream_is_closed(closed: tuple[str, ...]) -> None:
    with demo(*closed, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as (process, url):
        assert greet(f"{url}/mcp")[0] == 200
        assert status(f"{url}/nope") == 404
        for fd in range(3):
            assert "socket" not in os.readlink(f"/proc/{process.pid}/fd/{fd}")
        process.terminate()
        out, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 0
        assert "Traceback" not in out + err


def test_logs_that_nobody_reads_hold_up_neither_requests_nor_the_exit() -> None:
    with demo(stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as (process, url):
        assert [status(f"{url}/nope") for _ in range(1000)] == [404] * 1000
        assert greet(f"{url}/mcp")[0] == 200
        assert status(f"{url}/healthz") == 200
        process.terminate()
        assert process.wait(SECONDS) == 0


def test_a_banner_that_nobody_reads_holds_up_nothing() -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    assert os.write(write, b"x" * 2 * PIPE_FULL) == PIPE_FULL
    os.set_blocking(write, True)
    with demo(stdout=write, stderr=subprocess.DEVNULL) as (process, url):
        assert greet(f"{url}/mcp")[0] == 200
        process.terminate()
        assert process.wait(SECONDS) == 0
    os.close(read)
    os.close(write)


def test_the_last_that_is_logged_before_the_end_is_read() -> None:
    with demo(stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as (process, url):
        assert status(f"{url}/nope") == 404
        process.terminate()
        _, err = process.communicate(timeout=SECONDS)
        events = [line.split(maxsplit=2)[2] for line in err.splitlines()]
        assert events[1].startswith("refused")
        assert events[-2:] == ["stopping signal=SIGTERM", "draining sessions=0"]


def planted(plant: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *program(plant), *arguments],
        capture_output=True, text=True, timeout=SECONDS, env=environment(), check=False,
    )  # fmt: skip


def signalled(module: str, number: signal.Signals) -> str:
    """Before that module is imported."""
    return f"""
        import os, sys
        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name == {module!r}:
                    os.kill(os.getpid(), {number})
        sys.meta_path.insert(0, Finder())
    """


def test_why_a_start_failed_is_logged_before_the_exit() -> None:
    failing = """
        import app.gateway.gateway as gateway
        def start(self): raise ValueError("planted")
        gateway.Gateway.start = start
    """
    done = planted(failing, "demo", "--port", "0")
    assert done.returncode == 1
    assert "planted" in done.stderr
    assert "Application startup failed" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("when", ["app.cli.commands", "app.cli.launch", "uvicorn", "app.gateway.gateway"])
def test_stopped_before_it_has_started_it_exits_with_0(when: str, number: signal.Signals) -> None:
    done = planted(signalled(when, number), "demo", "--port", "0")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_check_that_was_stopped_is_not_well() -> None:
    done = planted(signalled("app.cli.launch", signal.SIGTERM), "check", "nowhere")
    assert done.returncode == -signal.SIGTERM
