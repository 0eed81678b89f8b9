"""Requests that wait for what is not known yet, each no longer than until its time has come, and within bounds."""

from collections.abc import Callable

from msgspec import Struct

from app.core.anteroom import size_of
from app.core.catalog import Sight
from app.core.deadlines import FOREVER
from app.core.ledger import no_room
from app.protocol.jsonrpc import Request


class Held(Struct, frozen=True):
    request: Request
    until: float
    sees: Sight


class Unanswered:
    def __init__(self, count_max: int, bytes_max: int) -> None:
        self.due = FOREVER
        self.waiting_bytes = 0
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._held: list[Held] = []

    def __len__(self) -> int:
        return len(self._held)

    def take(self, held: Held) -> None:
        """One alone may be as large as it likes.

        Raises:
            Overloaded: too much waits.
        """
        size = self.waiting_bytes + size_of(held.request)
        if self._held and (len(self._held) >= self._count_max or size > self._bytes_max):
            raise no_room()
        self._keep([*self._held, held])

    def withdraw(self, ident: int) -> bool:
        """Nobody waits for it any more; False where it is not here."""
        return bool(self.release(lambda held: held.request.id == ident))

    def release(self, is_due: Callable[[Held], bool]) -> list[Held]:
        """Those, in their order, wait no more."""
        due = [held for held in self._held if is_due(held)]
        if due:
            self._keep([held for held in self._held if not is_due(held)])
        return due

    def _keep(self, held: list[Held]) -> None:
        self._held = held
        self.waiting_bytes = sum(size_of(each.request) for each in held)
        self.due = min((each.until for each in held), default=FOREVER)
