"""Requests and children come and go in any order: nobody meets whom they must not, and nobody waits in vain."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from app.core.leases import Grant, Leases, Need, Start, Use, Wait

IDLE = 60
PICKS = st.integers(0, 20)
NEEDS = st.sampled_from([Need.ALONE, Need.ALONE, Need.SHARED, Need.HOLDING, Need.LISTENING])


class LeasesMachine(RuleBasedStateMachine):
    @initialize(children_max=st.integers(1, 3))
    def begins(self, children_max: int) -> None:
        self.children_max = children_max
        self.leases = Leases(children_max, IDLE)
        self.now = 0.0
        self.needs: dict[int, Need] = {}
        self.waiting: list[int] = []
        self.on: dict[int, set[int]] = {}
        """Each child that there is, and the tickets that have it."""
        self.idle_at: dict[int, float] = {}
        self.started = 0

    def granted(self, grants: list[Grant]) -> None:
        for grant in grants:
            assert grant.ticket == self.waiting.pop(0)
            self.put(grant)

    def put(self, grant: Grant) -> None:
        match grant:
            case Start(_, child):
                assert child > self.started
                self.started = child
                self.on[child] = set()
            case Use(_, child):
                assert child in self.on
        self.on[child].add(grant.ticket)
        self.idle_at.pop(child, None)

    def fits(self, need: Need, child: int) -> bool:
        met = {self.needs[ticket] for ticket in self.on[child]} - {Need.LISTENING}
        match need:
            case Need.ALONE:
                return not met
            case Need.HOLDING:
                return met <= {Need.SHARED}
            case Need.SHARED:
                return Need.ALONE not in met
            case Need.LISTENING:
                return True

    @rule(need=NEEDS)
    def requests(self, need: Need) -> None:
        ticket = len(self.needs)
        self.needs[ticket] = need
        answer = self.leases.request(ticket, need)
        if isinstance(answer, Wait):
            assert need is not Need.LISTENING
            self.waiting.append(ticket)
            return
        assert need is Need.LISTENING or not self.waiting
        if isinstance(answer, Start):
            assert not any(self.fits(need, child) for child in self.on)
        else:
            assert self.fits(need, answer.child)
        self.put(answer)

    @precondition(lambda self: self.needs)
    @rule(number=PICKS)
    def releases(self, number: int) -> None:
        ticket = len(self.needs) - 1 - number % len(self.needs)
        if ticket in self.waiting:
            self.waiting.remove(ticket)
        for child, tickets in self.on.items():
            if ticket in tickets:
                tickets.discard(ticket)
                if not tickets:
                    self.idle_at[child] = self.now
        self.granted(self.leases.release(ticket, self.now))

    @precondition(lambda self: self.on)
    @rule(number=PICKS)
    def loses(self, number: int) -> None:
        child = sorted(self.on)[number % len(self.on)]
        had = self.on.pop(child)
        self.idle_at.pop(child, None)
        tickets, grants = self.leases.lost(child)
        assert sorted(tickets) == sorted(had)
        self.granted(grants)

    @rule(seconds=st.sampled_from([1, 30, 60]))
    def expires(self, seconds: int) -> None:
        self.now += seconds
        expired = self.leases.expire(self.now)
        assert sorted(expired) == sorted(child for child, at in self.idle_at.items() if at + IDLE <= self.now)
        for child in expired:
            del self.on[child], self.idle_at[child]

    @invariant()
    def nobody_meets_whom_they_must_not(self) -> None:
        for tickets in self.on.values():
            met = [self.needs[ticket] for ticket in tickets if self.needs[ticket] is not Need.LISTENING]
            assert Need.ALONE not in met or len(met) == 1
            assert met.count(Need.HOLDING) <= 1

    @invariant()
    def there_are_not_more_children_than_may_be(self) -> None:
        assert len(self.on) <= self.children_max

    @invariant()
    def the_first_who_waits_waits_with_reason(self) -> None:
        if self.waiting:
            assert len(self.on) == self.children_max
            assert not any(self.fits(self.needs[self.waiting[0]], child) for child in self.on)

    @invariant()
    def what_falls_due_is_known(self) -> None:
        assert self.leases.due == min((at + IDLE for at in self.idle_at.values()), default=float("inf"))
        assert self.leases.is_empty == (not self.on)

    def teardown(self) -> None:
        """When all requests are over and all children idle, nothing is left."""
        for ticket in self.needs:
            self.leases.release(ticket, self.now)
        self.leases.expire(self.now + IDLE)
        assert [held for held in vars(self.leases).values() if isinstance(held, dict) and held] == []


TestLeasesMachine = LeasesMachine.TestCase
