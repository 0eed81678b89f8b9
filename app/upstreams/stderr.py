"""What a child says on stderr: always read, the last of it kept, and a bounded part of it logged."""

import logging
from collections.abc import Callable, Sequence

log = logging.getLogger("viaduct.child")

_LINE_MAX = 8192
_TAIL_LINE_MAX = 500
_SHORTEST_SECRET = 4
_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if code != 0x09}


class StderrRing:
    """`bytes_max` bounds what is kept; of each second, `rate` lines are logged and the others counted."""

    def __init__(
        self,
        server: str,
        pid: int,
        clock: Callable[[], float],
        bytes_max: int = 65536,
        rate: int = 50,
        hidden: Sequence[str] = (),
    ) -> None:
        lines = {line.strip() for secret in hidden for line in secret.splitlines()}
        secrets = {secret for secret in (*hidden, *lines) if len(secret) >= _SHORTEST_SECRET}
        self._hidden = [secret.encode("utf-8", "surrogateescape") for secret in sorted(secrets, key=len, reverse=True)]
        self._longest = max(map(len, self._hidden), default=0)
        """A line is cut where it is too long, and a secret that is cut would not be known any more."""
        self._extra = {"server": server, "pid": pid}
        self._clock = clock
        self._bytes_max = bytes_max
        self._rate = rate
        self._kept = bytearray()
        self._is_cut = False
        self._partial = b""
        self._second = 0
        self._room = rate
        self._suppressed = 0

    def feed(self, data: bytes) -> None:
        """Work is bounded by what is kept and logged, not by what was said or in how many lines."""
        kept = self._kept
        kept += data[-self._bytes_max :]
        if len(kept) > self._bytes_max:
            del kept[: -self._bytes_max]
            self._is_cut = True
        self._tell(data)

    def close(self) -> None:
        """Nothing more will come."""
        if self._partial:
            self._tell(b"\n")
        self._tell_suppressed()

    def tail(self, lines: int = 20) -> list[str]:
        """The last lines, fit for a log or an answer."""
        first, *others = bytes(self._kept).split(b"\n")
        kept = others if self._is_cut and others else [first, *others]
        return [_readable(self._shown(line)[:_TAIL_LINE_MAX]) for line in kept if line.strip()][-lines:]

    def _tell(self, data: bytes) -> None:
        second = int(self._clock())
        if second != self._second:
            self._tell_suppressed()
            self._second, self._room = second, self._rate
        *lines, rest = data.split(b"\n", self._room)
        for end in lines:
            line = self._shown((self._partial + end)[: _LINE_MAX + self._longest])[:_LINE_MAX]
            self._partial = b""
            if line.strip():
                self._room -= 1
                log.info("child stderr", extra={**self._extra, "line": _readable(line)})
        ends = rest.count(b"\n")
        if ends:
            self._suppressed += ends
            self._partial = b""
            rest = rest[rest.rfind(b"\n") + 1 :]
        self._partial = (self._partial + rest)[: _LINE_MAX + self._longest]

    def _shown(self, line: bytes) -> bytes:
        for secret in self._hidden:
            line = line.replace(secret, b"***")
        return line

    def _tell_suppressed(self) -> None:
        if self._suppressed:
            log.info("child stderr suppressed", extra={**self._extra, "suppressed": self._suppressed})
            self._suppressed = 0


def _readable(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r").translate(_ESCAPES)
