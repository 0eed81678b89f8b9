"""What each principal may do at each server: the policy decides, and here that is done, before a server hears of it."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic

from msgspec import Raw, Struct

from app.auth.budget import Budget
from app.auth.policy import ALLOWED, UNKNOWN, Decision, Hints, Policy, Rights
from app.auth.principal import Principal
from app.auth.targets import Target
from app.core.judged import Docket, Judged, Sieve
from app.protocol import aims, methods
from app.protocol.aims import Aim, Listed
from app.protocol.faults import BadParams, GatewayFault, InsufficientScope, InvalidRequest, Overloaded, UnknownMethod
from app.protocol.jsonrpc import Message, Notification, Reply, Request

_BUDGETS_MAX = 10_000
_BOOKS_MAX = 1000
_NAMES_MAX = 10_000
_NOUNS = {"tools": "tool", "prompts": "prompt", "resources": "resource"}


class Access:
    """Without a policy there are no permits, and nothing is judged."""

    def __init__(self, policy: Policy | None = None, now: Callable[[], float] = monotonic) -> None:
        self.policy = policy
        self.now = now
        self._budgets: dict[str, Budget] = {}
        self._books: OrderedDict[tuple[str, str], dict[str, Hints]] = OrderedDict()

    def enter(self, principal: Principal, server: str) -> Decision:
        """Whether there is anything for it at a server."""
        return ALLOWED if self.policy is None else self.policy.rights(principal).enter(server)

    def permit(self, principal: Principal, server: str) -> "Permit | None":
        return None if self.policy is None else Permit(self, self.policy.rights(principal), principal.key, server)

    def budget(self, owner: str, rights: Rights) -> Budget:
        known = self._budgets.get(owner)
        if known is None:
            now = self.now()
            if len(self._budgets) >= _BUDGETS_MAX:
                self._budgets = {key: each for key, each in self._budgets.items() if not each.is_idle(now)}
            known = self._budgets[owner] = Budget(rights.limits, now)
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


class Verdict(Struct):
    """With a `fault`, the request is answered with that. Of what goes on, everything that was judged is there once."""

    request: Request
    fault: GatewayFault | None = None
    sieve: Sieve | None = None
    docket: Docket | None = None


class _Slot:
    """One of so many calls at once."""

    __slots__ = ("_budget",)

    def __init__(self, budget: Budget) -> None:
        self._budget = budget

    def over(self, reply: Reply | None) -> None:  # noqa: ARG002 - however it ended
        self._budget.give_back()


class Permit:
    """What one principal may do at one server."""

    __slots__ = ("_access", "_owner", "_rights", "_server")

    def __init__(self, access: Access, rights: Rights, owner: str, server: str) -> None:
        self._access = access
        self._rights = rights
        self._owner = owner
        self._server = server

    def judge(self, request: Request) -> Judged:
        """
        Raises:
            InsufficientScope, Overloaded: refused as a whole, and nothing has happened.
        """
        return _judged(self.admit(request))

    def judge_all(self, messages: Sequence[Message]) -> list[Message]:
        """All of a batch, or none.

        Raises:
            InsufficientScope, Overloaded, InvalidRequest: as `judge` and `tell`.
        """
        verdicts = [self._decided(message) for message in messages if isinstance(message, Request)]
        for message in messages:
            self.tell(message)
        self._account(verdicts)
        judged = map(_judged, verdicts)
        return [next(judged) if isinstance(message, Request) else message for message in messages]

    def admit(self, request: Request) -> Verdict:
        """
        Raises:
            InsufficientScope, Overloaded: as `judge`.
        """
        verdict = self._decided(request)
        self._account([verdict])
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
        if not isinstance(message, Notification) or message.method != methods.RESOURCE_UPDATED:
            return True
        return self._rights.allows(Target(self._server, "resources", methods.resource_uri(message.params)))

    def _decided(self, request: Request) -> Verdict:
        try:
            aimed = aims.aimed(request)
        except BadParams as wrong:
            return Verdict(request, wrong)
        if aimed is None:
            may_all = self._rights.has_all(self._server)
            return Verdict(request, None if may_all else UnknownMethod(f"unknown method {request.method[:100]!r}"))
        going_on, targets = aimed
        for aim in targets:
            fault = self._refused(aim)
            if fault is not None:
                return Verdict(request, fault)
        listed = aims.LISTS.get(request.method)
        if listed is not None:
            return Verdict(going_on, sieve=partial(self._sift, listed))
        return Verdict(going_on, sieve=aims.private if request.method == aims.READ else None)

    def _refused(self, aim: Aim) -> GatewayFault | None:
        kind, name = aim
        hints = None
        if kind == "tools" and self._access.policy is not None and self._access.policy.reads_hints:
            hints = self._access.book(self._owner, self._server).get(name)
        decision = self._rights.decide(Target(self._server, kind, name), hints)
        if decision.is_allowed:
            return None
        if decision.scopes:
            raise InsufficientScope("the token does not have the scopes that this needs", decision.scopes)
        sentence = f"unknown {_NOUNS[kind]} {name[:100]!r}; what may be used here is in {kind}/list"
        return BadParams(sentence, reason="unknown_target")

    def _account(self, verdicts: Sequence[Verdict]) -> None:
        limits = self._rights.limits
        if limits.per_minute is None and limits.concurrent is None:
            return
        calls = [verdict for verdict in verdicts if verdict.fault is None and _is_call(verdict.request)]
        if not calls:
            return
        budget = self._access.budget(self._owner, self._rights)
        wait = budget.take(limits, self._access.now(), len(calls))
        if wait:
            raise Overloaded("too many calls of this principal", reason="policy_limit", retry_after=wait)
        for verdict in calls:
            verdict.docket = _Slot(budget)

    def _sift(self, listed: Listed, result: Raw) -> Raw:
        seen: dict[str, Hints] = {}
        policy = self._access.policy
        reads_hints = listed.kind == "tools" and policy is not None and policy.reads_hints

        def may_see(name: str, said: Raw) -> bool:
            hints = UNKNOWN
            if reads_hints:
                hints = seen[name] = _worse(_hints(said), seen.get(name))
            return self._rights.allows(Target(self._server, listed.kind, name), hints)

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
