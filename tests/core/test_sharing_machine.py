"""Several sessions on one child, with ids that collide, in any order: nobody ever hears what is not theirs."""

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec import Raw, json

from app.core.deadlines import Deadlines
from app.core.effects import Effect, Ended, EndStream, ToClient, ToUpstream
from app.core.parties import Changed, Outcome, Refused, ToChild, ToLog, ToParty
from app.core.phases import Phase
from app.core.session import Session
from app.core.sharing import Sharing
from app.protocol import methods
from app.protocol.jsonrpc import Failure, Message, Notification, Request, RequestId, Result, payload

IDS = st.sampled_from([1, "1", 2])
URIS = st.sampled_from(["a", "b"])
PICKS = st.integers(0, 20)


def read(raw: Raw | None) -> Any:  # JSON is what it is
    return {} if raw is None else json.decode(raw)


@dataclass
class Owed:
    """A request of a session; its nonce goes with it to the child and comes back in the child's answer."""

    party: int
    stream: int
    id: RequestId
    uri: str | None = None
    is_over: bool = False


@dataclass
class Child:
    """What the child was told: the requests that it may still answer, by our id, and what it is subscribed to."""

    seen: set[int] = field(default_factory=set)
    open: dict[int, Request] = field(default_factory=dict)
    subscribed: dict[str, int] = field(default_factory=dict)
    """Each uri, and our id of the request that subscribed to it."""

    def hear(self, message: Message) -> None:
        if not isinstance(message, Request):
            return
        assert isinstance(message.id, int)
        assert message.id not in self.seen
        self.seen.add(message.id)
        self.open[message.id] = message
        uri = methods.resource_uri(message.params)
        if message.method == methods.SUBSCRIBE:
            assert uri not in self.subscribed
            self.subscribed[uri] = message.id
        elif message.method == methods.UNSUBSCRIBE:
            self.subscribed.pop(uri, None)


class SharingMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        mint = count(1000)
        self.mint = mint
        self.sharing = Sharing(mint, "1")
        self.child = Child()
        self.sessions: dict[int, Session] = {}
        self.names, self.streams, self.nonces = count(1), count(1), count(1)
        self.owed: dict[int, Owed] = {}
        self.wanted: dict[str, set[int]] = defaultdict(set)
        self.heard: list[tuple[int, Message]] = []
        self.logged = self.changed = 0
        self.spoken: list[Message] = []

    # Carrying between the sessions, the machine and the child.

    def perform(self, party: int, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case ToUpstream(message):
                    self.carry(self.sharing.submit(party, message))
                case ToClient(stream, message):
                    self.hear(party, stream, message)
                case EndStream(stream):
                    assert all(owed.is_over for owed in self.owed.values() if owed.stream == stream)
                case Ended():
                    del self.sessions[party]
                    self.carry(self.sharing.leave(party))
                    for wanting in self.wanted.values():
                        wanting.discard(party)
                case _:
                    pytest.fail(repr(effect))

    def carry(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            match outcome:
                case ToParty(party, message):
                    assert party in self.sessions
                    self.perform(party, self.sessions[party].deliver(message, 0))
                case ToChild(message):
                    self.spoken.append(message)
                    self.child.hear(message)
                case ToLog():
                    self.logged += 1
                case Changed():
                    self.changed += 1
                case Refused():
                    pytest.fail("refused")

    def hear(self, party: int, stream: int, message: Message) -> None:
        self.heard.append((party, message))
        if not isinstance(message, Result | Failure):
            return
        body = read(message.result if isinstance(message, Result) else message.error)
        nonce, owed = next((nonce, owed) for nonce, owed in self.owed.items() if owed.stream == stream)
        assert not owed.is_over
        assert (owed.party, owed.id, type(owed.id)) == (party, message.id, type(message.id))
        assert body.get("nonce", nonce) == nonce
        owed.is_over = True

    def pick(self, among: list[int], number: int) -> int:
        return among[number % len(among)]

    def ask(self, party: int, ident: RequestId, method: str, uri: str | None = None, **params: object) -> None:
        session, stream, nonce = self.sessions[party], next(self.streams), next(self.nonces)
        session.outlets.post(stream, can_stream=True, begin_at=1)
        self.owed[nonce] = Owed(party, stream, ident, uri)
        said = {**params, "nonce": nonce, "_meta": {"progressToken": ident}}
        if uri is not None:
            said["uri"] = uri
        self.perform(party, session.ask(Request(ident, method, payload(said)), stream, 0))

    # What the sessions do.

    @initialize()
    def greets_the_child(self) -> None:
        self.carry(self.sharing.greet())

    @precondition(lambda self: len(self.sessions) < 4)
    @rule()
    def joins(self) -> None:
        party = next(self.names)
        self.sessions[party] = Session(Deadlines(), self.mint)
        self.perform(party, self.sessions[party].hear(next(self.streams), 0))
        self.ask(party, 1, "initialize", protocolVersion="2025-06-18", capabilities={"roots": {}})

    @precondition(lambda self: self.sessions)
    @rule(number=PICKS, ident=IDS)
    def calls(self, number: int, ident: RequestId) -> None:
        self.ask(self.pick(list(self.sessions), number), ident, "tools/call")

    @property
    def open(self) -> list[int]:
        return [party for party, session in self.sessions.items() if session.phase is Phase.OPEN]

    @precondition(lambda self: self.open)
    @rule(number=PICKS, ident=IDS, uri=URIS)
    def subscribes(self, number: int, ident: RequestId, uri: str) -> None:
        party = self.pick(self.open, number)
        self.wanted[uri].add(party)
        self.ask(party, ident, methods.SUBSCRIBE, uri)

    @precondition(lambda self: self.open)
    @rule(number=PICKS, ident=IDS, uri=URIS)
    def unsubscribes(self, number: int, ident: RequestId, uri: str) -> None:
        party = self.pick(self.open, number)
        self.wanted[uri].discard(party)
        self.ask(party, ident, methods.UNSUBSCRIBE, uri)

    @precondition(lambda self: self.open)
    @rule(number=PICKS, ident=IDS, level=st.sampled_from(["debug", "info", "error", "loud"]))
    def sets_a_level(self, number: int, ident: RequestId, level: str) -> None:
        self.ask(self.pick(self.open, number), ident, methods.SET_LEVEL, level=level)

    @precondition(lambda self: self.open)
    @rule(number=PICKS, ident=IDS)
    def cancels(self, number: int, ident: RequestId) -> None:
        """It gets a last word, as every call does."""
        party = self.pick(self.open, number)
        for nonce, owed in reversed(self.owed.items()):
            if (owed.party, owed.id, type(owed.id), owed.is_over) == (party, ident, type(ident), False):
                if owed.uri is not None and self.subscription(owed.uri) == nonce:
                    self.wanted[owed.uri].discard(party)
                break
        note = Notification(methods.CANCELLED, payload({"requestId": ident}))
        self.perform(party, self.sessions[party].tell(note, 0))

    def subscription(self, uri: str) -> int | None:
        """The nonce of the request that subscribed to the uri, as long as the child has not answered it."""
        request = self.child.open.get(self.child.subscribed.get(uri, 0))
        return None if request is None else read(request.params)["nonce"]

    @precondition(lambda self: self.open)
    @rule(number=PICKS, method=st.sampled_from(["notifications/x", "notifications/exit", "notifications/initialized"]))
    def tells(self, number: int, method: str) -> None:
        party = self.pick(self.open, number)
        before = len(self.spoken)
        self.perform(party, self.sessions[party].tell(Notification(method), 0))
        assert self.spoken[before:] == ([Notification(method)] if method == "notifications/x" else [])

    @precondition(lambda self: len(self.sessions) > 1)
    @rule(number=PICKS)
    def leaves(self, number: int) -> None:
        party = self.pick(list(self.sessions), number)
        self.perform(party, self.sessions[party].close("deleted"))

    # What the child does.

    @precondition(lambda self: self.child.open)
    @rule(number=PICKS, is_result=st.sampled_from([True, True, False]))
    def replies(self, number: int, is_result: bool) -> None:
        self.reply(self.pick(list(self.child.open), number), is_result)

    def reply(self, ours: int, is_result: bool) -> None:
        request = self.child.open.pop(ours)
        said = read(request.params)
        body: dict[str, object] = {"nonce": said["nonce"]} if "nonce" in said else {}
        if request.method == "initialize":
            body, is_result = {"protocolVersion": "2025-11-25"}, True
        uri = methods.resource_uri(request.params)
        if not is_result and request.method == methods.SUBSCRIBE and self.child.subscribed.get(uri) == ours:
            del self.child.subscribed[uri]
            self.wanted[uri].clear()
        self.carry(self.sharing.receive((Result if is_result else Failure)(ours, payload(body))))

    @precondition(lambda self: self.child.seen)
    @rule(number=PICKS)
    def progresses(self, number: int) -> None:
        ours = self.pick(sorted(self.child.seen), -1 - number)
        request = self.child.open.get(ours)
        owed = None if request is None else self.owed.get(read(request.params).get("nonce", 0))
        note = Notification(methods.PROGRESS, payload({"progressToken": ours, "progress": 1}))
        told = (
            [] if owed is None or owed.is_over else [(owed.party, methods.with_field(note, "progressToken", owed.id))]
        )
        if request is None or "_meta" in read(request.params):
            assert self.hearers(note) == told

    def hearers(self, said: Message) -> list[tuple[int, Message]]:
        before = len(self.heard)
        self.carry(self.sharing.receive(said))
        return self.heard[before:]

    @rule(uri=URIS)
    def updates(self, uri: str) -> None:
        note = Notification(methods.RESOURCE_UPDATED, payload({"uri": uri}))
        assert self.hearers(note) == [(party, note) for party in sorted(self.wanted[uri])]

    @rule(method=st.sampled_from(sorted(methods.LIST_CHANGED)))
    def changes(self, method: str) -> None:
        note, before = Notification(method), self.changed
        assert self.hearers(note) == [(party, note) for party in sorted(self.open)]
        assert self.changed == before + 1

    @rule(method=st.sampled_from(["ping", "roots/list", "sampling/createMessage"]))
    def asks(self, method: str) -> None:
        before = len(self.spoken)
        assert self.hearers(Request(1, method)) == []
        assert [type(answer) for answer in self.spoken[before:]] == [Result if method == "ping" else Failure]

    @rule()
    def logs(self) -> None:
        before = self.logged
        assert self.hearers(Notification(methods.LOG_MESSAGE, payload({"level": "info"}))) == []
        assert self.logged == before + 1

    # Always.

    @invariant()
    def the_child_is_subscribed_to_what_somebody_wants_and_to_nothing_else(self) -> None:
        assert set(self.child.subscribed) == {uri for uri, parties in self.wanted.items() if parties}

    @invariant()
    def a_session_is_busy_as_long_as_it_is_owed_something(self) -> None:
        waiting = {owed.party for owed in self.owed.values() if not owed.is_over}
        assert waiting == {party for party, session in self.sessions.items() if session.is_busy}

    def teardown(self) -> None:
        """When all have left, and the child has answered what it was asked, nothing of them is left."""
        for party in list(self.sessions):
            self.perform(party, self.sessions[party].close("deleted"))
        assert self.child.subscribed == {}
        before = len(self.heard)
        for ours in list(self.child.open):
            self.reply(ours, is_result=True)
        assert self.heard[before:] == []
        kept = {name: held for name, held in vars(self.sharing).items() if isinstance(held, dict | set | list) and held}
        assert kept == {}


TestSharingMachine = SharingMachine.TestCase
