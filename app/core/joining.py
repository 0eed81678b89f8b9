"""One handshake client's talk with many servers, each of which is started when it is first needed.

    of each server:   absent ──needed──▶ greeted ──its answer──▶ ready
                         ▲                  │                      │
                         └──────lost────────┴──────────────────────┘

It stands between a session and its places at the servers. What is about all of them it answers itself; what is about
one thing goes to the server whose that is. Ids and progress tokens need no mapping, for whatever the session asks it
asks under ids of ours; only the questions of the servers are counted anew, for two may use one id.
"""

from collections.abc import Callable, Iterator
from functools import partial

from msgspec import UNSET
from msgspec.structs import replace

from app.core import finding, introductions
from app.core.asking import Asking
from app.core.catalog import KIND, Catalog, Sight
from app.core.deadlines import FOREVER
from app.core.inventory import SHELF_OF
from app.core.joint_rules import Known, Rules
from app.core.ledger import unexecuted
from app.core.links import may_link, relinked, requoted
from app.core.offers import Offers
from app.core.partner import Announced, Find, Outcome, Partner, Shut, ToServer, leveled
from app.core.probing import ToSession
from app.core.revival import Told
from app.core.routing import routed, unknown
from app.core.subscribing import Subscribing
from app.core.unanswered import Held, Unanswered
from app.protocol import methods
from app.protocol.faults import BadParams, GatewayFault, Overloaded
from app.protocol.jsonrpc import Failure, Message, Notification, Reply, Request, RequestId, Result, failure, result


class Joining:
    """`told` is of a session that goes on, where there was one before."""

    def __init__(self, rules: Rules, mint: Iterator[int], known: Known, told: Told | None = None) -> None:
        self.due = FOREVER
        """No later than this, `tick` has something to do."""
        self.told = Told() if told is None else told
        """Another value, whenever there is more to it."""
        self._rules = rules
        self._mint = mint
        self._known = known
        self._partners: dict[str, Partner] = {}
        self._offers = Offers(rules, known)
        self._announced: dict[str, set[str]] = {}
        """By server, what its client is told as soon as its lists are read again."""
        self._asking = Asking(rules.bounds.questions)
        self._unanswered = Unanswered(rules.bounds.early_count, rules.bounds.early_bytes)
        self._owners: dict[RequestId, str] = {}
        self._subscribing = Subscribing(rules.bounds, self.told.subscribed)
        self._is_greeted = told is not None
        self._owes_eager = self.told.is_initialized

    @property
    def catalog(self) -> Catalog:
        """As this session sees it."""
        return self._offers.catalog

    @property
    def may_revive(self) -> bool:
        return self._is_greeted

    @property
    def waiting_bytes(self) -> int:
        """What waits for more to be known, and for servers that are not ready."""
        return self._unanswered.waiting_bytes + sum(partner.waiting_bytes for partner in self._partners.values())

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
                    is_plain = message.method == methods.CALL_TOOL and not self._rules.finds  # As most are.
                    return self._pass(message, sees) if is_plain else self._asked(message, now, sees)
                except GatewayFault as fault:
                    self.forget(message.id)
                    fault.details.setdefault("server", self._rules.name)
                    return [ToSession(failure(message.id, fault))]
            case Notification():
                return self._notified(message)
            case Result() | Failure():
                answered = self._asking.answered(message)
                return [] if answered is None else self._to(*answered)

    def wake(self) -> list[Outcome]:
        """What the session before had begun goes on."""
        return [*self._begin_eager(), *self._subscribe_again()]

    def renewed(self, server: str) -> list[Outcome]:
        """It is configured otherwise now: what it offered this session says nothing of what it will."""
        return self._news(self._offers.renewed(server))

    def withdraw(self, ident: int) -> bool:
        """Take back what waits here; False where a server has it, or is about to."""
        owner = self._owners.get(ident)
        if self._unanswered.withdraw(ident) or (owner is not None and self._partners[owner].withdraw(ident)):
            self.forget(ident)
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
                question = requoted(message, lambda uri: self.catalog.public_uri(server, uri))
                return [self._asking.asked(server, question, about)]

    def lost(self, server: str, fault: GatewayFault, withdraw: Callable[[int], bool]) -> list[Outcome]:
        """It is gone, and comes back only when it is needed again."""
        outcomes = self.bereft(server, fault, withdraw)
        self._drop(server)
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
            self.forget(ident)
            outcomes.append(ToSession(failure(ident, unexecuted(fault) if is_unsent else fault)))
        self._announced.pop(server, None)
        self._subscribing.bereft(server)
        partner.bereft()
        self._set_due()
        return outcomes

    def returned(self, server: str, now: float) -> list[Outcome]:
        """There is another child of it, which has heard what the one before had."""
        partner = self._partners.get(server)
        if partner is None or not partner.is_ready:
            return []
        outcomes = [*partner.returned(now), *self._subscribe_again()]
        self._set_due()
        return outcomes

    # What is known changes, and time passes.

    def learn(self, known: Known, rules: Rules) -> list[Outcome]:
        before, self._known, self._rules = self._known, known, rules
        changed = self._offers.learn(known, rules, self._partners)
        for server in self._announced:
            if known.inventories.get(server) != before.inventories.get(server):
                self._announced[server] -= changed
        outcomes: list[Outcome] = self._news(changed)
        for server, partner in self._partners.items():
            if not partner.is_ready:
                partner.inventory = self._offers.of(server)
        if known.is_whole:
            outcomes += self._answer_held(lambda _held: True)
        return [*outcomes, *self._subscribe_again()]

    def tick(self, now: float) -> list[Outcome]:
        outcomes = self._answer_held(lambda held: held.until <= now)
        for server, partner in self._partners.items():
            if partner.due <= now:
                asked, is_read = partner.tick(now)
                outcomes += [*asked, *(self._read(server, partner) if is_read else ())]
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
                self._subscribing.note(request)
                outcomes = self._pass(request, sees)
                self._subscribing.passed(request)
                return outcomes
            case method if method == methods.INITIALIZE or method in SHELF_OF:
                return self._listed(request, now, sees)
            case _:
                search = finding.search(request, self._rules.found) if self._rules.finds else None
                if search is None:
                    return self._pass(request, sees)
                return [Find(request.id, search.query, search.limit, sees)]

    def _listed(self, request: Request, now: float, sees: Sight) -> list[Outcome]:
        """Now, or when more is known."""
        if self._known.is_whole:
            return self._answer(request, sees)
        self._unanswered.take(Held(request, now + self._rules.patience, sees))
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
            page = self.catalog.page(shelf, methods.cursor(request.params), self._rules.page, partial(sees, shelf))
        except BadParams as fault:
            return [ToSession(failure(request.id, fault))]
        return [ToSession(Result(request.id, page))]

    def _greet(self, initialize: Request, sees: Sight) -> list[Outcome]:
        answer = introductions.greeted(initialize, self._known, sees, self._rules.version)
        self._is_greeted = True
        self.told = Told(UNSET if initialize.params is None else initialize.params, answer)
        return [ToSession(Result(initialize.id, answer))]

    def _pass(self, request: Request, sees: Sight) -> list[Outcome]:
        """What it was sent to may be another thing by now than when it was judged."""
        call = finding.unwrapped(request) if self._rules.finds else request
        route = routed(call, self.catalog)
        if not sees(route.shelf, route.entry):
            raise unknown(KIND[route.shelf], route.public)
        outcomes: list[Outcome] = []
        partner = self._partner(route.server, outcomes)
        try:
            outcomes += partner.submit(route.request)
        except Overloaded as fault:
            self.forget(request.id)
            fault.details.setdefault("server", route.server)
            return [*outcomes, ToSession(failure(request.id, fault))]
        self._owners[request.id] = route.server
        return outcomes

    def _partner(self, server: str, outcomes: list[Outcome]) -> Partner:
        partner = self._partners.get(server)
        if partner is None:
            partner = self._partners[server] = Partner(server, self._mint, self._rules, self._offers.of(server))
            params = self.told.initialize
            outcomes += partner.greet(None if params is UNSET else params)
        return partner

    def _begin_eager(self) -> list[Outcome]:
        outcomes: list[Outcome] = []
        due, self._owes_eager = sorted(self._rules.eager) if self._owes_eager else [], False
        for server in due:
            self._partner(server, outcomes)
        return outcomes

    def _subscribe_again(self) -> list[Outcome]:
        """To what is owed, as soon as it is known whose it is, and as fast as that one takes it."""
        outcomes: list[Outcome] = []
        for uri, server in self._subscribing.owners(self.catalog, is_whole=self._known.is_whole):
            partner = self._partner(server, outcomes)
            if partner.is_ready and self._subscribing.has_room(server):
                request = self._subscribing.again(next(self._mint), server, uri)
                outcomes += partner.submit(routed(request, self.catalog).request)
        return outcomes

    def _leveled(self, request: Request) -> list[Outcome]:
        params = leveled(request.params)
        self.told = replace(self.told, level=params)
        told = [outcome for partner in self._partners.values() for outcome in partner.level(params)]
        return [ToSession(result(request.id, {})), *told]

    def _notified(self, notification: Notification) -> list[Outcome]:
        match notification.method:
            case methods.INITIALIZED:
                self.told = replace(self.told, is_initialized=True)
                self._owes_eager = True
                return self._begin_eager()
            case methods.CANCELLED:
                ident = methods.cancelled_id(notification)
                if ident is None or (isinstance(ident, int) and self.withdraw(ident)):
                    return []
                owner = self._owners.get(ident)
                self.forget(ident)
                return [] if owner is None else self._to(owner, notification)
            case methods.PROGRESS:
                reported = self._asking.reported(notification)
                return [] if reported is None else self._to(*reported)
            case methods.EXIT:
                return []  # Of a server that nobody told of a shutdown: they are stopped when the session ends.
            case _:
                return [ToServer(server, notification) for server, each in self._partners.items() if each.is_ready]

    # The servers' side, in detail.

    def _replied(self, server: str, partner: Partner, reply: Reply, now: float) -> list[Outcome]:
        if reply.id is not None and self._owners.get(reply.id) == server:
            return [self._answered(server, reply.id, reply)]
        if partner.is_greeting(reply):
            return self._greeted(server, partner, reply, now)
        if self._subscribing.answered_again(reply):
            return self._subscribe_again()
        outcomes, is_read = partner.replied(reply, now)
        self._set_due()
        return [*outcomes, *self._read(server, partner)] if is_read else outcomes

    def _answered(self, server: str, ident: RequestId, reply: Reply) -> ToSession:
        if self._subscribing.answered(reply):
            self.told = replace(self.told, subscribed=self._subscribing.kept)
        del self._owners[ident]
        if isinstance(reply, Result) and may_link(reply.result):
            reply = Result(ident, relinked(reply.result, lambda uri: self.catalog.public_uri(server, uri)))
        return ToSession(reply)

    def _greeted(self, server: str, partner: Partner, reply: Reply, now: float) -> list[Outcome]:
        if isinstance(reply, Result):
            level = None if self.told.level is UNSET else self.told.level
            outcomes = [*partner.greeted(reply.result, level), *self._subscribe_again(), *partner.go_on(now)]
            self._set_due()
            return outcomes
        outcomes = list(self._asking.lapsed(server))
        for ident in self._owed_by(server):
            self.forget(ident)
            outcomes.append(ToSession(Failure(ident, reply.error)))
        self._drop(server)
        return [*outcomes, Shut(server)]

    def _read(self, server: str, partner: Partner) -> list[Outcome]:
        """What it offers to this session is known."""
        changed = self._offers.read(server, partner.inventory)
        partner.inventory = self._offers.of(server)
        return self._news(changed | self._announced.pop(server, set()))

    def _told_by(self, server: str, partner: Partner, notification: Notification, now: float) -> list[Outcome]:
        match notification.method:
            case method if method in methods.LIST_CHANGED:
                outcomes, is_news = partner.announced(method, now)
                if is_news:
                    self._announced.setdefault(server, set()).add(method)
                self._set_due()
                return [Announced(server), *outcomes]
            case methods.PROGRESS:
                token = methods.reported_token(notification)
                is_due = token is not None and self._owners.get(token) == server
                return [ToSession(notification)] if is_due else []
            case methods.RESOURCE_UPDATED:
                uri = self.catalog.public_uri(server, methods.resource_uri(notification.params))
                return [ToSession(methods.with_field(notification, "uri", uri))]
            case methods.CANCELLED:
                withdrawn = self._asking.withdrawn(server, notification)
                return [] if withdrawn is None else [withdrawn]
            case _:
                return [ToSession(notification)]

    # Parts.

    def _to(self, server: str, message: Message) -> list[Outcome]:
        return [ToServer(server, message)] if server in self._partners else []

    def forget(self, ident: RequestId | None) -> None:
        """Nobody owes an answer to it any more; whoever is further on may have taken it back."""
        if ident is not None:
            self._owners.pop(ident, None)
            self._subscribing.forget(ident)

    def _drop(self, server: str) -> None:
        if self._partners.pop(server, None) is None:
            return
        self._subscribing.lost(server, lambda uri: (self.catalog.owner_of(uri) or (server,))[0] == server)
        self._announced.pop(server, None)
        self._set_due()

    def _owed_by(self, server: str) -> list[int]:
        return [ident for ident, owner in self._owners.items() if owner == server and isinstance(ident, int)]

    def _news(self, changed: set[str]) -> list[Outcome]:
        """Who finds tools sees two of them, whatever there is."""
        if not self._is_greeted:
            return []
        seen = changed - {methods.TOOLS_CHANGED} if self._rules.finds else changed
        return [ToSession(Notification(method)) for method in sorted(seen)]

    def _answer_held(self, is_due: Callable[[Held], bool]) -> list[Outcome]:
        due = self._unanswered.release(is_due)
        self._set_due()
        return [outcome for held in due for outcome in self._answer(held.request, held.sees)]

    def _set_due(self) -> None:
        self.due = min((self._unanswered.due, *(partner.due for partner in self._partners.values())))
