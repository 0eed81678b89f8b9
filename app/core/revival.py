"""What a server was told of its client, so that another child in place of one that died can be told the same.

    NEW ──initialize──▶ GREETING ──its answer──▶ LIVE ──child lost──▶ BEREFT ──revive──▶ REPLAYING
                                                   ▲                     ▲──child lost──────┤
                                                   └──────answered as the first time────────┘

It stands between a session and its place at the server, whatever that is. While there is no child that could take
it, what the session says waits; the session itself has told whoever waited for the child that died.
"""

from collections.abc import Iterator
from enum import Enum, auto
from typing import TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from app.core.anteroom import Anteroom
from app.core.bounds import BOUNDS, Bounds
from app.core.ledger import no_room, too_many_subscriptions
from app.core.parties import ToChild
from app.core.probing import ToSession
from app.protocol import discovery, methods
from app.protocol.faults import GatewayFault, Overloaded, Unavailable
from app.protocol.jsonrpc import Failure, Message, Notification, Reply, Request, RequestId, Result, failure

_TOLD = (
    ("tools", methods.TOOLS_CHANGED),
    ("prompts", methods.PROMPTS_CHANGED),
    ("resources", methods.RESOURCES_CHANGED),
)
RECORDED = frozenset({methods.SET_LEVEL, methods.SUBSCRIBE, methods.UNSUBSCRIBE, methods.SHUTDOWN})
_AT_ONCE_MAX = 32
"""So many replayed requests may be unanswered; a child that has just started reads slowly, and its queue is finite."""


class Unlike(Struct, frozen=True):
    """The new child is not as the old one: the session cannot go on with it."""

    fault: Unavailable


class NotTaken(Struct, frozen=True):
    """The new child did not take what the one before it had taken; the session goes on without."""

    method: str
    code: int


Outcome: TypeAlias = ToChild | ToSession | Unlike | NotTaken


class Told(Struct, frozen=True):
    """What a server was told of its client, and what it answered: enough to tell another child the same."""

    initialize: Raw | UnsetType = UNSET
    """The parameters of it, where there were any."""
    greeted: Raw = Raw(b"{}")
    is_initialized: bool = False
    level: Raw | UnsetType = UNSET
    subscribed: dict[str, Raw] = {}
    """Parameters too; by URI."""


class Phase(Enum):
    NEW = auto()
    GREETING = auto()
    LIVE = auto()
    BEREFT = auto()
    REPLAYING = auto()


class Revival:
    """`mint` is what the session mints its ids from; `told` is of a child that is gone, where there was one before."""

    def __init__(self, mint: Iterator[int], bounds: Bounds = BOUNDS, told: Told | None = None) -> None:
        self.phase = Phase.NEW if told is None else Phase.BEREFT
        self.told = Told() if told is None else told
        """Another value, whenever there is more to it; it counts once the child has answered."""
        self._mint = mint
        self._bounds = bounds
        self._anteroom = Anteroom(bounds.early_count, bounds.early_bytes)
        self._greeting_id: RequestId | None = None
        self._asked_id: RequestId = 0
        """By which the session knows its own greeting; another one may have begun it."""
        self._is_closing = False
        self._noted: dict[RequestId, Request] = {}
        """Requests that count once they are answered."""
        self._own: dict[RequestId, Request] = {}
        """Those that were replayed, of whose answers the session does not hear."""
        self._later: dict[str, Raw] = {}
        """Subscriptions that are still to be replayed."""
        self._refusal: GatewayFault | None = None

    @property
    def is_passing(self) -> bool:
        """What the child says is for the session as it is; `receive` may be left out."""
        return self.phase is Phase.LIVE and not self._noted and not self._own and not self._later

    @property
    def is_refusing(self) -> bool:
        """Whether what the session wants is answered with a fault, for there is no child for now."""
        return self._refusal is not None

    @property
    def waiting_bytes(self) -> int:
        return self._anteroom.waiting_bytes

    @property
    def may_revive(self) -> bool:
        """Whether the session can outlive its child."""
        return self.phase not in (Phase.NEW, Phase.GREETING) and not self._is_closing

    def submit(self, message: Message) -> list[Outcome]:
        """The session has something for the child. Another session may take over, and greets what was greeted alike."""
        if isinstance(message, Request) and message.method == methods.INITIALIZE:
            return self._greet(message)
        match self.phase:
            case Phase.NEW | Phase.GREETING | Phase.LIVE:
                if isinstance(message, Request) and message.method == methods.SUBSCRIBE and self._is_full(message):
                    return [ToSession(failure(message.id, too_many_subscriptions()))]
                self._note(message)
                return [*self._overdue(message), ToChild(message)]
            case Phase.BEREFT | Phase.REPLAYING:
                return self._wait(message)

    def receive(self, message: Message, about: RequestId | None = None) -> list[Outcome]:
        """The child said something."""
        if not isinstance(message, Reply) or message.id is None:
            return [ToSession(message, about)]
        if message.id == self._greeting_id:
            return self._answered(message)
        if message.id in self._own:
            return self._replayed(self._own.pop(message.id), message)
        noted = self._noted.pop(message.id, None)
        if noted is not None and isinstance(message, Result):
            self._record(noted)
        return [ToSession(message, about)]

    def withdraw(self, ident: int) -> bool:
        """Nobody waits for a request any more: take it back, where it waits itself; False where it does not."""
        self._noted.pop(ident, None)
        return self._anteroom.withdraw(ident)

    def lost(self) -> None:
        """The child is gone, and another may be had."""
        self.phase, self._greeting_id = Phase.BEREFT, None
        self._noted.clear()
        self._own.clear()
        self._later = {}

    def refuse(self, fault: GatewayFault) -> None:
        """There is no other child for now: until there is, no request waits for it."""
        self._refusal = fault

    def revive(self) -> list[Outcome]:
        """There is another child."""
        self._refusal = None
        self.phase, self._greeting_id = Phase.REPLAYING, next(self._mint)
        params = self.told.initialize
        return [ToChild(Request(self._greeting_id, methods.INITIALIZE, None if params is UNSET else params))]

    # What is kept.

    def _greet(self, initialize: Request) -> list[Outcome]:
        self._asked_id = initialize.id
        match self.phase:
            case Phase.NEW:
                self.phase, self._greeting_id = Phase.GREETING, initialize.id
                self.told = Told(UNSET if initialize.params is None else initialize.params)
                return [ToChild(initialize)]
            case Phase.GREETING:
                return []
            case Phase.LIVE | Phase.BEREFT | Phase.REPLAYING:
                return [ToSession(Result(initialize.id, self.told.greeted))]

    def _note(self, message: Message) -> None:
        match message:
            case Request(method=methods.SHUTDOWN):
                self._is_closing = True
            case Request(method=method) if method in RECORDED:
                self._noted[message.id] = message
            case Notification(method=methods.INITIALIZED):
                self.told = replace(self.told, is_initialized=True)
            case Notification(method=methods.CANCELLED):
                self._noted.pop(methods.cancelled_id(message) or 0, None)
            case _:
                pass

    def _is_full(self, subscribe: Request) -> bool:
        """Those that were asked for and are not answered yet count, too."""
        asked = [other.params or Raw(b"") for other in self._noted.values() if other.method == methods.SUBSCRIBE]
        kept = [*self.told.subscribed.values(), *asked]
        size = sum(map(len, kept)) + len(subscribe.params or b"")
        return len(kept) >= self._bounds.subscriptions or size > self._bounds.subscription_bytes

    def _record(self, request: Request) -> None:
        uri, params, told = methods.resource_uri(request.params), request.params, self.told
        others = {known: kept for known, kept in told.subscribed.items() if known != uri}
        match request.method:
            case methods.SET_LEVEL if params is not None:
                self.told = replace(told, level=params)
            case methods.SUBSCRIBE if params is not None:
                self.told = replace(told, subscribed={**others, uri: params})
            case methods.UNSUBSCRIBE:
                self.told = replace(told, subscribed=others)
            case _:
                pass

    def _wait(self, message: Message) -> list[Outcome]:
        """What is about the child that died is of no use to the next."""
        match message:
            case Notification(method=methods.INITIALIZED):
                self.told = replace(self.told, is_initialized=True)
                return []
            case Notification(method=methods.CANCELLED):
                ident = methods.cancelled_id(message)
                if isinstance(ident, int):
                    self._anteroom.withdraw(ident)
                return []
            case Result() | Failure() | Notification(method=methods.EXIT):
                return []
            case Request() if self._refusal is not None:
                return [ToSession(failure(message.id, self._refusal))]
            case Request():
                return [] if self._anteroom.take(message) else [ToSession(failure(message.id, no_room()))]
            case Notification():
                self._anteroom.take(message)
                return []

    # The handshake, the first time and again.

    def _answered(self, reply: Reply) -> list[Outcome]:
        self._greeting_id = None
        is_first = self.phase is Phase.GREETING
        match reply:
            case Result() if is_first:
                self.phase, self.told = Phase.LIVE, replace(self.told, greeted=reply.result)
                return [ToSession(Result(self._asked_id, reply.result))]
            case Failure() if is_first:
                return [ToSession(Failure(self._asked_id, reply.error))]
            case Result() if methods.greeted_version(reply.result) == methods.greeted_version(self.told.greeted):
                return self._go_on()
            case Result():
                return [Unlike(_unlike("speaks another revision than before"))]
            case Failure():
                return [Unlike(_unlike("refused to initialize"))]

    def _go_on(self) -> list[Outcome]:
        """The child hears what the one before it knew, the client that its lists may be others, and all that waited."""
        self.phase = Phase.LIVE
        outcomes: list[Outcome] = []
        told = self.told
        if told.is_initialized:
            outcomes.append(ToChild(Notification(methods.INITIALIZED)))
        if told.level is not UNSET:
            outcomes.append(self._again(methods.SET_LEVEL, told.level))
        self._later = dict(told.subscribed)
        outcomes += self._go_on_replaying()
        if told.is_initialized:
            outcomes += self._news()
        for _, message in self._anteroom.empty():
            outcomes += self.submit(message)
        return outcomes

    def _again(self, method: str, params: Raw) -> ToChild:
        request = Request(next(self._mint), method, params)
        self._own[request.id] = request
        return ToChild(request)

    def _go_on_replaying(self) -> list[Outcome]:
        outcomes: list[Outcome] = []
        while self._later and len(self._own) < _AT_ONCE_MAX:
            outcomes.append(self._again(methods.SUBSCRIBE, self._later.pop(next(iter(self._later)))))
        return outcomes

    def _overdue(self, message: Message) -> list[Outcome]:
        """What the session says of a subscription comes after what it said before."""
        if not self._later or not isinstance(message, Request) or message.method not in RECORDED:
            return []
        params = self._later.pop(methods.resource_uri(message.params), None)
        return [] if params is None else [self._again(methods.SUBSCRIBE, params)]

    def _replayed(self, request: Request, reply: Reply) -> list[Outcome]:
        """What a full queue of ours refused is tried again, while there is an answer to come that tells when."""
        outcomes: list[Outcome] = []
        code = methods.error_code(reply.error) if isinstance(reply, Failure) else None
        if code == Overloaded.code:
            if not self._own:
                return [Unlike(_unlike("did not take what the one before it had been told"))]
            uri = methods.resource_uri(request.params)
            if request.method == methods.SUBSCRIBE and uri in self.told.subscribed:
                self._later[uri] = self.told.subscribed[uri]
                return []
        if code is not None:
            outcomes.append(NotTaken(request.method, code))
        return [*outcomes, *self._go_on_replaying()]

    def _news(self) -> list[Outcome]:
        changes = discovery.offer(self.told.greeted).changes
        told = [method for name, method in _TOLD if getattr(changes, name)]
        return [ToSession(Notification(method)) for method in told]


def _unlike(what: str) -> Unavailable:
    return Unavailable(f"the server was started again and {what}", reason="not_revived", retryable=False)
