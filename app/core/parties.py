"""Several parties on one child: the words in which their machines say who hears what."""

from typing import TypeAlias

from msgspec import Raw, Struct

from app.protocol.jsonrpc import Message, Notification, RequestId

Party: TypeAlias = int
"""A session, or a stateless request, as the machine of its child knows it."""

OWN: Party = -1
"""The party that we are ourselves."""


class ToParty(Struct, frozen=True):
    party: Party
    message: Message


class ToChild(Struct, frozen=True):
    message: Message


class ToLog(Struct, frozen=True):
    """What the child said that is no party's, and that no client may see."""

    notification: Notification


class Changed(Struct, frozen=True):
    """One of the child's lists is another now: news to all who care, on this child or not."""

    notification: Notification


class Refused(Struct, frozen=True):
    """The child did not accept our greeting."""

    error: Raw


Outcome: TypeAlias = ToParty | ToChild | ToLog | Changed | Refused


class Owners:
    """Whose request each is that the child owes an answer to."""

    __slots__ = ("_counts", "_owners", "get")

    def __init__(self) -> None:
        self._owners: dict[RequestId, Party] = {}
        self._counts: dict[Party, int] = {}
        self.get = self._owners.get

    def __len__(self) -> int:
        return len(self._owners)

    def add(self, ident: RequestId, party: Party) -> None:
        self._owners[ident] = party
        self._counts[party] = self._counts.get(party, 0) + 1

    def pop(self, ident: RequestId) -> Party | None:
        """Nobody's any more; None where it was nobody's before."""
        party = self._owners.pop(ident, None)
        if party is not None:
            left = self._counts.pop(party) - 1
            if left:
                self._counts[party] = left
        return party

    def count_of(self, party: Party) -> int:
        return self._counts.get(party, 0)

    def of(self, party: Party) -> list[RequestId]:
        """Those of one party, of which most that leave have none."""
        if party not in self._counts:
            return []
        return [ident for ident, owner in self._owners.items() if owner == party]
