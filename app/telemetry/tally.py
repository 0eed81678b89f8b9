"""What is counted where it happens, in plain numbers: cheap enough for every call, and read when somebody asks.

Whoever performs an effect has the tally of its server with the server's settings, and counts there. Nobody here knows
how the numbers are shown; `metrics` does. The words that numbers are kept under are ours: nothing that a client or a
server invents becomes one.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from app.protocol import faults, methods, stateless
from app.protocol.jsonrpc import Failure, Result

OTHER = "other"

METHODS = frozenset(
    {
        *methods.OF_HANDSHAKE,
        *stateless.REMOVED,
        *stateless.CACHEABLE,
        *stateless.ASKING,
        stateless.LISTEN,
        "tasks/update",
    }
)
"""Any other method is counted as `OTHER`."""

ANSWERED = "ok"
FAILED = "error"
PARKED = "parked"
CANCELLED = faults.Cancelled.reason
_OF_FAULTS = {
    fault.code: fault.reason
    for fault in (
        faults.Unavailable,
        faults.Exited,
        faults.TimedOut,
        faults.SpokeNonsense,
        faults.Overloaded,
        faults.ShuttingDown,
        faults.Denied,
        faults.Cancelled,
    )
}
OUTCOMES = frozenset({ANSWERED, FAILED, PARKED, *_OF_FAULTS.values()})

CALL_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
START_SECONDS = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
LAG_SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)

STATES = ("starting", "warm", "ready", "busy", "stopping")
"""Of children. Each is told of every server, so that none is missing where it is nought."""
SERVER_STATES = (*STATES, "idle", "backing off", "failed")

Words = dict[str, int]
_WORDS_MAX = 100
"""Reasons are constants of ours; so many different ones are more than there are."""

Era = Literal["legacy", "modern"]


class Queue(Protocol):
    """Where something waits."""

    @property
    def waiting_bytes(self) -> int: ...


class Timing:
    """How long things took: `counts` has one number for each bound, of what took no longer, and one for the rest."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.sum += seconds

    def add_all(self, other: "Timing") -> None:
        """With the same bounds."""
        self.counts = [ours + theirs for ours, theirs in zip(self.counts, other.counts, strict=True)]
        self.sum += other.sum


class Calls:
    """The calls of one era that are over, by method and outcome."""

    __slots__ = ("_answered", "_others")

    def __init__(self) -> None:
        self._answered: dict[str, Timing] = {}
        self._others: dict[tuple[str, str], Timing] = {}

    def add(self, method: str, reply: Result | Failure, seconds: float) -> None:
        if type(reply) is Result:
            timing = self._answered.get(method)
            if timing is not None:
                timing.counts[bisect_left(CALL_SECONDS, seconds)] += 1  # As `Timing.add`, with one call less.
                timing.sum += seconds
                return
        self.end(method, outcome_of(reply), seconds)

    def end(self, method: str, outcome: str, seconds: float) -> None:
        """It is over, whatever its client was told."""
        method = method if method in METHODS else OTHER
        if outcome == ANSWERED:
            timing = self._answered.setdefault(method, Timing(CALL_SECONDS))
        else:
            timing = self._others.setdefault((method, outcome), Timing(CALL_SECONDS))
        timing.add(seconds)

    def all(self) -> Iterable[tuple[str, str, Timing]]:
        """Method, outcome, and how long these calls took."""
        for method, timing in list(self._answered.items()):
            yield method, ANSWERED, timing
        for (method, outcome), timing in list(self._others.items()):
            yield method, outcome, timing


@dataclass(slots=True, eq=False)
class ServerTally:
    """Of one configured server. `children` are those of which something is left."""

    legacy: Calls = field(default_factory=Calls)
    modern: Calls = field(default_factory=Calls)
    sessions_opened: int = 0
    sessions_ended: Words = field(default_factory=dict)
    children: set[Queue] = field(default_factory=set)
    child_starts: int = 0
    child_restarts: int = 0
    child_start_seconds: Timing = field(default_factory=lambda: Timing(START_SECONDS))
    child_ends: Words = field(default_factory=dict)
    bad_lines: int = 0
    undelivered: int = 0
    """Messages that a child did not read in time; of requests, their callers were told."""
    replayed: int = 0
    lost: int = 0
    refusals: Words = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Tally:
    """Of the whole gateway, beside its servers. `writing` are the event streams that have a connection now."""

    writing: set[Queue] = field(default_factory=set)
    left_out: int = 0
    audit_lost: int = 0
    cut_off: int = 0
    bugs: int = 0
    """Mistakes of ours that were logged with a traceback."""
    refusals: Words = field(default_factory=dict)
    reloads: Words = field(default_factory=lambda: {"applied": 0, "refused": 0})
    lag_seconds: Timing = field(default_factory=lambda: Timing(LAG_SECONDS))


@dataclass(slots=True)
class Census:
    """What there is now at one server."""

    state: str = "idle"
    sessions: int = 0
    asleep: int = 0
    calls: dict[Era, int] = field(default_factory=lambda: {"legacy": 0, "modern": 0})
    parked: int = 0
    streams: int = 0
    children: Words = field(default_factory=lambda: dict.fromkeys(STATES, 0))
    waiting_bytes: int = 0
    unread: str = ""
    """Why its lists could not be read, where it is one of many."""


def count(words: Words, word: str) -> None:
    if word not in words and len(words) >= _WORDS_MAX:
        word = OTHER
    words[word] = words.get(word, 0) + 1


def outcome_of(reply: Result | Failure) -> str:
    """A gateway behind us has the same codes, and what it says of its servers holds for ours."""
    if isinstance(reply, Result):
        return ANSWERED
    return _OF_FAULTS.get(methods.error_code(reply.error), FAILED)
