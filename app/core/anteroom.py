"""What waits for a server that is not ready, in its order and within bounds."""

from app.protocol import methods
from app.protocol.jsonrpc import Failure, Message, Notification, Request, Result


class Anteroom:
    def __init__(self, count_max: int, bytes_max: int) -> None:
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._waiting: list[tuple[int, Message]] = []
        self._bytes = 0

    @property
    def waiting_bytes(self) -> int:
        return self._bytes

    def take(self, message: Message, party: int = 0) -> bool:
        """False where there is no room. What greets has room always, once: nothing else is of use without it."""
        size = size_of(message)
        is_full = len(self._waiting) >= self._count_max or self._bytes + size > self._bytes_max
        if is_full and (not _greets(message) or self._has_greeting(party)):
            return False
        self._waiting.append((party, message))
        self._bytes += size
        return True

    def withdraw(self, ident: int) -> bool:
        """The request shall not go in any more; False where it does not wait."""
        for place, (_, message) in enumerate(self._waiting):
            if isinstance(message, Request) and message.id == ident:
                del self._waiting[place]
                self._bytes -= size_of(message)
                return True
        return False

    def forget(self, party: int) -> None:
        self._waiting = [(owner, message) for owner, message in self._waiting if owner != party]
        self._bytes = sum(size_of(message) for _, message in self._waiting)

    def empty(self) -> list[tuple[int, Message]]:
        """All that waits, each with its party; then nothing does."""
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        return waiting

    def _has_greeting(self, party: int) -> bool:
        return any(_greets(message) for owner, message in self._waiting if owner == party)


def _greets(message: Message) -> bool:
    return isinstance(message, Request | Notification) and message.method in (methods.INITIALIZE, methods.INITIALIZED)


def size_of(message: Message) -> int:
    """In bytes, about."""
    match message:
        case Request() | Notification():
            return len(message.method) + (0 if message.params is None else len(message.params))
        case Result():
            return len(message.result)
        case Failure():
            return len(message.error)
