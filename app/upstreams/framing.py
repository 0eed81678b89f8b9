"""Bytes to lines, with a cap: one byte at a time or many lines at once, and what is too long never kept."""

OVERSIZED = b""

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
        """The lines that `data` completes, without their ends; blank ones are left out.

        An empty line stands where one was discarded, an endless one as soon as it passes the cap.
        """
        end = data.find(b"\n")
        if end == len(data) - 1 and end >= 0:
            line = self._complete(data[:-1])
            return [] if line is None or line.isspace() else [line]
        *ends, rest = data.split(b"\n")
        lines = [self._complete(end) for end in ends]
        if rest and not self._keep(rest):
            lines.append(OVERSIZED)
        return [line for line in lines if line is not None and not line.isspace()]

    def rest(self) -> bytes:
        """What came after the last line end; for when nothing more will come."""
        return (self._complete(b"") or b"").strip()

    def _keep(self, data: bytes) -> bool:
        """False where the frame has just become too long."""
        if self._skips:
            return True
        self._size += len(data)
        if self._size > self._cap:
            self._discard()
            self._skips = True
            return False
        if len(data) >= _SMALL:
            self._gather()
            self._parts.append(data)
            return True
        # Kept one by one, small pieces would take many times their size.
        self._crumbs += data
        if len(self._crumbs) >= _BLOCK:
            self._gather()
        return True

    def _complete(self, end: bytes) -> bytes | None:
        """None for a blank line, and for the end of one that was discarded before."""
        if self._skips:
            self._skips = False
            return None
        if self._size + len(end) > self._cap:
            self._discard()
            return OVERSIZED
        if self._size:
            self._gather()
            end = b"".join([*self._parts, end])
            self._forget()
        if end.endswith(b"\r"):
            end = end[:-1]
        return end or None

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
