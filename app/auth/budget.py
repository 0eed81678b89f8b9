"""How many calls a principal may make in a minute, and how many at once."""

from app.auth.policy import Limits

_MINUTE = 60.0


class Budget:
    """Filled evenly: who has made no calls for a minute may make a minute's calls at once."""

    __slots__ = ("_at", "_left", "taken")

    def __init__(self, limits: Limits, now: float) -> None:
        self._left = float(limits.per_minute or 0)
        self._at = now
        self.taken = 0
        """Calls in flight."""

    def take(self, limits: Limits, now: float, count: int = 1) -> float:
        """Seconds to wait before these calls may be made; where that is 0, they are in flight now."""
        if limits.concurrent is not None and self.taken + count > limits.concurrent:
            return 1.0
        if limits.per_minute is not None:
            self._left = min(float(limits.per_minute), self._left + (now - self._at) * limits.per_minute / _MINUTE)
            self._at = now
            # A call that is due to within a float's error is due.
            missing = count - self._left
            if missing > 1e-9:
                return missing * _MINUTE / limits.per_minute
            self._left = max(0.0, self._left - count)
        self.taken += count
        return 0.0

    def give_back(self) -> None:
        """A call is over."""
        self.taken -= 1

    def is_idle(self, now: float) -> bool:
        """Whether a new one would be the same."""
        return not self.taken and now - self._at > _MINUTE
