"""The connection under a protocol: one deadline, a patient way to close, and no patience with who takes nothing.

A socket that is closed while input is unread is reset, and a reset can overtake the answer that was just written.
So whoever may still be sending is parted from: we write, close our half, drop what still comes for a while.
"""

import asyncio
import contextlib
import socket
from typing import Protocol

from uvicorn.protocols.http.flow_control import FlowControl

from app.edge.wire_refusals import WireLimits

_KEEP_ALIVE = (
    (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 30),
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 10),
    (socket.IPPROTO_TCP, "TCP_KEEPCNT", 3),
    (socket.IPPROTO_TCP, "TCP_NODELAY", 1),
)


class Owner(Protocol):
    """Hears when the time that `Line.due` gave is over; knows whether the client may still send what we won't read."""

    def overdue(self) -> None: ...

    def has_unread(self) -> bool: ...


class Line:
    """A transport as far as uvicorn uses it, with the deadline of the protocol on it."""

    __slots__ = (
        "_deadline",
        "_dropped",
        "_flow",
        "_limits",
        "_loop",
        "_owner",
        "_rings_at",
        "_stall",
        "_timer",
        "_transport",
        "_unsent",
        "is_parting",
        "write",
    )

    def __init__(
        self,
        owner: Owner,
        transport: asyncio.Transport,
        flow: FlowControl,
        loop: asyncio.AbstractEventLoop,
        limits: WireLimits,
    ) -> None:
        self._owner: Owner = owner
        self._transport = transport
        self._flow = flow
        self._loop = loop
        self._limits = limits
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = 0.0
        self._stall: asyncio.TimerHandle | None = None
        self._unsent = 0
        self._dropped = 0
        self.is_parting = False
        self.write = transport.write
        _tune(transport, limits.send_seconds)

    def due(self, seconds: float) -> None:
        """Call `overdue` then, unless called again before. A timer that rings too early costs less than a new one."""
        self._deadline = deadline = self._loop.time() + seconds
        if self._timer is None:
            self._ring_at(deadline)
        elif deadline < self._rings_at:
            self._timer.cancel()
            self._ring_at(deadline)

    def is_closing(self) -> bool:
        return self.is_parting or self._transport.is_closing()

    def close(self) -> None:
        if self._transport.is_closing():
            return
        if self.is_parting or not self._owner.has_unread():
            self._close()
        else:
            self.part()

    def abort(self) -> None:
        self._transport.abort()

    def part(self, last_words: bytes = b"") -> None:
        if self.is_closing():
            return
        self.is_parting = True
        self._dropped = 0
        self._transport.write(last_words)
        if self._transport.can_write_eof():
            with contextlib.suppress(OSError):  # The peer has reset the connection, and we shall hear of it.
                self._transport.write_eof()
        self._flow.resume_reading()
        self.due(self._limits.linger_seconds)

    def drop(self, size: int) -> None:
        self._dropped += size
        if self._dropped > self._limits.linger_bytes:
            self._flow.pause_reading()

    def watch_writing(self) -> None:
        if self._stall is None:
            self._unsent = self._transport.get_write_buffer_size()
            self._stall = self._loop.call_later(self._limits.send_seconds, self._stalled)

    def watch_flush(self) -> None:
        """A transport that closes writes the rest first, for as long as that takes."""
        if self._transport.get_write_buffer_size():
            self.watch_writing()

    def unwatch_writing(self) -> None:
        if self._stall is not None and not self._transport.is_closing():
            self._stall.cancel()
            self._stall = None

    def end(self) -> None:
        """The connection is lost."""
        for timer in (self._timer, self._stall):
            if timer is not None:
                timer.cancel()
        self._timer = self._stall = None
        self._owner = _NOBODY

    def _close(self) -> None:
        self._transport.close()
        self.watch_flush()

    def _ring_at(self, when: float) -> None:
        self._rings_at = when  # Asking the timer is no good: uvloop's has no time once that is past.
        self._timer = self._loop.call_at(when, self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._loop.time() < self._deadline:
            self._ring_at(self._deadline)
        elif self.is_parting:
            self._close()
        else:
            self._owner.overdue()

    def _stalled(self) -> None:
        self._stall = None
        unsent = self._transport.get_write_buffer_size()
        if unsent < self._unsent:
            self.watch_writing()
        else:
            self._transport.abort()


class _Nobody:
    """Owns a line that is over, so that neither keeps the other alive."""

    def overdue(self) -> None: ...

    def has_unread(self) -> bool:
        return False


_NOBODY = _Nobody()


def _tune(transport: asyncio.Transport, send_seconds: float) -> None:
    """Let the kernel find peers that vanished without a word; a Unix socket has no such options and needs none."""
    peer = transport.get_extra_info("socket")
    if peer is None or peer.family not in (socket.AF_INET, socket.AF_INET6):
        return
    wanted = (*_KEEP_ALIVE, (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", round(send_seconds * 1000)))
    for level, name, value in wanted:
        if hasattr(socket, name):
            with contextlib.suppress(OSError):
                peer.setsockopt(level, getattr(socket, name), value)
