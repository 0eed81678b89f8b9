"""What a child says on stderr: always read, the last of it kept, and a bounded part of it logged."""

import logging
from collections import deque
from collections.abc import Callable

log = logging.getLogger("viaduct.child")

_LINE_MAX = 8192
_TAIL_LINE_MAX = 500
_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if code != 0x09}


class StderrRing:
    """`bytes_max` bounds what is kept; of each second, `rate` lines are logged and the others counted."""

    def __init__(
        self, server: str, pid: int, clock: Callable[[], float], bytes_max: int = 65536, rate: int = 50
    ) -> None:
        self._extra = {"server": server, "pid": pid}
        self._clock = clock
        self._bytes_max = bytes_max
        self._rate = rate
        self._lines: deque[bytes] = deque()
        self._size = 0
        self._partial = b""
        self._second = 0
        self._logged = 0
        self._suppressed = 0

    def feed(self, data: bytes) -> None:
        """Work is bounded by what can be kept, not by what was said."""
        *lines, partial = (self._partial + data).split(b"\n")
        if len(partial) > _LINE_MAX:
            lines.append(partial)
            partial = b""
        self._partial = partial
        for line in lines:
            self._add(line[:_LINE_MAX])

    def close(self) -> None:
        if self._partial:
            self._add(self._partial)
            self._partial = b""
        self._tell_suppressed()

    def tail(self, lines: int = 20) -> list[str]:
        """The last lines, fit for a log or an answer."""
        kept = [*self._lines, *([self._partial] if self._partial else [])]
        return [_readable(line[:_TAIL_LINE_MAX]) for line in kept[-lines:]]

    def _add(self, line: bytes) -> None:
        if not line.strip():
            return
        self._lines.append(line)
        self._size += len(line)
        while self._size > self._bytes_max:
            self._size -= len(self._lines.popleft())
        self._log(line)

    def _log(self, line: bytes) -> None:
        second = int(self._clock())
        if second != self._second:
            self._tell_suppressed()
            self._second, self._logged = second, 0
        if self._logged >= self._rate:
            self._suppressed += 1
            return
        self._logged += 1
        log.info("child stderr", extra={**self._extra, "line": _readable(line)})

    def _tell_suppressed(self) -> None:
        if self._suppressed:
            log.info("child stderr suppressed", extra={**self._extra, "suppressed": self._suppressed})
            self._suppressed = 0


def _readable(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r").translate(_ESCAPES)
