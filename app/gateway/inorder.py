"""Performing things in their order, when doing one of them may bring about more."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class InOrder(Generic[T]):
    """What follows from doing one thing is done after those that were there before it.

    Otherwise a question's answer would overtake the question that was to be asked next.
    """

    __slots__ = ("_do", "_waiting", "is_busy")

    def __init__(self, do: Callable[[T], None]) -> None:
        self._do = do
        self._waiting: deque[T] = deque()
        self.is_busy = False
        """Whether something is being done just now."""

    def perform(self, things: Sequence[T]) -> bool:
        """Do them; False where somebody further up the stack is at it, who will do these too."""
        waiting = self._waiting
        if self.is_busy:
            waiting.extend(things)
            return False
        self.is_busy, do = True, self._do
        try:
            if len(things) == 1 and not waiting:
                do(things[0])
            else:
                waiting.extend(things)
            while waiting:
                do(waiting.popleft())
        finally:
            self.is_busy = False
        return True

    def end(self) -> None:
        """What is being done now is done; nothing will be later, and who would have done it is let go."""
        self._do = _leave


def _leave(_thing: object) -> None:
    """Undone."""
