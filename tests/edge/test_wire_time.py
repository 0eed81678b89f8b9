"""What a connection may cost in time and room: deadlines, slow and vanished peers, too many of them."""

import contextlib
import dataclasses
import socket
import time
from collections.abc import Callable, Iterator

import pytest

from app.edge.wire import WireLimits
from tests.edge.wire_server import PATIENCE, Client, Served, serving

LIMITS = WireLimits(
    body_bytes=100_000,
    header_seconds=0.25,
    body_seconds=0.35,
    send_seconds=0.4,
    answer_seconds=0.2,
    linger_seconds=0.2,
)
KEEP_ALIVE = 0.4
GET = b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n"
LATE = 1.5
"""Seconds within which a deadline of a fraction of one must have been noticed."""


@pytest.fixture(scope="module", params=["uvloop", "asyncio"])
def shared(request: pytest.FixtureRequest) -> Iterator[Served]:
    with serving(LIMITS, request.param, timeout_keep_alive=KEEP_ALIVE) as served:
        yield served
        assert served.complaints() == []


@pytest.fixture
def served(shared: Served) -> Served:
    shared.reset()
    return shared


def post(path: str, length: int, extra: bytes = b"") -> bytes:
    return b"POST %b HTTP/1.1\r\nHost: a\r\n%bContent-Length: %d\r\n\r\n" % (path.encode(), extra, length)


def drip(client: Client, raw: bytes) -> float:
    """Send a byte at a time until an answer or the end comes; how long that took."""
    began_at = time.monotonic()
    client.socket.settimeout(0.02)
    for byte in raw:
        with contextlib.suppress(TimeoutError):
            client.send(bytes([byte]))
            client.socket.recv(1, socket.MSG_PEEK)
            break
    client.socket.settimeout(PATIENCE)
    return time.monotonic() - began_at


def test_a_connection_that_says_nothing_is_closed(served: Served) -> None:
    began_at = time.monotonic()
    with served.connect() as client:
        assert client.read() is None
    assert LIMITS.header_seconds * 0.9 < time.monotonic() - began_at < LATE


def test_a_head_that_drips_in_is_refused_in_time_whatever_its_progress(served: Served) -> None:
    with served.connect() as client:
        took = drip(client, b"GET /x HTTP/1.1\r\n" + b"X: a\r\n" * 1000)
        assert [refusal.error() for refusal in client.read_all()] == [(408, "too_slow")]
    assert LIMITS.header_seconds * 0.9 < took < LATE
    assert served.app.started == []


def test_a_head_that_drips_in_after_an_answer_is_refused_in_time(served: Served) -> None:
    with served.connect() as client:
        client.send(GET)
        assert client.read().status == 200
        took = drip(client, b"GET /x HTTP/1.1\r\n" + b"X: a\r\n" * 1000)
        assert [refusal.error() for refusal in client.read_all()] == [(408, "too_slow")]
    assert LIMITS.header_seconds * 0.9 < took < LATE


def test_empty_lines_do_not_keep_a_connection_open(served: Served) -> None:
    with served.connect() as client:
        took = drip(client, b"\r\n" * 1000)
        assert client.read() is None
    assert took < LATE


def test_a_body_that_drips_in_is_the_applications_to_refuse_in_time_whatever_its_progress(served: Served) -> None:
    with served.connect() as client:
        client.send(post("/x", 10_000))
        took = drip(client, b"x" * 10_000)
        response = client.read()
        assert client.read() is None
    assert response.status == 408
    assert response.json() == {"from": "app", "fault": "too_slow"}
    assert response.headers["connection"] == "close"
    assert LIMITS.body_seconds * 0.9 < took < LATE
    assert served.app.served == []


def test_a_body_that_we_do_not_read_is_not_late(served: Served) -> None:
    with served.connect() as client:
        client.send(post("/gated", 90_000) + b"x" * 80_000)
        client.socket.settimeout(LIMITS.body_seconds * 2)
        with pytest.raises(TimeoutError):
            client.read()
        client.socket.settimeout(PATIENCE)
        served.open_gate()
        client.send(b"x" * 10_000)
        assert client.read().status == 200


def test_a_body_declared_too_large_is_answered_before_it_is_sent(served: Served) -> None:
    with served.connect() as client:
        client.send(post("/x", LIMITS.body_bytes + 1, b"Expect: 100-continue\r\n"))
        response = client.read()
        assert client.read() is None
    assert response.status == 413
    assert response.json() == {"from": "app", "fault": "too_large"}
    assert response.headers["connection"] == "close"


def test_chunks_without_end_are_cut_at_the_cap(served: Served) -> None:
    with served.connect() as client:
        client.send(b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        client.send(b"400\r\n" + b"x" * 1024 + b"\r\n")
        for _ in range(200):
            client.send(b"400\r\n" + b"x" * 1024 + b"\r\n")
        response = client.read()
        assert client.read() is None
    assert response.status == 413
    assert response.json() == {"from": "app", "fault": "too_large"}


def test_who_keeps_sending_a_body_that_was_refused_can_still_read_why(served: Served) -> None:
    with served.connect() as client:
        client.send(post("/x", 8 << 20))
        client.send(b"x" * (8 << 20))
        response = client.read()
        assert client.read() is None
    assert response.status == 413


def test_who_sends_the_body_after_an_early_answer_can_still_read_it(served: Served) -> None:
    with served.connect() as client:
        client.send(post("/early", 6, b"Connection: close\r\n"))
        served.app.wait_for(served.app.started, "/early")
        client.send(b"abc")
        client.send(b"def")
        response = client.read()
        assert client.read() is None
    assert response.json() == {"path": "/early"}


def test_a_cut_body_that_the_application_does_not_answer_is_answered_for_it(served: Served) -> None:
    with served.connect() as client:
        client.send(post("/mute", LIMITS.body_bytes + 1))
        assert [refusal.error() for refusal in client.read_all()] == [(413, "too_large")]
    served.app.wait_for(served.app.disconnected, "/mute")


def test_an_idle_connection_is_kept_for_its_time_and_not_longer(served: Served) -> None:
    with served.connect() as client:
        client.send(GET)
        assert client.read().status == 200
        for _ in range(3):
            client.socket.settimeout(KEEP_ALIVE * 0.6)
            with pytest.raises(TimeoutError):
                client.socket.recv(1)
            client.socket.settimeout(PATIENCE)
            client.send(GET)
            assert client.read().status == 200
        began_at = time.monotonic()
        assert client.read() is None
    assert KEEP_ALIVE * 0.9 < time.monotonic() - began_at < LATE


def test_an_early_answer_leaves_the_rest_of_the_body_its_deadline(served: Served) -> None:
    with served.connect() as client:
        client.send(post("/early", 6) + b"abc")
        assert client.read().json() == {"path": "/early"}
        began_at = time.monotonic()
        assert client.read() is None
    assert time.monotonic() - began_at < LATE


def test_a_connection_is_usable_after_an_early_answer(served: Served) -> None:
    with served.connect() as client:
        client.send(post("/early", 6) + b"abc")
        assert client.read().json() == {"path": "/early"}
        client.send(b"def" + GET)
        assert client.read().json()["path"] == "/x"


def test_a_call_may_take_longer_than_every_deadline(served: Served) -> None:
    with served.connect() as client:
        client.send(GET.replace(b"/x", b"/gated"))
        client.socket.settimeout(max(LIMITS.body_seconds, LIMITS.send_seconds, KEEP_ALIVE) * 1.5)
        with pytest.raises(TimeoutError):
            client.read()
        client.socket.settimeout(PATIENCE)
        served.open_gate()
        assert client.read().status == 200


def test_who_reads_nothing_is_cut_off(served: Served) -> None:
    with served.connect(receive_buffer=4096) as client:
        client.send(GET.replace(b"/x", b"/flood"))
        served.app.wait_for(served.app.disconnected, "/flood")


def test_who_reads_is_not_cut_off(served: Served) -> None:
    with served.connect() as client:
        client.send(GET.replace(b"/x", b"/flood"))
        ends_at = time.monotonic() + LIMITS.send_seconds * 2
        while time.monotonic() < ends_at:
            assert client.socket.recv(65536)
        assert served.app.disconnected == []


def test_who_asks_for_the_end_and_then_reads_nothing_is_cut_off_too(served: Served) -> None:
    with served.connect(receive_buffer=4096) as client:
        client.send(GET.replace(b"/x", b"/big").replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        served.app.wait_for(served.app.started, "/big")
        assert holds_soon(lambda: client.port not in served.connections())


def test_who_leaves_and_reads_nothing_is_cut_off_too(served: Served) -> None:
    with served.connect(receive_buffer=4096) as client:
        client.send(GET.replace(b"/x", b"/big"))
        served.app.wait_for(served.app.started, "/big")
        client.socket.shutdown(socket.SHUT_WR)
        assert holds_soon(lambda: client.port not in served.connections())


def test_a_client_that_closes_its_half_counts_as_gone(served: Served) -> None:
    with served.connect() as client:
        client.send(GET.replace(b"/x", b"/mute"))
        served.app.wait_for(served.app.started, "/mute")
        client.socket.shutdown(socket.SHUT_WR)
        served.app.wait_for(served.app.disconnected, "/mute")
        assert client.read() is None


def test_the_kernel_is_told_to_find_dead_peers(served: Served) -> None:
    wanted = {
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE): 1,
        (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE): 30,
        (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL): 10,
        (socket.IPPROTO_TCP, socket.TCP_KEEPCNT): 3,
        (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT): 400,
        (socket.IPPROTO_TCP, socket.TCP_NODELAY): 1,
    }

    with served.connect() as client:
        client.send(GET)
        assert client.read().status == 200
        peer = served.connections()[client.port].flow._transport.get_extra_info("socket")
        assert served.on_loop(lambda: {option: peer.getsockopt(*option) for option in wanted}) == wanted


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_connections_over_the_cap_are_told_so_and_others_are_served(loop: str) -> None:
    limits = dataclasses.replace(LIMITS, max_connections=4)
    with serving(limits, loop) as served, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(served.connect()) for _ in range(4)]
        for client in clients:
            client.send(GET)
            assert client.read().status == 200
        (refusal,) = served.exchange(b"")
        assert refusal.status == 503
        assert refusal.headers["retry-after"] == "5"
        assert refusal.json()["error"]["data"]["reason"] == "limits.connections"
        clients[0].send(GET)
        assert clients[0].read().status == 200
        clients[1].socket.close()
        assert holds_soon(lambda: clients[1].port not in served.connections())
        with served.connect() as late:
            late.send(GET)
            assert late.read().status == 200


def test_a_flood_of_connections_over_the_cap_holds_few_of_them() -> None:
    limits = dataclasses.replace(LIMITS, max_connections=0, linger_seconds=PATIENCE)
    with serving(limits, "uvloop") as served, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(served.connect()) for _ in range(80)]
        answers = [client.read() for client in clients]
    assert [answer and answer.status for answer in answers] == [503] * 64 + [None] * 16


def test_the_server_stops_at_once_with_idle_connections_open() -> None:
    with serving(WireLimits(), "uvloop") as served, served.connect() as client:
        client.send(GET)
        assert client.read().status == 200
        served.on_loop(lambda: setattr(served.server, "should_exit", True))
        assert client.read() is None


def holds_soon(claim: Callable[[], bool]) -> bool:
    ends_at = time.monotonic() + PATIENCE
    while not claim():
        if time.monotonic() > ends_at:
            return False
    return True
