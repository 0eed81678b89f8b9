"""The real gateway as a process of its own: started on a free port, looked at from outside, stopped by its pid."""

import hashlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
STAGE = ROOT / "tests" / "servers" / "stage.py"
STATELESS_STAGE = STAGE.with_name("stateless_stage.py")
TOKEN = "a-token-that-must-not-be-seen-anywhere"
OTHER_TOKEN = "the-token-of-somebody-else-entirely"
PATIENCE = 15.0


class Gateway:
    folder: Path
    """Where its configuration is."""
    has_planted_bug = False
    """Whether a traceback in its log is what the test wants to see."""

    def __init__(self, process: subprocess.Popen[str], mark: str) -> None:
        self.process = process
        self.mark = mark
        self.pid = process.pid
        self.banner: list[str] = []
        self.log_lines: list[str] = []
        self._listens = threading.Event()
        self._threads = [
            threading.Thread(target=self._read_banner, daemon=True),
            threading.Thread(target=self._read_log, daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        self._listens.wait(PATIENCE)
        ports = re.findall(r"http://127\.0\.0\.1:(\d+)", "\n".join(self.banner))
        assert ports, "the gateway did not say that it listens:\n" + self.log
        self.port = int(ports[0])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return "\n".join(self.log_lines)

    def own_log(self, since: int = 0) -> str:
        """What it said itself: without what it repeats of its children's stderr."""
        return "\n".join(line for line in self.log_lines[since:] if " child stderr " not in line)

    def children(self) -> list[int]:
        """Every living process that came from this gateway: all inherit a variable that its configuration sets."""
        return [pid for pid in _pids() if pid != self.pid and _belongs(pid, f"TEST_GATEWAY={self.mark}".encode())]

    def guardian(self) -> int | None:
        """The process that is there for when this one is killed."""
        return next((pid for pid in self.direct_children() if b"viaduct-guard" in _arguments(pid)), None)

    def direct_children(self) -> list[int]:
        """Zombies, too; none where it is gone itself."""
        try:
            text = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        except OSError:
            return []
        return [int(pid) for pid in text.split()]

    def fds(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def rss(self) -> int:
        """Bytes."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) * 1024

    def stop(self, number: int = signal.SIGTERM, patience: float = PATIENCE) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(patience)
        for thread in self._threads:
            thread.join(PATIENCE)
        return code

    def _read_banner(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.banner.append(line.rstrip("\n"))
            if "/servers/" in line:
                self._listens.set()
        self._listens.set()
        self.process.stdout.close()

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log_lines.append(line.rstrip("\n"))
        self.process.stderr.close()


def stage(*options: str) -> list[str]:
    """The command of the server with a mode for every fault."""
    return [sys.executable, "-I", "-S", str(STAGE), *options]


def config(servers: Mapping[str, object], **viaduct: object) -> dict[str, Any]:
    """A config file's content with two principals; of many servers it starts none before it is used."""
    tokens = [
        {"name": name, "hash": f"sha256:{hashlib.sha256(token.encode()).hexdigest()}"}
        for name, token in (("one", TOKEN), ("other", OTHER_TOKEN))
    ]
    return {"mcpServers": servers, "viaduct": {"auth": {"tokens": tokens}, "catalog": {"read": "use"}, **viaduct}}


def entry(*options: str, **settings: object) -> dict[str, object]:
    command, *args = stage(*options)
    return {"command": command, "args": args, **settings}


def stateless_entry(*options: str, **settings: object) -> dict[str, object]:
    """Of the server that speaks 2026-07-28, or more than that."""
    return {"command": sys.executable, "args": ["-I", "-S", str(STATELESS_STAGE), *options], **settings}


@contextmanager
def serving(
    content: dict[str, Any], folder: Path, *options: str, program: Sequence[str] = ("-m", "app")
) -> Iterator[Gateway]:
    """A gateway for this configuration; whatever is left of it afterwards is an error."""
    mark = secrets.token_hex(8)
    for server in content["mcpServers"].values():
        server["env"] = {**server.get("env", {}), "TEST_GATEWAY": mark}
    path = folder / f"viaduct-{mark}.json"
    path.write_text(json.dumps(content))
    with started(["serve", "--port", "0", *options, str(path)], mark, program) as gateway:
        gateway.folder = folder
        yield gateway


@contextmanager
def started(arguments: Sequence[str], mark: str, program: Sequence[str] = ("-m", "app")) -> Iterator[Gateway]:
    process = subprocess.Popen(
        [sys.executable, *program, *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONWARNINGS": "default"},
    )
    gateway = None
    try:
        gateway = Gateway(process, mark)
        yield gateway
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if gateway is not None:
            left = eventually(lambda: not gateway.children(), 3.0)
            survivors = gateway.children()
            for pid in survivors:
                os.kill(pid, signal.SIGKILL)
            assert left, f"processes were left behind: {survivors}"
            assert gateway.has_planted_bug or "Traceback" not in gateway.own_log(), gateway.own_log()
            assert TOKEN not in gateway.log


def eventually(claim: Callable[[], object], seconds: float = PATIENCE) -> bool:
    """Whether the claim comes true within the time: for what happens in another process and gives no sign."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not claim():
        if time.monotonic() > deadline:
            return False
        pause.wait(0.02)
    return True


def cpu_seconds(pid: int) -> float:
    """What the process had of its processors until now."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _arguments(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _belongs(pid: int, tag: bytes) -> bool:
    """Whether it is alive and carries the tag of a gateway's run; a zombie has no environment any more."""
    try:
        return tag in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
