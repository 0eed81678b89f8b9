"""One client's talk with many servers: what each is asked, owes and may not do, and how much of it may wait."""

from itertools import count

from msgspec import Raw
from msgspec.structs import replace

from app.core.bounds import Bounds
from app.core.deadlines import FOREVER
from app.core.joining import Joining
from app.core.joint_rules import Known, Rules, everything
from app.core.partner import Outcome, Shut, ToServer
from app.core.probing import ToSession
from app.core.revival import Told
from app.protocol import methods
from app.protocol.faults import Exited, Overloaded
from app.protocol.jsonrpc import Failure, Message, Notification, Request, Result, payload
from tests.core.inventories import item
from tests.core.test_joining import BOOKS, BOTH, RULES, known, offering, opened, taken_up


def opening(at: Known, rules: Rules | None = None) -> Joining:
    return Joining(rules or RULES, count(1), at)


def sent(outcomes: list[Outcome], server: str = "") -> list[Request]:
    """The requests among what goes to a server, or to any."""
    to_server = [outcome for outcome in outcomes if isinstance(outcome, ToServer) and server in ("", outcome.server)]
    return [outcome.message for outcome in to_server if isinstance(outcome.message, Request)]


def told(outcomes: list[Outcome]) -> list[Message]:
    return [outcome.message for outcome in outcomes if isinstance(outcome, ToSession)]


def codes(outcomes: list[Outcome]) -> list[int | None]:
    """Of the errors that the session hears."""
    return [methods.error_code(message.error) for message in told(outcomes) if isinstance(message, Failure)]


def asks(joining: Joining, method: str, params: object = None, ident: int = 50) -> list[Outcome]:
    return joining.submit(Request(ident, method, None if params is None else payload(params)), 0, everything)


def greets(joining: Joining, server: str, outcomes: list[Outcome]) -> list[Outcome]:
    """A server answers the greeting that is among what it was sent."""
    [greeting] = [request for request in sent(outcomes, server) if request.method == methods.INITIALIZE]
    return joining.receive(server, Result(greeting.id, RESOURCES), 0)


RESOURCES = payload({"capabilities": {"resources": {"subscribe": True}}})


def test_subscriptions_of_before_are_made_as_fast_as_their_server_takes_them() -> None:
    """All of them at once would be too much for what waits for a server that starts."""
    uris = [f"book://{number}" for number in range(600)]
    joining = taken_up(*uris, at=known({"books": offering(*uris)}, is_whole=True))
    outcomes = greets(joining, "books", joining.wake())
    made, open_ = list[str](), subscribes(outcomes)
    while open_:
        assert len(open_) <= 32
        made += [methods.resource_uri(request.params) for request in open_]
        open_ = [new for each in open_ for new in subscribes(joining.receive("books", Result(each.id, payload({})), 0))]
    assert made == uris


def subscribes(outcomes: list[Outcome]) -> list[Request]:
    return [request for request in sent(outcomes) if request.method == methods.SUBSCRIBE]


def test_what_the_client_says_of_a_resource_counts_and_not_what_it_had_said_before() -> None:
    joining = taken_up("book://one", "book://two", at=known(BOOKS, is_whole=True))
    outcomes = joining.wake()
    assert asks(joining, methods.UNSUBSCRIBE, {"uri": "book://one"}) == []
    asked = [
        (request.method, methods.resource_uri(request.params)) for request in sent(greets(joining, "books", outcomes))
    ]
    assert asked[:2] == [(methods.SUBSCRIBE, "book://two"), (methods.UNSUBSCRIBE, "book://one")]
    assert [method for method, _ in asked[2:]] == ["resources/list", "resources/templates/list"]


def test_what_could_not_be_unsubscribed_from_is_subscribed_to_still() -> None:
    joining = taken_up("book://two", at=known({}, is_whole=False))
    assert codes(asks(joining, methods.UNSUBSCRIBE, {"uri": "book://two"})) == [-32602]
    assert opened(joining.learn(known(BOOKS, is_whole=True), RULES)) == ["books"]


def test_subscriptions_at_a_server_that_is_gone_are_made_anew_when_it_is_there_again() -> None:
    joining = opening(known(BOTH, is_whole=True))
    outcomes = greets(joining, "books", asks(joining, methods.SUBSCRIBE, {"uri": "book://one"}))
    joining.receive("books", Result(50, payload({})), 0)
    assert list(joining.told.subscribed) == ["book://one"]
    joining.lost("books", Exited("gone"), lambda _: False)
    assert subscribes(outcomes) == [Request(50, methods.SUBSCRIBE, payload({"uri": "book://one"}))]
    outcomes = greets(joining, "books", asks(joining, "resources/read", {"uri": "book://one"}))
    assert [request.params for request in subscribes(outcomes)] == [payload({"uri": "book://one"})]


def test_a_subscription_that_a_lost_child_did_not_answer_is_made_at_the_next() -> None:
    joining = taken_up("book://one", at=known(BOOKS, is_whole=True))
    [first] = subscribes(greets(joining, "books", joining.wake()))
    joining.bereft("books", Exited("gone"), lambda _: False)
    [second] = subscribes(joining.returned("books", 0))
    assert second == Request(second.id, first.method, first.params)
    assert second.id != first.id


def test_what_is_being_subscribed_to_is_bounded_in_bytes_too() -> None:
    rules = replace(RULES, bounds=Bounds(subscription_bytes=1000))
    joining = opening(known(BOOKS, is_whole=True), rules)
    params = {"uri": "book://one", "x": "x" * 600}
    assert codes(asks(joining, methods.SUBSCRIBE, params)) == []
    assert codes(asks(joining, methods.SUBSCRIBE, params, 51)) == [Overloaded.code]
    assert codes(asks(joining, methods.UNSUBSCRIBE, params, 52)) == [Overloaded.code]
    assert [joining.owner_of(ident) for ident in (50, 51, 52)] == ["books", None, None]


def test_an_unsubscription_has_room_where_subscriptions_have_none() -> None:
    rules = replace(RULES, bounds=Bounds(subscriptions=1))
    joining = opening(known(BOOKS, is_whole=True), rules)
    greets(joining, "books", asks(joining, methods.SUBSCRIBE, {"uri": "book://one"}))
    joining.receive("books", Result(50, payload({})), 0)
    assert codes(asks(joining, methods.SUBSCRIBE, {"uri": "book://two"}, 51)) == [Overloaded.code]
    assert codes(asks(joining, methods.UNSUBSCRIBE, {"uri": "book://one"}, 52)) == []
    joining.receive("books", Result(52, payload({})), 0)
    assert joining.told.subscribed == {}


def test_what_waits_until_more_is_known_is_bounded() -> None:
    rules = replace(RULES, bounds=Bounds(early_bytes=1000))
    joining = opening(known(BOOKS, is_whole=False), rules)
    large = {"x": "x" * 600}
    assert asks(joining, "tools/list", large) == []
    assert 600 < joining.waiting_bytes < 1000
    assert codes(asks(joining, "tools/list", large, 51)) == [Overloaded.code]
    assert len(told(joining.tick(2))) == 1
    assert (joining.waiting_bytes, joining.due) == (0, FOREVER)


def test_a_request_that_finds_no_room_opens_its_server_all_the_same() -> None:
    """Otherwise nobody would ever open it: it counts as being on its way."""
    rules = replace(RULES, bounds=Bounds(early_bytes=10))
    joining = opening(known(BOOKS, is_whole=True), rules)
    outcomes = asks(joining, "resources/read", {"uri": "book://one"})
    assert (opened(outcomes), codes(outcomes)) == (["books"], [Overloaded.code])
    greets(joining, "books", outcomes)
    assert sent(asks(joining, "resources/read", {"uri": "book://one"}, 51))[0].id == 51


def test_an_error_that_answers_nothing_ends_nothing() -> None:
    """As the answer to a line that a server could not read is."""
    joining = opening(known(BOOKS, is_whole=True))
    greets(joining, "books", asks(joining, "resources/read", {"uri": "book://one"}))
    assert joining.receive("books", Failure(None, payload({"code": -32700, "message": "?"})), 0) == []
    assert joining.owner_of(50) == "books"
    assert told(joining.receive("books", Result(50, payload({})), 0)) == [Result(50, payload({}))]


def test_a_server_that_refuses_the_greeting_is_left_and_may_be_asked_again() -> None:
    joining = opening(known(BOOKS, is_whole=True))
    read = {"uri": "book://one"}
    [greeting] = sent(asks(joining, "resources/read", read))
    error = payload({"code": 1, "message": "no"})
    refused = joining.receive("books", Failure(greeting.id, error), 0)
    assert refused == [ToSession(Failure(50, error)), Shut("books")]
    assert opened(asks(joining, "resources/read", read, 51)) == ["books"]


def test_a_server_reports_on_what_it_was_asked_and_on_nothing_else() -> None:
    joining = opening(known(BOTH, is_whole=True))
    for server, ident in (("books", 50), ("films", 51)):
        greets(joining, server, asks(joining, "resources/read", {"uri": f"{server[:-1]}://one"}, ident))
    report = Notification(methods.PROGRESS, payload({"progressToken": 51, "progress": 1}))
    assert joining.receive("books", report, 0) == []
    assert joining.receive("films", report, 0) == [ToSession(report)]
    joining.receive("films", Result(51, payload({})), 0)
    assert joining.receive("films", report, 0) == []


def test_no_server_answers_for_another() -> None:
    joining = opening(known(BOTH, is_whole=True))
    for server, ident in (("books", 50), ("films", 51)):
        greets(joining, server, asks(joining, "resources/read", {"uri": f"{server[:-1]}://one"}, ident))
    forged = Result(51, payload({"contents": []}))
    assert joining.receive("books", forged, 0) == []
    assert joining.receive("films", forged, 0) == [ToSession(forged)]
    assert joining.receive("films", forged, 0) == []


def test_what_the_session_takes_back_from_further_on_is_owed_by_nobody() -> None:
    joining = opening(known(BOOKS, is_whole=True))
    greets(joining, "books", asks(joining, methods.SUBSCRIBE, {"uri": "book://one"}))
    assert not joining.withdraw(50)
    joining.forget(50)
    assert (joining.is_busy("books"), joining.owner_of(50)) == (False, None)
    assert joining.receive("books", Result(50, payload({})), 0) == []
    assert joining.told.subscribed == {}


def test_no_server_is_shut_down_or_made_to_exit_by_a_client_of_all() -> None:
    joining = opening(known(BOOKS, is_whole=True))
    greets(joining, "books", asks(joining, "resources/read", {"uri": "book://one"}))
    assert asks(joining, methods.SHUTDOWN, None, 51) == [ToSession(Result(51, payload({})))]
    assert joining.submit(Notification(methods.EXIT), 0, everything) == []


def test_a_session_that_goes_on_asks_the_servers_that_nobody_else_can_ask() -> None:
    rules = replace(RULES, eager=frozenset({"films"}))
    goes_on = Joining(rules, count(1), known(BOOKS, is_whole=True), Told(initialize=Raw(b"{}"), is_initialized=True))
    assert opened(goes_on.wake()) == ["films"]
    assert goes_on.wake() == []


def test_who_finds_tools_is_not_told_that_they_changed() -> None:
    joining = opening(known({}, is_whole=True), replace(RULES, finds=True))
    asks(joining, methods.INITIALIZE, {"protocolVersion": "2025-11-25"})
    changed = {"books": replace(offering("book://one"), tools=(item("tools", "read"),))}
    assert told(joining.learn(known(changed, is_whole=True), RULES)) == [
        Notification(methods.RESOURCES_CHANGED),
        Notification(methods.TOOLS_CHANGED),
    ]
    assert told(joining.learn(known({}, is_whole=True), replace(RULES, finds=True))) == [
        Notification(methods.RESOURCES_CHANGED)
    ]
