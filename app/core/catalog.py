"""Many servers' lists as one: what each thing is called in public, whose it is, and what it is called there."""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TypeAlias

from msgspec import Raw, Struct

from app.core import joined_uris, pages
from app.core.inventory import LISTED, Inventory, Item, Shelf, rendered
from app.core.public_names import Naming, is_public, prefixed
from app.core.shaping import WHOLE, Change, Shaping
from app.core.targets import Glob, Kind, Target
from app.protocol import aims, methods
from app.protocol.jsonrpc import payload

Sight: TypeAlias = Callable[[Shelf, "Entry"], bool]
"""Whether a client may see something of a list."""
KIND: Mapping[Shelf, Kind] = {shelf: aims.LISTS[listed.method].kind for shelf, listed in LISTED.items()}
_NAMED: tuple[Shelf, ...] = ("tools", "prompts")
_ADDRESSED: tuple[Shelf, ...] = ("resources", "templates")


class Entry(Struct, frozen=True):
    """Something that is in the catalog, as it is shown."""

    server: str
    own: str
    public: str
    shown: Raw


class Conflict(Struct, frozen=True):
    """Two servers' things that would have one public name; the later one is left out."""

    shelf: Shelf
    public: str
    servers: tuple[str, str]


class Catalog:
    """In the order of the servers, and of each server's own lists. `sources` are the servers that have resources."""

    def __init__(
        self,
        entries: Mapping[Shelf, tuple[Entry, ...]],
        conflicts: Sequence[Conflict] = (),
        sources: Sequence[str] = (),
        shaping: Shaping = WHOLE,
    ) -> None:
        self.entries = entries
        self.conflicts = tuple(conflicts)
        self._sources = tuple(sources)
        self._shaping = shaping
        self._known = {
            shelf: {entry.public: entry for entry in reversed(entries[shelf])} for shelf in (*_NAMED, *_ADDRESSED)
        }
        self._uris = {
            (entry.server, entry.own): entry.public for shelf in reversed(_ADDRESSED) for entry in entries[shelf]
        }

    def find(self, shelf: Shelf, public: str) -> Entry | None:
        return self._known[shelf].get(public)

    def owner_of(self, uri: str) -> tuple[str, str] | None:
        """Whose a public URI is, and what its server calls it: one that is listed, that names its server, or that was
        made of a template; any, where one server alone has resources. Nobody's, where it may not be seen."""
        entry = self.find("resources", uri) or self.find("templates", uri)
        if entry is not None:
            return entry.server, entry.own
        server, own = joined_uris.unmarked(uri) or (self._maker_of(uri), uri)
        if server not in self._sources or not self._shaping.keeps(Target(server, "resources", own)):
            return None
        return server, own

    def _maker_of(self, uri: str) -> str:
        made = next((server for glob, server in self._templates if glob.matches(uri)), "")
        return made or (self._sources[0] if len(self._sources) == 1 else "")

    def public_uri(self, server: str, uri: str) -> str:
        """By what a client finds again what a server calls so; what can be found nowhere is called as it is."""
        known = self._uris.get((server, uri))
        if known is not None:
            return known
        owner = self.owner_of(uri)
        is_clear = owner == (server, uri) or (owner is None and server not in self._sources)
        return uri if is_clear else joined_uris.marked(server, uri)

    def target(self, kind: Kind, public: str) -> Target | None:
        """What a policy knows it by."""
        if kind == "resources":
            owner = self.owner_of(public)
            return None if owner is None else Target(owner[0], kind, owner[1])
        entry = self.find(kind, public)
        return None if entry is None else Target(entry.server, kind, entry.own)

    def page(self, shelf: Shelf, cursor: str | None, size: int, may_see: Callable[[Entry], bool]) -> Raw:
        """So many that may be seen, from where the cursor says.

        Raises:
            BadParams: no cursor of ours.
        """
        entries = [entry for entry in self.entries[shelf] if may_see(entry)]
        names = [(entry.server, entry.own) for entry in entries]
        begin = pages.begin(cursor, names)
        end = begin + size
        fields: dict[str, object] = {LISTED[shelf].key: [entry.shown for entry in entries[begin:end]]}
        if end < len(entries):
            fields["nextCursor"] = pages.cursor(names, end)
        return payload(fields)

    def kept(self, shelf: Shelf, entry: Entry) -> Entry:
        """The one in here, where that is the same."""
        known = self.find(shelf, entry.public)
        return known if known is not None and known == entry else entry

    def is_like(self, other: "Catalog", shelf: Shelf) -> bool:
        return self.entries[shelf] == other.entries[shelf]

    @cached_property
    def _templates(self) -> list[tuple[Glob, str]]:
        """No two servers' make the same."""
        return [
            (joined_uris.glob(entry.own), entry.server)
            for entry in self.entries["templates"]
            if entry.own == entry.public
        ]


def composed(
    inventories: Mapping[str, Inventory], naming: Naming, shaping: Shaping, before: Catalog | None = None
) -> Catalog:
    """Of these servers, in this order. What is as it was `before` is that itself, so that many have it but once."""
    conflicts: list[Conflict] = []
    entries: dict[Shelf, tuple[Entry, ...]] = {}
    for shelf in _NAMED:
        chosen = _chosen(inventories, shelf, shaping)
        entries[shelf] = _without_conflicts(shelf, _named(chosen, shelf, naming, shaping), conflicts)
    entries.update(_addressed(inventories, shaping))
    if before is not None:
        entries = {shelf: tuple(map(partial(before.kept, shelf), each)) for shelf, each in entries.items()}
    sources = [server for server, inventory in inventories.items() if "resources" in inventory.capabilities]
    return Catalog(entries, conflicts, sources, shaping)


def _chosen(inventories: Mapping[str, Inventory], shelf: Shelf, shaping: Shaping) -> list[tuple[str, Item]]:
    """Of several with one name at one server, the first."""
    chosen: dict[tuple[str, str], Item] = {}
    for server, inventory in inventories.items():
        for item in inventory.shelf(shelf):
            if shaping.keeps(Target(server, KIND[shelf], item.name)):
                chosen.setdefault((server, item.name), item)
    return [(server, item) for (server, _), item in chosen.items()]


def _named(chosen: list[tuple[str, Item]], shelf: Shelf, naming: Naming, shaping: Shaping) -> Iterable[Entry]:
    changes = [shaping.change(Target(server, KIND[shelf], item.name)) for server, item in chosen]
    offered = Counter(change.name or item.name for change, (_, item) in zip(changes, chosen, strict=True))
    for change, (server, item) in zip(changes, chosen, strict=True):
        public = change.name or item.name
        if not change.name and (naming == "prefix" or (naming == "onConflict" and not _is_sole(item.name, offered))):
            public = prefixed(server, item.name)
        yield Entry(server, item.name, public, rendered(_said(item, public, change)))


def _said(item: Item, public: str, change: Change) -> dict[str, Raw]:
    """Under its public name; what it was called before is its title, where it has no other."""
    said = dict(item.said)
    said["name"] = payload(public)
    title = change.title or ("" if public == item.name or _is_titled(said) else item.name)
    if title:
        said["title"] = payload(title)
    if change.description:
        said["description"] = payload(change.description)
    return said


def _is_titled(said: Mapping[str, Raw]) -> bool:
    """A tool may say it in its annotations, too (2025-11-25, schema: "ToolAnnotations")."""
    return "title" in said or "title" in methods.members(said.get("annotations"))


def _is_sole(own: str, offered: Mapping[str, int]) -> bool:
    return is_public(own) and offered[own] == 1


def _without_conflicts(shelf: Shelf, entries: Iterable[Entry], conflicts: list[Conflict]) -> tuple[Entry, ...]:
    kept: dict[str, Entry] = {}
    for entry in entries:
        first = kept.setdefault(entry.public, entry)
        if first is not entry:
            conflicts.append(Conflict(shelf, entry.public, (first.server, entry.server)))
    return tuple(kept.values())


def _addressed(inventories: Mapping[str, Inventory], shaping: Shaping) -> dict[Shelf, tuple[Entry, ...]]:
    resources, templates = (_chosen(inventories, shelf, shaping) for shelf in _ADDRESSED)
    uris = [(server, item.name) for server, item in resources]
    offered = Counter(uri for _, uri in uris)
    marked = {"resources": {one for one in uris if offered[one[1]] > 1 or one[1].startswith(joined_uris.SCHEME)}}
    marked["templates"] = joined_uris.disputed([(server, item.name) for server, item in templates], uris)
    return {
        shelf: tuple(_addressed_one(server, item, shelf, marked[shelf]) for server, item in chosen)
        for shelf, chosen in zip(_ADDRESSED, (resources, templates), strict=True)
    }


def _addressed_one(server: str, item: Item, shelf: Shelf, marked: Container[tuple[str, str]]) -> Entry:
    if (server, item.name) not in marked:
        return Entry(server, item.name, item.name, rendered(item.said))
    public = joined_uris.marked(server, item.name)
    return Entry(server, item.name, public, rendered({**item.said, LISTED[shelf].name: payload(public)}))
