"""A handshake session's talk with a child whose era is not known yet, or that is stateless (2026-07-28).

    UNKNOWN ──▶ PLAIN      the child speaks the handshake: from now on everything passes as it is
       │ └────▶ REFUSED    the child speaks neither; the session has heard so, and has ended
       └──────▶ MODERN     every request carries its client; what a child of that era does not know is answered here

The session sees a server that greets, asks and notifies, the child a client that needs none of that: `Probing` finds
out which era it is, `Rounds` turns results that ask into questions and their answers into retries, `Feed` turns
subscriptions into one stream. Like the session, it does no I/O and reads no clock.

A log level travels with each request once the client has set one. Until then none is sent, and the child logs nothing:
the handshake revisions leave the choice to the server, and the stateless one has made it (server/utilities/logging).
"""

from collections.abc import Callable, Iterator

from msgspec import Raw
from msgspec.structs import replace

from app.core.feed import Feed
from app.core.parties import ToChild
from app.core.patience import Patience
from app.core.probing import Beginning, Found, Outcome, Phase, Probing, ToSession
from app.core.rounds import Rounds
from app.protocol import discovery, methods, stateless
from app.protocol.discovery import Offer
from app.protocol.faults import BadParams, UnknownMethod
from app.protocol.jsonrpc import Failure, Message, Notification, Reply, Request, Result, failure, result

_DEFAULT = Patience()


class Translation:
    """`mint` is what the session mints its ids from. `begins` is the era that is tried first, and where it fails and
    `falls_back` is set, so is the other. `elicitation_id` gives a fresh name each time; `version` is our own."""

    def __init__(
        self,
        mint: Iterator[int],
        version: str,
        *,
        begins: Beginning,
        elicitation_id: Callable[[], str],
        falls_back: bool = True,
        patience: Patience = _DEFAULT,
    ) -> None:
        self._mint = mint
        self._version = version
        self._patience = patience
        self._probing = Probing(mint, begins, patience.discover, falls_back=falls_back)
        self._rounds = Rounds(mint, patience, elicitation_id)
        self._offer: Offer
        self._carried: stateless.Envelope
        self._feed: Feed

    @property
    def is_plain(self) -> bool:
        """The child speaks the handshake: nothing is translated, and the caller may do without us."""
        return self._probing.phase is Phase.PLAIN

    @property
    def found(self) -> Found:
        return self._probing.found

    @property
    def greeting(self) -> Request | None:
        """The client's `initialize`, while its outcome is not known: another child may be greeted with it."""
        return self._probing.greeting if self._probing.phase is Phase.UNKNOWN else None

    @property
    def due(self) -> float:
        """No later than this, `tick` has something to do."""
        if self._probing.phase is Phase.MODERN:
            return min(self._rounds.due, self._feed.due)
        return self._probing.due

    def submit(self, message: Message, now: float) -> list[Outcome]:
        """The session has something for the child."""
        match self._probing.phase:
            case Phase.PLAIN:
                return [ToChild(message)]
            case Phase.REFUSED:
                return []
            case Phase.UNKNOWN:
                return self._early(message, now)
            case Phase.MODERN:
                return self._submitted(message)

    def receive(self, message: Message, now: float) -> list[Outcome]:
        """The child said something."""
        match self._probing.phase:
            case Phase.PLAIN:
                return [ToSession(message)]
            case Phase.REFUSED:
                return []
            case Phase.UNKNOWN:
                return self._probed(self._probing.receive(message, now))
            case Phase.MODERN:
                return self._received(message, now)

    def tick(self, now: float) -> list[Outcome]:
        match self._probing.phase:
            case Phase.UNKNOWN:
                return self._probed(self._probing.tick(now))
            case Phase.MODERN:
                return [*self._rounds.tick(self._carried, now), *self._feed.tick(now)]
            case Phase.PLAIN | Phase.REFUSED:
                return []

    def withdraw(self, ident: int, take_back: Callable[[int], bool]) -> bool:
        """A request of the session's is taken back by `take_back` if it can be, under the id that the child knows."""
        if self._probing.phase is Phase.MODERN:
            return self._rounds.withdraw(ident, take_back)
        return take_back(ident)

    # Before the era is known.

    def _early(self, message: Message, now: float) -> list[Outcome]:
        """The session holds everything else back until `initialize` is answered, but for answers to an early ping."""
        if not isinstance(message, Request) or message.method != methods.INITIALIZE or self._probing.greeting:
            return [ToChild(message)]
        self._carried = discovery.introduced(message, {"name": "viaduct", "version": self._version})
        return self._probing.greet(message, self._carried, now)

    def _probed(self, outcomes: list[Outcome]) -> list[Outcome]:
        probing = self._probing
        if probing.phase is not Phase.MODERN or probing.greeting is None or probing.discovered is None:
            return outcomes
        return [*outcomes, self._greet(probing.greeting, probing.discovered)]

    def _greet(self, initialize: Request, discovered: Raw) -> Outcome:
        self._offer = discovery.offer(discovered)
        self._feed = Feed(self._mint, self._offer, self._carried, self._patience)
        wanted = methods.greeting(initialize).version
        return ToSession(Result(initialize.id, discovery.greeted(discovered, wanted)))

    # The session's side of a stateless child.

    def _submitted(self, message: Message) -> list[Outcome]:
        match message:
            case Request():
                return self._requested(message)
            case Notification():
                return self._notified(message)
            case Result() | Failure():
                return self._rounds.answered(message, self._carried)

    def _requested(self, request: Request) -> list[Outcome]:
        match request.method:
            case methods.PING | methods.SHUTDOWN:
                return [ToSession(result(request.id, {}))]
            case methods.SET_LEVEL:
                return [self._leveled(request)]
            case methods.SUBSCRIBE:
                return self._feed.subscribe(request)
            case methods.UNSUBSCRIBE:
                return self._feed.unsubscribe(request)
            case methods.INITIALIZE | stateless.DISCOVER | stateless.LISTEN:
                return [_unknown(request)]
            case _:
                return self._rounds.begin(request, self._carried)

    def _leveled(self, request: Request) -> Outcome:
        """For a level there is not: 2025-11-25, server/utilities/logging: "Error Handling"."""
        if not self._offer.logs:
            return _unknown(request)
        level = methods.log_level(request.params)
        if level not in methods.LOG_LEVELS:
            wrong = BadParams(f"unknown log level {level!r}; one of {', '.join(methods.LOG_LEVELS)}")
            return ToSession(failure(request.id, wrong))
        self._carried = replace(self._carried, log_level=level)
        return ToSession(result(request.id, {}))

    def _notified(self, notification: Notification) -> list[Outcome]:
        match notification.method:
            case methods.INITIALIZED:
                return self._feed.open()
            case methods.CANCELLED:
                ident = methods.cancelled_id(notification)
                if ident is None:
                    return []
                self._feed.cancel(ident)
                return self._rounds.cancel(ident, notification)
            case methods.ROOTS_CHANGED | methods.PROGRESS | methods.EXIT:
                return []
            case _:
                return [ToChild(notification)]

    # The child's side.

    def _received(self, message: Message, now: float) -> list[Outcome]:
        match message:
            case Result() | Failure():
                return self._replied(message, now)
            case Notification():
                return self._announced(message, now)
            case Request():
                refusal = UnknownMethod(f"servers of this revision do not ask {message.method!r}", reason="cannot_ask")
                return [ToChild(failure(message.id, refusal))]

    def _replied(self, reply: Reply, now: float) -> list[Outcome]:
        if self._feed.is_of(reply.id):
            return self._feed.ended(reply.id, reply.error if isinstance(reply, Failure) else None, now)
        return self._rounds.replied(reply, self._carried, now)

    def _announced(self, notification: Notification, now: float) -> list[Outcome]:
        match notification.method:
            case methods.PROGRESS:
                return self._rounds.progressed(notification)
            case stateless.ACKNOWLEDGED:
                return self._feed.acknowledged(notification, now)
            case methods.CANCELLED:
                return self._feed.ended(methods.cancelled_id(notification), None, now)
            case _ if stateless.SUBSCRIPTION_KEY in stateless.meta(notification.params):
                return self._feed.tell(notification)
            case _:
                return [ToSession(notification)]


def _unknown(request: Request) -> Outcome:
    return ToSession(failure(request.id, UnknownMethod(f"the server does not offer {request.method!r}")))
