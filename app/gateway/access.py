"""What each principal may do at each server: the policy decides, and here that is done, before a server hears of it."""

import secrets
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import Literal

from msgspec import Raw, Struct

from app.auth.budget import Budget
from app.auth.policy import ALLOWED, NO_LIMITS, UNKNOWN, Decision, Hints, Limits, Policy, Rights
from app.auth.principal import Principal
from app.auth.targets import Kind, Target
from app.core.judged import Docket, Judged, Sieve
from app.gateway.witness import Speaker, Witness, about
from app.protocol import aims, methods
from app.protocol.aims import Aim, Listed
from app.protocol.faults import BadParams, GatewayFault, InsufficientScope, InvalidRequest, Overloaded, UnknownMethod
from app.protocol.jsonrpc import Message, Notification, Reply, Request

_BUDGETS_MAX = 10_000
_BOOKS_MAX = 1000
_NAMES_MAX = 10_000
_NOUNS = {"tools": "tool", "prompts": "prompt", "resources": "resource"}


class Access:
    """With neither a policy nor a witness there are no permits: nothing is judged, and nothing recorded."""

    def __init__(
        self, policy: Policy | None = None, witness: Witness | None = None, now: Callable[[], float] = monotonic
    ) -> None:
        self.policy = policy
        self.witness = witness
        self.now = now
        self._budgets: dict[str, Budget] = {}
        self._books: OrderedDict[tuple[str, str], dict[str, Hints]] = OrderedDict()

    def enter(self, principal: Principal, server: str) -> Decision:
        """Whether there is anything for it at a server."""
        return ALLOWED if self.policy is None else self.policy.rights(principal).enter(server)

    def permit(self, principal: Principal, server: str) -> "Permit | None":
        if self.policy is None:
            return None if self.witness is None else Permit(self, None, principal.key, server)
        return Permit(self, self.policy.rights(principal), principal.key, server)

    def session(self, owner: str, server: str, ident: str, state: Literal["opened", "resumed", "ended"]) -> None:
        """
        Raises:
            Denied: it is to be opened, and that cannot be recorded.
        """
        if self.witness is not None:
            self.witness.session(Speaker(owner, server, ident), state)

    def opened(self, owner: str, server: str, refused: Callable[[], None] | None) -> str:
        """The id of a session that may begin now.

        Raises:
            Denied: that cannot be recorded; `refused` was told.
        """
        ident, is_done = secrets.token_urlsafe(32), False
        try:
            self.session(owner, server, ident, "opened")
            is_done = True
        finally:
            if not is_done and refused is not None:
                refused()
        return ident

    @property
    def reads_hints(self) -> bool:
        return self.policy is not None and self.policy.reads_hints

    def budget(self, owner: str, limits: Limits) -> Budget:
        known = self._budgets.get(owner)
        if known is None:
            now = self.now()
            if len(self._budgets) >= _BUDGETS_MAX:
                self._budgets = {key: each for key, each in self._budgets.items() if not each.is_idle(now)}
            known = self._budgets[owner] = Budget(limits, now)
        return known

    def book(self, owner: str, server: str) -> dict[str, Hints]:
        """What the server last told this principal of its tools."""
        key = owner, server
        known = self._books.get(key)
        if known is None:
            known = self._books[key] = {}
            if len(self._books) > _BOOKS_MAX:
                self._books.popitem(last=False)
        self._books.move_to_end(key)
        return known

    def forget(self, server: str) -> None:
        """What it told of its tools says nothing of those that it has now."""
        for key in [key for key in self._books if key[1] == server]:
            del self._books[key]


class Verdict(Struct):
    """With a `fault`, the request is answered with that. Of what goes on, everything that was judged is there once."""

    request: Request
    fault: GatewayFault | None = None
    sieve: Sieve | None = None
    docket: Docket | None = None
    aims: tuple[Aim, ...] = ()


class _Slot:
    """One of so many calls at once."""

    __slots__ = ("_budget",)

    def __init__(self, budget: Budget) -> None:
        self._budget = budget

    def over(self, reply: Reply | None) -> None:  # noqa: ARG002 - however it ended
        self._budget.give_back()


class Permit:
    """What one principal may do at one server; without `rights`, everything."""

    __slots__ = ("_access", "_owner", "_rights", "_server")

    def __init__(self, access: Access, rights: Rights | None, owner: str, server: str) -> None:
        self._access = access
        self._rights = rights
        self._owner = owner
        self._server = server

    def judge(self, request: Request, session: str) -> Judged:
        """
        Raises:
            InsufficientScope, Overloaded, Denied: refused as a whole, and nothing has happened.
        """
        return _judged(self.admit(request, session))

    def judge_any(self, message: Request | Sequence[Message], session: str) -> Request | Sequence[Message]:
        """
        Raises:
            InsufficientScope, Overloaded, Denied, InvalidRequest: as `judge_all`.
        """
        return self.judge(message, session) if isinstance(message, Request) else self.judge_all(message, session)

    def judge_all(self, messages: Sequence[Message], session: str) -> list[Message]:
        """All of a batch, or none.

        Raises:
            InsufficientScope, Overloaded, Denied, InvalidRequest: as `judge` and `tell`.
        """
        verdicts = [self._decided(message) for message in messages if isinstance(message, Request)]
        for message in messages:
            self.tell(message)
        self._account(verdicts, session)
        judged = map(_judged, verdicts)
        return [next(judged) if isinstance(message, Request) else message for message in messages]

    def admit(self, request: Request, session: str = "") -> Verdict:
        """
        Raises:
            InsufficientScope, Overloaded, Denied: as `judge`.
        """
        verdict = self._decided(request)
        self._account([verdict], session)
        return verdict

    def tell(self, message: Message) -> None:
        """
        Raises:
            InvalidRequest: it is a request that wants no answer; some servers would serve it all the same.
        """
        if isinstance(message, Notification) and aims.is_request(message.method):
            raise InvalidRequest("a request needs an id, and notifications begin with notifications/")

    def hears(self, message: Message) -> bool:
        """Whether what the server says may be told: not of a resource that is not to be seen."""
        if self._rights is None or not isinstance(message, Notification) or message.method != methods.RESOURCE_UPDATED:
            return True
        return self._rights.allows(Target(self._server, "resources", methods.resource_uri(message.params)))

    # Decisions.

    def _decided(self, request: Request) -> Verdict:
        rights = self._rights
        try:
            aimed = aims.aimed(request)
        except BadParams as wrong:
            return Verdict(request, None if rights is None else wrong)
        if aimed is None:
            may_all = rights is None or rights.has_all(self._server)
            return Verdict(request, None if may_all else UnknownMethod(f"unknown method {request.method[:100]!r}"))
        going_on, targets = aimed
        if rights is None:
            return Verdict(going_on, aims=targets)
        for kind, name in targets:
            fault = self._refused(rights, going_on, kind, name)
            if fault is not None:
                return Verdict(going_on, fault, aims=targets)
        listed = aims.LISTS.get(request.method)
        if listed is not None:
            return Verdict(going_on, sieve=partial(self._sift, rights, listed))
        return Verdict(going_on, sieve=aims.private if request.method == aims.READ else None, aims=targets)

    def _refused(self, rights: Rights, request: Request, kind: Kind, name: str) -> GatewayFault | None:
        hints = None
        if kind == "tools" and self._access.reads_hints:
            hints = self._access.book(self._owner, self._server).get(name)
        decision = rights.decide(Target(self._server, kind, name), hints)
        if decision.is_allowed:
            return None
        if decision.scopes:
            fault = InsufficientScope("the token does not have the scopes that this needs", decision.scopes)
            fault.about = about(request, [(kind, name)])
            raise fault
        sentence = f"unknown {_NOUNS[kind]} {name[:100]!r}; what may be used here is in {kind}/list"
        return BadParams(sentence, reason="unknown_target")

    # Accounts.

    def _account(self, verdicts: Sequence[Verdict], session: str) -> None:
        """Each call takes its place among the others, and is recorded: all of them or, as this raises, none."""
        self._take_slots(verdicts)
        witness = self._access.witness
        if witness is None:
            return
        speaker = Speaker(self._owner, self._server, session)
        is_done = False
        try:
            for verdict in verdicts:
                if verdict.fault is None:
                    verdict.docket = witness.call(speaker, verdict.request, verdict.aims, verdict.docket)
                else:
                    witness.denied(speaker, verdict.request, verdict.aims, verdict.fault)
            is_done = True
        finally:
            for verdict in () if is_done else verdicts:
                if verdict.docket is not None:
                    verdict.docket.over(None)

    def _take_slots(self, verdicts: Sequence[Verdict]) -> None:
        limits = NO_LIMITS if self._rights is None else self._rights.limits
        if limits == NO_LIMITS:
            return
        calls = [verdict for verdict in verdicts if verdict.fault is None and _is_call(verdict.request)]
        if not calls:
            return
        budget = self._access.budget(self._owner, limits)
        wait = budget.take(limits, self._access.now(), len(calls))
        if wait:
            fault = Overloaded("too many calls of this principal", reason="policy_limit", retry_after=wait)
            fault.about = about(calls[0].request, calls[0].aims)
            raise fault
        for verdict in calls:
            verdict.docket = _Slot(budget)

    # Lists.

    def _sift(self, rights: Rights, listed: Listed, result: Raw) -> Raw:
        seen: dict[str, Hints] = {}
        reads_hints = listed.kind == "tools" and self._access.reads_hints

        def may_see(name: str, said: Raw) -> bool:
            hints = UNKNOWN
            if reads_hints:
                hints = seen[name] = _worse(_hints(said), seen.get(name))
            return rights.allows(Target(self._server, listed.kind, name), hints)

        page = aims.shown(result, listed, may_see)
        if reads_hints:
            book = self._access.book(self._owner, self._server)
            if len(book) + len(seen) > _NAMES_MAX:
                book.clear()
            book.update(seen)
        return page


def _judged(verdict: Verdict) -> Judged:
    asked = verdict.request
    return Judged(asked.id, asked.method, asked.params, fault=verdict.fault, sieve=verdict.sieve, docket=verdict.docket)


def _is_call(request: Request) -> bool:
    return request.method in aims.CALLS or not aims.is_known(request.method)


def _hints(tool: Raw) -> Hints:
    said = aims.annotations(tool)
    return Hints.said(said.read_only, said.destructive)


def _worse(said: Hints, before: Hints | None) -> Hints:
    """Of a tool that is there twice."""
    if before is None:
        return said
    return Hints(said.read_only and before.read_only, said.destructive or before.destructive)
