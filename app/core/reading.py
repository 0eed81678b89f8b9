"""Reading a server's lists, all pages of each, with requests that somebody else carries."""

from collections.abc import Iterable, Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from app.core.inventory import LISTED, Inventory, Item, Shelf, is_page, items, kept
from app.protocol import methods
from app.protocol.jsonrpc import Reply, Request, RequestId, Result, payload

BYTES_MAX = 16 << 20
"""A list that is longer ends with the page on which that shows."""


class _List(Struct):
    shelf: Shelf
    found: list[Item] = field(default_factory=list)
    cursors: set[str] = field(default_factory=set)
    size: int = 0


class Reading:
    """`before` is what is known by now: a list that cannot be read stays as it is there."""

    def __init__(self, mint: Iterator[int], before: Inventory, shelves: Iterable[Shelf], pages_max: int = 100) -> None:
        self.inventory = before
        self.shelves = tuple(shelves)
        self.has_read = False
        """Whether at least one list is known by now."""
        self._mint = mint
        self._pages_max = pages_max
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
        if not isinstance(reply, Result) or not is_page(listed.shelf, reply.result):
            return []
        listed.found += items(listed.shelf, reply.result)
        listed.size += len(reply.result)
        cursor = methods.next_cursor(reply.result)
        if cursor and self._goes_on(listed, cursor):
            listed.cursors.add(cursor)
            return [self._ask(listed, cursor)]
        before = self.inventory.shelf(listed.shelf)
        self.inventory = replace(self.inventory, **{listed.shelf: kept(listed.found, before)})
        self.has_read = True
        return []

    def give_up(self) -> list[RequestId]:
        """What was not answered by now is not waited for."""
        asked, self._asked = list(self._asked), {}
        return asked

    def _goes_on(self, listed: _List, cursor: str) -> bool:
        is_short = len(listed.cursors) + 1 < self._pages_max and listed.size < BYTES_MAX
        return is_short and cursor not in listed.cursors

    def _ask(self, listed: _List, cursor: str | None) -> Request:
        ident = next(self._mint)
        self._asked[ident] = listed
        return Request(ident, LISTED[listed.shelf].method, payload({} if cursor is None else {"cursor": cursor}))
