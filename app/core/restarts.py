"""How soon what died is started again, and when that is given up.

    STEADY ──death──▶ BACKING OFF ──the pause is over──▶ STEADY
                          └──one death too many──▶ FAILED ──cool-down──▶ TRIAL ──ready──▶ STEADY
                                                      ▲────────death──────┘

A pause is twice as long each time, until something has lived for long enough.
"""

from collections import deque
from dataclasses import dataclass

_SPREAD = 0.5
"""A pause is longer by up to this part of itself, so that not all come back at once."""
_DURING_TRIAL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """In seconds, but for `deaths`, of which so many within `window` are too many."""

    first: float = 0.2
    longest: float = 30.0
    deaths: int = 5
    window: float = 60.0
    cool_down: float = 300.0
    uptime: float = 60.0
    """What lived so long is well: what happened before is forgotten."""


class Restarts:
    """Of one server, or of the children of one session."""

    def __init__(self, policy: RestartPolicy) -> None:
        self.attempt = 0
        """How many starts in a row were for nothing."""
        self.next_at = 0.0
        """When the next may begin."""
        self._policy = policy
        self._deaths: deque[float] = deque()
        self._failed_at: float | None = None
        self._is_trying = False

    @property
    def is_failed(self) -> bool:
        return self._failed_at is not None

    def pause(self, now: float) -> float:
        """What is left to wait."""
        return max(0.0, self.next_at - now)

    def refused_for(self, now: float) -> float | None:
        """When it may be asked for again; None where a start may be tried."""
        if self._failed_at is None:
            return None
        if self._is_trying:
            return _DURING_TRIAL_SECONDS
        left = self._failed_at + self._policy.cool_down - now
        return left if left > 0 else None

    def begin(self, now: float) -> bool:
        """A start is wished for; whether it is the one trial of what has failed, which all others wait for."""
        if not self.is_failed or self.refused_for(now) is not None:
            return False
        self._is_trying = True
        return True

    def spared(self) -> None:
        """The trial was no trial: nobody wanted it any more, or it says nothing."""
        self._is_trying = False

    def ready(self) -> None:
        """It can be started."""
        self._failed_at, self._is_trying = None, False

    def lived(self, seconds: float) -> None:
        """For so long it was ready."""
        if seconds >= self._policy.uptime:
            self.attempt = 0
            self._deaths.clear()

    def died(self, now: float, chance: float) -> None:
        """`chance` is from 0 up to 1, and anew each time."""
        policy = self._policy
        self.attempt += 1
        self._deaths.append(now)
        while self._deaths[0] < now - policy.window:
            self._deaths.popleft()
        if len(self._deaths) >= policy.deaths or self._is_trying:
            self._failed_at, self._is_trying = now, False
        self.next_at = now + _pause(policy, self.attempt) * (1 + _SPREAD * chance)


def _pause(policy: RestartPolicy, attempt: int) -> float:
    longest = policy.longest / (1 + _SPREAD)
    return float(min(longest, policy.first * 2.0 ** min(attempt - 1, 60)))
