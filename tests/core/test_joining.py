"""One client's talk with many servers, of which not all are known at once."""

from collections.abc import Mapping
from itertools import count

import pytest
from msgspec import Raw

from app.core.catalog import Catalog, composed
from app.core.deadlines import FOREVER
from app.core.inventory import Inventory, Item
from app.core.joining import Joining
from app.core.joint_rules import Known, Rules, everything
from app.core.partner import Open, Outcome, ToServer
from app.core.probing import ToSession
from app.core.revival import Told
from app.core.shaping import WHOLE
from app.protocol import methods
from app.protocol.faults import Unavailable
from app.protocol.jsonrpc import Failure, Notification, Request, Result, payload


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


def tool(name: str) -> Item:
    return Item(name, {"name": payload(name)})


def with_tools(*names: str) -> Inventory:
    return Inventory({"tools": Raw(b"{}")}, tools=tuple(map(tool, names)))


def page(*names: str) -> Raw:
    return payload({"tools": [{"name": name} for name in names]})


def asked(outcomes: list[Outcome], method: str) -> Request:
    """What a server is asked with that method, first of all."""
    messages = (outcome.message for outcome in outcomes if isinstance(outcome, ToServer))
    return next(each for each in messages if isinstance(each, Request) and each.method == method)


def told_of_tools(outcomes: list[Outcome]) -> int:
    return outcomes.count(ToSession(Notification(methods.TOOLS_CHANGED)))


def with_a_ready_server(rules: Rules = RULES) -> Joining:
    """That of the two has the tool `old`, to everybody."""
    at = known({"a": with_tools("old"), "b": with_tools("other")}, is_whole=True)
    joining = Joining(rules, count(1), at)
    joining.submit(Request(900, methods.INITIALIZE, payload({"protocolVersion": "2025-11-25"})), 0, everything)
    greeting = asked(joining.submit(call("a__old"), 0, everything), methods.INITIALIZE)
    said = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "a", "version": "1"}}
    listing = asked(joining.receive("a", Result(greeting.id, payload(said)), 0), methods.LIST_TOOLS)
    assert told_of_tools(joining.receive("a", Result(listing.id, page("old")), 0)) == 0
    return joining


def call(name: str) -> Request:
    return Request(901, methods.CALL_TOOL, payload({"name": name, "arguments": {}}))


NEW = {"a": with_tools("old", "new"), "b": with_tools("other")}


def test_a_change_is_told_of_once_whoever_reads_the_new_list_first() -> None:
    for is_own_first in (True, False):
        joining = with_a_ready_server()
        listing = asked(joining.receive("a", Notification(methods.TOOLS_CHANGED), 0), methods.LIST_TOOLS)
        told = [] if is_own_first else joining.learn(known(NEW, is_whole=True), RULES)
        told += joining.receive("a", Result(listing.id, page("old", "new")), 0)
        told += joining.learn(known(NEW, is_whole=True), RULES)
        assert told_of_tools(told) == 1
        assert joining.catalog.find("tools", "a__new") is not None


def test_what_is_announced_is_told_of_though_another_servers_list_changed_meanwhile() -> None:
    joining = with_a_ready_server()
    listing = asked(joining.receive("a", Notification(methods.TOOLS_CHANGED), 0), methods.LIST_TOOLS)
    elsewhere = known({"a": with_tools("old"), "b": with_tools("other", "more")}, is_whole=True)
    assert told_of_tools(joining.learn(elsewhere, RULES)) == 1
    assert told_of_tools(joining.receive("a", Result(listing.id, page("old", "new")), 0)) == 1


@pytest.mark.parametrize("is_announced", [True, False])
def test_lists_are_read_again_after_a_child_that_died_while_it_was_asked(*, is_announced: bool) -> None:
    joining, changed = with_a_ready_server(), Notification(methods.TOOLS_CHANGED)
    asked(joining.receive("a", changed, 0), methods.LIST_TOOLS)
    joining.bereft("a", GONE, lambda _ident: False)
    outcomes = joining.receive("a", changed, 0) if is_announced else joining.returned("a", 0)
    listing = asked(outcomes, methods.LIST_TOOLS)
    assert told_of_tools(joining.receive("a", Result(listing.id, page("old", "new")), 0)) == 1
    assert joining.catalog.find("tools", "a__new") is not None


def test_a_server_that_announces_a_change_with_each_answer_is_not_asked_all_the_time() -> None:
    joining, changed = with_a_ready_server(), Notification(methods.TOOLS_CHANGED)
    outcomes = joining.receive("a", changed, 0)
    for _ in range(100):
        listings = [outcome.message for outcome in outcomes if isinstance(outcome, ToServer)]
        if not listings:
            break
        assert isinstance(listings[0], Request)
        outcomes = [*joining.receive("a", changed, 0), *joining.receive("a", Result(listings[0].id, page("old")), 0)]
    assert listings == []
    assert 0 < joining.due < FOREVER
    listing = asked(joining.tick(joining.due), methods.LIST_TOOLS)
    assert told_of_tools(joining.receive("a", Result(listing.id, page("old", "new")), 1)) == 1


def test_as_many_pages_are_read_of_a_list_as_the_rules_say() -> None:
    joining = with_a_ready_server(Rules("/mcp", "1", compose, pages=102))
    outcomes = joining.receive("a", Notification(methods.TOOLS_CHANGED), 0)
    for number in range(102):
        said = {"tools": [{"name": f"t{number}"}], "nextCursor": str(number)}
        outcomes = joining.receive("a", Result(asked(outcomes, methods.LIST_TOOLS).id, payload(said)), 0)
    assert joining.catalog.find("tools", "a__t101") is not None


def test_what_a_server_offered_a_session_counts_no_more_when_it_is_configured_otherwise() -> None:
    joining = with_a_ready_server()
    listing = asked(joining.receive("a", Notification(methods.TOOLS_CHANGED), 0), methods.LIST_TOOLS)
    joining.receive("a", Result(listing.id, page("mine")), 0)
    assert joining.catalog.find("tools", "a__mine") is not None
    assert told_of_tools(joining.renewed("a")) == 1
    joining.learn(known(NEW, is_whole=True), RULES)
    assert joining.catalog.find("tools", "a__mine") is None
    assert joining.catalog.find("tools", "a__new") is not None


GONE = Unavailable("gone", reason="exited")
WELCOME = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"resources": {}},
    "serverInfo": {"name": "a", "version": ""},
}


def subscriptions(outcomes: list[Outcome]) -> list[Request]:
    messages = (outcome.message for outcome in outcomes if isinstance(outcome, ToServer))
    return [each for each in messages if isinstance(each, Request) and each.method == methods.SUBSCRIBE]


def test_the_next_child_of_a_server_that_was_lost_is_told_of_subscriptions() -> None:
    joining = taken_up("book://one", at=known(BOOKS, is_whole=True))
    for needed in (joining.wake, lambda: joining.submit(READ, 0, everything)):
        greeting = asked(needed(), methods.INITIALIZE)
        [made] = subscriptions(joining.receive("books", Result(greeting.id, payload(WELCOME)), 0))
        assert methods.resource_uri(made.params) == "book://one"
        joining.receive("books", Result(made.id, Raw(b"{}")), 0)
        joining.lost("books", GONE, lambda _ident: False)


READ = Request(902, "resources/read", payload({"uri": "book://one"}))


def test_a_thousand_subscriptions_are_made_again_so_many_at_a_time() -> None:
    uris = [f"book://{number}" for number in range(1000)]
    joining = taken_up(*uris, at=known({"books": offering(*uris)}, is_whole=True))
    greeting = asked(joining.wake(), methods.INITIALIZE)
    waiting = subscriptions(joining.receive("books", Result(greeting.id, payload(WELCOME)), 0))
    made = list(waiting)
    while waiting:
        assert len(waiting) <= 32
        more = subscriptions(joining.receive("books", Result(waiting.pop(0).id, Raw(b"{}")), 0))
        waiting, made = [*waiting, *more], [*made, *more]
    assert [methods.resource_uri(each.params) for each in made] == uris


def test_what_came_to_be_anothers_after_it_was_judged_is_not_called() -> None:
    joining = Joining(RULES, count(1), known({"a": with_tools("old"), "b": with_tools("other")}, is_whole=True))
    [refused] = joining.submit(call("a__old"), 0, lambda _shelf, entry: entry.server == "b")
    assert isinstance(refused, ToSession)
    assert isinstance(refused.message, Failure)
    assert b"unknown tool" in bytes(refused.message.error)


def test_a_server_reports_no_progress_on_a_call_of_another() -> None:
    joining = with_a_ready_server()
    joining.submit(call("b__other"), 0, everything)
    told = Notification(methods.PROGRESS, payload({"progressToken": 901, "progress": 1}))
    assert joining.receive("b", told, 0) == [ToSession(told)]
    assert joining.receive("a", told, 0) == []
