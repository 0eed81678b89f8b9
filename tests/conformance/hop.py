"""A reverse proxy that adds a bearer token, so that a suite which takes no token can run with authentication on.

It does nothing else: `Host` and every other header pass as they are, answers are relayed as bytes the moment they
arrive, and the end of either connection ends the other, so a stream and a vanished client look the same behind it.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedIOBase
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread

PIECE = 1 << 16
WAIT_SECONDS = 5.0


@contextmanager
def hop(upstream_port: int, token: str) -> Iterator[int]:
    """Listens on loopback for as long as the block runs, and yields the port."""
    with _Listener(upstream_port, f"Authorization: Bearer {token}\r\n".encode("ascii")) as listener:
        accepting = Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.05})
        accepting.start()
        try:
            yield listener.server_address[1]
        finally:
            listener.shutdown()
            accepting.join()


class _Listener(ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, upstream_port: int, credential: bytes) -> None:
        self.upstream = ("127.0.0.1", upstream_port)
        self.credential = credential
        super().__init__(("127.0.0.1", 0), _Connection)


class _Connection(StreamRequestHandler):
    server: _Listener
    disable_nagle_algorithm = True

    def handle(self) -> None:
        with suppress(OSError), socket.create_connection(self.server.upstream, WAIT_SECONDS) as upstream:
            upstream.settimeout(None)
            upstream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            answers = Thread(target=_relay, args=(upstream, self.connection), daemon=True)
            answers.start()
            try:
                while _request(self.rfile, upstream, self.server.credential):
                    pass
            finally:
                _end(upstream)
                answers.join()


def _relay(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(PIECE):
            sink.sendall(piece)
    _end(sink)


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _request(client: BufferedIOBase, upstream: socket.socket, credential: bytes) -> bool:
    """Relays one request of a kept-alive connection with the header added; False when there was none."""
    head = _head(client)
    if not head:
        return False
    upstream.sendall(b"".join(head) + credential + b"\r\n")
    headers = _headers(head[1:])
    if headers.get(b"transfer-encoding", b"").lower() == b"chunked":
        while _chunk(client, upstream):
            pass
    else:
        _exactly(client, upstream, int(headers.get(b"content-length", b"0")))
    return True


def _head(client: BufferedIOBase) -> list[bytes]:
    """The lines before the empty one; none at all where the client ended first."""
    lines: list[bytes] = []
    while line := client.readline():
        if line == b"\r\n":
            return lines
        lines.append(line)
    return []


def _headers(lines: list[bytes]) -> dict[bytes, bytes]:
    pairs = [line.partition(b":") for line in lines]
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _chunk(client: BufferedIOBase, upstream: socket.socket) -> bool:
    """Relays one chunk and says whether another follows."""
    size_line = client.readline()
    size = int(size_line.split(b";")[0], 16)
    upstream.sendall(size_line)
    _exactly(client, upstream, size + len(b"\r\n"))
    return size > 0


def _exactly(client: BufferedIOBase, upstream: socket.socket, count: int) -> None:
    while count:
        piece = client.read1(min(count, PIECE))
        if not piece:
            raise ConnectionResetError
        upstream.sendall(piece)
        count -= len(piece)
