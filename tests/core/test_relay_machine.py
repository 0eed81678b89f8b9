"""Parties and a stateless child in any order: each request is answered once, and nobody hears what is not theirs."""

from dataclasses import dataclass
from itertools import count

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from app.core.parties import Outcome, Owners, ToChild, ToLog, ToParty
from app.core.relay import Relay
from app.protocol import methods, stateless
from app.protocol.jsonrpc import Failure, Message, Notification, Request, Result, payload

PARTIES = st.integers(1, 2)
PICKS = st.integers(0, 5)


@dataclass
class Sent:
    """A request, whose it is and how much of it there still can be."""

    party: int
    is_listen: bool
    is_open: bool = True
    """Somebody waits for the answer."""
    is_torn_down: bool = False


class RelayMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.relay = Relay(payload({}))
        self.mint = count(1)
        self.sent: dict[int, Sent] = {}
        self.holder: int | None = None

    def told(self, outcomes: list[Outcome]) -> list[int | str | None]:
        """The ids that the child was told to cancel, which is all that it is told here."""
        idents: list[int | str | None] = []
        for outcome in outcomes:
            match outcome:
                case ToChild(Notification(methods.CANCELLED) as note):
                    idents.append(methods.cancelled_id(note))
                case _:
                    pytest.fail(repr(outcome))
        return idents

    def pick(self, number: int) -> int:
        return sorted(self.sent)[-1 - number % len(self.sent)]

    @rule(party=PARTIES, is_listen=st.booleans())
    def asks(self, party: int, is_listen: bool) -> None:
        ident = next(self.mint)
        request = Request(ident, stateless.LISTEN if is_listen else "tools/call")
        assert self.relay.submit(party, request) == [ToChild(request)]
        self.sent[ident] = Sent(party, is_listen)

    @precondition(lambda self: self.sent)
    @rule(number=PICKS, party=PARTIES)
    def cancels(self, number: int, party: int) -> None:
        ident = self.pick(number)
        sent = self.sent[ident]
        is_due = sent.is_open and sent.party == party
        told = self.told(self.relay.submit(party, methods.cancellation(ident, "")))
        assert told == ([ident] if is_due and not sent.is_torn_down else [])
        if is_due:
            sent.is_open = False

    @precondition(lambda self: self.sent)
    @rule(number=PICKS, is_unsent=st.booleans())
    def withdraws(self, number: int, is_unsent: bool) -> None:
        """Only what its party still waits for, and never what the child spoke of."""
        ident = self.pick(number)
        sent = self.sent[ident]
        if sent.is_open and not sent.is_torn_down:
            assert self.relay.withdraw(ident, lambda _: is_unsent) is is_unsent
            sent.is_open = not is_unsent

    @rule(party=PARTIES)
    def leaves(self, party: int) -> None:
        waiting = [ident for ident, sent in self.sent.items() if sent.party == party and sent.is_open]
        told = self.told(self.relay.leave(party))
        assert told == [ident for ident in waiting if not self.sent[ident].is_torn_down]
        for ident in waiting:
            self.sent[ident].is_open = False
        self.holder = None if self.holder == party else self.holder

    @rule(party=PARTIES, is_hold=st.booleans())
    def holds(self, party: int, is_hold: bool) -> None:
        assert (self.relay.hold(party) if is_hold else self.relay.unhold(party)) == []
        if is_hold:
            self.holder = party
        elif self.holder == party:
            self.holder = None

    @precondition(lambda self: self.sent)
    @rule(number=PICKS, is_result=st.booleans())
    def replies(self, number: int, is_result: bool) -> None:
        ident = self.pick(number)
        sent = self.sent[ident]
        reply = (Result if is_result else Failure)(ident, payload({}))
        assert self.relay.receive(reply) == ([ToParty(sent.party, reply)] if sent.is_open else [])
        sent.is_open = False

    @precondition(lambda self: self.sent)
    @rule(number=PICKS)
    def progresses(self, number: int) -> None:
        ident = self.pick(number)
        note = Notification(methods.PROGRESS, payload({"progressToken": ident}))
        self.hears(ident, note, self.sent[ident].is_open)

    @precondition(lambda self: self.sent)
    @rule(number=PICKS)
    def announces(self, number: int) -> None:
        ident = self.pick(number)
        note = Notification("notifications/x", payload({"_meta": {stateless.SUBSCRIPTION_KEY: ident}}))
        sent = self.sent[ident]
        self.hears(ident, note, sent.is_open and sent.is_listen and not sent.is_torn_down)

    @precondition(lambda self: self.sent)
    @rule(number=PICKS)
    def tears_down(self, number: int) -> None:
        ident = self.pick(number)
        sent = self.sent[ident]
        is_news = sent.is_open and sent.is_listen and not sent.is_torn_down
        self.hears(ident, methods.cancellation(ident, ""), is_news)
        sent.is_torn_down = sent.is_torn_down or is_news

    def hears(self, ident: int, message: Message, is_heard: bool) -> None:
        assert self.relay.receive(message) == ([ToParty(self.sent[ident].party, message)] if is_heard else [])

    @rule()
    def logs(self) -> None:
        note = Notification(methods.LOG_MESSAGE)
        told = ToLog(note) if self.holder is None else ToParty(self.holder, note)
        assert self.relay.receive(note) == [told]

    @invariant()
    def no_more_is_kept_than_somebody_waits_for(self) -> None:
        waiting = sum(sent.is_open for sent in self.sent.values())
        kept = [held for held in vars(self.relay).values() if isinstance(held, dict | set | Owners)]
        assert max(map(len, kept)) == waiting

    def teardown(self) -> None:
        for party in (1, 2):
            self.relay.leave(party)
        assert [held for held in vars(self.relay).values() if isinstance(held, dict | set | int) and held] == []


TestRelayMachine = RelayMachine.TestCase
