"""One stateless child for several parties: whose each thing is that it says.

Its messages name the request that they belong to, by id, progress token or subscription id; the parties mint ids
from one source and use them as tokens, so nothing needs mapping. Log messages alone name nobody: they are the
holder's, the one party that asked for a level. What else names nobody is no client's.
"""

from collections.abc import Callable

from msgspec import Raw

from app.core.parties import Changed, Outcome, Owners, Party, ToChild, ToLog, ToParty
from app.protocol import methods, stateless
from app.protocol.faults import UnknownMethod
from app.protocol.jsonrpc import Failure, Message, Notification, Reply, Request, RequestId, Result, failure


class Relay:
    """`discovered` is what the child answered `server/discover` with."""

    def __init__(self, discovered: Raw) -> None:
        self.discovered = discovered
        self._owners = Owners()
        self._subscriptions: set[RequestId] = set()
        self._torn_down: set[RequestId] = set()
        """Subscriptions that the child has ended, of which only the answer may still come."""
        self._holder: Party | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a party waits for an answer of the child's, and not only for news."""
        return len(self._owners) > len(self._subscriptions) + len(self._torn_down)

    def submit(self, party: Party, message: Message) -> list[Outcome]:
        """A party has something for the child, which is never asked anything and so hears no answers."""
        match message:
            case Request():
                self._owners.add(message.id, party)
                if message.method == stateless.LISTEN:
                    self._subscriptions.add(message.id)
                return [ToChild(message)]
            case Notification():
                return self._notified(party, message)
            case Result() | Failure():
                return []

    def receive(self, message: Message) -> list[Outcome]:
        """The child said something."""
        match message:
            case Result() | Failure():
                return self._replied(message)
            case Notification():
                return self._announced(message)
            case Request():
                refusal = UnknownMethod(f"servers of this revision do not ask {message.method!r}", reason="cannot_ask")
                return [ToChild(failure(message.id, refusal))]

    def hold(self, party: Party) -> list[Outcome]:
        """From now on the child's log messages are this party's."""
        self._holder = party
        return []

    def unhold(self, party: Party) -> list[Outcome]:
        if self._holder == party:
            self._holder = None
        return []

    def leave(self, party: Party) -> list[Outcome]:
        """A party is gone: what it still waited for is cancelled."""
        cancelled: list[Outcome] = []
        for ident in self._owners.of(party):
            if ident not in self._torn_down:
                cancelled.append(ToChild(methods.cancellation(ident, "nobody waits for it any more")))
            self._forget(ident)
        return [*self.unhold(party), *cancelled]

    def withdraw(self, ident: int, take_back: Callable[[int], bool]) -> bool:
        """A request is taken back by `take_back` if it can be."""
        if not take_back(ident):
            return False
        self._forget(ident)
        return True

    def _notified(self, party: Party, notification: Notification) -> list[Outcome]:
        match notification.method:
            case methods.INITIALIZED | methods.EXIT | methods.ROOTS_CHANGED:
                return []
            case methods.CANCELLED:
                ident = methods.cancelled_id(notification)
                if ident is None or self._owners.get(ident) != party:
                    return []
                is_over = ident in self._torn_down
                self._forget(ident)
                return [] if is_over else [ToChild(notification)]
            case _:
                return [ToChild(notification)]

    def _replied(self, reply: Reply) -> list[Outcome]:
        owner = None if reply.id is None else self._owners.get(reply.id)
        if reply.id is None or owner is None:
            return []
        self._forget(reply.id)
        return [ToParty(owner, reply)]

    def _announced(self, notification: Notification) -> list[Outcome]:
        match notification.method:
            case methods.PROGRESS:
                return self._to_owner(methods.reported_token(notification), notification)
            case methods.LOG_MESSAGE:
                return [ToLog(notification) if self._holder is None else ToParty(self._holder, notification)]
            case methods.CANCELLED:
                return self._ended(notification)
            case _:
                return self._of_a_subscription(notification)

    def _to_owner(self, ident: RequestId | None, notification: Notification) -> list[Outcome]:
        owner = None if ident is None else self._owners.get(ident)
        return [] if owner is None else [ToParty(owner, notification)]

    def _ended(self, notification: Notification) -> list[Outcome]:
        """The child may take down subscriptions, and nothing else (basic/patterns/cancellation)."""
        ident = methods.cancelled_id(notification)
        if ident is None or ident not in self._subscriptions:
            return []
        self._subscriptions.discard(ident)
        self._torn_down.add(ident)
        return self._to_owner(ident, notification)

    def _of_a_subscription(self, notification: Notification) -> list[Outcome]:
        ident = stateless.subscription_id(notification)
        if ident is not None:
            return self._to_owner(ident, notification) if ident in self._subscriptions else []
        return [Changed(notification) if notification.method in methods.LIST_CHANGED else ToLog(notification)]

    def _forget(self, ident: RequestId) -> None:
        self._owners.pop(ident)
        self._subscriptions.discard(ident)
        self._torn_down.discard(ident)
