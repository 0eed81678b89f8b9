"""How much room there is for another child: places, file descriptors, memory.

What is there already stays; only what would be new is refused. A child in the place of one that died is nothing new.
"""

import asyncio
from collections.abc import Callable
from time import monotonic

from app.core.fairness import Rank, Wish, all_of
from app.gateway.settings import RoomSettings
from app.gateway.turns import Turn, Turns
from app.protocol.faults import Overloaded
from app.upstreams import machine

_LOOK_SECONDS = 1.0
_PAUSE = 20
"""Before somebody is refused it is looked at once more, but looking takes no more than this part of all time."""
_FILES_OF_A_CHILD = 4
"""Three pipes, and what tells of its exit."""
_FILES_OF_A_CONNECTION = 1
_FOR_LATER = 0.8
"""Children that nobody waits for take no more than this share of the places."""
_SHARE = 0.8
"""Of the memory that the machine lets us have."""
_RETRY_SECONDS = 5.0

Clock = Callable[[], float]


class Room:
    """Of all servers together."""

    def __init__(self, settings: RoomSettings, clock: Clock = monotonic) -> None:
        self.files = Files(settings.files_percent, clock)
        self._memory = Memory(settings.memory_bytes, clock)
        self._places = Turns(all_of(settings.children_max))
        self._for_later_max = max(1, int(settings.children_max * _FOR_LATER))

    def admit(self, *, needs_place: bool) -> None:
        """
        Raises:
            Overloaded: there is no room for one more; nothing has happened.
        """
        if needs_place and self._places.is_full:
            raise _no_room("too many children of servers are running", "limits.children")
        if self.files.is_over():
            raise _no_room("too many files are open", "limits.openFilesPercent")
        if self._memory.is_over():
            raise _no_room("too much memory is in use", "limits.memory")

    @property
    def has_some_for_later(self) -> bool:
        """Whether a child may be started that nobody waits for."""
        return self._places.taken < self._for_later_max and not self.files.is_over() and not self._memory.is_over()

    def place(self, wish: Wish) -> "Place":
        """For a child; where all are taken, it comes as soon as one is free."""
        return Place(self._places.ask(wish), self.files)


class Place:
    """Of one child, from the wish for it until nothing of it is left."""

    __slots__ = ("_files", "_is_empty", "_turn")

    def __init__(self, turn: Turn, files: "Files") -> None:
        self._turn = turn
        self._files = files
        self._is_empty = True
        files.coming += _FILES_OF_A_CHILD

    @property
    def came(self) -> asyncio.Future[bool]:
        """True as soon as it is there, and False where it was given back before."""
        return self._turn.came

    def rank(self, rank: Rank) -> None:
        """It became more urgent, or less."""
        self._turn.rank(rank)

    def fill(self) -> None:
        """The child runs."""
        if self._is_empty:
            self._is_empty = False
            self._files.coming -= _FILES_OF_A_CHILD
            self._files.add(_FILES_OF_A_CHILD)

    def give_back(self) -> None:
        """Once is enough, and more does no harm."""
        if self._is_empty:
            self._is_empty = False
            self._files.coming -= _FILES_OF_A_CHILD
        self._turn.give_back()


class Files:
    """The open file descriptors: counted now and then, and in between what was added is added.

    `coming` is what those children will take that are not started yet.
    """

    def __init__(self, percent: int, clock: Clock = monotonic) -> None:
        self.coming = 0
        self._percent = percent
        self._clock = clock
        self._counted = 0
        self._added = 0
        self._max = 0
        self._counted_at = -_LOOK_SECONDS
        self._again_after = 0.0

    def add(self, count: int = _FILES_OF_A_CONNECTION) -> None:
        self._added += count

    def is_over(self) -> bool:
        """Whether there are more than what is new may take."""
        return self._is_above(self._percent, self.coming)

    def are_nearly_all(self) -> bool:
        """Whether there is hardly one left to say that there is none."""
        return self._is_above((self._percent + 100) // 2, 0)

    def _is_above(self, percent: int, coming: int) -> bool:
        self._look(_LOOK_SECONDS)
        if not self._exceeds(percent, coming):
            return False
        self._look(self._again_after)
        return self._exceeds(percent, coming)

    def _exceeds(self, percent: int, coming: int) -> bool:
        return (self._counted + self._added + coming) * 100 >= self._max * percent

    def _look(self, age: float) -> None:
        now = self._clock()
        if now - self._counted_at >= age:
            self._counted, self._max = machine.open_files(), machine.open_files_max()
            self._added, self._counted_at = 0, now
            self._again_after = _PAUSE * (self._clock() - now)


class Memory:
    """That of the gateway. Without a limit of the operator's, there may be one of the machine's."""

    def __init__(self, limit: int | None, clock: Clock = monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._is_over = False
        self._looked_at = -_LOOK_SECONDS
        self._resident_max = machine.resident_max() if limit is None else None

    def is_over(self) -> bool:
        now = self._clock()
        if now - self._looked_at >= _LOOK_SECONDS:
            self._is_over, self._looked_at = self._exceeds(), now
        return self._is_over

    def _exceeds(self) -> bool:
        had = machine.memory()
        if self._limit is not None:
            return had.resident > self._limit
        return _is_most_of(had.resident, self._resident_max) or _is_most_of(had.mapped, machine.mapped_max())


def _is_most_of(part: int, whole: int | None) -> bool:
    return whole is not None and part > whole * _SHARE


def _no_room(sentence: str, reason: str) -> Overloaded:
    return Overloaded(f"{sentence}; try again later", reason=reason, retry_after=_RETRY_SECONDS)
