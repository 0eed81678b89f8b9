"""The header-adding proxy in front of the gateway must change nothing else, or the suite would be testing the proxy."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from tests.conformance.hop import hop

WAIT_SECONDS = 5.0
TOKEN = "secret"


@contextmanager
def joined() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A client's connection, and the one that the hop made for it."""
    with socket.create_server(("127.0.0.1", 0)) as upstream:
        upstream.settimeout(WAIT_SECONDS)
        with (
            hop(upstream.getsockname()[1], TOKEN) as port,
            socket.create_connection(("127.0.0.1", port), WAIT_SECONDS) as client,
        ):
            server, _ = upstream.accept()
            with server:
                server.settimeout(WAIT_SECONDS)
                yield client, server


def receive(connection: socket.socket, until: bytes) -> bytes:
    received = b""
    while not received.endswith(until):
        piece = connection.recv(1 << 16)
        assert piece, f"ended after {received!r}"
        received += piece
    return received


def test_each_request_of_a_kept_alive_connection_gets_the_token_and_keeps_everything_else() -> None:
    with joined() as (client, server):
        client.sendall(b"POST /mcp HTTP/1.1\r\nHost: evil.example.com\r\nContent-Length: 4\r\n\r\n\r\n\r\n")
        assert receive(server, b"\r\n\r\n\r\n\r\n") == (
            b"POST /mcp HTTP/1.1\r\nHost: evil.example.com\r\nContent-Length: 4\r\n"
            b"Authorization: Bearer secret\r\n\r\n\r\n\r\n"
        )
        client.sendall(b"GET /mcp HTTP/1.1\r\nHost: a\r\n\r\n")
        assert receive(server, b"\r\n\r\n") == (b"GET /mcp HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret\r\n\r\n")


def test_a_chunked_body_passes_as_it_is() -> None:
    body = b"3;x=y\r\nabc\r\n0\r\n\r\n"
    with joined() as (client, server):
        client.sendall(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + body + b"GET / HTTP/1.1\r\n\r\n")
        assert receive(server, b"GET / HTTP/1.1\r\nAuthorization: Bearer secret\r\n\r\n") == (
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nAuthorization: Bearer secret\r\n\r\n"
            + body
            + b"GET / HTTP/1.1\r\nAuthorization: Bearer secret\r\n\r\n"
        )


def test_an_event_reaches_the_client_while_the_answer_goes_on() -> None:
    with joined() as (client, server):
        for event in (b"data: 1\n\n", b"data: 2\n\n"):
            server.sendall(event)
            assert receive(client, event) == event


def test_a_client_that_vanishes_vanishes_for_the_server() -> None:
    with joined() as (client, server):
        client.close()
        assert server.recv(1) == b""


def test_a_connection_that_the_server_ends_ends_for_the_client() -> None:
    with joined() as (client, server):
        server.sendall(b"last")
        server.close()
        assert receive(client, b"last") == b"last"
        assert client.recv(1) == b""
