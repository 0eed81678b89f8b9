"""HTTP/1.1 as we let it in: uvicorn's httptools protocol with caps, deadlines and one reading of every request.

    idle --first byte--> head --checked--> body --complete--> idle
                           |                 |
                           +----- refused ---+--> deaf (what still comes is dropped, and the connection ends)

A refused head is answered here. A body that is too large, or not there in time, is the application's to answer
(only it knows the CORS headers): its next `receive()` yields an empty last part, and `BODY_FAULT` in the scope's
`state` says why. If it does not within `answer_seconds`, we do. An offer to upgrade is declined by serving the
request as it is (RFC 9110, section 7.8). Trailers are dropped. A whole request whose head is known does not pass
through the parser (`app/edge/wire_recall.py`).

Of uvicorn's internals this relies on, and `tests/edge/test_wire_uvicorn.py` looks for all of them by name:

- `HttpToolsProtocol`: the parser callbacks `on_*`, `on_response_complete`, `_should_upgrade`, and what it keeps of its
  configuration, its connection (`transport`, `flow`, `server`, `client`, `scheme`) and its requests (`parser`, `url`,
  `headers`, `cycle`, `pipeline`, `tasks`, `connections`);
- `RequestResponseCycle`: `run_asgi`, `receive`, and its state between the two;
- `FlowControl`, `ServerState.total_requests` and `STATUS_LINE`.
"""

import asyncio
import logging
from enum import Enum, auto
from typing import ClassVar

from httptools import HttpParserError, HttpParserUpgrade
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.edge.refusals import Refusal
from app.edge.wire_line import Line
from app.edge.wire_recall import Recall
from app.edge.wire_refusals import (
    BODY_FAULT,
    TOO_LARGE,
    TOO_SLOW,
    Answer,
    Files,
    WireLimits,
    answer_to,
    body_cut,
    check_head,
    check_line,
    check_size,
    crowded,
    head_too_large,
    head_too_slow,
    internal,
    malformed,
    rendered,
    url_too_long,
)
from app.edge.wire_turns import disconnect
from app.telemetry.tally import Tally, count

__all__ = ["BODY_FAULT", "TOO_LARGE", "TOO_SLOW", "Files", "WireLimits", "protocol"]

log = logging.getLogger(__name__)


_LEAVING_MAX = 64
"""Connections over the cap that are told so at the same time; further ones are closed without a word."""


def protocol(limits: WireLimits, tally: Tally, files: Files | None = None) -> type[HttpToolsProtocol]:
    """For `uvicorn.Config(http=...)`; counted is what is refused here, and no application hears of."""
    return type("BoundWire", (_Wire,), {"limits": limits, "tally": tally, "files": files, "leaving": set()})


class _Stage(Enum):
    IDLE = auto()
    HEAD = auto()
    BODY = auto()
    DEAF = auto()


_IDLE, _HEAD, _BODY, _DEAF = _Stage


class _Wire(Recall):
    leaving: ClassVar[set[HttpToolsProtocol]]
    tally: ClassVar[Tally]
    files: ClassVar[Files | None]

    _stage = _IDLE
    _chunk = 0
    """Bytes of the input at hand; -1 once a message ended within it, as nobody knows where the next begins."""
    _size = 0
    """Bytes received earlier: of this head, or of this body without any payload in them."""
    _body = 0
    """Bytes of payload."""
    _body_seen = 0
    _owed = 0
    """Bytes of a body that the parser, after an offer to upgrade, takes for another protocol."""
    _is_ascii = True
    _start = b""
    """Of a head: its first line at least, where that is there, and what came before it in the same input."""
    _is_first = True
    """Whether nothing did."""
    _input = b""
    """What is being read."""
    _was_paused = False
    """At the last deadline it was us who did not read: the client gets the whole time again."""
    _refusal: Answer | None = None
    """Waits until the requests before it are answered."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._line = Line(self, transport, self.flow, self.loop, self.limits)
        self.transport = self._line  # type: ignore[assignment]  # as much of a transport as uvicorn uses
        wrong = crowded(self.connections, self.limits, self.files)
        if wrong is not None:
            self._turn_away(wrong)
        else:
            self._line.due(self.limits.header_seconds)

    def data_received(self, data: bytes) -> None:
        if self._stage is _DEAF:
            self._line.drop(len(data))
            return
        if self._owed:
            self._read_owed(data)
            return
        is_new = self._stage is _IDLE
        if is_new:
            data = self.recall(data)
            if not data:
                return
        former = self.cycle
        self._read(data)
        self.keep(data, former, is_new=is_new)

    def _read(self, data: bytes) -> None:
        self._chunk, self._input = len(data), data
        if self._stage is not _HEAD:
            self._start = data.lstrip(b"\r\n")
        elif not (self._is_first and b"\n" in self._start):
            self._start += data
        self._is_ascii = data.isascii() and (self._is_ascii or self._stage is not _HEAD)
        rest = None
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as offer:
            rest = data[offer.args[0] :]
        except HttpParserError as error:
            self._failed(error)
        self._input = b""
        if self._stage is not _HEAD:
            self._start = b""
        if rest is not None:
            self._read_owed(rest)
        elif self._stage is not _IDLE:
            self._check_progress()

    def connection_lost(self, exc: Exception | None) -> None:
        self._line.end()
        self.leaving.discard(self)
        super().connection_lost(exc)

    def eof_received(self) -> None:
        self._line.watch_flush()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._line.watch_writing()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._line.unwatch_writing()

    # What the parser calls.

    def on_message_begin(self) -> None:
        self._stage = _HEAD
        self._is_first = self._chunk >= 0
        if not self._is_first:
            self._start = self._input
        self._size = 0
        self.url = b""
        self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value.rstrip()))  # The parser strips the other side only.

    def on_headers_complete(self) -> None:
        if self._chunk < 0 or self._size + self._chunk > self.limits.header_bytes:
            check_size(self.headers, self.limits)
        version = self.parser.get_http_version()
        fields = check_head(self.url, self.headers, version, self.limits, is_ascii=self._is_ascii)
        check_line(self._start, self.parser.get_method(), self.url, version, is_first=self._is_first)
        if b"upgrade" in fields and self.parser.should_upgrade():
            self._decline_upgrade(fields)
        self.take(version, fields)
        self.headers = []  # Trailers end up here, and not in the scope.
        self._stage = _BODY
        self._size = self._body = self._body_seen = 0
        if b"content-length" in fields and int(fields[b"content-length"]) > self.limits.body_bytes:
            self._cut_body(TOO_LARGE)
            raise _Deaf

    def on_body(self, body: bytes) -> None:
        self._body += len(body)
        if self._body > self.limits.body_bytes:
            self._cut_body(TOO_LARGE)
            raise _Deaf
        HttpToolsProtocol.on_body(self, body)

    def on_message_complete(self) -> None:
        if self._owed:
            return
        HttpToolsProtocol.on_message_complete(self)
        self._stage = _IDLE
        self._chunk = -1
        if self.cycle.response_complete:
            self._line.due(self.timeout_keep_alive)

    # What uvicorn asks, and the line.

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self._refusal is not None and not self.pipeline:
            self._line.part(rendered(self._refusal))
        if self._line.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self.start(self.pipeline.pop()[0])
        elif self._stage is _IDLE:
            self._line.due(self.timeout_keep_alive)

    def _should_upgrade(self) -> bool:
        return False

    def has_unread(self) -> bool:
        return self._stage is _BODY or self._stage is _DEAF

    def overdue(self) -> None:
        if self._held:
            self._read(self.let_go())
        if self._stage in (_HEAD, _BODY) and (self.flow.read_paused or self._was_paused):
            self._was_paused = self.flow.read_paused
            self._line.due(self.limits.body_seconds)
            return
        match self._stage:
            case _Stage.IDLE if not self.is_answering():
                self.transport.close()
            case _Stage.HEAD:
                self._refuse(head_too_slow())
            case _Stage.BODY if self.cycle.response_complete:
                self._stage = _DEAF
                self._line.part()
            case _Stage.BODY:
                self._cut_body(TOO_SLOW)
            case _Stage.DEAF if self.cycle is not None and BODY_FAULT in self.state():
                self._answer_cut_body()

    # Refusing.

    def _turn_away(self, answer: Answer) -> None:
        """Not counted as open, so that the refused cannot keep others out."""
        self._stage = _DEAF
        self.connections.discard(self)
        count(self.tally.refusals, answer.reason)
        if len(self.leaving) >= _LEAVING_MAX:
            self._line.abort()
            return
        self.leaving.add(self)
        self._line.part(rendered(answer))

    def _check_progress(self) -> None:
        """Of a message that the input at hand did not complete."""
        if self._stage is _HEAD:
            self._check_head_progress()
        elif self._stage is _BODY:
            self._check_body_progress()

    def _check_head_progress(self) -> None:
        if self._size == 0:
            self._line.due(self.limits.header_seconds)
        self._size += max(self._chunk, 1)
        if len(self.url) > self.limits.url_bytes:
            self._refuse(answer_to(url_too_long(self.limits)))
        elif self._size > self.limits.header_bytes + self.limits.url_bytes:
            self._refuse(answer_to(head_too_large(self.limits)))

    def _check_body_progress(self) -> None:
        """Chunk extensions and trailers are no payload: they get as much as a head does."""
        if self._size == 0:
            self._line.due(self.limits.body_seconds)
            self._size = 1
        elif self._body != self._body_seen:
            self._size = 1
        else:
            self._size += self._chunk
        self._body_seen = self._body
        if self._size > self.limits.header_bytes:
            self._fail_body(answer_to(head_too_large(self.limits)))

    def _failed(self, error: HttpParserError) -> None:
        """The parser stopped: for a reason of its own, or for one that a callback of ours raised."""
        cause = error.__context__
        if isinstance(cause, _Deaf):
            return
        if isinstance(cause, Refusal):
            answer = answer_to(cause)
        elif cause is None or isinstance(cause, HttpParserError | UnicodeError):
            answer = malformed()
        else:
            log.error("internal error", exc_info=cause)
            answer = internal()
        if self._stage is _BODY:
            self._fail_body(answer)
        else:
            self._refuse(answer)

    def _refuse(self, answer: Answer) -> None:
        """Answer in place of a request that nobody was asked to answer, after those before it."""
        self._stage = _DEAF
        self._tell(answer)
        if self.is_answering():
            self._refusal = answer
        else:
            self._line.part(rendered(answer))

    def _fail_body(self, answer: Answer) -> None:
        """The request is with the application already, and will never be whole."""
        cycle = self.cycle
        if self.is_waiting(cycle):
            self.pipeline.popleft()
            self._refuse(answer)
            return
        self._stage = _DEAF
        self._tell(answer)
        last_words = b"" if cycle.response_started else rendered(answer)
        disconnect(cycle)
        self._line.part(last_words)

    def _tell(self, answer: Answer) -> None:
        log.info("refused", extra={"status": answer.status, "reason": answer.reason})
        count(self.tally.refusals, answer.reason)

    def _cut_body(self, fault: str) -> None:
        self._stage = _DEAF
        cycle = self.cycle
        self.state()[BODY_FAULT] = fault
        cycle.body = type(cycle.body)()
        cycle.more_body = cycle.keep_alive = cycle.waiting_for_100_continue = False
        cycle.message_event.set()
        self.flow.resume_reading()
        if cycle.response_complete:
            self._line.part()
        else:
            self._line.due(self.limits.answer_seconds)

    def _answer_cut_body(self) -> None:
        if self.is_waiting(self.cycle):
            self._line.due(self.limits.answer_seconds)
        elif not self.cycle.response_started:
            self._fail_body(body_cut(self.state()[BODY_FAULT], self.limits))

    # Offers to upgrade.

    def _decline_upgrade(self, fields: dict[bytes, bytes]) -> None:
        if b"transfer-encoding" in fields:
            raise Refusal(400, "framing", "an offer to upgrade needs a Content-Length")
        self._owed = int(fields.get(b"content-length", b"0"))

    def _read_owed(self, data: bytes) -> None:
        body, rest = data[: self._owed], data[self._owed :]
        self._owed -= len(body)
        try:
            if body:
                self.on_body(body)
            if self._stage is _BODY and not self._owed:
                self.on_message_complete()
        except _Deaf:
            return
        if rest:
            self.data_received(rest)
        elif self._stage is not _IDLE:
            self._check_progress()


class _Deaf(Exception):
    """Makes the parser stop in the middle of its input."""
