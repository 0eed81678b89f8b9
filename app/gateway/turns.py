"""How many may be at something at once, and whose turn it is next."""

import asyncio
from itertools import count

from app.core.fairness import Fairness, Rank, Shares, Ticket, Wish


class Turn:
    """`came` is True as soon as it is one's turn, and False where it was given back before."""

    __slots__ = ("_ticket", "_turns", "came")

    def __init__(self, turns: "Turns", ticket: Ticket) -> None:
        self.came: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._turns: Turns | None = turns
        self._ticket = ticket

    def rank(self, rank: Rank) -> None:
        """It became more urgent, or less."""
        if self._turns is not None:
            self._turns.rank(self._ticket, rank)

    def give_back(self) -> None:
        """It is over, or not wanted any more; once is enough, and more does no harm."""
        turns, self._turns = self._turns, None
        if turns is None:
            return
        if not self.came.done():
            self.came.set_result(False)
        turns.give_back(self._ticket)


class Turns:
    def __init__(self, shares: Shares) -> None:
        self._fairness = Fairness(shares)
        self._waiting: dict[Ticket, Turn] = {}
        self._tickets = count(1)

    def share(self, shares: Shares) -> None:
        """From now on so many; what somebody has already is theirs."""
        self._fairness.shares = shares

    @property
    def taken(self) -> int:
        return self._fairness.taken

    @property
    def is_full(self) -> bool:
        """Whether who asked now would have to wait."""
        return self._fairness.is_full

    def ask(self, wish: Wish) -> Turn:
        ticket = next(self._tickets)
        turn = self._waiting[ticket] = Turn(self, ticket)
        self._come(self._fairness.ask(ticket, wish))
        return turn

    def rank(self, ticket: Ticket, rank: Rank) -> None:
        """For `Turn`."""
        self._fairness.rank(ticket, rank)

    def give_back(self, ticket: Ticket) -> None:
        """For `Turn`."""
        self._waiting.pop(ticket, None)
        self._come(self._fairness.give_back(ticket))

    def _come(self, tickets: list[Ticket]) -> None:
        for ticket in tickets:
            came = self._waiting.pop(ticket).came
            if not came.done():
                came.set_result(True)
