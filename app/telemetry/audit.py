"""What was done, by whom, and what came of it: one JSON line per record, written before the effect that it is about.

A line that was changed, left out or put in shows in the chain (`audit_chain`), which goes on over restarts and
rotations.
"""

import errno
import fcntl
import logging
import os
import stat
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from msgspec.json import Encoder

from app.telemetry.audit_chain import Link, chained, line, parts

log = logging.getLogger("viaduct.audit")

_encoder = Encoder()
_TAIL_BYTES = 1 << 20


class AuditFailed(Exception):
    """A record could not be written; nothing of it is in the file."""


class Audit:
    """`is_strict` is whether what cannot be recorded must not happen. One process writes a file at a time.

    Raises:
        AuditFailed: it is strict, and the file cannot be written, or another process writes it.
    """

    def __init__(self, path: Path, *, is_strict: bool, clock: Callable[[], float] = time.time) -> None:
        self.is_strict = is_strict
        self.lost = 0
        """Records that could not be written, since the start."""
        self._path = path
        self._clock = clock
        self._fd = -1
        self._place = (0, 0)
        self._last: Link | None = None
        """None until a file could be opened: its chain is the one to go on with."""
        self._unwritten = 0
        self._second = -1
        self._time = ""
        try:
            self._open()
        except OSError as wrong:
            if is_strict:
                raise AuditFailed(f"{path} {_cause(wrong)}") from wrong
            self._failed(wrong)

    def write(self, event: str, fields: Mapping[str, object]) -> int:
        """The number of the record.

        Raises:
            AuditFailed: it is not in the file.
        """
        try:
            self._follow_rotation()
            if self._unwritten:
                self._append({"event": "lost", "count": self._unwritten})
                log.warning("the audit is written again", extra={"lost": self._unwritten})
                self._unwritten = 0
            return self._append({"event": event, **fields})
        except OSError as wrong:
            self._failed(wrong)
            raise AuditFailed(f"the audit {_cause(wrong)}") from wrong

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _failed(self, wrong: OSError) -> None:
        if not self._unwritten:
            log.error("the audit cannot be written", extra={"path": str(self._path), "cause": _cause(wrong)})
        self._unwritten += 1
        self.lost += 1

    def _append(self, fields: Mapping[str, object]) -> int:
        last = self._last or Link()
        seq = last.seq + 1
        body = _encoder.encode({"seq": seq, "time": self._now(), **fields})
        chain = chained(last.chain, body)
        _write_whole(self._fd, line(body, chain))
        self._last = Link(seq, chain)
        return seq

    def _now(self) -> str:
        now = self._clock()
        second = int(now)
        if second != self._second:
            self._second, self._time = second, datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        return f"{self._time}.{int((now - second) * 1e6):06d}Z"

    def _follow_rotation(self) -> None:
        """Another file in its place, or none: the one that we have open is not the one that people look at."""
        if self._fd >= 0:
            try:
                there = os.stat(self._path)  # noqa: PTH116 - before each record, and Path's takes twice as long
            except FileNotFoundError:
                there = None
            if there is not None and (there.st_dev, there.st_ino) == self._place:
                return
        self._open()

    def _open(self) -> None:
        """The first file goes on with the chain that is in it, and every later one with ours."""
        self.close()
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY
        fd = os.open(self._path, flags, 0o600)
        is_taken = False
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            status = os.fstat(fd)
            if stat.S_ISFIFO(status.st_mode):
                raise OSError(errno.ESPIPE, "it is a pipe, and whoever reads it could stop us")
            last, torn = _last(fd, status.st_size) if self._last is None else (self._last, 0)
            is_taken = True
        finally:
            if not is_taken:
                os.close(fd)
        self._fd, self._place, self._last = fd, (status.st_dev, status.st_ino), last
        is_begun = False
        try:
            self._append({"event": "opened", "previous": last.chain.decode(), **({"torn_bytes": torn} if torn else {})})
            is_begun = True
        finally:
            if not is_begun:
                self.close()  # The next record tries again.


def _write_whole(fd: int, text: bytes) -> None:
    """All of it or nothing: half a line is taken back."""
    written = os.write(fd, text)
    if written < len(text):
        os.ftruncate(fd, os.fstat(fd).st_size - written)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _last(fd: int, size: int) -> tuple[Link, int]:
    """The last whole record of a file, and how much of a broken one behind it was taken away: its effect never
    happened. A file that ends with something else begins a new chain, and that shows."""
    begin = max(0, size - _TAIL_BYTES)
    tail = os.pread(fd, size - begin, begin)
    whole = tail[: tail.rfind(b"\n") + 1]
    torn = len(tail) - len(whole)
    if torn:
        os.ftruncate(fd, size - torn)
    found = parts(whole[:-1].rpartition(b"\n")[2])
    return (Link() if found is None else Link(found[0].seq, found[2])), torn


def _cause(wrong: OSError) -> str:
    if wrong.errno == errno.EWOULDBLOCK:
        return "is written by another process"
    return f"cannot be written: {wrong.strerror}"
