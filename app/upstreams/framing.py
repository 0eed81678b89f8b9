"""Bytes to lines, with a cap: one byte at a time or many lines at once, and what is too long never kept."""


class LineFramer:
    """`oversized` counts the frames that were longer than `cap` and therefore discarded."""

    def __init__(self, cap: int) -> None:
        self.oversized = 0
        self._cap = cap
        self._parts: list[bytes] = []
        self._size = 0
        self._skips = False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes, without their ends; blank ones are left out."""
        end = data.find(b"\n")
        if end < 0:
            self._keep(data)
            return []
        if end == len(data) - 1:
            return _not_blank([self._complete(data[:-1])])
        first, *lines = data.split(b"\n")
        rest = lines.pop()
        done = [self._complete(first)]
        done += [self._complete(line) for line in lines]
        if rest:
            self._keep(rest)
        return _not_blank(done)

    def rest(self) -> bytes:
        """What came after the last line end; for when nothing more will come."""
        return self._complete(b"").strip()

    def _keep(self, data: bytes) -> None:
        if self._skips:
            return
        self._size += len(data)
        if self._size > self._cap:
            self._discard()
            self._skips = True
            return
        self._parts.append(data)

    def _complete(self, end: bytes) -> bytes:
        if self._skips:
            self._skips = False
            return b""
        if self._size + len(end) > self._cap:
            self._discard()
            return b""
        if not self._parts:
            return end
        self._parts.append(end)
        line = b"".join(self._parts)
        self._parts, self._size = [], 0
        return line

    def _discard(self) -> None:
        self.oversized += 1
        self._parts, self._size = [], 0


def _not_blank(lines: list[bytes]) -> list[bytes]:
    return [line[:-1] if line.endswith(b"\r") else line for line in lines if line and not line.isspace()]
