"""Reading a server's lists, all pages of each, with requests that somebody else carries."""

from collections.abc import Iterable, Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from app.core.inventory import LISTED, Inventory, Item, Shelf, items, kept
from app.protocol import methods
from app.protocol.jsonrpc import Reply, Request, RequestId, Result, payload


class _List(Struct):
    shelf: Shelf
    found: list[Item] = field(default_factory=list)
    cursors: set[str] = field(default_factory=set)


class Reading:
    """`before` is what is known by now: a list that cannot be read stays as it is there."""

    def __init__(self, mint: Iterator[int], before: Inventory, shelves: Iterable[Shelf], pages_max: int = 100) -> None:
        self.inventory = before
        self.has_read = False
        """Whether at least one list is known by now."""
        self._mint = mint
        self._pages_max = pages_max
        self.shelves = tuple(shelves)
        self._asked: dict[RequestId, _List] = {}

    @property
    def is_over(self) -> bool:
        return not self._asked

    def begin(self) -> list[Request]:
        return [self._ask(_List(shelf), None) for shelf in self.shelves]

    def expects(self, ident: RequestId | None) -> bool:
        return ident in self._asked

    def receive(self, reply: Reply) -> list[Request]:
        """One that it expects; what is to be asked next."""
        if reply.id is None:
            return []
        listed = self._asked.pop(reply.id)
        if not isinstance(reply, Result):
            return []
        listed.found += items(listed.shelf, reply.result)
        cursor = methods.next_cursor(reply.result)
        if cursor is not None and cursor not in listed.cursors and len(listed.cursors) + 1 < self._pages_max:
            listed.cursors.add(cursor)
            return [self._ask(listed, cursor)]
        before = self.inventory.shelf(listed.shelf)
        self.inventory = replace(self.inventory, **{listed.shelf: kept(listed.found, before)})
        self.has_read = True
        return []

    def give_up(self) -> None:
        """What was not answered by now is not waited for."""
        self._asked.clear()

    def _ask(self, listed: _List, cursor: str | None) -> Request:
        ident = next(self._mint)
        self._asked[ident] = listed
        return Request(ident, LISTED[listed.shelf].method, payload({} if cursor is None else {"cursor": cursor}))
