"""What one session sees of many servers, of which some offer it something else than others."""

from app.core.joint_rules import Rules
from app.core.offers import Offers
from app.protocol import methods
from tests.core.inventories import publics
from tests.core.joints import compose, known, offered

RULES = Rules("/mcp", "1", compose)


def test_what_is_the_same_for_all_is_kept_once_for_all() -> None:
    """A thousand sessions at a server of ten thousand tools have one list of them."""
    shared = known({"a": offered("a")})
    offers = Offers(RULES, shared)
    assert offers.read("a", offered("a")) == set()
    assert offers.of("a") is shared.inventories["a"]
    assert offers.catalog is shared.catalog


def test_what_is_only_this_sessions_counts_for_it() -> None:
    offers = Offers(RULES, known({"a": offered("a"), "b": offered("b")}))
    assert offers.read("a", offered("a", 1)) == {methods.TOOLS_CHANGED}
    assert publics(offers.catalog) == ["a__find", "a__more0", "b__find"]
    assert offers.learn(known({"a": offered("a"), "b": offered("b", 1)}), RULES, {"a"}) == {methods.TOOLS_CHANGED}
    assert publics(offers.catalog) == ["a__find", "a__more0", "b__find", "b__more0"]


def test_what_all_know_by_now_is_no_news() -> None:
    offers = Offers(RULES, known({"a": offered("a")}))
    offers.read("a", offered("a", 1))
    later = known({"a": offered("a", 1)})
    assert offers.learn(later, RULES, {"a"}) == set()
    assert offers.of("a") is later.inventories["a"]
    assert offers.catalog is later.catalog


def test_what_a_server_that_is_left_offered_counts_no_more_when_all_know_better() -> None:
    offers = Offers(RULES, known({"a": offered("a")}))
    offers.read("a", offered("a", 1))
    assert offers.learn(known({"a": offered("a", 2)}), RULES, set()) == {methods.TOOLS_CHANGED}
    assert publics(offers.catalog) == ["a__find", "a__more0", "a__more1"]


def test_what_nobody_else_can_know_is_remembered_for_as_long_as_it_is_configured() -> None:
    rules = Rules("/mcp", "1", compose, eager=frozenset({"a"}))
    offers = Offers(rules, known({}))
    assert offers.of("a") == type(offered("a"))()
    offers.read("a", offered("a"))
    assert offers.learn(known({"b": offered("b")}), rules, set()) == {methods.TOOLS_CHANGED, methods.RESOURCES_CHANGED}
    assert publics(offers.catalog) == ["a__find", "b__find"]
    offers.learn(known({"b": offered("b")}), RULES, set())
    assert publics(offers.catalog) == ["b__find"]
