"""A TCP relay that cuts connections in the middle of a stream, by what goes through it.

A cut resets both sides at once, as a network does that forgot the connection. What Last-Event-ID the client then comes
back with is noted.
"""

import re
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Lock, Thread

PIECE = 1 << 16
AT_ONCE = struct.pack("ii", 1, 0)

_LAST_EVENT_ID = re.compile(rb"\r\nlast-event-id: *([^\r]+)\r\n", re.IGNORECASE)


@dataclass
class Cut:
    """Where one connection is cut, once: at the so-manyeth `marker` in its answers, which arrives or does not."""

    marker: bytes
    occurrence: int = 1
    arrives: bool = True
    is_done: bool = False


class Cutter(ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, upstream_port: int, cuts: tuple[Cut, ...]) -> None:
        self.upstream = ("127.0.0.1", upstream_port)
        self.cuts = cuts
        self.resumed_after: list[str] = []
        self._deciding = Lock()
        super().__init__(("127.0.0.1", 0), _Connection)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        self.close_request(request)

    def strikes(self, answers: bytes) -> Cut | None:
        with self._deciding:
            for cut in self.cuts:
                if not cut.is_done and answers.count(cut.marker) >= cut.occurrence:
                    cut.is_done = True
                    return cut
        return None


@contextmanager
def cutting(upstream_port: int, *cuts: Cut) -> Iterator[Cutter]:
    """Listens on loopback for as long as the block runs."""
    with Cutter(upstream_port, cuts) as cutter:
        accepting = Thread(target=cutter.serve_forever, kwargs={"poll_interval": 0.05})
        accepting.start()
        try:
            yield cutter
        finally:
            cutter.shutdown()
            accepting.join()


class _Connection(BaseRequestHandler):
    server: Cutter
    request: socket.socket

    def handle(self) -> None:
        with suppress(OSError), socket.create_connection(self.server.upstream) as upstream:
            answering = Thread(target=self._answer, args=(upstream,), daemon=True)
            answering.start()
            with suppress(OSError):
                while piece := self.request.recv(PIECE):
                    self.server.resumed_after += [found.decode() for found in _LAST_EVENT_ID.findall(piece)]
                    upstream.sendall(piece)
            _wake(upstream)
            answering.join()

    def _answer(self, upstream: socket.socket) -> None:
        answers = b""
        with suppress(OSError):
            while piece := upstream.recv(PIECE):
                answers += piece
                cut = self.server.strikes(answers)
                if cut is None or cut.arrives:
                    self.request.sendall(piece)
                if cut is not None:
                    upstream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
                    self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
                    break
        _wake(self.request)


def _wake(connection: socket.socket) -> None:
    """Ends the wait of whoever reads here, and sends nothing: closing decides between an end and a reset."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RD)
