"""The gateway as its users start it, in front of a fixture."""

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 20.0
STOP_SECONDS = 40.0
"""More than the gateway's `drain` and `drainOvertime`: a call that hangs must not hide which one it was."""

_LISTENS_ON = re.compile(r"http://[^\s/]+:(\d+)")


class GatewayFailed(Exception):
    """The gateway did not start or did not stop as it should; the message carries its last log lines."""


@contextmanager
def gateway(results: Path, *arguments: str) -> Iterator[int]:
    """Runs `viaduct` with these arguments and yields the port; fails if it logs a traceback or does not exit 0."""
    command = [str(Path(sys.executable).with_name("viaduct")), *arguments]
    results.mkdir(parents=True, exist_ok=True)
    log_path = results / "viaduct.log"
    with log_path.open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
    try:
        yield _port(process, log_path)
    finally:
        code = _stop(process)
    if code != 0:
        raise GatewayFailed(f"viaduct exited {code} when it was told to stop{_tail(log_path)}")
    if "Traceback (most recent call last)" in log_path.read_text():
        raise GatewayFailed(f"viaduct logged a traceback{_tail(log_path)}")


def _port(process: subprocess.Popen[str], log_path: Path) -> int:
    assert process.stdout is not None
    alarm = threading.Timer(START_SECONDS, process.kill)
    alarm.start()
    try:
        for line in process.stdout:
            if listens := _LISTENS_ON.search(line):
                return int(listens[1])
    finally:
        alarm.cancel()
    code = process.wait()
    raise GatewayFailed(f"viaduct ended with {code} before it named a URL{_tail(log_path)}")


def _stop(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGTERM)
    try:
        process.communicate(timeout=STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
    return process.returncode


def _tail(log_path: Path) -> str:
    return "".join(f"\n    | {line}" for line in log_path.read_text().splitlines()[-20:])
