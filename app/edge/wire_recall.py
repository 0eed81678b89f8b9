"""Requests whose head the connection has seen before, and which no other comes before: they need no parser and no task.

    a head, served once ──remember──▶ known ──the same bytes again──▶ held until the body is whole ──▶ handed over

Whatever does not fit, however late that turns out, is given to the parser as it came.
"""

import asyncio
import logging
from functools import partial

from app.edge.asgi import REMEMBER, Again
from app.edge.wire_cycle import Cycle, Raw
from app.edge.wire_known import KnownHeads
from app.edge.wire_line import Line
from app.edge.wire_refusals import internal
from app.edge.wire_turns import Turns

log = logging.getLogger(__name__)

_KEPT_MAX = 16384
"""A request that is longer is neither held, nor kept to learn its head from."""
_UNLIKE = frozenset({b"expect", b"transfer-encoding", b"upgrade"})
"""What a request has that is more than its head and as many bytes as that says."""


class Recall(Turns):
    _line: Line
    _is_used = False
    _held = b""
    """The beginning of a request with a known head, of which the parser knows nothing yet."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._known = KnownHeads(self.limits.header_bytes)

    def recall(self, data: bytes) -> bytes:
        """Between two requests: hand over or hold what came. What is returned is the parser's."""
        if not self._known:
            return data
        is_beginning = not self._held
        data, self._held = self._held + data, b""
        if self.flow.write_paused or not self.cycle.response_complete:
            return data
        found = self._known.find(data)
        if found is None:
            return data
        again, body, size = found
        if len(body) == size <= self.limits.body_bytes:
            self._hand_over(again, body)
        elif len(body) < size <= min(self.limits.body_bytes, _KEPT_MAX):
            self._held = data
            if is_beginning:
                self._line.due(self.limits.body_seconds)
        else:
            return data
        return b""

    def forget(self) -> None:
        """The application is another one, and what it said of heads holds no more. Of one that has begun it says so."""
        if not self._held:
            self._known = KnownHeads(self.limits.header_bytes)

    def let_go(self) -> bytes:
        """What was held is the parser's after all."""
        held, self._held = self._held, b""
        return held

    def cycle_of(self, version: str, fields: dict[bytes, bytes]) -> Cycle:
        """Many a connection is used once: its first request is not worth remembering."""
        cycle = super().cycle_of(version, fields)
        is_plain = cycle.method == "POST" and cycle.keep_alive and fields.keys().isdisjoint(_UNLIKE)
        if self._is_used and is_plain:
            cycle.raw = Raw()
            offer = {REMEMBER: partial(self._remember, cycle.raw)}
            cycle.scope["extensions"] = offer  # type: ignore[typeddict-item]  # uvicorn knows only its own
        self._is_used = True
        return cycle

    def keep(self, data: bytes, former: Cycle | None, *, is_new: bool) -> None:
        """What the parser has read: of a request that begins with it, or of the one that it went on with."""
        if self.cycle is None or self.cycle.raw is None:
            return
        raw = self.cycle.raw
        if self.cycle is former:
            raw.data = raw.data and raw.data + data
        elif is_new:
            raw.data = data
        if len(raw.data) > _KEPT_MAX:
            raw.data = b""

    def _remember(self, raw: Raw, again: Again) -> None:
        self._known.add(raw.data, again)

    def _hand_over(self, again: Again, body: bytes) -> None:
        self.cycle = cycle = Cycle(self)
        try:
            again(body, cycle)
        except Exception:  # As uvicorn does for a task: a bug must not end the connection without a word.
            log.exception("internal error")
            status, headers, body, _ = internal()
            cycle.answer(status, tuple(headers), body)
