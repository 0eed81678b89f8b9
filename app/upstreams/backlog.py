"""Lines of children that were read and not yet heard: all children together are heard for a moment in each turn.

A child that writes small lines without end, each of which makes work, would otherwise hold up all others for as long
as a whole chunk of them takes; and so would many such children, each with a moment of its own.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from time import monotonic

_TURN_SECONDS = 0.002
_SHARE_SECONDS = 0.0005


class Backlog:
    """Of one child. `hear` gets its lines in their order; `turned` is told whenever `is_behind` has changed."""

    __slots__ = ("_hear", "_lines", "_round", "_turned", "is_behind")

    def __init__(self, hear: Callable[[bytes], None], turned: Callable[[], None]) -> None:
        self.is_behind = False
        self._hear = hear
        self._turned = turned
        self._lines: deque[bytes] = deque()
        self._round = _round_of(asyncio.get_running_loop())

    def add(self, lines: list[bytes]) -> None:
        if self.is_behind:
            self._lines.extend(lines)
        elif len(lines) == 1:
            self._hear(lines[0])
        elif lines:
            self._lines.extend(lines)
            if self._round.is_idle:
                self.deal()
            else:
                self._settle()

    def deal(self) -> None:
        """For a part of the turn. The loop's own clock stands still meanwhile."""
        until = monotonic() + _SHARE_SECONDS
        lines, hear = self._lines, self._hear
        try:
            while lines:
                hear(lines.popleft())
                if monotonic() >= until:
                    break
        finally:
            self._settle()

    def end(self) -> None:
        """All was heard; who heard it is let go."""
        self._hear = self._turned = _nobody

    def _settle(self) -> None:
        if self._lines:
            self._round.join(self)
        if bool(self._lines) is not self.is_behind:
            self.is_behind = not self.is_behind
            self._turned()


class _Round:
    """The children of one loop that are behind, each in its turn."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._call_soon = loop.call_soon
        self._waiting: deque[Backlog] = deque()
        self._is_called = False

    @property
    def is_idle(self) -> bool:
        return not self._waiting

    def join(self, backlog: Backlog) -> None:
        self._waiting.append(backlog)
        self._call()

    def _call(self) -> None:
        if not self._is_called:
            self._is_called = True
            self._call_soon(self._turn)

    def _turn(self) -> None:
        self._is_called = False
        until = monotonic() + _TURN_SECONDS
        try:
            while self._waiting and monotonic() < until:
                self._waiting.popleft().deal()
        finally:
            if self._waiting:
                self._call()


@lru_cache(maxsize=1)
def _round_of(loop: asyncio.AbstractEventLoop) -> _Round:
    return _Round(loop)


def _nobody(_line: bytes = b"") -> None:
    """Hears it."""
