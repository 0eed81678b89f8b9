"""Whoever asks the same one waits for a turn: a few are at it at once, and those who are known go first."""

import asyncio
from collections import deque


class QueueFull(Exception):
    """So many wait that another one is not to."""


class Queue:
    """`count_max` bounds those who are at it and those who wait, but for the known: strangers cannot crowd them out."""

    def __init__(self, at_once: int, count_max: int) -> None:
        self._free = at_once
        self._count_max = count_max
        self._count = 0
        self._known: deque[asyncio.Future[None]] = deque()
        self._strangers: deque[asyncio.Future[None]] = deque()

    async def enter(self, *, is_known: bool) -> None:
        """
        Raises:
            QueueFull: there is no room for a stranger.
        """
        if not is_known and self._count >= self._count_max:
            raise QueueFull
        self._count += 1
        if self._free:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        (self._known if is_known else self._strangers).append(turn)
        has_come = False
        try:
            await turn
            has_come = True
        finally:
            if not has_come:
                self._give_up(turn)

    def leave(self) -> None:
        self._count -= 1
        for waiting in (self._known, self._strangers):
            while waiting:
                turn = waiting.popleft()
                if not turn.done():
                    turn.set_result(None)
                    return
        self._free += 1

    def _give_up(self, turn: "asyncio.Future[None]") -> None:
        if turn.cancelled():
            self._count -= 1  # `leave` passes it over.
        else:
            self.leave()
