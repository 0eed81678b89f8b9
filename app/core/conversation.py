"""Our side of the talk with one child: what it may get away with, and whether it is still there.

A stray line on stdout is dropped; too many of them in a minute, a few that were longer than any message may be, or
one after which nothing sensible follows, end the child. After a call timed out the child is asked for a sign of life;
silence ends it.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from app.core.deadlines import FOREVER
from app.protocol import methods
from app.protocol.faults import GatewayFault, SpokeNonsense, TimedOut
from app.protocol.jsonrpc import Request


@dataclass(frozen=True, slots=True)
class Tolerance:
    """`bad_lines` in a minute and `oversized` frames in all are borne.

    In seconds: how long a `ping` may go unanswered, and how soon after an oversized frame a good one must `recover`
    the talk.
    """

    bad_lines: int = 100
    oversized: int = 3
    ping: float = 30.0
    recover: float = 5.0


class Conversation:
    def __init__(self, tolerance: Tolerance, mint: Iterator[int]) -> None:
        self.due = FOREVER
        self._tolerance = tolerance
        self._mint = mint
        self._bad: deque[float] = deque()
        self._oversized = 0
        self._suspicion: GatewayFault | None = None

    def heard(self) -> None:
        """The child said something well-formed."""
        self.due = FOREVER

    def nonsense(self, now: float) -> GatewayFault | None:
        """A line was no message; a fault where that was one too many."""
        self._bad.append(now)
        while self._bad[0] < now - 60:
            self._bad.popleft()
        if len(self._bad) <= self._tolerance.bad_lines:
            return None
        return SpokeNonsense("the server writes lines to stdout that are no messages", executed="unknown")

    def oversized(self, now: float) -> GatewayFault | None:
        """A line was longer than any may be; a fault where that was one too many."""
        self._oversized += 1
        fault = SpokeNonsense("the server writes lines longer than limits.line", executed="unknown")
        if self._oversized > self._tolerance.oversized:
            return fault
        self._suspicion, self.due = fault, now + self._tolerance.recover
        return None

    def doubt(self, now: float) -> Request | None:
        """Is it still there? A question that any server answers, unless it is under suspicion already."""
        if self.due < FOREVER:
            return None
        self._suspicion = TimedOut("the server has stopped answering", reason="unresponsive", executed="unknown")
        self.due = now + self._tolerance.ping
        return Request(next(self._mint), methods.PING)

    def tick(self, now: float) -> GatewayFault | None:
        """The suspicion, where nothing was heard that dispels it."""
        if now < self.due:
            return None
        self.due = FOREVER
        return self._suspicion
