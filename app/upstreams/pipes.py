"""The ends of a child's pipes: one that never waits, and ones that are always read."""

import asyncio
import os
from collections import deque
from collections.abc import Callable
from typing import cast

_HIGH_WATER = 65536
_CHUNK = 65536
_PIPE_MAX = 1 << 20
"""As much as a pipe can hold (the default of /proc/sys/fs/pipe-max-size)."""


class End:
    """A descriptor as a loop wants it: asyncio closes this, uvloop closes the descriptor and then this once more.

    By then the number may be a file that another thread has just opened, so there nothing is closed here.
    """

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop) -> None:
        self._fd = fd
        self._closes = not type(loop).__module__.startswith("uvloop")

    def fileno(self) -> int:
        return self._fd

    def close(self) -> None:
        if self._closes:
            self._closes = False
            os.close(self._fd)


class Input(asyncio.BaseProtocol):
    """A child's stdin. What the pipe takes is written at once; the rest waits in a bounded queue.

    The first line of a turn of the loop leaves at once, and all the others of that turn together.
    """

    def __init__(self, bytes_max: int, count_max: int) -> None:
        self._bytes_max = bytes_max
        self._count_max = count_max
        self._transport: asyncio.WriteTransport | None = None
        self._loop = asyncio.get_running_loop()
        self._turn: list[bytes] = []
        self._turn_bytes = 0
        self._is_in_turn = False
        self._queue: deque[tuple[int | None, bytes]] = deque()
        self._queued = 0
        self._unsent: set[int] = set()
        self._is_paused = False
        self._is_finishing = False

    @property
    def waiting_bytes(self) -> int:
        """What was taken, and is not with the child yet."""
        buffered = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return self._queued + self._turn_bytes + buffered

    def write(self, line: bytes, key: int | None) -> bool:
        """False where there is no room, or nobody to read it; then nothing was written."""
        transport = self._transport
        if transport is None or self._is_finishing:
            return False
        if not self._is_paused:
            self._send(line)
            return True
        held = self._queued + transport.get_write_buffer_size()
        if self._queue and (len(self._queue) >= self._count_max or held + len(line) > self._bytes_max):
            return False
        self._queue.append((key, line))
        self._queued += len(line)
        return True

    def withdraw(self, key: int) -> bool:
        """Take a line back, or find that it was never handed over; False where it was."""
        for place, (queued, line) in enumerate(self._queue):
            if queued == key:
                del self._queue[place]
                self._queued -= len(line)
                return True
        return key in self._unsent

    def finish(self) -> None:
        """No more will be written; what was handed over still is, then the child sees the end."""
        self._is_finishing = True
        self._forget_queue()
        self._flush()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()

    def close(self) -> None:
        """Now, whatever is still to be written."""
        transport = self._transport
        # One that closes with nothing left to write reports its end already, and asyncio would report it twice.
        if transport is not None and not (transport.is_closing() and transport.get_write_buffer_size() == 0):
            transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)  # connect_write_pipe gives no other
        self._transport.set_write_buffer_limits(high=_HIGH_WATER)

    def connection_lost(self, _exc: Exception | None) -> None:
        self._transport = None
        self._turn = []
        self._forget_queue()

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        while self._queue and not self._is_paused:
            _, line = self._queue.popleft()
            self._queued -= len(line)
            self._send(line)
            self._flush()

    def _send(self, line: bytes) -> None:
        if self._is_in_turn:
            self._turn.append(line)
            self._turn_bytes += len(line)
            if self._turn_bytes > _HIGH_WATER:
                self._flush()
            return
        self._is_in_turn = True
        self._loop.call_soon(self._end_turn)
        self._write([line])

    def _end_turn(self) -> None:
        self._is_in_turn = False
        self._flush()

    def _flush(self) -> None:
        lines, self._turn, self._turn_bytes = self._turn, [], 0
        if lines:
            self._write(lines)

    def _write(self, lines: list[bytes]) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        try:
            if len(lines) == 1 and len(lines[0]) >= _HIGH_WATER:
                transport.write(lines[0])
                transport.write(b"\n")
            else:
                transport.write(b"%b\n" % b"\n".join(lines))
        except (OSError, RuntimeError):
            # The child closed its stdin; its exit, or a deadline, will tell everybody else.
            self.close()

    def _forget_queue(self) -> None:
        self._unsent.update(key for key, _ in self._queue if key is not None)
        self._queue.clear()
        self._queued = 0


class Output(asyncio.Protocol):
    """A child's stdout or stderr."""

    def __init__(self, fd: int, read: Callable[[bytes], None], ended: Callable[[], None]) -> None:
        self.is_open = True
        self.data_received = read  # type: ignore[method-assign, assignment] # one call less for every chunk
        self._fd = fd
        self._ended = ended
        self._transport: asyncio.ReadTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.ReadTransport", transport)  # connect_read_pipe gives no other

    def connection_lost(self, _exc: Exception | None) -> None:
        """Whoever reads knows us: if we knew him still, only the garbage collector could end both."""
        self.is_open = False
        self._transport = None
        ended, self._ended = self._ended, _nothing
        self.data_received = _nothing  # type: ignore[method-assign, assignment]
        ended()

    def pause(self) -> None:
        if self._transport is not None and self.is_open:
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and self.is_open:
            self._transport.resume_reading()

    def drain(self) -> None:
        """Read what is there now, and be content: somebody may hold the pipe open, or write without end."""
        if self._transport is None or self._transport.is_closing():
            return
        self._transport.pause_reading()
        try:
            for _ in range(_PIPE_MAX // _CHUNK):
                data = os.read(self._fd, _CHUNK)
                if not data:
                    return
                self.data_received(data)
        except BlockingIOError:
            return

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


def _nothing(_data: bytes = b"") -> None:
    """Nobody reads any more."""
