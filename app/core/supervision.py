"""How each child of a server is, and the server as a whole: what is written down of them, and how it reads.

    child    STARTING ──handshake answered──▶ READY ⇄ BUSY ──▶ STOPPING ──▶ gone
                 └──kept for whoever comes──▶ WARM ──▶ STARTING
    server   FAILED, BACKING_OFF, or the most telling state that a child of it is in; IDLE without any

Deaths count against the server only where no child of it got ready: whoever makes its own child crash harms only
itself, and while one child is ready nobody can say that the server does not start. Of children that were starting
together only the first death counts: ten that die of one cause are no ten attempts.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from typing import TypeAlias

from msgspec import Struct

from app.core.restarts import RestartPolicy, Restarts

ChildNumber: TypeAlias = int


class State(StrEnum):
    STARTING = "starting"
    WARM = "warm"
    """Started for whoever comes next, and not greeted."""
    READY = "ready"
    BUSY = "busy"
    STOPPING = "stopping"
    IDLE = "idle"
    BACKING_OFF = "backing off"
    FAILED = "failed"


_TELLING = (State.BUSY, State.READY, State.STARTING, State.WARM, State.STOPPING)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a child ended that nobody wanted to end. Neither code nor signal where it did not end by itself."""

    reason: str
    code: int | None = None
    signal: int | None = None
    stderr: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChildView:
    """`uptime` in seconds since it was started; no `pid` while it waits for its turn."""

    number: ChildNumber
    state: State
    pid: int | None
    uptime: float


@dataclass(frozen=True, slots=True)
class ServerView:
    """`attempt` and `next_in` say more of BACKING_OFF, `retry_in` of FAILED; `last` is the last bad ending."""

    name: str
    state: State
    children: tuple[ChildView, ...]
    attempt: int
    next_in: float
    retry_in: float | None
    restarts: int
    deaths: int
    last: Ending | None


class _Child(Struct):
    state: State
    counts: bool = True
    is_trial: bool = False
    pid: int | None = None
    started_at: float = 0.0
    ready_at: float | None = None


class Supervision:
    """`is_shared` is whether one child serves all, so that each of its deaths is the server's."""

    def __init__(self, name: str, policy: RestartPolicy, *, is_shared: bool = False) -> None:
        self.restarts = Restarts(policy)
        self._name = name
        self._is_shared = is_shared
        self._children: dict[ChildNumber, _Child] = {}
        self._numbers = count(1)
        self._restarted = 0
        self._deaths = 0
        self._counted_at = 0.0
        self._last: Ending | None = None

    # What happens.

    def wanted(self, now: float) -> ChildNumber:
        """A child is to be started, as soon as it is its turn."""
        number = next(self._numbers)
        self._children[number] = _Child(State.STARTING, is_trial=self.restarts.begin(now))
        return number

    def is_trial(self, number: ChildNumber) -> bool:
        """Whether it is tried although the server has failed."""
        child = self._children.get(number)
        return child is not None and child.is_trial

    def wanted_in_place(self) -> None:
        """The next one is in place of one that died."""
        self._restarted += 1

    def started(self, number: ChildNumber, pid: int, now: float) -> None:
        child = self._children.get(number)
        if child is not None:
            child.pid, child.started_at = pid, now

    def warmed(self, number: ChildNumber) -> None:
        self._children[number].state = State.WARM

    def taken(self, number: ChildNumber) -> None:
        """A warm one is somebody's now."""
        self._children[number].state = State.STARTING

    def tried(self, number: ChildNumber, *, counts: bool) -> None:
        """Whether its death before it is ready would say anything: it may be spoken to in a way it does not know."""
        self._children[number].counts = counts

    def ready(self, number: ChildNumber, now: float) -> float:
        """Its handshake was answered; how long that took."""
        child = self._children[number]
        child.state, child.ready_at = State.READY, now
        self.restarts.ready()
        return now - child.started_at

    def died(self, number: ChildNumber, ending: Ending, now: float, chance: float) -> bool:
        """It ended, or had to be ended; whether that counts against the server."""
        child = self._children[number]
        self._deaths += 1
        self._last = ending
        if child.ready_at is not None:
            self.restarts.lived(now - child.ready_at)
        counts = self._counts(child)
        if counts:
            self.restarts.died(now, chance)
            self._counted_at = now
        elif child.is_trial:
            self.restarts.spared()
        child.state, child.is_trial = State.STOPPING, False
        return counts

    def stopping(self, number: ChildNumber) -> None:
        """Nobody needs it any more."""
        child = self._children.get(number)
        if child is None:
            return
        if child.is_trial and child.ready_at is None:
            self.restarts.spared()
        child.state, child.is_trial = State.STOPPING, False

    def gone(self, number: ChildNumber) -> None:
        self._children.pop(number, None)

    def _counts(self, child: _Child) -> bool:
        if child.ready_at is not None:
            return self._is_shared
        is_late = child.started_at < self._counted_at and not child.is_trial
        return child.counts and not is_late and not any(other.state is State.READY for other in self._children.values())

    # How it reads.

    def view(self, now: float, busy: Collection[ChildNumber] = ()) -> ServerView:
        """`busy` are those that owe an answer."""
        children = tuple(
            ChildView(
                number,
                State.BUSY if child.state is State.READY and number in busy else child.state,
                child.pid,
                0.0 if child.pid is None else now - child.started_at,
            )
            for number, child in self._children.items()
        )
        return ServerView(
            self._name,
            self._state(now, {child.state for child in children}),
            children,
            self.restarts.attempt,
            self.restarts.pause(now),
            self.restarts.refused_for(now),
            self._restarted,
            self._deaths,
            self._last,
        )

    def _state(self, now: float, states: set[State]) -> State:
        if self.restarts.refused_for(now) is not None:
            return State.FAILED
        if self.restarts.pause(now) and not states & {State.READY, State.BUSY}:
            return State.BACKING_OFF
        return next((state for state in _TELLING if state in states), State.IDLE)
