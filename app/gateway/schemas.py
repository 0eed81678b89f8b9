"""What a server's tools want mirrored in headers, read from its own lists and kept until they change."""

import asyncio
import logging
from collections.abc import Callable

from app.core.mirrors import Mirrors, check_call, mirrors
from app.gateway.common import CommonChild
from app.protocol import methods, stateless
from app.protocol.faults import GatewayFault, HeaderMismatch
from app.protocol.jsonrpc import Failure, Message, Request, Result, payload
from app.protocol.revisions import MODERN

log = logging.getLogger("viaduct.exchange")

_PAGES_MAX = 100
_FRESH_SECONDS = 1.0

Then = Callable[[Request | GatewayFault], None]
"""Told the call as it was judged, or why it is refused."""


class Schemas:
    """Of one server, as one kind of client sees it. Read when the first call needs it, and by one reader at a time."""

    def __init__(self) -> None:
        self._known: dict[str, Mirrors] | None = None
        self._read_at = 0.0
        self._is_stale = False
        self._waiting: list[Callable[[], None]] = []
        self._reader: _Reader | None = None

    def forget(self) -> None:
        """The server's tools changed; what is being read now may be old already."""
        self._known = None
        self._is_stale = True

    def check(self, child: CommonChild, call: Request, headers: dict[bytes, bytes], then: Then) -> None:
        """Judge a call of a tool; a mismatch is told only after a look at what the server says now."""
        if self._known is None:
            self._read(child, lambda: then(self._judge(call, headers)))
            return
        judged = self._judge(call, headers)
        is_old = asyncio.get_running_loop().time() - self._read_at > _FRESH_SECONDS
        if isinstance(judged, GatewayFault) and is_old:
            self._known = None
            self._read(child, lambda: then(self._judge(call, headers)))
        else:
            then(judged)

    def _judge(self, call: Request, headers: dict[bytes, bytes]) -> Request | HeaderMismatch:
        try:
            return check_call(self._known or {}, call, headers)
        except HeaderMismatch as wrong:
            return wrong

    def _read(self, child: CommonChild, then: Callable[[], None]) -> None:
        self._waiting.append(then)
        if self._reader is None:
            self._is_stale = False
            self._reader = _Reader(child, self._have_read)
            self._reader.begin()

    def _have_read(self, known: dict[str, Mirrors]) -> None:
        self._reader = None
        self._known, self._read_at = known, asyncio.get_running_loop().time()
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then()
        if self._is_stale:
            self._known = None


class _Reader:
    """Reads `tools/list`, all pages. What cannot be read describes no tool, and then nothing is checked."""

    def __init__(self, child: CommonChild, done: Callable[[dict[str, Mirrors]], None]) -> None:
        self._child = child
        self._done = done
        self._party = 0
        self._ident = 0
        self._found: dict[str, Mirrors] = {}
        self._cursors: set[str] = set()

    def begin(self) -> None:
        self._party = self._child.join(self)
        self._ask(None)

    def ready(self) -> None:
        """It was before we came."""

    def deliver(self, message: Message) -> None:
        if isinstance(message, Failure) and message.id == self._ident:
            self._end()
        if not isinstance(message, Result) or message.id != self._ident:
            return
        self._found |= mirrors(message.result)
        cursor = methods.next_cursor(message.result)
        if cursor is None or cursor in self._cursors or len(self._cursors) >= _PAGES_MAX:
            self._end()
        else:
            self._cursors.add(cursor)
            self._ask(cursor)

    def lost(self, fault: GatewayFault) -> None:
        log.info("the tools of a server could not be read", extra={"reason": fault.reason})
        self._done(self._found)

    def _ask(self, cursor: str | None) -> None:
        self._ident = next(self._child.mint)
        params = None if cursor is None else payload({"cursor": cursor})
        if self._child.is_modern:
            params = stateless.with_envelope(params, stateless.Envelope(MODERN.date, self._child.capabilities))
        self._child.submit(self._party, Request(self._ident, methods.LIST_TOOLS, params))

    def _end(self) -> None:
        self._child.leave(self._party)
        self._done(self._found)
