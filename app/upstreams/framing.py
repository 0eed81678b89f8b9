"""Bytes to lines, with a cap: one byte at a time or many lines at once, and what is too long never kept."""

_SMALL = 4096
_BLOCK = 65536


class LineFramer:
    """`oversized` counts the frames that were longer than `cap` and therefore discarded."""

    def __init__(self, cap: int) -> None:
        self.oversized = 0
        self._cap = cap
        self._parts: list[bytes] = []
        self._crumbs = bytearray()
        self._size = 0
        self._skips = False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes, without their ends; blank ones are left out."""
        end = data.find(b"\n")
        if end < 0:
            self._keep(data)
            return []
        if end == len(data) - 1:
            line = self._complete(data[:-1])
            return [line] if line and not line.isspace() else []
        *ends, rest = data.split(b"\n")
        lines = [self._complete(end) for end in ends]
        if rest:
            self._keep(rest)
        return [line for line in lines if line and not line.isspace()]

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
        if len(data) >= _SMALL:
            self._gather()
            self._parts.append(data)
            return
        # Kept one by one, small pieces would take many times their size.
        self._crumbs += data
        if len(self._crumbs) >= _BLOCK:
            self._gather()

    def _complete(self, end: bytes) -> bytes:
        if self._skips:
            self._skips = False
            return b""
        if self._size + len(end) > self._cap:
            self._discard()
            return b""
        if self._size:
            self._gather()
            end = b"".join([*self._parts, end])
            self._forget()
        return end[:-1] if end.endswith(b"\r") else end

    def _gather(self) -> None:
        if self._crumbs:
            self._parts.append(bytes(self._crumbs))
            self._crumbs.clear()

    def _discard(self) -> None:
        self.oversized += 1
        self._forget()

    def _forget(self) -> None:
        self._parts, self._size = [], 0
        self._crumbs.clear()
