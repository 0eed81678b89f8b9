"""How several servers are one, and what is known of them."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from app.core.bounds import BOUNDS, Bounds
from app.core.catalog import Catalog, Entry
from app.core.inventory import Inventory, Shelf


def everything(_shelf: Shelf, _entry: Entry) -> bool:
    """A sight of all there is."""
    return True


class Known(Struct, frozen=True):
    """What is known of the servers from elsewhere, and whether that is all there will be for now."""

    inventories: Mapping[str, Inventory]
    catalog: Catalog
    is_whole: bool


class Rules(Struct, frozen=True):
    """How the servers are one, and whether a client finds their tools instead of seeing them all."""

    name: str
    """What they are called together."""
    version: str
    compose: Callable[[Mapping[str, Inventory]], Catalog]
    finds: bool = False
    found: int = 5
    page: int = 500
    pages: int = 100
    """So many pages are read of one list."""
    patience: float = 2.0
    bounds: Bounds = BOUNDS
    eager: frozenset[str] = frozenset()
    """Servers of which nothing is known before the client is there."""
    reading: float = 30.0
    """So long a server's lists are waited for."""
