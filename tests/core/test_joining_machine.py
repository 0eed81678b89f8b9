"""A session and three servers in any order: each of its requests is answered once, by whose it is, whatever happens."""

from collections.abc import Callable, Collection
from itertools import count

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from app.core.inventory import Inventory
from app.core.joining import Joining
from app.core.joint_rules import Rules, everything
from app.core.partner import Announced, Open, Outcome, Shut, ToServer
from app.core.probing import ToSession
from app.protocol import methods
from app.protocol.faults import Exited
from app.protocol.jsonrpc import Failure, Message, Notification, Request, RequestId, Result, payload
from tests.core.inventories import raw
from tests.core.joints import CAPABILITIES, LISTS, NAMES, compose, known, offered, page

INITIALIZE = 1
"""Its id; it cannot be cancelled."""
SERVERS = st.sampled_from(NAMES)
PICKS = st.integers(0, 9)
IDS = st.sampled_from([1, "1", 2])
CHANGED = frozenset({methods.TOOLS_CHANGED, methods.RESOURCES_CHANGED})


class Server:
    """As it is from where its child is: what it was sent, and has not answered."""

    def __init__(self) -> None:
        self.greeting: RequestId | None = None
        self.is_ready = False
        self.is_there = True
        self.owes: dict[RequestId, Request] = {}
        self.ours: dict[RequestId, Request] = {}
        self.asks: list[RequestId] = []
        self.announced: set[str] = set()
        """Of which the session is to be told when our lists are read."""


class JoiningMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.mint = count(1)
        self.joined_by = Rules("/mcp", "1", compose)
        self.inventories: dict[str, Inventory] = {"a": offered("a")}
        self.joining = Joining(self.joined_by, self.mint, known(self.inventories))
        self.now = 0.0
        self.servers: dict[str, Server] = {}
        self.calls: dict[int, str] = {}
        """What the session waits for, and at which server; nowhere where it waits to know more."""
        self.cancelled: set[int] = set()
        self.questions: dict[RequestId, tuple[str, RequestId]] = {}
        self.may_hear: frozenset[str] = frozenset()
        """Which lists the session may be told of just now, each once."""
        self.heard: set[str] = set()
        self.is_greeted = False
        self.calls[INITIALIZE] = ""
        self.says(Request(next(self.mint), methods.INITIALIZE, raw({"capabilities": {}})))

    # What comes of it.

    def says(self, message: Message) -> None:
        self.happens(self.joining.submit(message, self.now, everything))

    def hears(self, server: str, message: Message) -> None:
        self.happens(self.joining.receive(server, message, self.now))

    def happens(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            match outcome:
                case Open(server):
                    assert server not in self.servers
                    self.servers[server] = Server()
                case Shut(server):
                    assert not self.servers[server].is_ready
                    del self.servers[server]
                case ToServer(server, message):
                    self.is_sent(server, message)
                case ToSession(message):
                    self.is_told(message)
                case Announced():
                    pass
                case _:
                    pytest.fail(repr(outcome))

    def is_sent(self, name: str, message: Message) -> None:
        server = self.servers[name]
        match message:
            case Request(ident, methods.INITIALIZE):
                assert server.greeting is None
                assert not server.is_ready
                server.greeting = ident
            case Request(ident, method, params):
                assert server.is_ready
                if ident in self.calls:
                    assert self.calls[ident] == name
                    server.owes[ident] = message
                else:
                    assert method in LISTS | {methods.SET_LEVEL, methods.SUBSCRIBE}
                    assert ident not in self.cancelled
                    server.ours[ident] = message
                if method == "tools/call":
                    assert params == payload({"name": "find"})
            case Notification(methods.INITIALIZED):
                assert server.is_ready
            case Notification(methods.CANCELLED):
                ident = methods.cancelled_id(message)
                assert server.owes.pop(ident or 0, None) or server.ours.pop(ident or 0, None)
            case Notification():
                assert server.is_ready
            case Result(ident) | Failure(ident):
                assert ident is not None
                server.asks.remove(ident)

    def is_told(self, message: Message) -> None:
        match message:
            case Result(ident) | Failure(ident):
                del self.calls[ident]  # type: ignore[arg-type]  # it is there, once
                self.is_greeted |= ident == INITIALIZE
            case Request(ident):
                assert ident not in self.questions
                self.questions[ident] = self.asked
            case Notification(methods.CANCELLED):
                del self.questions[methods.cancelled_id(message) or 0]
            case Notification(method):
                assert method in self.may_hear - self.heard
                self.heard.add(method)

    def some(self, number: int, claim: Callable[[Server], object]) -> str:
        """One of those servers of which that is so, if there is one."""
        found = sorted(name for name, server in self.servers.items() if claim(server))
        return found[number % len(found)] if found else ""

    def pick(self, among: Collection[int], number: int) -> int:
        return sorted(among)[-1 - number % len(among)]

    def asks_for(self, request: Request, server: str) -> None:
        assert isinstance(request.id, int)
        self.calls[request.id] = server
        self.says(request)

    # The session.

    @rule(server=SERVERS)
    def calls_a_tool(self, server: str) -> None:
        request = Request(next(self.mint), "tools/call", payload({"name": f"{server}__find"}))
        self.asks_for(request, server)
        if server not in self.inventories:
            assert request.id not in self.calls

    @rule(server=SERVERS, method=st.sampled_from([methods.SUBSCRIBE, methods.UNSUBSCRIBE]))
    def subscribes(self, server: str, method: str) -> None:
        owner = self.joining.catalog.owner_of(f"{server}://one")
        request = Request(next(self.mint), method, payload({"uri": f"{server}://one"}))
        self.asks_for(request, "" if owner is None else owner[0])
        if owner is None:
            assert request.id not in self.calls

    @rule(method=st.sampled_from(["tools/list", "resources/list", "ping"]))
    def lists(self, method: str) -> None:
        request = Request(next(self.mint), method)
        self.asks_for(request, "")
        is_known = method == "ping" or len(self.inventories) == len(NAMES)
        assert (request.id in self.calls) is not is_known

    @rule(level=st.sampled_from(["debug", "error"]))
    def levels(self, level: str) -> None:
        request = Request(next(self.mint), methods.SET_LEVEL, payload({"level": level}))
        self.asks_for(request, "")
        assert request.id not in self.calls

    @precondition(lambda self: self.calls.keys() - {INITIALIZE})
    @rule(number=PICKS, withdraws=st.booleans())
    def gives_up(self, number: int, withdraws: bool) -> None:
        """As a session does: what it can take back it does not cancel."""
        ident = self.pick(self.calls.keys() - {INITIALIZE}, number)
        del self.calls[ident]
        self.cancelled.add(ident)
        if not withdraws or not self.joining.withdraw(ident):
            self.says(methods.cancellation(ident, ""))
        assert self.joining.owner_of(ident) is None

    @rule()
    def its_roots_change(self) -> None:
        self.says(Notification(methods.ROOTS_CHANGED))

    @precondition(lambda self: self.questions)
    @rule(number=PICKS, is_result=st.booleans(), twice=st.booleans())
    def answers(self, number: int, is_result: bool, twice: bool) -> None:
        ident = list(self.questions)[number % len(self.questions)]
        server, theirs = self.questions.pop(ident)
        before = self.servers[server].asks.count(theirs)
        for _ in range(1 + twice):
            self.says((Result if is_result else Failure)(ident, payload({})))
        assert self.servers[server].asks.count(theirs) == before - 1

    # The servers.

    @precondition(lambda self: self.some(0, lambda at: not at.is_ready))
    @rule(number=PICKS, greets=st.sampled_from([True, True, True, False]))
    def answers_the_greeting(self, number: int, greets: bool) -> None:
        server = self.some(number, lambda at: not at.is_ready)
        at = self.servers[server]
        assert at.greeting is not None
        if greets:
            at.is_ready = True
            self.hears(server, Result(at.greeting, raw({"capabilities": CAPABILITIES})))
        else:
            self.hears(server, Failure(at.greeting, raw({"code": 1, "message": "no"})))
            assert server not in self.servers
            assert server not in self.calls.values()

    @precondition(lambda self: self.some(0, lambda at: at.owes))
    @rule(number=PICKS, is_result=st.booleans(), twice=st.booleans())
    def replies(self, number: int, is_result: bool, twice: bool) -> None:
        server = self.some(number, lambda at: at.owes)
        at = self.servers[server]
        ident = list(at.owes)[number % len(at.owes)]
        del at.owes[ident]
        for _ in range(1 + twice):
            self.hears(server, (Result if is_result else Failure)(ident, payload({})))
        assert ident not in self.calls

    @precondition(lambda self: self.some(0, lambda at: at.ours))
    @rule(number=PICKS, more=st.integers(0, 2), is_result=st.booleans())
    def answers_us(self, number: int, more: int, is_result: bool) -> None:
        server = self.some(number, lambda at: at.ours)
        at = self.servers[server]
        ident, request = at.ours.popitem()
        is_over = request.method in LISTS and not any(each.method in LISTS for each in at.ours.values())
        self.may_hear = methods.LIST_CHANGED if is_over else frozenset()
        self.heard = set()
        self.hears(server, Result(ident, page(server, request, more)) if is_result else Failure(ident, payload({})))
        if is_over and self.is_greeted:
            assert self.heard >= at.announced
        if is_over:
            at.announced = set()
        self.may_hear = frozenset()

    @precondition(lambda self: self.servers)
    @rule(number=PICKS, ident=IDS | st.none() | st.integers(1, 60), is_others=st.booleans(), is_result=st.booleans())
    def replies_to_what_it_was_not_asked(
        self, number: int, ident: RequestId | None, is_others: bool, is_result: bool
    ) -> None:
        server = self.some(number, lambda _: True)
        at = self.servers[server]
        if is_others and self.calls:
            ident = self.pick(self.calls, number)
        if ident in at.owes or ident in at.ours or ident == at.greeting or self.calls.get(ident) == server:  # type: ignore[arg-type]  # ids of any kind
            return
        reply = Failure(ident, payload({})) if ident is None or not is_result else Result(ident, payload({}))
        self.hears(server, reply)

    @precondition(lambda self: self.servers)
    @rule(number=PICKS, ident=IDS, method=st.sampled_from(["ping", "roots/list"]))
    def asks(self, number: int, ident: RequestId, method: str) -> None:
        server = self.some(number, lambda _: True)
        at = self.servers[server]
        if (ident, type(ident)) in [(asked, type(asked)) for asked in at.asks]:
            return
        at.asks.append(ident)
        self.asked = (server, ident)
        self.hears(server, Request(ident, method))

    @rule(server=SERVERS, ident=IDS)
    def takes_back(self, server: str, ident: RequestId) -> None:
        asked = [number for number, whose in self.questions.items() if whose == (server, ident)]
        asked = [number for number in asked if type(self.questions[number][1]) is type(ident)]
        self.hears(server, methods.cancellation(ident, ""))
        for number in asked:
            assert number not in self.questions
            self.servers[server].asks.remove(ident)

    @rule(server=SERVERS, method=st.sampled_from(sorted(methods.LIST_CHANGED)))
    def announces(self, server: str, method: str) -> None:
        at = self.servers.get(server)
        if at is not None:
            at.announced |= {method} & CHANGED if at.is_ready else set()
        self.hears(server, Notification(method))

    @rule(server=SERVERS, token=st.integers(1, 60))
    def reports_on_what_is_not_its_own(self, server: str, token: int) -> None:
        if self.joining.owner_of(token) != server:
            self.hears(server, Notification(methods.PROGRESS, payload({"progressToken": token, "progress": 1})))

    @rule(server=SERVERS, is_unsent=st.booleans())
    def is_lost(self, server: str, is_unsent: bool) -> None:
        self.happens(self.joining.lost(server, Exited("gone"), lambda _: is_unsent))
        self.servers.pop(server, None)
        self.is_forgotten(server)

    @precondition(lambda self: self.some(0, lambda at: at.is_ready))
    @rule(number=PICKS, is_unsent=st.booleans())
    def is_bereft(self, number: int, is_unsent: bool) -> None:
        """Only who was ready comes back."""
        server = self.some(number, lambda at: at.is_ready)
        at = self.servers[server]
        self.happens(self.joining.bereft(server, Exited("gone"), lambda _: is_unsent))
        self.is_forgotten(server)
        fresh = self.servers[server] = Server()
        fresh.greeting, fresh.is_ready, fresh.is_there = at.greeting, True, False

    @precondition(lambda self: self.some(0, lambda at: not at.is_there))
    @rule(number=PICKS)
    def returns(self, number: int) -> None:
        server = self.some(number, lambda at: not at.is_there)
        at = self.servers[server]
        at.is_there = True
        self.happens(self.joining.returned(server, self.now))
        asked = {request.method for request in at.ours.values()} & LISTS
        assert asked == LISTS or (asked and at.announced)  # The others follow.

    def is_forgotten(self, server: str) -> None:
        assert server not in self.calls.values()
        assert server not in [whose for whose, _ in self.questions.values()]

    # Everybody.

    @rule(server=SERVERS, more=st.integers(0, 2))
    def is_known(self, server: str, more: int) -> None:
        self.inventories = {**self.inventories, server: offered(server, more)}
        self.may_hear, self.heard = methods.LIST_CHANGED, set()
        self.happens(self.joining.learn(known(self.inventories), self.joined_by))
        self.may_hear = frozenset()
        if len(self.inventories) == len(NAMES):
            assert "" not in self.calls.values()

    @rule(seconds=st.sampled_from([0.5, 3.0, 40.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.ticks()
        assert self.joining.due > self.now
        assert seconds < self.joined_by.patience or "" not in self.calls.values()

    def ticks(self) -> None:
        """One server after another: of several each may tell of its lists."""
        for outcome in self.joining.tick(self.now):
            self.may_hear, self.heard = methods.LIST_CHANGED, set()
            self.happens([outcome])
        self.may_hear = frozenset()
        for at in self.servers.values():
            if not any(each.method in LISTS for each in at.ours.values()):
                at.announced = set()

    @invariant()
    def no_more_is_kept_than_somebody_waits_for(self) -> None:
        kept = vars(self.joining)
        assert kept["_owners"] == {ident: server for ident, server in self.calls.items() if server}
        assert len(kept["_unanswered"]) == list(self.calls.values()).count("")
        assert len(vars(kept["_asking"])["_asked"]) == len(self.questions)
        assert vars(kept["_subscribing"])["_noted"].keys() <= kept["_owners"].keys()
        assert kept["_announced"].keys() <= self.servers.keys()

    def teardown(self) -> None:
        self.now += 100
        self.ticks()
        for server in NAMES:
            self.happens(self.joining.lost(server, Exited("gone"), lambda _: False))
        assert self.calls == {}
        assert self.questions == {}
        kept = vars(self.joining)
        assert [kept[name] for name in ("_owners", "_announced", "_partners")] == [{}, {}, {}]
        assert vars(kept["_subscribing"])["_open"] == {}


TestJoiningMachine = JoiningMachine.TestCase
TestJoiningMachine.settings = settings(stateful_step_count=40)
