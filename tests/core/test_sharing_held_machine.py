"""A child that one party after another holds: every question is answered once, by who was asked, or by us."""

from itertools import count

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from app.core.parties import Outcome, ToChild, ToLog, ToParty
from app.core.sharing import Sharing
from app.protocol import methods
from app.protocol.jsonrpc import Failure, Notification, Request, RequestId, Result, payload

EMPTY = payload({})
PARTIES = st.integers(1, 2)
IDS = st.sampled_from([1, "1", 2])
LOG = Notification(methods.LOG_MESSAGE)


class HeldMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.mint = count(100)
        self.sharing = Sharing(self.mint, "1", {"roots": EMPTY})
        self.sharing.greet()
        self.sharing.receive(Result(100, EMPTY))
        self.holder: int | None = None
        self.open: list[RequestId] = []
        self.kept: list[RequestId] = []
        self.calls: dict[int, int] = {}

    def refused(self, outcomes: list[Outcome], idents: list[RequestId]) -> None:
        for outcome, ident in zip(outcomes, idents, strict=True):
            match outcome:
                case ToChild(Failure(asked)):
                    assert (asked, type(asked)) == (ident, type(ident))
                case _:
                    pytest.fail(repr(outcome))

    def ended(self, outcomes: list[Outcome]) -> None:
        self.refused(outcomes, self.open)
        self.open, self.holder = [], None

    @rule(party=PARTIES)
    def holds(self, party: int) -> None:
        outcomes = self.sharing.hold(party)
        asked = len(outcomes) - len(self.kept)
        assert outcomes[asked:] == [ToParty(party, Request(ident, "roots/list")) for ident in self.kept]
        if self.holder != party:
            self.ended(outcomes[:asked])
        else:
            assert outcomes == []
        self.holder, self.open, self.kept = party, [*self.open, *self.kept], []

    @rule()
    def doubts(self) -> None:
        self.refused(self.sharing.doubt(), self.kept)
        self.kept = []

    @rule(party=PARTIES)
    def lets_go(self, party: int) -> None:
        outcomes = self.sharing.unhold(party)
        if self.holder == party:
            self.ended(outcomes)
        else:
            assert outcomes == []

    @rule(party=PARTIES)
    def leaves(self, party: int) -> None:
        calls = [ident for ident, owner in self.calls.items() if owner == party]
        outcomes = self.sharing.leave(party)
        cancelled = [ToChild(methods.cancellation(ident, "the session has ended")) for ident in calls]
        assert outcomes[: len(calls)] == cancelled
        rest = outcomes[len(calls) :]
        if self.holder == party:
            self.ended(rest)
        else:
            assert rest == []
        self.calls = {ident: owner for ident, owner in self.calls.items() if owner != party}

    @rule(party=PARTIES)
    def calls_a_tool(self, party: int) -> None:
        request = Request(next(self.mint), "tools/call")
        assert isinstance(request.id, int)
        assert self.sharing.submit(party, request) == [ToChild(request)]
        self.calls[request.id] = party

    @precondition(lambda self: self.calls)
    @rule()
    def is_answered(self) -> None:
        ident, party = self.calls.popitem()
        assert self.sharing.receive(Result(ident, EMPTY)) == [ToParty(party, Result(ident, EMPTY))]

    @rule(ident=IDS, method=st.sampled_from(["roots/list", "roots/list", "sampling/createMessage"]))
    def asks(self, ident: RequestId, method: str) -> None:
        question = Request(ident, method)
        outcomes = self.sharing.receive(question)
        if method != "roots/list":
            self.refused(outcomes, [ident])
        elif self.holder is None:
            assert outcomes == []
            self.kept += [] if ident in self.kept else [ident]
        elif ident in self.open:
            assert outcomes == []
        else:
            assert outcomes == [ToParty(self.holder, question)]
            self.open.append(ident)

    @rule(party=PARTIES, ident=IDS, is_result=st.booleans())
    def answers(self, party: int, ident: RequestId, is_result: bool) -> None:
        answer = (Result if is_result else Failure)(ident, EMPTY)
        is_due = party == self.holder and ident in self.open
        assert self.sharing.submit(party, answer) == ([ToChild(answer)] if is_due else [])
        if is_due:
            self.open.remove(ident)

    @rule(ident=IDS)
    def takes_back(self, ident: RequestId) -> None:
        note = methods.cancellation(ident, "")
        is_news = self.holder is not None and ident in self.open
        assert self.sharing.receive(note) == ([ToParty(self.holder or 0, note)] if is_news else [])
        if is_news:
            self.open.remove(ident)
        elif ident in self.kept:
            self.kept.remove(ident)

    @rule()
    def logs(self) -> None:
        told = ToLog(LOG) if self.holder is None else ToParty(self.holder, LOG)
        assert self.sharing.receive(LOG) == [told]


TestHeldMachine = HeldMachine.TestCase
