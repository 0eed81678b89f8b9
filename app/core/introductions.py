"""How many servers introduce themselves as one: what they can do together, and what they say should be known."""

from collections.abc import Mapping

from msgspec import UNSET, DecodeError, Raw
from msgspec.json import Decoder

from app.core.inventory import Inventory
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


def instructions(inventories: Mapping[str, Inventory]) -> str:
    """Each server's under its name."""
    said = [(server, inventory.instructions.strip()) for server, inventory in inventories.items()]
    return "\n\n".join(f"# {server}\n\n{text}" for server, text in said if text)


def greeted(initialize: Request, inventories: Mapping[str, Inventory], version: str, *, is_whole: bool) -> Raw:
    """The answer to `initialize`, in the revision that is wanted where there is such a one."""
    return introduced(inventories, version, methods.greeting(initialize).version, is_whole=is_whole)


def introduced(inventories: Mapping[str, Inventory], version: str, wanted: str = "", *, is_whole: bool) -> Raw:
    """What they say of themselves, in that revision of the handshake or in the newest."""
    row = REVISIONS.get(wanted)
    fields: dict[str, object] = {
        "protocolVersion": NEWEST_HANDSHAKE.date if row is None or row.modern else row.date,
        "capabilities": capabilities(inventories, is_whole=is_whole),
        "serverInfo": server_info(version),
    }
    text = instructions(inventories)
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
