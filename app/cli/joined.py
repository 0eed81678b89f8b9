"""What servers are together, where they are one, by what they offer now: for who runs them to read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from msgspec import Raw

from app.cli.permitting import Offered
from app.core.catalog import composed
from app.core.inventory import LISTED, Inventory, Item, Shelf, items
from app.core.public_names import Naming
from app.gateway.settings import WHOLE_NAME, JointSettings, Mode, UpstreamSettings
from app.protocol.jsonrpc import payload
from app.telemetry.logs import printable

_RENAMED: tuple[Shelf, ...] = ("tools", "prompts")


@dataclass(frozen=True, slots=True)
class Clash:
    """Two things that would have one name."""

    list: Shelf
    name: str
    servers: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Joined:
    """`offers` are public names, by list; of two that clash the second is left out."""

    path: str
    servers: tuple[str, ...]
    naming: Naming
    mode: Mode
    offers: Mapping[Shelf, list[str]]
    conflicts: list[Clash]


def joined(joints: Iterable[UpstreamSettings], offered: Mapping[str, Offered]) -> list[Joined]:
    inventories = {server: _inventory(lists) for server, lists in offered.items()}
    return [_joined(upstream.name, upstream.joint, inventories) for upstream in joints if upstream.joint is not None]


def lines(found: Iterable[Joined]) -> Iterable[str]:
    """The same in words."""
    for each in found:
        counts = ", ".join(f"{len(names)} {shelf}" for shelf, names in each.offers.items() if names) or "nothing"
        searched = ", to be found and not listed" if each.mode == "search" else ""
        yield f"as one  {each.path}  {', '.join(each.servers)}: {counts}{searched}"
        for shelf in _RENAMED:
            if each.offers[shelf]:
                yield f"      {shelf}: {', '.join(map(printable, each.offers[shelf]))}"
        for clash in each.conflicts:
            yield f"      CONFLICT  {clash.list}: {_sentence(clash)}; rename or deny one"


def _sentence(clash: Clash) -> str:
    first, second = clash.servers
    name = repr(printable(clash.name))
    return f"{first} and {second} both have {name}" if first != second else f"{first} has {name} twice"


def _joined(name: str, joint: JointSettings, inventories: Mapping[str, Inventory]) -> Joined:
    known = {server: inventories[server] for server in joint.servers if server in inventories}
    catalog = composed(known, joint.naming, joint.shaping)
    return Joined(
        WHOLE_NAME if name == WHOLE_NAME else f"{name}/mcp",
        joint.servers,
        joint.naming,
        joint.mode,
        {shelf: [entry.public for entry in catalog.entries[shelf]] for shelf in LISTED},
        [Clash(conflict.shelf, conflict.public, conflict.servers) for conflict in catalog.conflicts],
    )


def _inventory(lists: Offered) -> Inventory:
    found: dict[Shelf, tuple[Item, ...]] = {
        shelf: tuple(items(shelf, payload({listed.key: lists.get(shelf, ())}))) for shelf, listed in LISTED.items()
    }
    capabilities = {listed.capability: Raw(b"{}") for shelf, listed in LISTED.items() if shelf in lists}
    return Inventory(capabilities, "", found["tools"], found["prompts"], found["resources"], found["templates"])
