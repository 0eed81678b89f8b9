"""One handshake client's talk with many servers, each of which is started when it is first needed.

    of each server:   absent ──needed──▶ greeted ──its answer──▶ ready
                         ▲                  │                      │
                         └──────lost────────┴──────────────────────┘

It stands between a session and its places at the servers. What is about all of them it answers itself; what is about
one thing goes to the server whose that is. Ids and progress tokens need no mapping, for whatever the session asks it
asks under ids of ours; only the questions of the servers are counted anew, for two may use one id.
"""

from collections.abc import Callable, Iterator

from msgspec import UNSET, Struct
from msgspec.structs import replace

from app.core import finding, introductions
from app.core.asking import Asking
from app.core.catalog import KIND, Sight
from app.core.deadlines import FOREVER
from app.core.inventory import LISTED, SHELF_OF, Inventory, wanted
from app.core.joint_rules import Known, Rules
from app.core.ledger import unexecuted
from app.core.links import relinked
from app.core.partner import Announced, Find, Outcome, Partner, ToServer
from app.core.probing import ToSession
from app.core.revival import Told
from app.core.routing import routed, unknown
from app.core.subscribed import Subscribed
from app.protocol import methods
from app.protocol.faults import BadParams, GatewayFault
from app.protocol.jsonrpc import Failure, Message, Notification, Reply, Request, RequestId, Result, failure, result

_SHELVES = tuple(LISTED)


class _Held(Struct, frozen=True):
    """A request that waits for what is not known yet, but no longer than until then."""

    request: Request
    until: float
    sees: Sight


class Joining:
    """`told` is of a session that goes on, where there was one before."""

    def __init__(self, rules: Rules, mint: Iterator[int], known: Known, told: Told | None = None) -> None:
        self.due = FOREVER
        """No later than this, `tick` has something to do."""
        self.told = Told() if told is None else told
        """Another value, whenever there is more to it."""
        self.catalog = known.catalog
        self._rules = rules
        self._mint = mint
        self._known = known
        self._partners: dict[str, Partner] = {}
        self._own: dict[str, Inventory] = {}
        """Of servers that offer this session something else than what is known of them."""
        self._announced: dict[str, set[str]] = {}
        """By server, what its client is told as soon as its lists are read again."""
        self._asking = Asking(rules.bounds.questions)
        self._held: list[_Held] = []
        self._owners: dict[RequestId, str] = {}
        self._subscribed = Subscribed(self.told.subscribed)
        self._is_greeted = told is not None

    @property
    def may_revive(self) -> bool:
        return self._is_greeted

    @property
    def waiting_bytes(self) -> int:
        """What waits for servers that are not ready."""
        return sum(partner.waiting_bytes for partner in self._partners.values())

    def is_busy(self, server: str) -> bool:
        """Whether an answer of it is owed."""
        return server in self._owners.values()

    def owner_of(self, ident: RequestId) -> str | None:
        """Who is to answer that request."""
        return self._owners.get(ident)

    # The session speaks.

    def submit(self, message: Message, now: float, sees: Sight) -> list[Outcome]:
        match message:
            case Request():
                try:
                    return self._asked(message, now, sees)
                except GatewayFault as fault:
                    self._forget(message.id)
                    fault.details.setdefault("server", self._rules.name)
                    return [ToSession(failure(message.id, fault))]
            case Notification():
                return self._notified(message)
            case Result() | Failure():
                answered = self._asking.answered(message)
                return [] if answered is None else self._to(*answered)

    def wake(self) -> list[Outcome]:
        """What was subscribed to is subscribed to again, where its server is gone, once it is known whose it is."""
        outcomes: list[Outcome] = []
        for server in sorted(self._subscribed.due(self.catalog, self._known)):
            outcomes += self._partner(server, outcomes).again(self._to_subscribe(server))
        return outcomes

    def renewed(self, server: str) -> list[Outcome]:
        """It is configured otherwise now: what it offered this session says nothing of what it will."""
        self._own.pop(server, None)
        return self._news(self._recompose())

    def withdraw(self, ident: int) -> bool:
        """Take back what waits here; False where a server has it, or is about to."""
        kept = [held for held in self._held if held.request.id != ident]
        was_held, self._held = len(kept) < len(self._held), kept
        owner = self._owners.get(ident)
        if was_held or (owner is not None and self._partners[owner].withdraw(ident)):
            self._forget(ident)
            return True
        return False

    # The servers speak.

    def receive(self, server: str, message: Message, now: float, about: RequestId | None = None) -> list[Outcome]:
        partner = self._partners.get(server)
        if partner is None:
            return []
        match message:
            case Result() | Failure():
                return self._replied(server, partner, message, now)
            case Notification():
                return self._told_by(server, partner, message, now)
            case Request():
                return [self._asking.asked(server, self._relinked(server, message), about)]

    def lost(self, server: str, fault: GatewayFault, withdraw: Callable[[int], bool]) -> list[Outcome]:
        """It is gone, and comes back only when it is needed again."""
        outcomes = self.bereft(server, fault, withdraw)
        if self._partners.pop(server, None) is not None:
            self._subscribed.lost(server, self.catalog)
        return outcomes

    def bereft(self, server: str, fault: GatewayFault, withdraw: Callable[[int], bool]) -> list[Outcome]:
        """It is gone, and comes back by itself: what it owed fails now, and its questions lapse."""
        partner = self._partners.get(server)
        if partner is None:
            return []
        fault.details.setdefault("server", server)
        outcomes: list[Outcome] = list(self._asking.lapsed(server))
        for ident in self._owed_by(server):
            is_unsent = partner.withdraw(ident) or withdraw(ident)
            self._forget(ident)
            outcomes.append(ToSession(failure(ident, unexecuted(fault) if is_unsent else fault)))
        partner.bereft()
        return outcomes

    # What is known changes, and time passes.

    def learn(self, known: Known, rules: Rules) -> list[Outcome]:
        before, self._known, self._rules = self._known, known, rules
        for server, partner in self._partners.items():
            if not partner.is_ready and server in known.inventories:
                partner.inventory = known.inventories[server]
        changed = self._recompose()
        for server, announced in self._announced.items():
            if known.inventories.get(server) != before.inventories.get(server):
                announced.difference_update(changed)
        outcomes: list[Outcome] = self._news(changed)
        if known.is_whole:
            outcomes += self._answer_held(lambda _held: True)
        return [*outcomes, *(self.wake() if self._subscribed.later else ())]

    def tick(self, now: float) -> list[Outcome]:
        outcomes = self._answer_held(lambda held: held.until <= now)
        for partner in self._partners.values():
            outcomes += partner.reread((), now) if partner.due <= now else ()
        self._set_due()
        return outcomes

    # The session's side, in detail.

    def _asked(self, request: Request, now: float, sees: Sight) -> list[Outcome]:
        match request.method:
            case methods.PING | methods.SHUTDOWN:
                return [ToSession(result(request.id, {}))]
            case methods.SET_LEVEL:
                return self._leveled(request)
            case methods.SUBSCRIBE | methods.UNSUBSCRIBE:
                self._subscribed.note(request, self._rules.bounds)
                return self._pass(request, now, sees)
            case method if method == methods.INITIALIZE or method in SHELF_OF:
                return self._listed(request, now, sees)
            case _:
                search = finding.search(request, self._rules.found) if self._rules.finds else None
                if search is None:
                    return self._pass(request, now, sees)
                return [Find(request.id, search.query, search.limit, sees)]

    def _listed(self, request: Request, now: float, sees: Sight) -> list[Outcome]:
        """Now, or when more is known."""
        if self._known.is_whole:
            return self._answer(request, sees)
        self._held.append(_Held(request, now + self._rules.patience, sees))
        self._set_due()
        return []

    def _answer(self, request: Request, sees: Sight) -> list[Outcome]:
        """By what is known now."""
        if request.method == methods.INITIALIZE:
            return self._greet(request, sees)
        shelf = SHELF_OF[request.method]
        if shelf == "tools" and self._rules.finds:
            return [ToSession(Result(request.id, finding.TOOLS))]
        try:
            page = self.catalog.page(
                shelf, methods.cursor(request.params), self._rules.page, lambda entry: sees(shelf, entry)
            )
        except BadParams as fault:
            return [ToSession(failure(request.id, fault))]
        return [ToSession(Result(request.id, page))]

    def _greet(self, initialize: Request, sees: Sight) -> list[Outcome]:
        answer = introductions.greeted(initialize, self._known, sees, self._rules.version)
        self._is_greeted = True
        self.told = Told(UNSET if initialize.params is None else initialize.params, answer)
        return [ToSession(Result(initialize.id, answer))]

    def _pass(self, request: Request, now: float, sees: Sight) -> list[Outcome]:
        """What it was sent to may be another thing by now than when it was judged."""
        call = finding.unwrapped(request) if self._rules.finds else request
        route = routed(call, self.catalog)
        if not sees(route.shelf, route.entry):
            raise unknown(KIND[route.shelf], route.public)
        outcomes: list[Outcome] = []
        partner = self._partner(route.server, outcomes)
        self._owners[request.id] = route.server
        outcomes += partner.submit(route.request, now)
        return outcomes

    def _partner(self, server: str, outcomes: list[Outcome]) -> Partner:
        partner = self._partners.get(server)
        if partner is None:
            inventory = self._own.get(server) or self._known.inventories.get(server) or Inventory()
            partner = self._partners[server] = Partner(
                server, self._mint, self._rules.bounds, inventory, self._rules.pages
            )
            params = self.told.initialize
            outcomes += partner.greet(None if params is UNSET else params)
            partner.again(self._to_subscribe(server))
        return partner

    def _to_subscribe(self, server: str) -> list[Request]:
        return self._subscribed.take(server, self.catalog, self._known)

    def _leveled(self, request: Request) -> list[Outcome]:
        if request.params is None or methods.log_level(request.params) not in methods.LOG_LEVELS:
            raise BadParams(f"params.level must be one of {', '.join(methods.LOG_LEVELS)}")
        self.told = replace(self.told, level=request.params)
        outcomes: list[Outcome] = [ToSession(result(request.id, {}))]
        for partner in self._partners.values():
            if "logging" in partner.inventory.capabilities:
                outcomes += partner.ask(methods.SET_LEVEL, request.params)
        return outcomes

    def _notified(self, notification: Notification) -> list[Outcome]:
        match notification.method:
            case methods.INITIALIZED:
                self.told = replace(self.told, is_initialized=True)
                outcomes: list[Outcome] = []
                for server in sorted(self._rules.eager):
                    self._partner(server, outcomes)
                return outcomes
            case methods.CANCELLED:
                ident = methods.cancelled_id(notification)
                if ident is None or (isinstance(ident, int) and self.withdraw(ident)):
                    return []
                owner = self._owners.get(ident)
                self._forget(ident)
                return [] if owner is None else self._to(owner, notification)
            case methods.PROGRESS:
                reported = self._asking.reported(notification)
                return [] if reported is None else self._to(*reported)
            case _:
                return [ToServer(server, notification) for server, each in self._partners.items() if each.is_ready]

    # The servers' side, in detail.

    def _replied(self, server: str, partner: Partner, reply: Reply, now: float) -> list[Outcome]:
        if reply.id is not None and self._owners.get(reply.id) == server:
            self._subscribed.answered(reply.id, reply)
            if self.told.subscribed is not self._subscribed.kept:
                self.told = replace(self.told, subscribed=self._subscribed.kept)
            self._forget(reply.id)
            return [ToSession(self._in_public(server, reply) if isinstance(reply, Result) else reply)]
        if partner.is_greeting(reply):
            return self._greeted(server, partner, reply, now)
        outcomes, is_read = partner.read(reply, now)
        self._set_due()
        if not is_read:
            return outcomes
        if partner.inventory != self._known.inventories.get(server):
            self._own[server] = partner.inventory
        else:
            self._own.pop(server, None)
        return [*outcomes, *self._news(self._recompose() | self._announced.pop(server, set()))]

    def _greeted(self, server: str, partner: Partner, reply: Reply, now: float) -> list[Outcome]:
        if isinstance(reply, Result):
            told = {} if self.told.level is UNSET else {methods.SET_LEVEL: self.told.level}
            return partner.greeted(reply.result, told, now)
        outcomes: list[Outcome] = []
        for ident in self._owed_by(server):
            self._forget(ident)
            outcomes.append(ToSession(Failure(ident, reply.error)))
        del self._partners[server]
        self._subscribed.lost(server, self.catalog)
        return outcomes

    def _told_by(self, server: str, partner: Partner, notification: Notification, now: float) -> list[Outcome]:
        match notification.method:
            case method if method in methods.LIST_CHANGED:
                self._announced.setdefault(server, set()).add(method)
                shelves = [shelf for shelf in wanted(partner.inventory) if LISTED[shelf].changed == method]
                asked = partner.reread(shelves, now)
                self._set_due()
                return [Announced(server), *asked]
            case methods.RESOURCE_UPDATED:
                uri = self.catalog.public_uri(server, methods.resource_uri(notification.params))
                return [ToSession(methods.with_field(notification, "uri", uri))]
            case methods.PROGRESS:
                token = methods.reported_token(notification)
                is_its_own = token is not None and self._owners.get(token) == server
                return [ToSession(notification)] if is_its_own else []
            case methods.CANCELLED:
                withdrawn = self._asking.withdrawn(server, notification)
                return [] if withdrawn is None else [withdrawn]
            case _:
                return [ToSession(notification)]

    # Parts.

    def _relinked(self, server: str, question: Request) -> Request:
        """What it quotes of resources, its client may want to read."""
        if question.params is None:
            return question
        params = relinked(question.params, lambda uri: self.catalog.public_uri(server, uri))
        return Request(question.id, question.method, params)

    def _to(self, server: str, message: Message) -> list[Outcome]:
        return [ToServer(server, message)] if server in self._partners else []

    def _in_public(self, server: str, reply: Result) -> Result:
        found = relinked(reply.result, lambda uri: self.catalog.public_uri(server, uri))
        return reply if found is reply.result else Result(reply.id, found)

    def _forget(self, ident: RequestId | None) -> None:
        if ident is not None:
            self._owners.pop(ident, None)
            self._subscribed.answered(ident, None)

    def _owed_by(self, server: str) -> list[int]:
        return [ident for ident, owner in self._owners.items() if owner == server and isinstance(ident, int)]

    def _recompose(self) -> set[str]:
        """What the client would have to be told of."""
        before, known = self.catalog, self._known
        self.catalog = known.catalog
        if self._own:
            self.catalog = self._rules.compose({**known.inventories, **self._own})
        return {LISTED[shelf].changed for shelf in _SHELVES if not self.catalog.is_like(before, shelf)}

    def _news(self, changed: set[str]) -> list[Outcome]:
        if not self._is_greeted:
            return []
        return [ToSession(Notification(method)) for method in sorted(changed)]

    def _answer_held(self, is_due: Callable[[_Held], bool]) -> list[Outcome]:
        due = [held for held in self._held if is_due(held)]
        self._held = [held for held in self._held if not is_due(held)]
        self._set_due()
        return [outcome for held in due for outcome in self._answer(held.request, held.sees)]

    def _set_due(self) -> None:
        begins = [partner.due for partner in self._partners.values()]
        self.due = min([*begins, *(held.until for held in self._held)], default=FOREVER)
