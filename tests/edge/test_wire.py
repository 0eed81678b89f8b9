"""Raw requests, row by row: which are refused before the application hears of them, and how."""

import dataclasses
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.edge.wire import WireLimits
from tests.edge.wire_server import Client, Served, serving

LIMITS = WireLimits(header_bytes=4096, header_count=20, url_bytes=512, body_bytes=1000)

HOST = b"Host: a\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: "
HI = b"2\r\nhi\r\n0\r\n\r\n"


def post(extra: bytes = b"", body: bytes = b"hi", line: bytes = b"POST /x HTTP/1.1", host: bytes = HOST) -> bytes:
    return b"%b\r\n%b%bContent-Length: %d\r\n\r\n%b" % (line, host, extra, len(body), body)


def declared(length: bytes, body: bytes = b"hi") -> bytes:
    return b"POST /x HTTP/1.1\r\n%bContent-Length: %b\r\n\r\n%b" % (HOST, length, body)


def coded(coding: bytes, body: bytes = HI, version: bytes = b"1.1") -> bytes:
    return b"POST /x HTTP/%b\r\n%bTransfer-Encoding: %b\r\n\r\n%b" % (version, HOST, coding, body)


def get(target: bytes = b"/x", version: bytes = b"HTTP/1.1", extra: bytes = b"", method: bytes = b"GET") -> bytes:
    return b"%b %b %b\r\n%b%b\r\n" % (method, target, version, HOST, extra)


ONCE = [
    b"Authorization",
    b"Content-Type",
    b"Last-Event-ID",
    b"MCP-Protocol-Version",
    b"Mcp-Session-Id",
    b"Origin",
]

REFUSED_HEADS = {
    "no host": (post(host=b""), 400, "no_host"),
    "two hosts": (post(HOST), 400, "duplicate_header"),
    "two hosts in other case": (post(b"hOST: b\r\n"), 400, "duplicate_header"),
    **{f"two {name.decode()}": (post(name + b": a\r\n" + name + b": a\r\n"), 400, "duplicate_header") for name in ONCE},
    **{f"{name.decode()} not ASCII": (post(name + b": \xe9\r\n"), 400, "bad_header") for name in ONCE},
    "host not ASCII": (post(host=b"Host: \xe9\r\n"), 400, "bad_header"),
    "two lengths, equal": (post(b"Content-Length: 2\r\n"), 400, "bad_http"),
    "two lengths, different": (post(b"Content-Length: 3\r\n"), 400, "bad_http"),
    "length with sign": (declared(b"+2"), 400, "bad_http"),
    "length negative": (declared(b"-1"), 400, "bad_http"),
    "length in hex": (declared(b"0x2"), 400, "bad_http"),
    "length list": (declared(b"2, 2"), 400, "bad_http"),
    "length with space": (declared(b"2 2"), 400, "bad_http"),
    "length empty": (declared(b""), 400, "bad_http"),
    "length beyond 64 bits": (declared(b"18446744073709551618"), 400, "bad_http"),
    "length and coding": (post(CHUNKED, HI), 400, "bad_http"),
    "coding and length": (coded(b"chunked\r\nContent-Length: 12"), 400, "bad_http"),
    "coding twice": (coded(b"chunked\r\nTransfer-Encoding: chunked"), 400, "bad_http"),
    "coding xchunked": (coded(b"xchunked"), 400, "framing"),
    "coding identity": (coded(b"identity", b"hi"), 400, "framing"),
    "coding identity, chunked": (coded(b"identity, chunked"), 400, "framing"),
    "coding gzip, chunked": (coded(b"gzip, chunked"), 400, "framing"),
    "coding chunked, identity": (coded(b"chunked, identity"), 400, "bad_http"),
    "coding with vertical tab": (coded(b"\x0bchunked"), 400, "bad_http"),
    "expectation of nothing": (post(b"Expect:\r\n"), 417, "expect"),
    "coding in HTTP/1.0": (coded(b"chunked", version=b"1.0"), 400, "framing"),
    "bare LF after the request line": (b"POST /x HTTP/1.1\n" + HOST + b"Content-Length: 2\r\n\r\nhi", 400, "bad_http"),
    "bare LF after a header": (post(b"X: a\n"), 400, "bad_http"),
    "bare LF at the end": (b"POST /x HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\n\nhi", 400, "bad_http"),
    "bare LF everywhere": (b"POST /x HTTP/1.1\nHost: a\nContent-Length: 2\n\nhi", 400, "bad_http"),
    "bare CR in a value": (post(b"X: a\rb\r\n"), 400, "bad_http"),
    "bare CR everywhere": (b"POST /x HTTP/1.1\rHost: a\rContent-Length: 2\r\rhi", 400, "bad_http"),
    "folded header": (post(b"X: a\r\n b\r\n"), 400, "bad_http"),
    "folded header, tab": (post(b"X: a\r\n\tb\r\n"), 400, "bad_http"),
    "space before the first header": (post(host=b" Host: a\r\n"), 400, "bad_http"),
    "space before the colon": (post(b"X : a\r\n"), 400, "bad_http"),
    "tab before the colon": (post(b"X\t: a\r\n"), 400, "bad_http"),
    "space in a name": (post(b"X Y: a\r\n"), 400, "bad_http"),
    "name not ASCII": (post(b"X\xe9: a\r\n"), 400, "bad_http"),
    "name empty": (post(b": a\r\n"), 400, "bad_http"),
    "no colon": (post(b"X\r\n"), 400, "bad_http"),
    "NUL in a name": (post(b"X\0: a\r\n"), 400, "bad_http"),
    **{f"byte {byte} in a value": (post(b"X: a%cb\r\n" % byte), 400, "bad_http") for byte in (0, 1, 8, 11, 31, 127)},
    "absolute target": (post(line=b"POST http://evil/x HTTP/1.1"), 400, "target"),
    "absolute target, same host": (post(line=b"POST https://a/x HTTP/1.1"), 400, "target"),
    "authority target": (post(line=b"POST a:80 HTTP/1.1"), 400, "bad_http"),
    "CONNECT": (get(b"a:80", method=b"CONNECT"), 400, "target"),
    "asterisk target": (get(b"*", method=b"OPTIONS"), 400, "target"),
    "fragment": (get(b"/x#y"), 400, "target"),
    "two spaces before the target": (get(b" /x"), 400, "bad_http"),
    "many spaces before the target": (get(b" " * 200 + b"/x"), 400, "bad_http"),
    "two spaces behind the target": (get(b"/x "), 400, "bad_http"),
    "two spaces, and the line as it should be below": (get(b" /x", extra=b"X: GET /x HTTP/1.1\r\n"), 400, "bad_http"),
    "no target": (b"GET  HTTP/1.1\r\n" + HOST + b"\r\n", 400, "bad_http"),
    "target without slash": (get(b"x"), 400, "bad_http"),
    "target not ASCII": (get(b"/\xe9"), 400, "bad_http"),
    "space in the target": (get(b"/x y"), 400, "bad_http"),
    "tab in the target": (get(b"/x\ty"), 400, "bad_http"),
    "NUL in the target": (get(b"/x\0"), 400, "bad_http"),
    "space after the version": (get(version=b"HTTP/1.1 "), 400, "bad_http"),
    "no version": (b"GET /x\r\n\r\n", 505, "http_version"),
    "HTTP/0.9": (get(version=b"HTTP/0.9"), 505, "http_version"),
    "HTTP/1.2": (get(version=b"HTTP/1.2"), 400, "bad_http"),
    "HTTP/1.10": (get(version=b"HTTP/1.10"), 400, "bad_http"),
    "HTTP/2.0": (get(version=b"HTTP/2.0"), 505, "http_version"),
    "http/1.1": (get(version=b"http/1.1"), 400, "bad_http"),
    "HTTP/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "bad_http"),
    "TLS": (bytes.fromhex("16030100c8010000c40303") + b"x" * 60, 400, "bad_http"),
    "method in lower case": (get(method=b"get"), 400, "bad_http"),
    "method unknown": (get(method=b"FOO"), 400, "bad_http"),
    "space first": (b" " + get(), 400, "bad_http"),
    "expectation unknown": (post(b"Expect: the-unexpected\r\n"), 417, "expect"),
    "offer to upgrade with chunks": (coded(b"chunked\r\nConnection: Upgrade\r\nUpgrade: h2c"), 400, "framing"),
    "long URL": (get(b"/" + b"x" * 512), 414, "url_too_long"),
    "endless URL": (b"GET /" + b"x" * 2000, 414, "url_too_long"),
    "many headers": (get(extra=b"X: a\r\n" * 20), 431, "too_many_headers"),
    "large header": (get(extra=b"X: %b\r\n" % (b"a" * 4096)), 431, "head_too_large"),
    "large header name": (get(extra=b"%b: a\r\n" % (b"X" * 4096)), 431, "head_too_large"),
    "endless header": (b"GET /x HTTP/1.1\r\nX: " + b"a" * 5000, 431, "head_too_large"),
    "endless headers": (b"GET /x HTTP/1.1\r\n" + b"X: a\r\n" * 1000, 431, "head_too_large"),
}  # fmt: skip

REFUSED_BODIES = {
    "coding with space after it": (coded(b"chunked \t"), 400, "bad_http"),
    "chunk size overflow": (coded(b"chunked", b"ffffffffffffffff1\r\nhi\r\n0\r\n\r\n"), 400, "bad_http"),
    "chunk size 0x2": (coded(b"chunked", b"0x2\r\nhi\r\n0\r\n\r\n"), 400, "bad_http"),
    "chunk size negative": (coded(b"chunked", b"-2\r\nhi\r\n0\r\n\r\n"), 400, "bad_http"),
    "chunk size then space": (coded(b"chunked", b"2 \r\nhi\r\n0\r\n\r\n"), 400, "bad_http"),
    "space then chunk size": (coded(b"chunked", b" 2\r\nhi\r\n0\r\n\r\n"), 400, "bad_http"),
    "chunk longer than its size": (coded(b"chunked", b"2\r\nhi0\r\n\r\n"), 400, "bad_http"),
    "bare LF after a chunk size": (coded(b"chunked", b"2\nhi\r\n0\r\n\r\n"), 400, "bad_http"),
    "bare LF after a chunk": (coded(b"chunked", b"2\r\nhi\n0\r\n\r\n"), 400, "bad_http"),
    "bare LF in a chunk extension": (coded(b"chunked", b"2;a\nhi\r\n0\r\n\r\n"), 400, "bad_http"),
    "length as a trailer": (coded(b"chunked", b"2\r\nhi\r\n0\r\nContent-Length: 5\r\n\r\n"), 400, "bad_http"),
    "endless chunk extension": (coded(b"chunked", b"2;" + b"a" * 400_000), 431, "head_too_large"),
    "endless trailer": (coded(b"chunked", b"2\r\nhi\r\n0\r\nX: " + b"a" * 400_000), 431, "head_too_large"),
    "endless trailers": (coded(b"chunked", b"2\r\nhi\r\n0\r\n" + b"X: a\r\n" * 70_000), 431, "head_too_large"),
}

TAKEN = {
    "plain": (post(), "hi"),
    "GET": (get(), ""),
    "body on GET": (post(line=b"GET /x HTTP/1.1"), "hi"),
    "HTTP/1.0": (post(line=b"POST /x HTTP/1.0"), "hi"),
    "HTTP/1.0 without host": (post(line=b"POST /x HTTP/1.0", host=b""), "hi"),
    "chunks": (coded(b"chunked"), "hi"),
    "chunks, in capitals": (coded(b"CHUNKED"), "hi"),
    "chunk extension": (coded(b"chunked", b'2;a="b;c"\r\nhi\r\n0\r\n\r\n'), "hi"),
    "chunk size with zeros": (coded(b"chunked", b"0002\r\nhi\r\n0\r\n\r\n"), "hi"),
    "empty lines first": (b"\r\n\r\n" + post(), "hi"),
    "two of an ordinary header": (post(b"X-A: 1\r\nX-A: 2\r\n"), "hi"),
    "ordinary value not ASCII": (post(b"X-A: \xe9\r\n"), "hi"),
    "body not ASCII": (post(b"Mcp-Name: a\r\n", body=b"\xe9"), "\xe9"),
    "tab in a value": (post(b"X-A: a\tb\r\n"), "hi"),
    "continue": (post(b"Expect: 100-Continue\r\n"), "hi"),
    "offer of a websocket": (get(extra=OFFER + b"websocket\r\nSec-WebSocket-Version: 13\r\n"), ""),
    "offer of HTTP/2 with a body": (post(OFFER + b"h2c\r\nHTTP2-Settings: AAM\r\n"), "hi"),
    "largest body": (post(body=b"x" * 1000), "x" * 1000),
    "largest body, in chunks": (coded(b"chunked", (b"a\r\n" + b"x" * 10 + b"\r\n") * 100 + b"0\r\n\r\n"), "x" * 1000),
    "longest URL": (get(b"/x?" + b"y" * 509), ""),
    "most headers": (get(extra=b"X: a\r\n" * 19), ""),
    "largest headers": (get(extra=b"X: %b\r\n" % (b"a" * 4082)), ""),
}  # fmt: skip


@pytest.fixture(scope="module", params=["uvloop", "asyncio"])
def shared(request: pytest.FixtureRequest) -> Iterator[Served]:
    with serving(LIMITS, request.param) as served:
        yield served
        assert served.complaints() == []


@pytest.fixture
def served(shared: Served) -> Served:
    shared.reset()
    return shared


@pytest.fixture(scope="module")
def bystander(shared: Served) -> Iterator[Client]:
    with shared.connect() as client:
        yield client


@pytest.mark.parametrize("row", REFUSED_HEADS)
def test_a_head_that_can_be_read_in_two_ways_is_refused_and_reaches_nobody(
    served: Served, bystander: Client, row: str
) -> None:
    raw, status, reason = REFUSED_HEADS[row]
    with served.connect() as client:
        client.send(raw)
        refusal = client.read()
        assert refusal is not None
        bystander.send(get(b"/bystander"))
        assert bystander.read().status == 200
        assert refusal.error() == (status, reason)
        assert client.read() is None
    assert served.app.started == ["/bystander"]


@pytest.mark.parametrize("row", REFUSED_BODIES)
def test_a_body_whose_end_is_in_doubt_is_refused_and_never_whole(served: Served, bystander: Client, row: str) -> None:
    raw, status, reason = REFUSED_BODIES[row]
    with served.connect() as client:
        client.send(raw)
        refusal = client.read()
        assert refusal is not None
        bystander.send(get(b"/bystander"))
        assert bystander.read().status == 200
        assert refusal.error() == (status, reason)
        assert client.read() is None
    served.app.wait_for(served.app.disconnected, "/x")
    assert served.app.served == ["/bystander"]


@pytest.mark.parametrize("size", [10_000_000, 7], ids=["whole", "in pieces"])
@pytest.mark.parametrize("row", TAKEN)
def test_what_everybody_reads_alike_is_taken(served: Served, row: str, size: int) -> None:
    raw, body = TAKEN[row]
    with served.connect() as client:
        client.send_in_pieces(raw, size)
        response = client.read()
        if response is not None and response.status == 100:
            response = client.read()
        assert response is not None
        assert response.status == 200
        assert response.json()["path"] == "/x"
        assert response.json()["body"] == body


@pytest.mark.parametrize("row", [row for row in REFUSED_HEADS if not row.startswith("endless")])
def test_a_refusal_does_not_depend_on_how_the_bytes_arrive(served: Served, row: str) -> None:
    raw, status, reason = REFUSED_HEADS[row]
    with served.connect() as client:
        client.send_in_pieces(raw, max(3, len(raw) // 50))
        refusal = client.read()
        assert refusal is not None
        assert refusal.error() == (status, reason)
        assert client.read() is None
    assert served.app.started == []


@pytest.mark.parametrize("row", ["no host", "absolute target", "bare CR in a value", "HTTP/2.0"])
def test_nothing_that_follows_a_refused_request_is_read(served: Served, row: str) -> None:
    raw, status, reason = REFUSED_HEADS[row]
    refusals = served.exchange(raw + get(b"/after") * 3)
    assert [refusal.error() for refusal in refusals] == [(status, reason)]
    assert served.app.started == []


@pytest.mark.parametrize("between", [b"", b"\r\n"], ids=["close", "with an empty line"])
@pytest.mark.parametrize("size", [10_000_000, 64, 7], ids=["whole", "in two pieces each", "in pieces"])
def test_requests_behind_one_another_are_judged_alike(served: Served, size: int, between: bytes) -> None:
    with served.connect() as client:
        client.send_in_pieces(between.join([post(b"X: a\r\n"), get(b"/y"), post(), get(b" /z"), get(b"/x")]), size)
        answers = [client.read() for _ in range(5)]
    assert [answer and answer.status for answer in answers] == [200, 200, 200, 400, None]
    assert served.app.served == ["/x", "/y", "/x"]


def test_an_empty_coding_is_refused_by_whoever_sees_it_first(served: Served) -> None:
    (refusal,) = served.exchange(coded(b""))
    assert refusal.error() in {(400, "bad_http"), (400, "framing")}
    assert served.app.started == []


def test_trailers_never_become_headers(served: Served) -> None:
    raw = coded(b"chunked\r\nX-A: 1", b"2\r\nhi\r\n0\r\nX-Trailer: 1\r\nAuthorization: Bearer b\r\nHost: b\r\n\r\n")
    with served.connect() as client:
        client.send(raw + get(b"/next"))
        first, second = client.read(), client.read()
    assert first.json()["headers"] == [["host", "a"], ["transfer-encoding", "chunked"], ["x-a", "1"]]
    assert second.json()["headers"] == [["host", "a"]]


def test_the_application_sees_the_request_as_it_was_sent(served: Served) -> None:
    with served.connect() as client:
        client.send(get(b"/a%20b%2Fc?q=%20&r", extra=b"X-Mixed-Case: Va Lue \r\n"))
        content = client.read().json()
    assert content == {
        "method": "GET",
        "path": "/a b/c",
        "query": "q=%20&r",
        "http_version": "1.1",
        "headers": [["host", "a"], ["x-mixed-case", "Va Lue"]],
        "body": "",
    }


def test_an_offer_to_upgrade_leaves_the_next_request_alone(served: Served) -> None:
    with served.connect() as client:
        client.send(post(OFFER + b"h2c\r\n", body=get(b"/smuggled")) + get(b"/next"))
        first, second = client.read(), client.read()
    assert first.json()["body"] == get(b"/smuggled").decode()
    assert second.json()["path"] == "/next"
    assert served.app.served == ["/x", "/next"]


def test_a_header_of_100_mb_is_never_held() -> None:
    piece = b"a" * (1 << 20)
    held = [resident_bytes()]

    def send_100_mb(client: Client) -> None:
        client.send(b"GET /x HTTP/1.1\r\nX: ")
        for _ in range(100):
            client.send(piece)
            held.append(resident_bytes())

    limits = dataclasses.replace(LIMITS, linger_seconds=0.2)
    with serving(limits, "uvloop") as served, served.connect() as client, pytest.raises(ConnectionError):
        send_100_mb(client)
    assert max(held) - held[0] < 10 << 20


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.parametrize("cut", range(1, 60))
def test_the_next_request_may_begin_in_whatever_piece_ends_the_one_before(served: Served, cut: int) -> None:
    first = post(b"X: a\r\n")
    with served.connect() as client:
        client.send_in_pieces(first + get(b"/y"), cut)
        answers = [client.read() for _ in range(2)]
    assert [answer and answer.status for answer in answers] == [200, 200]
