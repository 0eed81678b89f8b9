"""One client's talk with many servers, of which not all are known at once."""

from collections.abc import Mapping
from itertools import count

from msgspec import Raw

from app.core.catalog import Catalog, composed
from app.core.inventory import Inventory, Item
from app.core.joining import Joining, Known, Open, Outcome, Rules, ToServer
from app.core.revival import Told
from app.core.shaping import WHOLE
from app.protocol import methods
from app.protocol.jsonrpc import Request, payload


def resource(uri: str) -> Item:
    return Item(uri, {"uri": payload(uri), "name": payload(uri)})


def offering(*uris: str) -> Inventory:
    return Inventory({"resources": Raw(b"{}")}, resources=tuple(map(resource, uris)))


def compose(inventories: Mapping[str, Inventory]) -> Catalog:
    return composed(inventories, "prefix", WHOLE)


def known(inventories: Mapping[str, Inventory], *, is_whole: bool) -> Known:
    return Known(inventories, compose(inventories), is_whole)


def opened(outcomes: list[Outcome]) -> list[str]:
    return [outcome.server for outcome in outcomes if isinstance(outcome, Open)]


def taken_up(*uris: str, at: Known) -> Joining:
    """As a session of before, which had subscribed to these."""
    told = Told(initialize=Raw(b"{}"), subscribed={uri: payload({"uri": uri}) for uri in uris})
    return Joining(RULES, count(1), at, told)


RULES = Rules("/mcp", "1", compose)
BOOKS = {"books": offering("book://one")}
BOTH = {**BOOKS, "films": offering("film://one")}


def test_a_subscription_waits_until_it_is_known_whose_it_is() -> None:
    """While one server alone is known to have resources, any might be that one's."""
    joining = taken_up("film://one", "book://one", at=known(BOOKS, is_whole=False))
    assert opened(joining.wake()) == ["books"]
    assert opened(joining.learn(known(BOTH, is_whole=True), RULES)) == ["films"]
    assert joining.wake() == []


def test_what_nobody_lists_is_subscribed_to_when_all_are_known() -> None:
    joining = taken_up("book://two", at=known(BOOKS, is_whole=False))
    assert joining.wake() == []
    outcomes = joining.learn(known(BOOKS, is_whole=True), RULES)
    assert opened(outcomes) == ["books"]
    [greeting] = [outcome.message for outcome in outcomes if isinstance(outcome, ToServer)]
    assert isinstance(greeting, Request)
    assert greeting.method == methods.INITIALIZE
