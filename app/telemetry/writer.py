"""Text on its way to a stream that may take it late or never: whoever writes goes on, and a thread of our own waits.

A pipe that nobody reads holds 64 KiB. Who writes to it from the event loop stops with it, and all sessions with him.
"""

import os
import select
import threading
from collections.abc import Callable
from typing import TextIO

QUEUE_BYTES = 1 << 20
"""What waits at most for a stream that does not take it."""
LAST_SECONDS = 1.0
"""How long the exit waits for what is still to be written."""

_CHUNK = 65536


class Writer:
    """Writes to `stream` in the order of `put`. What finds no room is dropped, and `noted` makes a line of how many.

    What a stream does not take that is broken is lost; `failed` is told so, on the thread that writes.
    """

    def __init__(
        self,
        stream: TextIO | None,
        *,
        noted: Callable[[int], str] = str,
        failed: Callable[[OSError], object] = repr,
        bytes_max: int = QUEUE_BYTES,
    ) -> None:
        self._write = _way_to(stream)
        self._noted = noted
        self._failed = failed
        self._bytes_max = bytes_max
        self._state = threading.Condition()
        self._lines: list[str] = []
        self._size = 0
        """Of what waits and of what is being written."""
        self._dropped = 0
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def put(self, text: str) -> None:
        """Once something was dropped, all that follows is, until that can be said in its place."""
        with self._state:
            if self._is_closed:
                return
            if self._dropped or (self._size and self._size + len(text) > self._bytes_max):
                self._dropped += 1
                return
            self._lines.append(text)
            self._size += len(text)
            if self._thread is None:
                self._begin()
            elif len(self._lines) == 1:
                self._state.notify_all()

    def flush(self, seconds: float = LAST_SECONDS) -> bool:
        """Wait until all is written; False where the time was up first."""
        with self._state:
            return self._is_closed or self._state.wait_for(lambda: not (self._size or self._dropped), seconds)

    def close(self) -> None:
        """Write no more."""
        with self._state:
            self._is_closed = True
            self._state.notify_all()

    def _begin(self) -> None:
        """A thread that hangs in a write does not keep the process from ending."""
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (text := self._next()) is not None:
            try:
                for start in range(0, len(text), _CHUNK):
                    self._write(text[start : start + _CHUNK])
            except OSError as wrong:
                self._failed(wrong)
            with self._state:
                self._size -= len(text)
                self._state.notify_all()

    def _next(self) -> str | None:
        with self._state:
            self._state.wait_for(lambda: self._lines or self._dropped or self._is_closed)
            if self._is_closed:
                return None
            lines, self._lines = self._lines, []
            dropped, self._dropped = self._dropped, 0
            if dropped:
                note = self._noted(dropped)
                lines.append(note)
                self._size += len(note)
            return "".join(lines)


def _way_to(stream: TextIO | None) -> Callable[[str], object]:
    """Past the buffers of Python where there is a descriptor: at exit these wait for who holds them."""
    if stream is None:
        return lambda _text: None
    try:
        fd = stream.fileno()
    except (OSError, ValueError, AttributeError):
        return stream.write
    encoding = stream.encoding or "utf-8"
    return lambda text: _write_all(fd, text.encode(encoding, "backslashreplace"))


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            # Whoever shares the stream with us made it so.
            select.select([], [fd], [])
