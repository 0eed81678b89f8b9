"""What one server offers: its capabilities, its instructions, and its lists as it gave them."""

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias, TypeVar

from msgspec import DecodeError, Raw, Struct
from msgspec.json import Decoder

from app.protocol import methods
from app.protocol.jsonrpc import payload

Shelf: TypeAlias = Literal["tools", "prompts", "resources", "templates"]
"""One of a server's lists."""


class Listed(Struct, frozen=True):
    """How a list is asked for and read: by which capability, under which member of the result, known by which name."""

    method: str
    capability: str
    key: str
    name: str
    changed: str


LISTED: Mapping[Shelf, Listed] = {
    "tools": Listed(methods.LIST_TOOLS, "tools", "tools", "name", methods.TOOLS_CHANGED),
    "prompts": Listed("prompts/list", "prompts", "prompts", "name", methods.PROMPTS_CHANGED),
    "resources": Listed("resources/list", "resources", "resources", "uri", methods.RESOURCES_CHANGED),
    "templates": Listed(
        "resources/templates/list", "resources", "resourceTemplates", "uriTemplate", methods.RESOURCES_CHANGED
    ),
}
SHELF_OF: Mapping[str, Shelf] = {listed.method: shelf for shelf, listed in LISTED.items()}


class Item(Struct, frozen=True):
    """Something of a list, under its own name, with all that its server says of it."""

    name: str
    said: dict[str, Raw]


class Inventory(Struct, frozen=True):
    capabilities: dict[str, Raw] = {}
    instructions: str = ""
    tools: tuple[Item, ...] = ()
    prompts: tuple[Item, ...] = ()
    resources: tuple[Item, ...] = ()
    templates: tuple[Item, ...] = ()

    def shelf(self, shelf: Shelf) -> tuple[Item, ...]:
        items: tuple[Item, ...] = getattr(self, shelf)
        return items


_fields: Decoder[dict[str, Raw]] = Decoder(dict[str, Raw])
_entries: Decoder[list[Raw]] = Decoder(list[Raw])
_strings: Decoder[str] = Decoder(str)
_NOTHING = Raw(b"null")
_Said = TypeVar("_Said")
_Otherwise = TypeVar("_Otherwise")


def introduced(greeted: Raw) -> Inventory:
    """What a server said of itself, before any list was read: in an `InitializeResult` or a `DiscoverResult`."""
    said = _read(_fields, greeted, {})
    declared = _read(_fields, said.get("capabilities", _NOTHING), {})
    capabilities = {name: value for name, value in declared.items() if value != _NOTHING}
    return Inventory(capabilities, _read(_strings, said.get("instructions", _NOTHING), ""))


def wanted(inventory: Inventory) -> list[Shelf]:
    """The lists that such a server has."""
    return [shelf for shelf, listed in LISTED.items() if listed.capability in inventory.capabilities]


def is_page(shelf: Shelf, page: Raw) -> bool:
    """Whether it is one of that list at all."""
    return _read(_entries, _read(_fields, page, {}).get(LISTED[shelf].key, _NOTHING), None) is not None


def items(shelf: Shelf, page: Raw) -> list[Item]:
    """What is on a page of a list; what has no name there is nothing."""
    listed, found = LISTED[shelf], list[Item]()
    for entry in _read(_entries, _read(_fields, page, {}).get(listed.key, _NOTHING), []):
        said = _read(_fields, entry, {})
        name = _read(_strings, said.get(listed.name, _NOTHING), None)
        if name is not None:
            found.append(Item(name, said))
    return found


def kept(found: Iterable[Item], before: Iterable[Item]) -> tuple[Item, ...]:
    """What was found; what of it is as it was before is that itself, so that many sessions have it but once."""
    known = {item.name: item for item in before}
    return tuple(known[item.name] if known.get(item.name) == item else item for item in found)


def rendered(said: Mapping[str, Raw]) -> Raw:
    return payload(dict(said))


def _read(decoder: Decoder[_Said], said: Raw, otherwise: _Otherwise) -> _Said | _Otherwise:
    """Servers are strangers: what is no such thing counts as not said."""
    try:
        return decoder.decode(said)
    except DecodeError:
        return otherwise
