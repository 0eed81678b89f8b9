"""What servers offer, made up: in words, and by chance."""

import json
from collections.abc import Sequence

from hypothesis import strategies as st
from msgspec import Raw

from app.core.catalog import Catalog
from app.core.inventory import LISTED, SHELF_OF, Inventory, Item, Shelf

SHELVES: tuple[Shelf, ...] = tuple(SHELF_OF.values())


def raw(value: object) -> Raw:
    return Raw(json.dumps(value, ensure_ascii=False).encode())


def item(shelf: Shelf, name: str, /, **said: object) -> Item:
    fields = {LISTED[shelf].name: name, **said}
    return Item(name, {key: raw(value) for key, value in fields.items()})


def offers(
    *,
    tools: Sequence[str] = (),
    prompts: Sequence[str] = (),
    resources: Sequence[str] | None = None,
    templates: Sequence[str] = (),
) -> Inventory:
    """A server with these, and with the capabilities that go with them; there may be resources that are not listed."""
    has_resources = resources is not None or bool(templates)
    has = {"tools": bool(tools), "prompts": bool(prompts), "resources": has_resources}
    return Inventory(
        {name: raw({}) for name in has if has[name]},
        "",
        tuple(item("tools", name) for name in tools),
        tuple(item("prompts", name) for name in prompts),
        tuple(item("resources", name) for name in resources or ()),
        tuple(item("templates", name) for name in templates),
    )


def shown(catalog: Catalog, shelf: Shelf) -> list[dict[str, object]]:
    return [json.loads(bytes(entry.shown)) for entry in catalog.entries[shelf]]


def publics(catalog: Catalog, shelf: Shelf = "tools") -> list[str]:
    return [entry.public for entry in catalog.entries[shelf]]


server_names = st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True)
alike_servers = st.text("ab_.-", min_size=1, max_size=4)
alike_names = st.text("ab_-/. 中", max_size=5)
shortened_names = st.from_regex(r"[ab_]{0,3}_[0-9][a-z2-7]{9}", fullmatch=True)
own_names = st.text(st.characters(exclude_categories=["Cs"]), max_size=80) | alike_names | shortened_names
names = st.tuples(server_names | alike_servers, own_names)
