"""What a server's tools want mirrored in headers, read from its own lists and kept until they change."""

import asyncio
import logging
from collections.abc import Callable

from msgspec import Raw

from app.core.deadlines import FOREVER
from app.core.mirrors import Mirrors, check_call, mirrors
from app.gateway.common import CommonChild
from app.gateway.patient import PatientTimer
from app.gateway.settings import Listing
from app.protocol import discovery, methods, stateless
from app.protocol.discovery import Filter
from app.protocol.faults import GatewayFault, HeaderMismatch
from app.protocol.jsonrpc import Failure, Message, Notification, Request, Result, payload
from app.protocol.revisions import MODERN
from app.protocol.stateless import Admitted, Envelope

log = logging.getLogger("viaduct.exchange")

Then = Callable[[Admitted | GatewayFault], None]
"""Told the call as it was judged, or why it is refused."""


class Schemas:
    """Of one server, as one kind of client sees it. Read when the first call needs it, and by one reader at a time."""

    def __init__(self, settings: Listing) -> None:
        self.settings = settings
        self._known: dict[str, Mirrors] | None = None
        self._read_at = 0.0
        self._until = FOREVER
        self._is_stale = False
        self._waiting: list[tuple[CommonChild, Callable[[], None]]] = []
        self._reader: _Reader | None = None
        self._watch: _Watch | None = None
        self._loop = asyncio.get_running_loop()

    def forget(self) -> None:
        """The server's tools changed; what is being read now may be old already."""
        self._known = None
        self._is_stale = True

    def want_nothing_of(self, call: Admitted) -> bool:
        """Whether it is known that its tool has nothing mirrored."""
        if self._known is None or self._until < FOREVER:
            return False
        return not self._known.get(call.target)

    def check(self, child: CommonChild, call: Admitted, headers: dict[bytes, bytes], then: Then) -> None:
        """Judge a call of a tool; a mismatch is told only after a look at what the server says now."""
        if self._known is not None and self._loop.time() < self._until:
            judged = self._judge(call, headers)
            is_old = self._loop.time() - self._read_at > self.settings.fresh_seconds
            if not (isinstance(judged, GatewayFault) and is_old):
                then(judged)
                return
        self._waiting.append((child, lambda: then(self._judge(call, headers))))
        if self._reader is None:
            self._read(child)

    def judge(self, call: Admitted, headers: dict[bytes, bytes]) -> Admitted:
        """By what is known now.

        Raises:
            HeaderMismatch: its headers do not repeat its arguments.
        """
        return check_call(self._known or {}, call, headers)

    def _judge(self, call: Admitted, headers: dict[bytes, bytes]) -> Admitted | HeaderMismatch:
        try:
            return self.judge(call, headers)
        except HeaderMismatch as wrong:
            return wrong

    def _read(self, child: CommonChild) -> None:
        self._is_stale = False
        if child.is_modern and (self._watch is None or self._watch.is_over):
            self._watch = _Watch(child, self._unwatched)
            self._watch.begin()
        self._reader = _Reader(child, self.settings, self._have_read, self._unread)
        self._reader.begin()

    def _unwatched(self) -> None:
        self._watch = None
        self.forget()

    def _have_read(self, known: dict[str, Mirrors], *, is_whole: bool) -> None:
        self._reader = None
        self._known, self._read_at = known, self._loop.time()
        self._until = FOREVER if is_whole else self._read_at + self.settings.unread_seconds
        waiting, self._waiting = self._waiting, []
        for _child, go_on in waiting:
            go_on()
        if self._is_stale:
            self._known = None

    def _unread(self) -> None:
        """The child is gone. Who waits with another one has that one read."""
        self._reader = None
        self._waiting = [(child, go_on) for child, go_on in self._waiting if not child.is_over]
        if self._waiting:
            self._read(self._waiting[0][0])


class _Reader:
    """Reads `tools/list`, all pages. What cannot be read describes no tool, and then nothing is checked."""

    def __init__(
        self, child: CommonChild, settings: Listing, done: Callable[..., None], gone: Callable[[], None]
    ) -> None:
        self._child = child
        self._settings = settings
        self._done = done
        self._gone = gone
        self._party = 0
        self._ident = 0
        self._found: dict[str, Mirrors] = {}
        self._cursors: set[str] = set()

    def begin(self) -> None:
        self._party = self._child.join(self)
        loop = asyncio.get_running_loop()
        self._timer = PatientTimer(loop, loop.time() + self._settings.patience_seconds, self._overdue)
        self._ask(None)

    def ready(self) -> None:
        """It was before we came."""

    def deliver(self, message: Message) -> None:
        if isinstance(message, Failure) and message.id == self._ident:
            self._end(is_whole=True)  # It has no tools, then.
        if not isinstance(message, Result) or message.id != self._ident:
            return
        self._found |= mirrors(message.result)
        cursor = methods.next_cursor(message.result)
        if cursor is None or cursor in self._cursors or len(self._cursors) >= self._settings.pages_max:
            self._end(is_whole=True)
        else:
            self._cursors.add(cursor)
            self._ask(cursor)

    def lost(self, fault: GatewayFault) -> None:
        log.info("the tools of a server could not be read", extra={"reason": fault.reason})
        self._timer.cancel()
        self._gone()

    def _ask(self, cursor: str | None) -> None:
        self._ident = next(self._child.mint)
        params = None if cursor is None else payload({"cursor": cursor})
        if self._child.is_modern:
            params = stateless.with_envelope(params, _ours(self._child))
        self._child.submit(self._party, Request(self._ident, methods.LIST_TOOLS, params))

    def _overdue(self) -> None:
        log.warning("the tools of a server could not be read", extra={"reason": "timed_out"})
        self._end(is_whole=False)

    def _end(self, *, is_whole: bool) -> None:
        self._timer.cancel()
        self._child.leave(self._party)
        self._done(self._found, is_whole=is_whole)


class _Watch:
    """A subscription of ours: a stateless server tells of its tools only who listens.

    What it says reaches the others by way of the child, which tells of every change; here it matters when it ends.
    """

    def __init__(self, child: CommonChild, changed: Callable[[], None]) -> None:
        self.is_over = False
        self._child = child
        self._changed = changed
        self._party = 0
        self._ident = 0

    def begin(self) -> None:
        offered = discovery.offer(self._child.greeted or Raw(b"{}"))
        if not offered.changes.tools:
            return
        self._party = self._child.join(self)
        self._ident = next(self._child.mint)
        self._child.submit(self._party, discovery.listen(self._ident, Filter(tools=True), _ours(self._child)))

    def ready(self) -> None:
        """It was before we came."""

    def deliver(self, message: Message) -> None:
        """A server that does not let us listen is not asked again before the child is another."""
        is_withdrawn = isinstance(message, Notification) and message.method == methods.CANCELLED
        if is_withdrawn or (isinstance(message, Result) and message.id == self._ident):
            self._child.leave(self._party)
            self._ended()

    def lost(self, _fault: GatewayFault) -> None:
        self._ended()

    def _ended(self) -> None:
        self.is_over = True
        self._changed()


def _ours(child: CommonChild) -> Envelope:
    return Envelope(MODERN.date, child.capabilities)
