"""What the wire refuses before anybody is asked, and how it says so.

Two readers of one request must never disagree on where it ends, whom it is for or who sent it: whatever allows a
second reading is refused here (RFC 9112, section 11.2: "Request Smuggling"), in the words of every other refusal.
"""

from collections.abc import Sized
from dataclasses import dataclass
from http import HTTPStatus
from typing import NamedTuple, Protocol

from app.edge.asgi import Headers
from app.edge.refusals import Refusal, internal_error, reason_of, refused
from app.protocol.faults import GatewayFault, Overloaded

BODY_FAULT = "viaduct.body_fault"
"""In the state of a scope: why its body was cut off, `TOO_LARGE` or `TOO_SLOW`."""
TOO_LARGE = "too_large"
TOO_SLOW = "too_slow"


class Answer(NamedTuple):
    status: int
    headers: Headers
    body: bytes
    reason: str


CRITICAL = frozenset(
    {
        b"host",
        b"authorization",
        b"content-length",
        b"content-type",
        b"last-event-id",
        b"mcp-protocol-version",
        b"mcp-session-id",
        b"origin",
        b"transfer-encoding",
    }
)
"""Headers that are judged by: each at most once, and in ASCII. Those that mirror a body are judged with it."""


@dataclass(frozen=True, slots=True)
class WireLimits:
    """What one connection may cost us; durations are totals, no progress extends them except in `send_seconds`."""

    header_bytes: int = 32 << 10
    header_count: int = 100
    url_bytes: int = 8 << 10
    body_bytes: int = 4 << 20
    header_seconds: float = 10.0
    """From the first byte of a request, and from the start of a connection to its first byte."""
    body_seconds: float = 15.0
    """From the end of the header section."""
    send_seconds: float = 30.0
    """How long a client may take nothing of what we write."""
    answer_seconds: float = 5.0
    """How long the application may take to answer a request whose body was cut off."""
    linger_seconds: float = 2.0
    """How long a client that still sends may take to read why it was refused."""
    linger_bytes: int = 16 << 20
    """How much is dropped at most of what such a client sends; then it is not read any more."""
    max_connections: int = 2000
    max_pipelined: int = 32
    """Requests that may wait for the answer before them."""


class Files(Protocol):
    """The open file descriptors."""

    def add(self) -> None:
        """There is one more."""

    def are_nearly_all(self) -> bool:
        """Whether there is hardly one left to say that there is none."""


def check_head(
    url: bytes, headers: list[tuple[bytes, bytes]], version: str, limits: WireLimits, *, is_ascii: bool
) -> dict[bytes, bytes]:
    """The headers by name, of a request that everybody reads alike.

    Raises:
        Refusal: it can be read in two ways, or is more than we take.
    """
    fields = dict(headers)
    if len(fields) != len(headers):
        _refuse_duplicates(headers)
    if len(headers) > limits.header_count:
        raise Refusal(431, "too_many_headers", f"at most {limits.header_count} headers are taken")
    if len(url) > limits.url_bytes:
        raise url_too_long(limits)
    if not url.startswith(b"/") or b"#" in url:
        raise Refusal(400, "target", "the request target must be a path that begins with /, without host and fragment")
    if version != "1.1":
        _check_version(version, fields)
    elif b"host" not in fields:
        raise Refusal(400, "no_host", "a Host header is needed")
    if b"transfer-encoding" in fields:
        _check_coding(fields)
    if b"expect" in fields and fields[b"expect"].lower() != b"100-continue":
        raise Refusal(417, "expect", "only Expect: 100-continue can be met")
    if not is_ascii:
        _refuse_foreign(fields)
    return fields


def check_line(start: bytes, method: bytes, url: bytes, version: str, *, is_first: bool) -> None:
    """One blank on either side of the target, where the parser takes any number: others may find another target there.

    Raises:
        Refusal: the first line is not as the three parts of it are written.
    """
    line = b"%b %b HTTP/%b\r\n" % (method, url, version.encode())
    if not (start.startswith(line) if is_first else line in start):
        raise _unformed()


def check_size(headers: list[tuple[bytes, bytes]], limits: WireLimits) -> None:
    if sum(len(name) + len(value) + len(b": \r\n") for name, value in headers) > limits.header_bytes:
        raise head_too_large(limits)


def head_too_large(limits: WireLimits) -> Refusal:
    return Refusal(431, "head_too_large", f"the headers may have at most {limits.header_bytes} bytes")


def url_too_long(limits: WireLimits) -> Refusal:
    return Refusal(414, "url_too_long", f"the URL may have at most {limits.url_bytes} bytes")


def too_many_waiting(limits: WireLimits) -> Refusal:
    message = f"at most {limits.max_pipelined} requests may wait; read the answers first"
    return Refusal(429, "limits.pipelined", message, [(b"retry-after", b"1")])


def answer_to(wrong: Refusal | GatewayFault) -> Answer:
    return Answer(*refused(wrong), reason_of(wrong))


def malformed() -> Answer:
    return answer_to(_unformed())


def head_too_slow() -> Answer:
    return answer_to(Refusal(408, "too_slow", "the headers did not arrive in time"))


def body_cut(fault: str, limits: WireLimits) -> Answer:
    if fault == TOO_LARGE:
        return answer_to(Refusal(413, fault, f"a body may have at most {limits.body_bytes} bytes"))
    return answer_to(Refusal(408, fault, "the body did not arrive in time"))


def crowded(connections: Sized, limits: WireLimits, files: Files | None) -> Answer | None:
    """Why there is no room for the newest connection; None where there is."""
    if files is not None:
        files.add()
    if len(connections) > limits.max_connections:
        wrong = Overloaded("too many connections are open", reason="limits.connections", retry_after=5.0)
    elif files is not None and files.are_nearly_all():
        wrong = Overloaded("too many files are open", reason="limits.openFilesPercent", retry_after=5.0)
    else:
        return None
    return answer_to(wrong)


def internal() -> Answer:
    return Answer(*internal_error(), "internal_error")


def rendered(answer: Answer) -> bytes:
    """A whole response, the last one of its connection."""
    status, headers, body, _ = answer
    lines = [b"HTTP/1.1 %d %b" % (status, HTTPStatus(status).phrase.encode())]
    lines += [b"%b: %b" % header for header in headers]
    lines += [b"content-length: %d" % len(body), b"connection: close", b"", body]
    return b"\r\n".join(lines)


def _unformed() -> Refusal:
    return Refusal(400, "bad_http", "not a well-formed HTTP/1.1 request")


def _refuse_duplicates(headers: list[tuple[bytes, bytes]]) -> None:
    seen: set[bytes] = set()
    for name, _ in headers:
        if name in seen and name in CRITICAL:
            raise Refusal(400, "duplicate_header", f"more than one {name.decode()} header")
        seen.add(name)


def _refuse_foreign(fields: dict[bytes, bytes]) -> None:
    for name, value in fields.items():
        if name in CRITICAL and not value.isascii():
            raise Refusal(400, "bad_header", f"{name.decode()} must be ASCII")


def _check_version(version: str, fields: dict[bytes, bytes]) -> None:
    """HTTP/1.0 needs no Host, but knows no chunks: a proxy before us would see another end of the request."""
    if version != "1.0":
        raise Refusal(505, "http_version", "HTTP/1.1 is spoken here")
    if b"transfer-encoding" in fields:
        raise Refusal(400, "framing", "HTTP/1.0 has no Transfer-Encoding")


def _check_coding(fields: dict[bytes, bytes]) -> None:
    if b"content-length" in fields:
        raise Refusal(400, "framing", "Content-Length and Transfer-Encoding exclude each other")
    if fields[b"transfer-encoding"].lower() != b"chunked":
        raise Refusal(400, "framing", "the only Transfer-Encoding taken is chunked")
