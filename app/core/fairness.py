"""Whose turn it is next, where many want something of which only so many can be had at once.

    ask ──there is one, within all shares──▶ has it ──give_back──▶ gone
     └──none, or only one that is kept for others──▶ waits ──its turn──▲

A party is a principal, or a server where the wish is nobody's. The party that has least comes next; of those that
have as much, the one whose last turn was the longest ago. A party that comes with a child in place of a dead one comes
before all others of its weight. What nobody waits for comes last. Within a party it is the same with its servers.
What was given cannot be taken back before it is over, so nobody may have all of it, even while nobody else is there.
"""

from enum import IntEnum
from itertools import count
from typing import TypeAlias

from msgspec import Struct

Ticket: TypeAlias = int
Party: TypeAlias = tuple[str | None, str]


class Rank(IntEnum):
    IN_PLACE = 0
    """Of a child that died, and whose client goes on."""
    NEW = 1
    FOR_LATER = 2
    """Nobody waits for it."""


class Wish(Struct, frozen=True):
    """`owner` is the principal; None where it is not for one of them."""

    server: str = ""
    owner: str | None = None
    rank: Rank = Rank.NEW

    @property
    def party(self) -> Party:
        return (None, self.server) if self.owner is None else (self.owner, "")


class Shares(Struct, frozen=True):
    """Of `count` at once, so many are for one party at one server, for one party, and for one server."""

    count: int
    pair: int
    party: int
    server: int


def all_of(number: int) -> Shares:
    """Anybody may have all."""
    return Shares(number, number, number, number)


def shares_of(number: int, *, is_only_server: bool) -> Shares:
    """Half for a party at one server, and one is always kept for another party, and for another server."""
    most = max(1, number - 1)
    return Shares(number, (number + 1) // 2, most, number if is_only_server else most)


class _Queue(Struct):
    """Of a party, or of a party at one server."""

    last: int
    """The number of its last turn."""
    had: int = 0
    waiting: int = 0


class _Waiting(Struct):
    ticket: Ticket
    wish: Wish
    number: int


class Fairness:
    """A ticket is anybody's who asks; no two are alike."""

    def __init__(self, shares: Shares) -> None:
        self.shares = shares
        self._had: dict[Ticket, Wish] = {}
        self._waiting: dict[Ticket, _Waiting] = {}
        self._parties: dict[Party, _Queue] = {}
        self._pairs: dict[tuple[Party, str], _Queue] = {}
        self._of_servers: dict[str, int] = {}
        self._turns = 0
        """Only even numbers are those of turns."""
        self._numbers = count(1)

    @property
    def taken(self) -> int:
        return len(self._had)

    @property
    def is_full(self) -> bool:
        """Whether whoever asked now would have to wait."""
        return len(self._had) >= self.shares.count

    def ask(self, ticket: Ticket, wish: Wish) -> list[Ticket]:
        """Whose turn it is now."""
        waiting = self._waiting[ticket] = _Waiting(ticket, wish, next(self._numbers))
        for queue in self._queues(wish, comes=True):
            queue.waiting += 1
        if self.is_full or not self._may_have(wish):
            return []
        self._give(waiting)  # Whoever waits still could not have it, so nobody is passed over.
        return [ticket]

    def rank(self, ticket: Ticket, rank: Rank) -> None:
        """Of who waits: it became more urgent, or less."""
        waiting = self._waiting.get(ticket)
        if waiting is not None:
            wish = waiting.wish
            waiting.wish = Wish(wish.server, wish.owner, rank)

    def give_back(self, ticket: Ticket) -> list[Ticket]:
        """It is over, or not wanted any more: whose turn it is now."""
        waiting, had = self._waiting.pop(ticket, None), self._had.pop(ticket, None)
        if waiting is not None:
            for queue in self._queues(waiting.wish):
                queue.waiting -= 1
            self._forget(waiting.wish)
        if had is None:
            return []
        for queue in self._queues(had):
            queue.had -= 1
        self._count_server(had.server, -1)
        self._forget(had)
        return self._serve()

    def _serve(self) -> list[Ticket]:
        """Perhaps two at once: one party may have another, and one server."""
        served: list[Ticket] = []
        while not self.is_full:
            may = (each for each in self._waiting.values() if self._may_have(each.wish))
            following = min(may, key=self._order, default=None)
            if following is None:
                break
            self._give(following)
            served.append(following.ticket)
        return served

    def _may_have(self, wish: Wish) -> bool:
        party, pair = self._queues(wish)
        shares = self.shares
        has_part = party.had < shares.party and pair.had < shares.pair
        return has_part and self._of_servers.get(wish.server, 0) < shares.server

    def _order(self, waiting: _Waiting) -> tuple[bool, int, int, Rank, int, int, int]:
        wish = waiting.wish
        party, pair = self._queues(wish)
        return wish.rank is Rank.FOR_LATER, party.had, party.last, wish.rank, pair.had, pair.last, waiting.number

    def _give(self, waiting: _Waiting) -> None:
        del self._waiting[waiting.ticket]
        self._had[waiting.ticket] = waiting.wish
        self._turns += 2
        for queue in self._queues(waiting.wish):
            queue.waiting -= 1
            queue.had += 1
            queue.last = self._turns
        self._count_server(waiting.wish.server, 1)

    def _count_server(self, server: str, number: int) -> None:
        had = self._of_servers.pop(server, 0) + number
        if had:
            self._of_servers[server] = had

    def _queues(self, wish: Wish, *, comes: bool = False) -> tuple[_Queue, _Queue]:
        """Who comes anew is as if it had had the turn just before the last, or, in place of a dead one, never any."""
        party, key = wish.party, (wish.party, wish.server)
        if comes:
            last = 0 if wish.rank is Rank.IN_PLACE else self._turns - 1
            self._parties.setdefault(party, _Queue(last))
            self._pairs.setdefault(key, _Queue(last))
        return self._parties[party], self._pairs[key]

    def _forget(self, wish: Wish) -> None:
        party, pair = self._queues(wish)
        if not pair.had and not pair.waiting:
            del self._pairs[wish.party, wish.server]
        if not party.had and not party.waiting:
            del self._parties[wish.party]
