"""One server of many, as a session that has them all knows it, from its greeting on.

GREETING ──its answer──▶ READY
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from msgspec import Raw, Struct

from app.core.anteroom import Anteroom
from app.core.bounds import Bounds
from app.core.catalog import Sight
from app.core.deadlines import FOREVER
from app.core.inventory import LISTED, Inventory, Shelf, introduced, wanted
from app.core.ledger import no_room
from app.core.probing import ToSession
from app.core.rates import Bucket, Rate
from app.core.reading import Reading
from app.protocol import methods
from app.protocol.jsonrpc import Message, Notification, Reply, Request, RequestId

READINGS = Rate(1.0, 10)
"""How often the lists of one server are read for one session: some announce a change with each answer."""

_SUBSCRIBING = frozenset({methods.SUBSCRIBE, methods.UNSUBSCRIBE})
_AT_ONCE_MAX = 32
"""Requests of our own: a session may have more subscriptions than a server's queue has room."""


class ToServer(Struct, frozen=True):
    server: str
    message: Message


class Open(Struct, frozen=True):
    """A server is needed: whatever it is told next is the first that it hears."""

    server: str


class Announced(Struct, frozen=True):
    """A server said that a list of its is another one now: others may want to know."""

    server: str


class Find(Struct, frozen=True):
    """The session's request is answered with the tools nearest to a question, of those that `sees` lets it see."""

    request: RequestId
    query: str
    limit: int
    sees: Sight


Outcome: TypeAlias = ToServer | ToSession | Open | Announced | Find


class Partner:
    """`known` is what is known of the server from elsewhere; of a list so many pages are read."""

    def __init__(self, server: str, mint: Iterator[int], bounds: Bounds, known: Inventory, pages_max: int) -> None:
        self.is_ready = False
        self.due = FOREVER
        """Then its lists may be read again, as they should be."""
        self.inventory = known
        """What it offers, to this session."""
        self._server = server
        self._mint = mint
        self._pages_max = pages_max
        self._readings = Bucket(READINGS, 0.0)
        self._anteroom = Anteroom(bounds.early_count, bounds.early_bytes)
        self._greeting_id: RequestId | None = None
        self._own: dict[RequestId, Request] = {}
        """Requests of whose answers the session does not hear."""
        self._later: dict[str, Request] = {}
        """Subscriptions that are still to be made again, by what the server calls the resource."""
        self._reading: Reading | None = None
        self._to_read: set[Shelf] = set()

    @property
    def waiting_bytes(self) -> int:
        return self._anteroom.waiting_bytes

    def greet(self, params: Raw | None) -> list[Outcome]:
        """As the client has greeted us."""
        self._greeting_id = next(self._mint)
        return [Open(self._server), self._to(Request(self._greeting_id, methods.INITIALIZE, params))]

    def submit(self, message: Message, now: float) -> list[Outcome]:
        """The session has something for it, now or as soon as it is ready. Lists that were not read wait for that, too.

        Raises:
            Overloaded: it is a request, and too much waits.
        """
        if self.is_ready:
            return [*self._overdue(message), self._to(message), *self._behind(now)]
        if not self._anteroom.take(message) and isinstance(message, Request):
            raise no_room()
        return []

    def ask(self, method: str, params: Raw) -> list[Outcome]:
        """Something of our own, of which the session does not hear; nothing before it is ready."""
        if not self.is_ready:
            return []
        request = Request(next(self._mint), method, params)
        self._own[request.id] = request
        return [self._to(request)]

    def again(self, subscriptions: Iterable[Request]) -> list[Outcome]:
        """Made once more, before anything else is said of these resources."""
        self._later |= {methods.resource_uri(request.params): request for request in subscriptions}
        return self._subscribe()

    def withdraw(self, ident: int) -> bool:
        """Take back a request that waits; False where it does not."""
        return self._anteroom.withdraw(ident)

    def bereft(self) -> None:
        """What it was asked of its lists is not answered any more."""
        if self._reading is not None:
            self._to_read.update(self._reading.shelves)
            self._reading = None
        asked, self._own = self._own, {}
        again = (request for request in asked.values() if request.method == methods.SUBSCRIBE)
        self._later |= {methods.resource_uri(request.params): request for request in again}

    def is_greeting(self, reply: Reply) -> bool:
        return reply.id == self._greeting_id

    def greeted(self, greeting: Raw, told: Mapping[str, Raw], now: float) -> list[Outcome]:
        """It is ready, and hears what else the session has `told` all; then all that waited. What it offers this client
        is read from itself."""
        self.is_ready, self._greeting_id = True, None
        said = introduced(greeting)
        outcomes: list[Outcome] = [self._to(Notification(methods.INITIALIZED))]
        if methods.SET_LEVEL in told and "logging" in said.capabilities:
            outcomes += self.ask(methods.SET_LEVEL, told[methods.SET_LEVEL])
        outcomes += self._subscribe()
        for _, message in self._anteroom.empty():
            outcomes += [*self._overdue(message), self._to(message)]
        known = self.inventory
        self.inventory = Inventory(
            said.capabilities, said.instructions, known.tools, known.prompts, known.resources, known.templates
        )
        return [*outcomes, *self.reread(wanted(said), now)]

    # Its lists.

    def reread(self, shelves: Iterable[Shelf], now: float) -> list[Outcome]:
        """They may be others now; what is being read already is read once more afterwards."""
        self._to_read.update(shelves)
        if self._reading is not None or not self._to_read:
            return []
        pause = self._readings.wait(now)
        self.due = now + pause if pause else FOREVER
        if pause:
            return []
        self._readings.take(now)
        ordered = [shelf for shelf in LISTED if shelf in self._to_read]
        self._to_read.clear()
        self._reading = Reading(self._mint, self.inventory, ordered, self._pages_max)
        return [self._to(request) for request in self._reading.begin()]

    def read(self, reply: Reply, now: float) -> tuple[list[Outcome], bool]:
        """Whether its lists are known as they were just now, with this answer of no interest to the session."""
        was_ours, reading = self._own.pop(reply.id or 0, None), self._reading
        if reading is None or not reading.expects(reply.id):
            return self._subscribe() if was_ours else [], False
        asked: list[Outcome] = [self._to(request) for request in reading.receive(reply)]
        if not reading.is_over:
            return asked, False
        self.inventory, self._reading = reading.inventory, None
        again = self.reread((), now)
        return [*asked, *again], not again

    def _behind(self, now: float) -> list[Outcome]:
        """What a child that died did not answer any more is asked of the next one as soon as there is one."""
        if not self._to_read and not self._later:
            return []
        return [*self._subscribe(), *self.reread((), now)]

    def _subscribe(self) -> list[Outcome]:
        outcomes: list[Outcome] = []
        while self.is_ready and self._later and len(self._own) < _AT_ONCE_MAX:
            outcomes += self._subscribe_to(next(iter(self._later)))
        return outcomes

    def _subscribe_to(self, uri: str) -> list[Outcome]:
        request = self._later.pop(uri, None)
        return [] if request is None or request.params is None else self.ask(request.method, request.params)

    def _overdue(self, message: Message) -> list[Outcome]:
        """What the session says of a subscription comes after what it said before."""
        if not self._later or not isinstance(message, Request) or message.method not in _SUBSCRIBING:
            return []
        return self._subscribe_to(methods.resource_uri(message.params))

    def _to(self, message: Message) -> ToServer:
        return ToServer(self._server, message)
