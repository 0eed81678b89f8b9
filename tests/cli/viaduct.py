"""The command as a user types it."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SECONDS = 20.0
WEATHER = (sys.executable, "-P", "-m", "app.demo.weather")


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VIADUCT_")}
    return {**kept, **(extra or {})}


def viaduct(*arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    command = [sys.executable, "-m", "app", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment(env), check=False)


@dataclass
class Serving:
    process: subprocess.Popen[str]
    banner: str
    log: Path

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(SECONDS)


@contextmanager
def serving(
    folder: Path, *arguments: str, env: Mapping[str, str] | None = None, launcher: Sequence[str] = ()
) -> Iterator[Serving]:
    """Start it, and hand it over once its banner is complete; `launcher` is a command that starts it for us."""
    log = folder / "stderr"
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [*launcher, sys.executable, "-m", "app", *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment(env),
        )  # fmt: skip
    alarm = threading.Timer(SECONDS, process.kill)
    alarm.start()
    try:
        assert process.stdout is not None
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line)
            if len(lines) > 1 and "Cursor" in lines[-2]:
                break
        else:
            raise AssertionError(f"no banner:\n{log.read_text()}")
        yield Serving(process, "".join(lines), log)
    finally:
        alarm.cancel()
        process.kill()
        process.communicate()
