"""How many may be at something at once, and whose turn it is next."""

import asyncio
from collections import deque


class Turn:
    """`came` is True as soon as it is one's turn, and False where it was given back before."""

    __slots__ = ("_turns", "came")

    def __init__(self, turns: "Turns") -> None:
        self.came: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._turns: Turns | None = turns

    def give_back(self) -> None:
        """It is over, or not wanted any more; once is enough, and more does no harm."""
        turns, self._turns = self._turns, None
        if turns is None:
            return
        if self.came.done():
            turns.free()
        else:
            self.came.set_result(False)


class Turns:
    """Who asks is served in the order of asking; who does so for later, after all others."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._free = count_max
        self._waiting: deque[Turn] = deque()
        self._patient: deque[Turn] = deque()

    @property
    def taken(self) -> int:
        return self._count_max - self._free

    @property
    def is_full(self) -> bool:
        """Whether who asked now would have to wait."""
        return not self._free

    def ask(self, *, for_later: bool = False) -> Turn:
        turn = Turn(self)
        if self._free:
            self._free -= 1
            turn.came.set_result(True)
        else:
            (self._patient if for_later else self._waiting).append(turn)
        return turn

    def free(self) -> None:
        """For `Turn`."""
        for queue in (self._waiting, self._patient):
            while queue:
                turn = queue.popleft()
                if not turn.came.done():
                    turn.came.set_result(True)
                    return
        self._free += 1
