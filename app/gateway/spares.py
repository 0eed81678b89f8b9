"""The children that nobody uses now, of all who have some: pools of stateless clients, and what is kept warm."""

from itertools import count
from typing import Protocol

from app.core.spares import Spare, choose


class Holder(Protocol):
    @property
    def owner(self) -> str:
        """The principal whose the children are; empty where they are nobody's."""

    @property
    def child_count(self) -> int: ...

    def idle(self) -> list[float]:
        """Since when each of those is idle that nobody uses."""

    def give_up_idle(self) -> None:
        """The one that is idle for longest is stopped."""


class Spares:
    """Looked through only when places are scarce, so whoever has some says nothing while they come and go."""

    def __init__(self) -> None:
        self._holders: dict[int, Holder] = {}
        self._numbers = count(1)

    def add(self, holder: Holder) -> int:
        """By this number it is removed."""
        number = next(self._numbers)
        self._holders[number] = holder
        return number

    def remove(self, number: int) -> None:
        """Once is enough, and more does no harm."""
        self._holders.pop(number, None)

    @property
    def are_any(self) -> bool:
        return any(holder.idle() for holder in self._holders.values())

    def child_count(self, owner: str) -> int:
        """Of that principal's, idle or not."""
        return sum(holder.child_count for holder in self._holders.values() if holder.owner == owner)

    def give_up(self, owner: str | None) -> bool:
        """For a child of that principal's; False where there is none to give up."""
        return self._give_up(choose(self._all(), owner))

    def give_up_own(self, owner: str) -> bool:
        """One of that principal's; False where it has none."""
        return self._give_up(choose([spare for spare in self._all() if spare.owner == owner], owner))

    def _all(self) -> list[Spare]:
        return [
            Spare(number, holder.owner, since) for number, holder in self._holders.items() for since in holder.idle()
        ]

    def _give_up(self, spare: Spare | None) -> bool:
        if spare is None:
            return False
        self._holders[spare.holder].give_up_idle()
        return True
