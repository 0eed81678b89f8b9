"""How many servers introduce themselves as one: what they can do together, and what they say should be known."""

from collections.abc import Mapping

from msgspec import UNSET, DecodeError, Raw
from msgspec.json import Decoder

from app.core.catalog import Catalog, Sight
from app.core.inventory import LISTED, Inventory
from app.core.joint_rules import Known
from app.protocol import methods
from app.protocol.jsonrpc import Request, payload
from app.protocol.revisions import NEWEST_HANDSHAKE, REVISIONS

_LISTS = ("tools", "prompts", "resources")
_OTHERS = ("completions", "logging")
_fields: Decoder[dict[str, Raw]] = Decoder(dict[str, Raw])
_CHANGES: Mapping[str, object] = {"listChanged": True}


def capabilities(inventories: Mapping[str, Inventory], *, is_whole: bool) -> dict[str, object]:
    """What at least one of them can. Of those that are not known yet any may have any list, and then says so; tools
    may come in any case."""
    offered: dict[str, object] = {}
    for name in _LISTS:
        if any(name in inventory.capabilities for inventory in inventories.values()) or not is_whole or name == "tools":
            offered[name] = dict(_CHANGES)
    if any(_subscribes(inventory) for inventory in inventories.values()):
        offered["resources"] = {**_CHANGES, "subscribe": True}
    for name in _OTHERS:
        if any(name in inventory.capabilities for inventory in inventories.values()):
            offered[name] = {}
    return offered


def seen(inventories: Mapping[str, Inventory], catalog: Catalog, sees: Sight) -> dict[str, Inventory]:
    """Those servers of which a client sees anything, or that have nothing to be seen."""
    shown = set[str]()
    for shelf in LISTED:
        for entry in catalog.entries[shelf]:
            if entry.server not in shown and sees(shelf, entry):
                shown.add(entry.server)
    return {
        server: inventory
        for server, inventory in inventories.items()
        if server in shown or not any(map(inventory.shelf, LISTED))
    }


def instructions(inventories: Mapping[str, Inventory]) -> str:
    """Each server's under its name."""
    said = [(server, inventory.instructions.strip()) for server, inventory in inventories.items()]
    return "\n\n".join(f"# {server}\n\n{text}" for server, text in said if text)


def greeted(initialize: Request, known: Known, sees: Sight, version: str) -> Raw:
    """The answer to `initialize`, in the revision that is wanted where there is such a one."""
    return introduced(known, sees, version, methods.greeting(initialize).version)


def introduced(known: Known, sees: Sight, version: str, wanted: str = "") -> Raw:
    """What they say of themselves, in that revision of the handshake or in the newest. What they can is what all can:
    what a client may use of that may be more tomorrow."""
    row = REVISIONS.get(wanted)
    fields: dict[str, object] = {
        "protocolVersion": NEWEST_HANDSHAKE.date if row is None or row.modern else row.date,
        "capabilities": capabilities(known.inventories, is_whole=known.is_whole),
        "serverInfo": server_info(version),
    }
    text = instructions(seen(known.inventories, known.catalog, sees))
    return payload({**fields, "instructions": text} if text else fields)


def server_info(version: str) -> dict[str, str]:
    return {"name": "viaduct", "version": version}


def _subscribes(inventory: Inventory) -> bool:
    said = inventory.capabilities.get("resources", UNSET)
    if said is UNSET:
        return False
    try:
        return bytes(_fields.decode(said).get("subscribe", b"false")) == b"true"
    except DecodeError:
        return False
