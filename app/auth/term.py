"""How long a token admits its principal, and what is told when that is over."""

from collections.abc import Callable
from typing import Literal, TypeAlias

How: TypeAlias = Literal["expired", "revoked"]
Told: TypeAlias = Callable[[How], None]


class Term:
    """Of one token. It ends once: when its time is over or when it is revoked, whoever notices that first."""

    __slots__ = ("__weakref__", "_told", "how")

    def __init__(self) -> None:
        self.how: How | None = None
        """How it ended; None while it lasts."""
        self._told: set[Told] = set()

    @property
    def is_watched(self) -> bool:
        return bool(self._told)

    def watch(self, told: Told) -> None:
        """Call `told` at the end, which may have been already."""
        if self.how is None:
            self._told.add(told)
        else:
            told(self.how)

    def unwatch(self, told: Told) -> None:
        self._told.discard(told)

    def end(self, how: How) -> None:
        self.how = self.how or how
        while self._told:
            self._told.pop()(self.how)
