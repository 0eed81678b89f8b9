"""One handshake child for several parties: what each may say to it, and who hears what it says.

The child was greeted by us, so each party speaks only for itself. What answers no request goes to the party that
holds the child; where nobody does, to all sessions, to those who subscribed, or to our own log, for nobody can say
whose it is. Ids and progress tokens need no mapping here: the parties mint them from one source.
"""

from collections.abc import Callable, Iterator, Mapping

from msgspec import Raw

from app.core.anteroom import Anteroom
from app.core.bounds import BOUNDS, Bounds
from app.core.holding import Holding
from app.core.ledger import no_room
from app.core.parties import OWN, Changed, Outcome, Owners, Party, Refused, ToChild, ToLog, ToParty
from app.protocol import methods
from app.protocol.jsonrpc import Failure, Message, Notification, Request, RequestId, Result, failure, payload, result
from app.protocol.revisions import NEWEST_HANDSHAKE, REVISIONS

_OURS = frozenset({methods.INITIALIZE, methods.SHUTDOWN, methods.SET_LEVEL, methods.SUBSCRIBE, methods.UNSUBSCRIBE})
"""What does not simply go on to the child."""


class Sharing:
    """The child is introduced to `client_info`, or else to viaduct of this `version`, with these capabilities."""

    def __init__(
        self,
        mint: Iterator[int],
        version: str,
        capabilities: Mapping[str, Raw] | None = None,
        client_info: Raw | None = None,
        bounds: Bounds = BOUNDS,
    ) -> None:
        self.greeted: Raw | None = None
        """What the child answered our greeting with; until then, what the parties say waits."""
        self._mint = mint
        self._capabilities = dict(capabilities or {})
        self._client_info = client_info or payload({"name": "viaduct", "version": version})
        self._holding = Holding(self._capabilities, bounds.questions, bounds.waiting_bytes)
        self._owners = Owners()
        self._parties: set[Party] = set()
        self._levels: dict[Party, str] = {}
        self._level = ""
        self._leveling_id: RequestId | None = None
        self._subscribers: dict[str, set[Party]] = {}
        self._subscribing: dict[RequestId, str] = {}
        self._greeting_id: RequestId | None = None
        self._anteroom = Anteroom(bounds.early_count, bounds.early_bytes)

    @property
    def is_busy(self) -> bool:
        """Whether a party waits for an answer of the child's."""
        return len(self._owners) > self._owners.count_of(OWN)

    def greet(self) -> list[Outcome]:
        """Introduce ourselves."""
        self._greeting_id = next(self._mint)
        said = {
            "protocolVersion": NEWEST_HANDSHAKE.date,
            "capabilities": self._capabilities,
            "clientInfo": self._client_info,
        }
        return [ToChild(Request(self._greeting_id, methods.INITIALIZE, payload(said)))]

    def submit(self, party: Party, message: Message) -> list[Outcome]:
        """A party has something for the child."""
        if self.greeted is None:
            return [] if self._anteroom.take(message, party) else _shut_out(party, message)
        match message:
            case Request() if message.method in _OURS:
                return self._requested(party, message, self.greeted)
            case Request():
                return self._passed(party, message)
            case Notification():
                return self._notified(party, message)
            case Result() | Failure():
                return self._holding.answer(party, message)

    def receive(self, message: Message) -> list[Outcome]:
        """The child said something."""
        match message:
            case Result() | Failure() if message.id is not None and message.id == self._greeting_id:
                return self._answered_greeting(message)
            case Result() | Failure():
                return self._replied(message)
            case Notification():
                return self._announced(message)
            case Request():
                return self._asked(message)

    def leave(self, party: Party) -> list[Outcome]:
        """A party is gone: nobody waits for its calls, its subscriptions lapse, and it holds the child no more."""
        outcomes: list[Outcome] = []
        for ident in self._owners.of(party):
            self._owners.pop(ident)
            if ident not in self._subscribing:
                outcomes.append(ToChild(methods.cancellation(ident, "the session has ended")))
        if self._subscribers:
            for uri in [uri for uri, parties in self._subscribers.items() if party in parties]:
                outcomes += self._lapsed(party, uri)
        if party == self._holding.party:
            outcomes += self._holding.end(party)
        if self.greeted is None:
            self._anteroom.forget(party)
        self._parties.discard(party)
        if self._levels.pop(party, None) is not None:
            outcomes += self._releveled()
        return outcomes

    def hold(self, party: Party) -> list[Outcome]:
        """From now on the child's questions and log messages are this party's."""
        return self._holding.take(party)

    def unhold(self, party: Party) -> list[Outcome]:
        """The party goes on without them; what it was asked and did not answer, it never will."""
        return self._holding.end(party)

    def doubt(self) -> list[Outcome]:
        """A request timed out."""
        return self._holding.give_up()

    def withdraw(self, ident: int, unsend: Callable[[int], bool]) -> bool:
        """A request is taken back by `unsend` if it can be; not one that others may rely on by now."""
        if self._anteroom.withdraw(ident):
            return True
        if ident in self._subscribing or not unsend(ident):
            return False
        self._owners.pop(ident)
        return True

    def _answered_greeting(self, reply: Result | Failure) -> list[Outcome]:
        self._greeting_id = None
        match reply:
            case Failure():
                return [Refused(reply.error)]
            case Result():
                self.greeted = reply.result
        outcomes: list[Outcome] = [ToChild(Notification(methods.INITIALIZED))]
        for party, message in self._anteroom.empty():
            outcomes += self.submit(party, message)
        return outcomes

    def _requested(self, party: Party, request: Request, greeted: Raw) -> list[Outcome]:
        match request.method:
            case methods.INITIALIZE:
                return self._joined(party, request, greeted)
            case methods.SHUTDOWN:
                return [ToParty(party, result(request.id, {}))]
            case methods.SET_LEVEL:
                return self._leveled(party, request)
            case methods.SUBSCRIBE:
                return self._subscribed(party, request)
            case methods.UNSUBSCRIBE:
                return self._unsubscribed(party, request)
            case _:
                return self._passed(party, request)

    def _passed(self, party: Party, request: Request) -> list[Outcome]:
        self._owners.add(request.id, party)
        return [ToChild(request)]

    def _joined(self, party: Party, request: Request, greeted: Raw) -> list[Outcome]:
        """Each session is answered in its own revision, where there is such a revision."""
        wanted = methods.greeting(request).version
        self._parties.add(party)
        row = REVISIONS.get(wanted)
        answer = greeted if row is None or row.modern else methods.with_version(greeted, wanted)
        return [ToParty(party, Result(request.id, answer))]

    def _leveled(self, party: Party, request: Request) -> list[Outcome]:
        """The child is asked for the most detailed level that anybody wants."""
        level = methods.log_level(request.params)
        if level not in methods.LOG_LEVELS:
            return self._passed(party, request)
        self._levels[party] = level
        detailed = self._detailed()
        if detailed == self._level:
            return [ToParty(party, result(request.id, {}))]
        self._level, self._leveling_id = detailed, request.id
        return self._passed(party, Request(request.id, request.method, payload({"level": detailed})))

    def _releveled(self) -> list[Outcome]:
        """Who wanted the most detailed messages may be the one that left."""
        level = self._detailed()
        if not self._levels or level == self._level:
            return []
        self._level = level
        return [ToChild(Request(self._own(), methods.SET_LEVEL, payload({"level": level})))]

    def _detailed(self) -> str:
        return min(self._levels.values(), key=methods.LOG_LEVELS.index, default="")

    def _subscribed(self, party: Party, request: Request) -> list[Outcome]:
        """The child is asked once, whoever else wants to hear of the resource."""
        uri = methods.resource_uri(request.params)
        if not uri:
            return self._passed(party, request)
        if uri in self._subscribers:
            self._subscribers[uri].add(party)
            return [ToParty(party, result(request.id, {}))]
        self._subscribers[uri] = {party}
        self._subscribing[request.id] = uri
        return self._passed(party, methods.with_uri(request, uri))

    def _unsubscribed(self, party: Party, request: Request) -> list[Outcome]:
        uri = methods.resource_uri(request.params)
        parties = self._subscribers.get(uri, set())
        parties.discard(party)
        if parties:
            return [ToParty(party, result(request.id, {}))]
        self._forget(uri)
        return self._passed(party, methods.with_uri(request, uri) if uri else request)

    def _lapsed(self, party: Party, uri: str) -> list[Outcome]:
        """The party hears no more of the resource, nor do we where it was the last."""
        self._subscribers[uri].discard(party)
        if self._subscribers[uri]:
            return []
        self._forget(uri)
        return [ToChild(Request(self._own(), methods.UNSUBSCRIBE, payload({"uri": uri})))]

    def _forget(self, uri: str) -> None:
        self._subscribers.pop(uri, None)
        self._subscribing = {ident: other for ident, other in self._subscribing.items() if other != uri}

    def _replied(self, reply: Result | Failure) -> list[Outcome]:
        if reply.id is None:
            return []
        uri = self._subscribing.pop(reply.id, None)
        if uri is not None and isinstance(reply, Failure):
            self._subscribers.pop(uri, None)
        if reply.id == self._leveling_id and isinstance(reply, Failure):
            self._level = ""
        owner = self._owners.pop(reply.id)
        return [] if owner is None or owner == OWN else [ToParty(owner, reply)]

    def _own(self) -> RequestId:
        ident = next(self._mint)
        self._owners.add(ident, OWN)
        return ident

    def _notified(self, party: Party, notification: Notification) -> list[Outcome]:
        match notification.method:
            case methods.INITIALIZED | methods.EXIT | methods.ROOTS_CHANGED:
                return []
            case methods.CANCELLED:
                ident = methods.cancelled_id(notification)
                if ident is None or self._owners.get(ident) != party:
                    return []
                self._owners.pop(ident)
                uri = self._subscribing.get(ident)
                return [ToChild(notification)] if uri is None else self._lapsed(party, uri)
            case _:
                return [ToChild(notification)]

    def _announced(self, notification: Notification) -> list[Outcome]:
        match notification.method:
            case methods.PROGRESS:
                token = methods.reported_token(notification)
                owner = None if token is None else self._owners.get(token)
                return [] if owner is None or owner == OWN else [ToParty(owner, notification)]
            case methods.RESOURCE_UPDATED:
                return self._updated(notification)
            case methods.LOG_MESSAGE:
                return self._unattributed(notification, [ToLog(notification)])
            case methods.CANCELLED:
                return self._holding.take_back(notification)
            case method if method in methods.LIST_CHANGED:
                return [Changed(notification), *self._news(notification)]
            case _:
                return self._unattributed(notification, self._news(notification))

    def _unattributed(self, notification: Notification, otherwise: list[Outcome]) -> list[Outcome]:
        holder = self._holding.party
        return otherwise if holder is None else [ToParty(holder, notification)]

    def _news(self, notification: Notification) -> list[Outcome]:
        return [ToParty(party, notification) for party in sorted(self._parties)]

    def _updated(self, notification: Notification) -> list[Outcome]:
        """The subscribers are told of the resource by which they were found."""
        uri = methods.resource_uri(notification.params)
        subscribers = self._subscribers.get(uri)
        if not subscribers:
            return []
        told = methods.with_field(notification, "uri", uri)
        return [ToParty(party, told) for party in sorted(subscribers)]

    def _asked(self, question: Request) -> list[Outcome]:
        if question.method == methods.PING:
            return [ToChild(result(question.id, {}))]
        return self._holding.ask(question)


def _shut_out(party: Party, message: Message) -> list[Outcome]:
    """A request is answered so; nobody waits for anything else."""
    return [ToParty(party, failure(message.id, no_room()))] if isinstance(message, Request) else []
