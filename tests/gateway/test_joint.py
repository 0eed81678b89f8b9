"""Servers that are one while not all of them are known yet."""

from typing import Any, cast

import pytest
from msgspec import Raw

from app.core.inventory import Inventory, Item
from app.core.public_names import Naming
from app.gateway.cataloguer import Cataloguer
from app.gateway.common import CommonChild
from app.gateway.joint import Joint
from app.gateway.searching import Searching
from app.gateway.settings import CatalogSettings, JointSettings, Mode, UpstreamSettings
from app.protocol.jsonrpc import Request, payload
from app.upstreams.command import Command
from tests.support.http import on_loop


class Silent:
    """A child that never says anything."""

    is_ready = False

    def join(self, _member: object) -> int:
        return 1

    def leave(self, _party: int) -> None: ...

    def close(self) -> None: ...


def start(_upstream: UpstreamSettings) -> CommonChild:
    return cast(CommonChild, Silent())


def knowing(naming: Naming = "prefix", mode: Mode = "list", patience: float = 0.05) -> tuple[Joint, Cataloguer]:
    """What `a` offers, and not yet what `b` does."""
    servers = {name: UpstreamSettings(name, Command(("none",))) for name in ("a", "b")}
    cataloguer = Cataloguer(CatalogSettings(), servers.get, start)
    settings = JointSettings(("a", "b"), naming, mode=mode, patience_seconds=patience)
    joint = Joint(UpstreamSettings("/mcp", Command(()), joint=settings), cataloguer, Searching(), "1", servers)
    learn(cataloguer, "a", "find")
    return joint, cataloguer


def learn(cataloguer: Cataloguer, server: str, tool: str) -> None:
    items = (Item(tool, {"name": payload(tool)}),), (Item("x://1", {"uri": payload("x://1"), "name": payload("1")}),)
    capabilities = {"tools": Raw(b"{}"), "resources": Raw(b"{}")}
    cataloguer.inventories[server] = Inventory(capabilities, tools=items[0], resources=items[1])
    cataloguer.version += 1


def asking(method: str, **params: Any) -> Request:
    return Request(1, method, payload(params))


@on_loop
async def test_a_prefixed_name_that_is_known_stays_whose_it_is() -> None:
    joint, cataloguer = knowing()
    assert joint.knows(asking("tools/call", name="a__find"))
    assert not joint.knows(asking("tools/call", name="b__find"))
    learn(cataloguer, "b", "other")
    assert joint.knows(asking("tools/call", name="b__find")), "it is known that there is no such thing"


@pytest.mark.parametrize("naming", ["onConflict", "none"])
@on_loop
async def test_any_other_name_may_still_become_anothers(naming: Naming) -> None:
    joint, cataloguer = knowing(naming)
    assert not joint.knows(asking("tools/call", name="find"))
    learn(cataloguer, "b", "other")
    assert joint.knows(asking("tools/call", name="find"))


@on_loop
async def test_a_resource_may_still_become_anothers() -> None:
    """Two that list it make it another URI, and of one that is not listed nobody can say whose it is."""
    joint, _ = knowing()
    for method in ("resources/read", "resources/subscribe"):
        assert not joint.knows(asking(method, uri="x://1"))


@on_loop
async def test_what_is_for_no_one_thing_waits_for_nothing_here() -> None:
    joint, _ = knowing()
    for request in (asking("tools/list"), asking("ping"), asking("anything/else"), asking("tools/call", name=7)):
        assert joint.knows(request)


@on_loop
async def test_a_search_waits_and_so_does_a_call_by_it() -> None:
    joint, _ = knowing(mode="search")
    assert not joint.knows(asking("tools/call", name="find_tools", arguments={"query": "x"}))
    assert not joint.knows(asking("tools/call", name="call_tool", arguments={"name": "b__find"}))
    assert joint.knows(asking("tools/call", name="call_tool", arguments={"name": "a__find"}))


@on_loop
async def test_nobody_waits_longer_than_that_in_all() -> None:
    joint, _ = knowing(patience=0.05)
    for _ in range(1000):
        await joint.learn([asking("tools/call", name="b__find")])
