"""One server of many, as a session that has them all knows it, from its greeting on.

GREETING ──its answer──▶ READY
"""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from msgspec import Raw, Struct

from app.core.anteroom import Anteroom
from app.core.bounds import Bounds
from app.core.catalog import Sight
from app.core.inventory import Inventory, Shelf, introduced, wanted
from app.core.ledger import no_room
from app.core.probing import ToSession
from app.core.reading import Reading
from app.protocol import methods
from app.protocol.jsonrpc import Message, Notification, Reply, Request, RequestId


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
    """`known` is what is known of the server from elsewhere."""

    def __init__(self, server: str, mint: Iterator[int], bounds: Bounds, known: Inventory) -> None:
        self.is_ready = False
        self.inventory = known
        """What it offers, to this session."""
        self._server = server
        self._mint = mint
        self._anteroom = Anteroom(bounds.early_count, bounds.early_bytes)
        self._greeting_id: RequestId | None = None
        self._own: set[RequestId] = set()
        """Requests of whose answers the session does not hear."""
        self._reading: Reading | None = None
        self._to_read: set[Shelf] = set()

    @property
    def waiting_bytes(self) -> int:
        return self._anteroom.waiting_bytes

    def greet(self, params: Raw | None) -> list[Outcome]:
        """As the client has greeted us."""
        self._greeting_id = next(self._mint)
        return [Open(self._server), self._to(Request(self._greeting_id, methods.INITIALIZE, params))]

    def submit(self, message: Message) -> list[Outcome]:
        """The session has something for it, now or as soon as it is ready.

        Raises:
            Overloaded: it is a request, and too much waits.
        """
        if self.is_ready:
            return [self._to(message)]
        if not self._anteroom.take(message) and isinstance(message, Request):
            raise no_room()
        return []

    def ask(self, method: str, params: Raw) -> list[Outcome]:
        """Something of our own, of which the session does not hear; nothing before it is ready."""
        if not self.is_ready:
            return []
        ident = next(self._mint)
        self._own.add(ident)
        return [self._to(Request(ident, method, params))]

    def withdraw(self, ident: int) -> bool:
        """Take back a request that waits; False where it does not."""
        return self._anteroom.withdraw(ident)

    def is_greeting(self, reply: Reply) -> bool:
        return reply.id == self._greeting_id

    def greeted(self, greeting: Raw, told: Mapping[str, Raw]) -> list[Outcome]:
        """It is ready, and hears what else the session has `told` all; then all that waited. What it offers this client
        is read from itself."""
        self.is_ready, self._greeting_id = True, None
        said = introduced(greeting)
        outcomes: list[Outcome] = [self._to(Notification(methods.INITIALIZED))]
        if methods.SET_LEVEL in told and "logging" in said.capabilities:
            outcomes += self.ask(methods.SET_LEVEL, told[methods.SET_LEVEL])
        outcomes += [self._to(message) for _, message in self._anteroom.empty()]
        known = self.inventory
        self.inventory = Inventory(
            said.capabilities, said.instructions, known.tools, known.prompts, known.resources, known.templates
        )
        return [*outcomes, *self.reread(wanted(said))]

    # Its lists.

    def reread(self, shelves: list[Shelf]) -> list[Outcome]:
        """They may be others now; what is being read already is read once more afterwards."""
        if self._reading is not None:
            self._to_read.update(shelves)
            return []
        self._reading = Reading(self._mint, self.inventory, shelves)
        return [self._to(request) for request in self._reading.begin()]

    def read(self, reply: Reply) -> tuple[list[Outcome], bool]:
        """Whether its lists are all known now, with this answer of no interest to the session."""
        self._own.discard(reply.id or 0)
        reading = self._reading
        if reading is None or not reading.expects(reply.id):
            return [], False
        asked: list[Outcome] = [self._to(request) for request in reading.receive(reply)]
        if not reading.is_over:
            return asked, False
        self.inventory, self._reading = reading.inventory, None
        if not self._to_read:
            return asked, True
        shelves, self._to_read = sorted(self._to_read), set[Shelf]()
        return [*asked, *self.reread(shelves)], False

    def _to(self, message: Message) -> ToServer:
        return ToServer(self._server, message)
