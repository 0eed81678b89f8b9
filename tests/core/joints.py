"""Three servers that are one, each with a tool and a resource, and what is known of them."""

from collections.abc import Mapping

from msgspec import Raw

from app.core.catalog import Catalog, composed
from app.core.inventory import Inventory
from app.core.joint_rules import Known
from app.core.shaping import WHOLE
from app.protocol.jsonrpc import Request, payload
from tests.core.inventories import offers, raw

NAMES = ("a", "b", "c")
CAPABILITIES = {"tools": {"listChanged": True}, "resources": {"subscribe": True}, "logging": {}}
LISTS = frozenset({"tools/list", "resources/list", "resources/templates/list"})
GREETING = raw({"capabilities": CAPABILITIES})


def offered(server: str, more: int = 0) -> Inventory:
    """A tool, and so many more, and a resource."""
    tools = ["find", *(f"more{number}" for number in range(more))]
    has = offers(tools=tools, resources=[f"{server}://one"])
    return Inventory({name: raw(value) for name, value in CAPABILITIES.items()}, "", has.tools, (), has.resources)


def compose(inventories: Mapping[str, Inventory]) -> Catalog:
    return composed({name: inventories[name] for name in NAMES if name in inventories}, "prefix", WHOLE)


def known(inventories: Mapping[str, Inventory]) -> Known:
    return Known(inventories, compose(inventories), len(inventories) == len(NAMES))


def page(server: str, request: Request, more: int = 0) -> Raw:
    """What a server with so many more tools says to what it is asked for the session."""
    inventory = offered(server, more)
    match request.method:
        case "tools/list":
            return payload({"tools": [item.said for item in inventory.tools]})
        case "resources/list":
            return payload({"resources": [item.said for item in inventory.resources]})
        case "resources/templates/list":
            return payload({"resourceTemplates": []})
        case _:
            return payload({})
