"""What each principal may do at each server: the policy decides, and here that is done, before a server hears of it."""

import secrets
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import Literal

from msgspec import Raw, Struct

from app.auth.budget import Budget
from app.auth.policy import ALLOWED, DENIED, NO_LIMITS, UNKNOWN, Decision, Hints, Limits, Policy, Rights
from app.auth.principal import Principal
from app.core.catalog import KIND, Entry
from app.core.inventory import Shelf
from app.core.joint_names import JointNames
from app.core.judged import Docket, Judged, Sieve
from app.core.routing import unknown
from app.core.targets import Kind, Target
from app.gateway.witness import Speaker, Witness, about
from app.protocol import aims, methods, stateless
from app.protocol.aims import Aim, Listed
from app.protocol.faults import BadParams, GatewayFault, InsufficientScope, InvalidRequest, Overloaded, UnknownMethod
from app.protocol.jsonrpc import Message, Notification, Reply, Request

_BUDGETS_MAX = 10_000
_BOOKS_MAX = 1000
_NAMES_MAX = 10_000


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

    def enter(self, principal: Principal, servers: Sequence[str]) -> Decision:
        """Whether there is anything for it at one of these servers; if not, what would help is told of the first."""
        if self.policy is None:
            return ALLOWED
        rights = self.policy.rights(principal)
        decisions = [rights.enter(server) for server in servers]
        if any(decision.is_allowed for decision in decisions):
            return ALLOWED
        return next((decision for decision in decisions if decision.scopes), DENIED)

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
    server: str = ""
    """Whose it is, where it was sent to several at once."""


class _Slot:
    """One of so many calls at once."""

    __slots__ = ("_budget",)

    def __init__(self, budget: Budget) -> None:
        self._budget = budget

    def over(self, reply: Reply | None) -> None:  # noqa: ARG002 - however it ended
        self._budget.give_back()


class Permit:
    """What one principal may do at one server; without `rights`, everything. Where several servers are one, `names` say
    at which of them something is."""

    __slots__ = ("_access", "_owner", "_rights", "_server")

    def __init__(self, access: Access, rights: Rights | None, owner: str, server: str) -> None:
        self._access = access
        self._rights = rights
        self._owner = owner
        self._server = server

    def judge(self, request: Request, session: str, names: JointNames | None = None) -> Judged:
        """
        Raises:
            InsufficientScope, Overloaded, Denied: refused as a whole, and nothing has happened.
        """
        return _judged(self.admit(request, session, names))

    def judge_any(
        self, message: Request | Sequence[Message], session: str, names: JointNames | None = None
    ) -> Request | Sequence[Message]:
        """
        Raises:
            InsufficientScope, Overloaded, Denied, InvalidRequest: as `judge_all`.
        """
        if isinstance(message, Request):
            return self.judge(message, session, names)
        return self.judge_all(message, session, names)

    def judge_all(self, messages: Sequence[Message], session: str, names: JointNames | None = None) -> list[Message]:
        """All of a batch, or none.

        Raises:
            InsufficientScope, Overloaded, Denied, InvalidRequest: as `judge` and `tell`.
        """
        verdicts = [self._decided(message, names) for message in messages if isinstance(message, Request)]
        for message in messages:
            self.tell(message)
        self._account(verdicts, session)
        judged = map(_judged, verdicts)
        return [next(judged) if isinstance(message, Request) else message for message in messages]

    def admit(self, request: Request, session: str = "", names: JointNames | None = None) -> Verdict:
        """
        Raises:
            InsufficientScope, Overloaded, Denied: as `judge`.
        """
        verdict = self._decided(request, names)
        self._account([verdict], session)
        return verdict

    def tell(self, message: Message) -> None:
        """
        Raises:
            InvalidRequest: it is a request that wants no answer; some servers would serve it all the same.
        """
        if isinstance(message, Notification) and aims.is_request(message.method):
            raise InvalidRequest("a request needs an id, and notifications begin with notifications/")

    def hears(self, message: Message, names: JointNames | None = None) -> bool:
        """Whether what the server says may be told: not of a resource that is not to be seen."""
        if self._rights is None or not isinstance(message, Notification) or message.method != methods.RESOURCE_UPDATED:
            return True
        target = self._target("resources", methods.resource_uri(message.params), names)
        return target is not None and self._rights.allows(target)

    def sees(self, shelf: Shelf, entry: Entry) -> bool:
        """Whether it is there for this principal, in a list of several servers'."""
        if self._rights is None:
            return True
        reads_hints = shelf == "tools" and self._access.reads_hints
        hints = _hints(entry.shown) if reads_hints else UNKNOWN
        return self._rights.allows(Target(entry.server, KIND[shelf], entry.own), hints)

    # Decisions.

    def _decided(self, request: Request, names: JointNames | None) -> Verdict:
        rights = self._rights
        try:
            request = request if names is None else names.unwrapped(request)
            aimed = aims.aimed(request)
        except BadParams as wrong:
            return Verdict(request, None if rights is None else wrong)
        if names is not None and names.is_search(request):
            return Verdict(request)
        if aimed is None:
            may_all = rights is None or rights.has_all(self._server)
            return Verdict(request, None if may_all else UnknownMethod(f"unknown method {request.method[:100]!r}"))
        going_on, aims_ = aimed
        verdict = Verdict(going_on, aims=aims_, server=self._server)
        targets = [self._target(kind, name, names) for kind, name in aims_]
        if names is not None and len(targets) == 1 and targets[0] is not None:
            verdict.server, verdict.aims = targets[0].server, ((targets[0].kind, targets[0].name),)
        if rights is None:
            return verdict
        for target, (kind, name) in zip(targets, aims_, strict=True):
            verdict.fault = self._refused(rights, going_on, target, kind, name, names)
            if verdict.fault is not None:
                return verdict
        listed = aims.LISTS.get(request.method)
        if listed is not None and names is None:
            verdict.sieve = partial(self._sift, rights, listed)
        elif listed is not None or request.method in (aims.READ, stateless.DISCOVER):
            verdict.sieve = aims.private
        return verdict

    def _target(self, kind: Kind, name: str, names: JointNames | None) -> Target | None:
        return Target(self._server, kind, name) if names is None else names.target(kind, name)

    def _refused(
        self, rights: Rights, request: Request, target: Target | None, kind: Kind, name: str, names: JointNames | None
    ) -> GatewayFault | None:
        if target is not None:
            decision = rights.decide(target, self._hints_of(target, name, names))
            if decision.is_allowed:
                return None
            if decision.scopes:
                fault = InsufficientScope("the token does not have the scopes that this needs", decision.scopes)
                fault.about = about(request, [(kind, name)])
                raise fault
        return unknown(kind, name)

    def _hints_of(self, target: Target, name: str, names: JointNames | None) -> Hints | None:
        if target.kind != "tools" or not self._access.reads_hints:
            return None
        if names is None:
            return self._access.book(self._owner, self._server).get(name)
        shown = names.shown(name)
        return None if shown is None else _hints(shown)

    # Accounts.

    def _account(self, verdicts: Sequence[Verdict], session: str) -> None:
        """Each call takes its place among the others, and is recorded: all of them or, as this raises, none."""
        self._take_slots(verdicts)
        witness = self._access.witness
        if witness is None:
            return
        is_done = False
        try:
            for verdict in verdicts:
                speaker = Speaker(self._owner, verdict.server or self._server, session)
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
