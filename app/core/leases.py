"""Which warm child a stateless request gets, and whom it may meet there.

All children here are alike: of one server, for one principal, greeted with the same capabilities. A request is known
by its ticket, and a child by its number, which is given here. Who must wait is served in the order of coming.

    request ──a child fits, or one more may be started──▶ has a child ──release, child lost──▶ gone
        └──────none, or others wait──▶ waits ──its turn──▲    (release takes it out of the queue as well)
"""

from collections.abc import Iterator
from enum import IntEnum
from itertools import count
from typing import TypeAlias

from msgspec import Struct, field

from app.core.deadlines import FOREVER

Ticket: TypeAlias = int
ChildNumber: TypeAlias = int


class Need(IntEnum):
    ALONE = 0
    """What the child says of itself must be of this request: it may be asked back, or wants log messages."""
    HOLDING = 1
    """Of all that the child says, only its log messages name no request, and they must be of this one."""
    SHARED = 2
    LISTENING = 3
    """It hears what answers no request, from any child, and stands in nobody's way."""


_SHUNNED: dict[Need, tuple[Need, ...]] = {
    Need.ALONE: (Need.ALONE, Need.HOLDING, Need.SHARED),
    Need.HOLDING: (Need.ALONE, Need.HOLDING),
    Need.SHARED: (Need.ALONE,),
    Need.LISTENING: (),
}
"""Whom a request does not go together with on one child."""


class Use(Struct, frozen=True):
    ticket: Ticket
    child: ChildNumber


class Start(Struct, frozen=True):
    """The ticket has this child already; it is still to be started."""

    ticket: Ticket
    child: ChildNumber


class Wait(Struct, frozen=True):
    """A later answer to another ticket says when."""


Grant: TypeAlias = Use | Start


class _Child(Struct):
    needs: list[int] = field(default_factory=lambda: [0] * len(Need))
    """How many requests of each need have it."""
    used: int = 0
    """Rises with every use: the child of the highest was the last one used."""
    idle_at: float = FOREVER
    """Since when it has been without any ticket."""
    is_soiled: bool = False
    """Whether it may still say something of a request that is over, which nobody else should hear."""

    @property
    def is_busy(self) -> bool:
        alone, holding, shared, _ = self.needs
        return alone + holding + shared > 0

    def fits(self, need: Need) -> bool:
        needs = self.needs
        if self.is_soiled:
            return need is Need.LISTENING
        for other in _SHUNNED[need]:  # noqa: SIM110 - every request comes by here
            if needs[other]:
                return False
        return True


class Leases:
    """At most `children_max` children, at least one; one that is idle for `idle_seconds` is to be stopped."""

    def __init__(self, children_max: int, idle_seconds: float) -> None:
        self._children_max = children_max
        self._idle_seconds = idle_seconds
        self._children: dict[ChildNumber, _Child] = {}
        self._places: dict[Ticket, tuple[ChildNumber, Need]] = {}
        self._waiting: dict[Ticket, Need] = {}
        self._numbers: Iterator[ChildNumber] = count(1)
        self._uses = count(1)

    def resize(self, children_max: int, idle_seconds: float) -> None:
        """From now on these hold; of children that are there, none is stopped for it before it is idle."""
        self._children_max, self._idle_seconds = children_max, idle_seconds

    @property
    def is_empty(self) -> bool:
        """Nobody has a child or waits for one, and no child is warm."""
        return not self._children and not self._waiting

    @property
    def due(self) -> float:
        """No later than this, `expire` has something to do."""
        return min((self._expires_at(child) for child in self._children.values()), default=FOREVER)

    def would_start(self, need: Need) -> bool:
        """Whether who asked now would get a child that is still to be started."""
        if self._waiting and need is not Need.LISTENING:
            return False
        has_room = len(self._children) < self._children_max
        return has_room and not any(child.fits(need) for child in self._children.values())

    def request(self, ticket: Ticket, need: Need) -> Grant | Wait:
        """Whoever comes later waits behind those who wait, for a child in shared use would else never be free."""
        if need is Need.LISTENING or not self._waiting:
            grant = self._place(ticket, need)
            if grant is not None:
                return grant
        self._waiting[ticket] = need
        return Wait()

    def release(self, ticket: Ticket, now: float) -> list[Grant]:
        """The request is over, whether it has a child, waits for one, or lost it; whose turn it is now is told."""
        place = self._places.pop(ticket, None)
        if place is not None:
            self._leave(*place, now)
        if not self._waiting:
            return []
        self._waiting.pop(ticket, None)
        return self._serve()

    def soil(self, number: ChildNumber) -> None:
        """It may still say something of a request that is over: who has it keeps it, and nobody gets it any more."""
        child = self._children.get(number)
        if child is not None:
            child.is_soiled = True

    def spent(self) -> list[ChildNumber]:
        """Those that nobody gets any more, and nobody has."""
        return [number for number, child in self._children.items() if child.is_soiled and not child.is_busy]

    def lost(self, number: ChildNumber) -> tuple[list[Ticket], list[Grant]]:
        """The child is gone, or shall be used no more: who had it, and whose turn it is now."""
        self._children.pop(number, None)
        tickets = [ticket for ticket, (other, _need) in self._places.items() if other == number]
        for ticket in tickets:
            del self._places[ticket]
        return tickets, self._serve()

    def expire(self, now: float) -> list[ChildNumber]:
        """The children to stop, for nobody has used them for long enough."""
        expired = [number for number, child in self._children.items() if self._expires_at(child) <= now]
        for number in expired:
            del self._children[number]
        return expired

    @property
    def child_count(self) -> int:
        return len(self._children)

    def idle(self) -> list[float]:
        """Since when each of those is idle that nobody has."""
        return [child.idle_at for child in self._children.values() if child.idle_at < FOREVER]

    def give_up_idle(self) -> ChildNumber | None:
        """The child to stop: of those that nobody has, the one that has been idle for longest."""
        number = min(self._children, key=lambda number: self._children[number].idle_at, default=None)
        if number is None or self._children[number].idle_at == FOREVER:
            return None
        del self._children[number]
        return number

    def _serve(self) -> list[Grant]:
        grants: list[Grant] = []
        while self._waiting:
            ticket, need = next(iter(self._waiting.items()))
            grant = self._place(ticket, need)
            if grant is None:
                break
            del self._waiting[ticket]
            grants.append(grant)
        return grants

    def _place(self, ticket: Ticket, need: Need) -> Grant | None:
        """A child in use before an idle one, so that this is left to who needs one alone; then the last one used, so
        that a client meets the same process again, which may remember something."""
        fitting = [number for number, child in self._children.items() if child.fits(need)]
        if fitting:
            number = fitting[0] if len(fitting) == 1 else max(fitting, key=self._rank)
            self._take(ticket, need, number, self._children[number])
            return Use(ticket, number)
        if len(self._children) >= self._children_max:
            return None
        number = next(self._numbers)
        self._children[number] = child = _Child()
        self._take(ticket, need, number, child)
        return Start(ticket, number)

    def _rank(self, number: ChildNumber) -> tuple[bool, int]:
        child = self._children[number]
        return child.is_busy, child.used

    def _take(self, ticket: Ticket, need: Need, number: ChildNumber, child: _Child) -> None:
        child.needs[need] += 1
        child.idle_at = FOREVER
        if need is not Need.LISTENING:
            child.used = next(self._uses)
        self._places[ticket] = (number, need)

    def _leave(self, number: ChildNumber, need: Need, now: float) -> None:
        child = self._children[number]
        child.needs[need] -= 1
        if need is not Need.LISTENING:
            child.used = next(self._uses)
        if not any(child.needs):
            child.idle_at = now

    def _expires_at(self, child: _Child) -> float:
        return child.idle_at + self._idle_seconds
