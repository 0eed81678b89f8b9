"""How long to wait before the same is tried again."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """In seconds. `discover` is how long a child may take to say which era it speaks."""

    discover: float = 5.0
    retry_first: float = 0.1
    retry_most: float = 2.0
    """Between retries of a call whose server asked for nothing but a retry; the first one is at once."""
    listen_first: float = 0.5
    listen_most: float = 60.0
    """Before a subscription that the server ended is opened again."""


class Pause:
    """Twice as long each time, within bounds."""

    def __init__(self, first: float, most: float) -> None:
        self._first = first
        self._most = most
        self._length = 0.0

    def next(self) -> float:
        self._length = min(max(self._first, 2 * self._length), self._most)
        return self._length

    def reset(self) -> None:
        self._length = 0.0

    def reset_after(self, lasted: float) -> None:
        """What held out longer than the longest pause begins anew."""
        if lasted >= self._most:
            self.reset()
