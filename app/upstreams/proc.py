"""What /proc tells about processes. Where there is none, nothing is known of any."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Status:
    """`started` is counted in ticks since the machine was: with the number it names a process for good."""

    state: str
    parent: int
    session: int
    started: int

    @property
    def is_alive(self) -> bool:
        return self.state not in ("Z", "X")


def pids() -> list[int]:
    try:
        return [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]
    except OSError:
        return []


def status(pid: int) -> Status | None:
    """None where there is no such process."""
    text = _read(f"/proc/{pid}/stat")
    if not text:
        return None
    fields = text[text.rfind(b")") + 2 :].split()
    return Status(fields[0].decode(), int(fields[1]), int(fields[3]), int(fields[19]))


def children(pid: int) -> list[int]:
    """Those of its first thread, which all orphans go to."""
    return [int(child) for child in _read(f"/proc/{pid}/task/{pid}/children").split()]


def variable(pid: int, name: bytes) -> bytes | None:
    """A variable of its environment; None where it is not set, or not ours to read, or the process is just becoming
    another program."""
    environ = _read(f"/proc/{pid}/environ")
    at = (b"\0" + environ).find(b"\0" + name + b"=")
    return None if at < 0 else environ[at + len(name) + 1 :].split(b"\0", 1)[0]


def pid_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        return ""


def _read(path: str) -> bytes:
    """Empty where it cannot be read, of which EAGAIN is no error to Python: it gives None."""
    try:
        return Path(path).read_bytes() or b""
    except OSError:
        return b""
