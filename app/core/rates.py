"""How often something may be done: so often at once, and then as fast as a bucket fills up again.

Nothing happens here by itself: who asks says what time it is.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key")

_KEPT = 64


@dataclass(frozen=True, slots=True)
class Rate:
    per_second: float
    burst: int
    """How often at once."""


class Bucket:
    __slots__ = ("_at", "_level", "_rate")

    def __init__(self, rate: Rate, now: float) -> None:
        self._rate = rate
        self._level = float(rate.burst)
        self._at = now

    def wait(self, now: float) -> float:
        """For how long there is nothing left; 0 where there is something."""
        self._fill(now)
        return max(0.0, (1.0 - self._level) / self._rate.per_second)

    def take(self, now: float) -> None:
        """One, whether it is there or not."""
        self._fill(now)
        self._level -= 1.0

    def is_full(self, now: float) -> bool:
        """As one that nothing was taken of."""
        self._fill(now)
        return self._level >= self._rate.burst

    def _fill(self, now: float) -> None:
        """A clock that was set back costs nobody anything."""
        self._level = min(float(self._rate.burst), self._level + max(0.0, now - self._at) * self._rate.per_second)
        self._at = now


class Buckets(Generic[Key]):
    """One for each key. Those that are full are forgotten: only who did something lately is remembered."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._buckets: dict[Key, Bucket] = {}
        self._many = _KEPT

    def __len__(self) -> int:
        return len(self._buckets)

    def wait(self, key: Key, now: float) -> float:
        """For how long there is nothing left for `key`; 0 where there is something."""
        bucket = self._buckets.get(key)
        return 0.0 if bucket is None else bucket.wait(now)

    def take(self, key: Key, now: float) -> None:
        bucket = self._buckets.get(key)
        if bucket is None:
            self._forget(now)
            bucket = self._buckets[key] = Bucket(self._rate, now)
        bucket.take(now)

    def _forget(self, now: float) -> None:
        """Not each time, so that it costs as much as it frees."""
        if len(self._buckets) < self._many:
            return
        self._buckets = {key: bucket for key, bucket in self._buckets.items() if not bucket.is_full(now)}
        self._many = max(_KEPT, 2 * len(self._buckets))
