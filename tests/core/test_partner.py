"""One server of many, as a session knows it: what goes there when, and how its lists are read."""

from itertools import count

import pytest
from msgspec import Raw
from msgspec.structs import replace

from app.core.bounds import Bounds
from app.core.deadlines import FOREVER
from app.core.inventory import Inventory
from app.core.joint_rules import Rules
from app.core.partner import Open, Outcome, Partner, ToServer, leveled
from app.protocol import methods
from app.protocol.faults import BadParams, Overloaded
from app.protocol.jsonrpc import Failure, Notification, Request, Result, payload
from tests.core.inventories import raw
from tests.core.joints import GREETING, compose, offered, page

RULES = Rules("/mcp", "1", compose)
TOOLS_ONLY = raw({"capabilities": {"tools": {}}})
CALL = Request(90, "tools/call", payload({"name": "find"}))
ERROR = payload({"code": 1, "message": "no"})


def sent(outcomes: list[Outcome]) -> list[Request]:
    """The requests among what goes to the server."""
    to_server = [outcome for outcome in outcomes if isinstance(outcome, ToServer)]
    assert {outcome.server for outcome in to_server} <= {"a"}
    return [outcome.message for outcome in to_server if isinstance(outcome.message, Request)]


def partner(rules: Rules = RULES, known: Inventory | None = None) -> Partner:
    return Partner("a", count(1), rules, offered("a") if known is None else known)


def ready(greeting: Raw = TOOLS_ONLY) -> tuple[Partner, Request]:
    """With the only list that it has being read."""
    greeted = partner()
    greeted.greet(None)
    greeted.greeted(greeting, None)
    [listing] = sent(greeted.go_on(0))
    return greeted, listing


def test_a_server_is_opened_and_greeted_as_the_client_has_greeted_us() -> None:
    params = payload({"x": 1})
    assert partner().greet(params) == [Open("a"), ToServer("a", Request(1, methods.INITIALIZE, params))]


def test_what_comes_early_goes_out_in_its_order_when_the_server_is_ready() -> None:
    early = partner()
    early.greet(None)
    other = Request(91, "tools/call")
    assert (early.submit(CALL), early.submit(other), early.level(payload({}))) == ([], [], [])
    assert early.withdraw(91)
    assert early.waiting_bytes > 0
    level = payload({"level": "error"})
    outcomes = [*early.greeted(GREETING, level), *early.go_on(0)]
    assert outcomes[:3] == [
        ToServer("a", Notification(methods.INITIALIZED)),
        ToServer("a", Request(2, methods.SET_LEVEL, level)),
        ToServer("a", CALL),
    ]
    assert [request.method for request in sent(outcomes[3:])] == [
        "tools/list",
        "resources/list",
        "resources/templates/list",
    ]
    assert early.waiting_bytes == 0
    assert early.submit(other) == [ToServer("a", other)]


def test_too_much_that_comes_early_is_refused() -> None:
    early = partner(replace(RULES, bounds=Bounds(early_count=1)))
    early.greet(None)
    assert early.submit(CALL) == []
    with pytest.raises(Overloaded):
        early.submit(CALL)


@pytest.mark.parametrize("reply", [Failure(None, ERROR), Failure("1", ERROR), Result(2, payload({}))])
def test_nothing_but_its_answer_answers_the_greeting(reply: Failure | Result) -> None:
    greeting = partner()
    assert not greeting.is_greeting(reply)
    greeting.greet(None)
    assert not greeting.is_greeting(reply)
    assert greeting.is_greeting(Failure(1, ERROR))
    greeting.greeted(TOOLS_ONLY, None)
    assert not greeting.is_greeting(reply)
    assert not greeting.is_greeting(Failure(1, ERROR))


def test_what_it_offers_is_known_once_its_lists_are_read() -> None:
    reading, listing = ready()
    assert reading.replied(Result(listing.id, page("a", listing, 2)), 1) == ([], True)
    assert [tool.name for tool in reading.inventory.tools] == ["find", "more0", "more1"]
    assert (list(reading.inventory.capabilities), reading.due) == (["tools"], FOREVER)


def test_no_list_is_asked_for_before_the_server_is_ready() -> None:
    early = partner()
    early.greet(None)
    assert early.announced(methods.TOOLS_CHANGED, 0) == ([], False)


def test_a_change_of_what_a_server_has_not_is_no_news() -> None:
    reading, _ = ready()
    assert reading.announced(methods.PROMPTS_CHANGED, 0) == ([], False)


def test_a_list_that_changes_while_it_is_read_is_read_once_more_and_what_was_read_is_known_meanwhile() -> None:
    reading, first = ready()
    assert reading.announced(methods.TOOLS_CHANGED, 0) == ([], True)
    assert reading.announced(methods.TOOLS_CHANGED, 0) == ([], True)
    outcomes, is_known = reading.replied(Result(first.id, page("a", first, 1)), 0)
    [second] = sent(outcomes)
    assert (is_known, len(reading.inventory.tools)) == (True, 2)
    assert reading.replied(Result(second.id, page("a", second, 2)), 0) == ([], True)
    assert len(reading.inventory.tools) == 3


def test_who_announces_at_every_list_is_not_asked_all_the_time() -> None:
    """Some servers do so whenever they are asked."""
    reading, listing = ready()
    asked = 0
    for tenth in range(50):
        now = tenth / 10
        announced, _ = reading.announced(methods.TOOLS_CHANGED, now)
        outcomes, _ = reading.replied(Result(listing.id, page("a", listing)), now)
        for request in sent([*announced, *outcomes]):
            listing, asked = request, asked + 1
    assert asked == 14
    assert reading.tick(4.9) == ([], False)
    assert reading.due == pytest.approx(5)
    outcomes, is_known = reading.tick(reading.due)
    assert (len(sent(outcomes)), is_known) == (1, False)


def test_a_list_that_is_not_answered_is_not_waited_for_for_ever() -> None:
    reading, listing = ready()
    assert reading.tick(29.9) == ([], False)
    assert reading.due == 30
    given_up = ToServer("a", methods.cancellation(listing.id, "it took too long"))
    assert reading.tick(30) == ([given_up], True)
    assert (reading.due, reading.inventory.tools) == (FOREVER, offered("a").tools)
    assert reading.replied(Result(listing.id, page("a", listing, 2)), 31) == ([], False)
    outcomes, is_news = reading.announced(methods.TOOLS_CHANGED, 32)
    assert (len(sent(outcomes)), is_news) == (1, True)


def test_lists_that_a_lost_child_did_not_give_are_read_from_the_next() -> None:
    reading, listing = ready()
    reading.bereft()
    assert reading.due == FOREVER
    [again] = sent(reading.returned(5))
    assert (again.method, again.id != listing.id) == ("tools/list", True)
    assert reading.replied(Result(listing.id, page("a", listing, 2)), 6) == ([], False)
    assert reading.replied(Result(again.id, page("a", again, 1)), 6) == ([], True)
    assert len(reading.inventory.tools) == 2


def test_a_list_that_the_next_child_announces_first_is_read_once() -> None:
    reading, _ = ready()
    reading.bereft()
    outcomes, _ = reading.announced(methods.TOOLS_CHANGED, 5)
    [again] = sent(outcomes)
    assert reading.returned(5) == []
    assert reading.replied(Result(again.id, page("a", again)), 5) == ([], True)


def test_one_level_is_told_at_a_time_and_of_those_that_follow_the_last() -> None:
    logging = partner()
    logging.greet(None)
    logging.greeted(raw({"capabilities": {"logging": {}}}), None)
    first, second, third = (payload({"level": level}) for level in ("debug", "info", "error"))
    [told] = sent(logging.level(first))
    assert (logging.level(second), logging.level(third)) == ([], [])
    outcomes, is_known = logging.replied(Failure(told.id, ERROR), 0)
    [told] = sent(outcomes)
    assert (told.params, is_known) == (third, False)
    assert logging.replied(Result(told.id, payload({})), 0) == ([], False)
    assert sent(logging.level(third)) != []


def test_no_level_is_told_to_who_does_not_log() -> None:
    reading, _ = ready()
    assert reading.level(payload({"level": "debug"})) == []


def test_a_level_is_told_as_nothing_but_a_level() -> None:
    assert leveled(raw({"level": "error", "x": "x" * 1000})) == payload({"level": "error"})


@pytest.mark.parametrize("params", [None, raw({}), raw({"level": "loud"}), raw({"level": 1})])
def test_what_is_no_level_is_refused(params: Raw | None) -> None:
    with pytest.raises(BadParams):
        leveled(params)
