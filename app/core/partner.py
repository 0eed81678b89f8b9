"""One server of many, as a session that has them all knows it, from its greeting on.

GREETING ──its answer──▶ READY
"""

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Raw, Struct
from msgspec.structs import replace

from app.core.anteroom import Anteroom
from app.core.catalog import Sight
from app.core.deadlines import FOREVER
from app.core.inventory import LISTED, Inventory, Shelf, introduced, wanted
from app.core.joint_rules import Rules
from app.core.ledger import no_room
from app.core.probing import ToSession
from app.core.rates import Bucket, Rate
from app.core.reading import Reading
from app.protocol import methods
from app.protocol.faults import BadParams
from app.protocol.jsonrpc import Message, Notification, Reply, Request, RequestId, payload

READINGS = Rate(1.0, 10)
"""How often the lists of one server are read again for one session: some announce a change with each answer."""


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


class Shut(Struct, frozen=True):
    """A server does not want this session: its place there is left."""

    server: str


Outcome: TypeAlias = ToServer | ToSession | Open | Shut | Announced | Find


def leveled(params: Raw | None) -> Raw:
    """What each server is told of the level that its client wants; nobody answers to what else is said there.

    Raises:
        BadParams: there is no such level.
    """
    level = "" if params is None else methods.log_level(params)
    if level not in methods.LOG_LEVELS:
        raise BadParams(f"params.level must be one of {', '.join(methods.LOG_LEVELS)}")
    return payload({"level": level})


class Partner:
    """`known` is what is known of the server from elsewhere."""

    def __init__(self, server: str, mint: Iterator[int], rules: Rules, known: Inventory) -> None:
        self.is_ready = False
        self.inventory = known
        """What it offers, to this session."""
        self.due = FOREVER
        """No later than this, `tick` has something to do."""
        self._server = server
        self._mint = mint
        self._rules = rules
        self._anteroom = Anteroom(rules.bounds.early_count, rules.bounds.early_bytes)
        self._greeting_id: RequestId | None = None
        self._leveling_id: RequestId | None = None
        self._level: Raw | None = None
        """What it is told as soon as it has answered to the one before."""
        self._reading: Reading | None = None
        self._to_read: set[Shelf] = set()
        self._readings = Bucket(READINGS, 0.0)

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

    def level(self, params: Raw) -> list[Outcome]:
        """What level its client wants, where it is ready and logs at all. One such request is open at a time."""
        if not self.is_ready or "logging" not in self.inventory.capabilities:
            return []
        if self._leveling_id is not None:
            self._level = params
            return []
        self._leveling_id = next(self._mint)
        return [self._to(Request(self._leveling_id, methods.SET_LEVEL, params))]

    def withdraw(self, ident: int) -> bool:
        """Take back a request that waits; False where it does not."""
        return self._anteroom.withdraw(ident)

    def is_greeting(self, reply: Reply) -> bool:
        return reply.id is not None and reply.id == self._greeting_id

    def greeted(self, greeting: Raw, level: Raw | None) -> list[Outcome]:
        """It is ready, and hears what level is wanted."""
        self.is_ready, self._greeting_id = True, None
        said = introduced(greeting)
        self.inventory = replace(self.inventory, capabilities=said.capabilities, instructions=said.instructions)
        return [self._to(Notification(methods.INITIALIZED)), *([] if level is None else self.level(level))]

    def go_on(self, now: float) -> list[Outcome]:
        """After it was greeted, with all that waited. What it offers this client is read from itself."""
        waited = [self._to(message) for _, message in self._anteroom.empty()]
        return [*waited, *self._read(wanted(self.inventory), now)]

    def bereft(self) -> None:
        """Its child is gone, and with it all answers; it is `returned` when there is another."""
        self._leveling_id = self._level = None
        self._reading, self.due = None, FOREVER

    def returned(self, now: float) -> list[Outcome]:
        """There is another child, which may offer something else."""
        shelves = wanted(self.inventory)
        if self._reading is None:
            return self._read(shelves, now)
        self._to_read.update(shelf for shelf in shelves if shelf not in self._reading.shelves)
        return []

    # Its lists.

    def announced(self, method: str, now: float) -> tuple[list[Outcome], bool]:
        """It says that one of its lists changed, and whether it has such a one. What is being read is read once more
        afterwards; and who announces all the time is not asked all the time."""
        shelves = [shelf for shelf in wanted(self.inventory) if LISTED[shelf].changed == method]
        if not self.is_ready or not shelves:
            return [], False
        self._to_read.update(shelves)
        return self._read_again(now), True

    def replied(self, reply: Reply, now: float) -> tuple[list[Outcome], bool]:
        """To something of ours; and whether with that its lists are all known."""
        if reply.id is not None and reply.id == self._leveling_id:
            level, self._level, self._leveling_id = self._level, None, None
            return ([] if level is None else self.level(level)), False
        reading = self._reading
        if reading is None or not reading.expects(reply.id):
            return [], False
        asked: list[Outcome] = [self._to(request) for request in reading.receive(reply)]
        if not reading.is_over:
            return asked, False
        return self._read_all(reading, now), True

    def tick(self, now: float) -> tuple[list[Outcome], bool]:
        """What is due, and whether with that its lists are known as far as they can be: it has so long for them."""
        reading = self._reading
        if now < self.due:
            return [], False
        if reading is None:
            return self._read_again(now), False
        late = [self._to(methods.cancellation(ident, "it took too long")) for ident in reading.give_up()]
        return [*late, *self._read_all(reading, now)], True

    def _read_all(self, reading: Reading, now: float) -> list[Outcome]:
        self.inventory, self._reading, self.due = reading.inventory, None, FOREVER
        return self._read_again(now)

    def _read_again(self, now: float) -> list[Outcome]:
        if self._reading is not None or not self._to_read:
            return []
        pause = self._readings.wait(now)
        if pause:
            self.due = now + pause
            return []
        self._readings.take(now)
        return self._read([shelf for shelf in LISTED if shelf in self._to_read], now)

    def _read(self, shelves: list[Shelf], now: float) -> list[Outcome]:
        self._to_read.difference_update(shelves)
        if not shelves:
            return []
        self.due = now + self._rules.reading
        self._reading = Reading(self._mint, self.inventory, shelves, self._rules.pages)
        return [self._to(request) for request in self._reading.begin()]

    def _to(self, message: Message) -> ToServer:
        return ToServer(self._server, message)
