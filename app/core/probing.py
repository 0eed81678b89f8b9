"""Which era a child speaks, found out with the client's own `initialize` and a `server/discover` of ours.

    UNKNOWN ──initialize answered──────────────────▶ PLAIN     the child speaks the handshake
       │ ├────discover answered, initialize is not─▶ MODERN
       │ └────neither, or in no time───────────────▶ REFUSED   the session has heard so

One of the two goes first; what follows a failure is keyed to no particular error code, for servers know many
(2026-07-28, basic/transports/stdio: "Backward Compatibility"). A server of both eras may be fixed by its first request
and may change its mind with an `initialize` later on, so where both were sent, `initialize` decides.
"""

from collections.abc import Iterator
from enum import Enum, auto
from typing import Literal, TypeAlias

from msgspec import Raw, Struct

from app.core.deadlines import FOREVER
from app.core.parties import ToChild
from app.protocol import discovery
from app.protocol.faults import Unavailable
from app.protocol.jsonrpc import Failure, Message, Reply, Request, RequestId, Result, failure
from app.protocol.revisions import MODERN
from app.protocol.stateless import Envelope

Beginning: TypeAlias = Literal["legacy", "modern"]


class ToSession(Struct, frozen=True):
    """`about` is the session's own id of the call that the message concerns, where one is known."""

    message: Message
    about: RequestId | None = None


Outcome: TypeAlias = ToChild | ToSession


class Phase(Enum):
    UNKNOWN = auto()
    PLAIN = auto()
    MODERN = auto()
    REFUSED = auto()


class Found(Struct, frozen=True):
    """Whether a server speaks an era; None where nothing was learnt.

    An error to what was not the first request says nothing, for the first one may have fixed the era, and neither
    does silence.
    """

    legacy: bool | None = None
    modern: bool | None = None


class Probing:
    """`falls_back` is whether the era that did not go first is tried at all."""

    def __init__(self, mint: Iterator[int], begins: Beginning, patience: float, *, falls_back: bool) -> None:
        self.phase = Phase.UNKNOWN
        self.found = Found()
        self.due = FOREVER
        self.discovered: Raw | None = None
        self.greeting: Request | None = None
        self._mint = mint
        self._begins = begins
        self._patience = patience
        self._falls_back = falls_back
        self._carried: Envelope
        self._is_greeted = False
        self._refusal: Failure | None = None
        self._discover_id: RequestId | None = None
        self._is_asked = False

    def greet(self, initialize: Request, carried: Envelope, now: float) -> list[Outcome]:
        """The client's own `initialize`, and what is said of the client where it was not enough."""
        self.greeting, self._carried = initialize, carried
        return self._discover(now) if self._begins == "modern" else self._greet(initialize)

    def receive(self, message: Message, now: float) -> list[Outcome]:
        """What is no answer servers of the handshake may say before theirs."""
        if not isinstance(message, Reply):
            return [ToSession(message)]
        if message.id is None or self.greeting is None:
            return []
        if message.id == self.greeting.id and self._is_greeted:
            return self._answered(message, now)
        if message.id == self._discover_id:
            self._discover_id = None
            return self._told(message, self.greeting, now)
        return []

    def tick(self, now: float) -> list[Outcome]:
        if now < self.due or self.greeting is None:
            return []
        if self.discovered is not None:
            return self._decide(Phase.MODERN)
        self.due = FOREVER
        silent = Unavailable("the server did not answer server/discover in time", reason="start_timed_out")
        return self._otherwise(failure(self.greeting.id, silent), self.greeting)

    def _greet(self, initialize: Request) -> list[Outcome]:
        self._is_greeted = True
        return [ToChild(initialize)]

    def _discover(self, now: float) -> list[Outcome]:
        self._is_asked = True
        self._discover_id = next(self._mint)
        self.due = now + self._patience
        return [ToChild(discovery.discover(self._discover_id, self._carried))]

    def _answered(self, reply: Reply, now: float) -> list[Outcome]:
        """`initialize` was."""
        match reply:
            case Result():
                self.found = Found(legacy=True, modern=self.found.modern)
                return [*self._decide(Phase.PLAIN), ToSession(reply)]
            case Failure():
                self._refusal = reply
        if self.discovered is not None:
            return self._decide(Phase.MODERN)
        if not self._is_asked and self._falls_back:
            return self._discover(now)
        if self._discover_id is None:
            return self._refuse(reply)
        self.due = now + self._patience
        return []

    def _told(self, reply: Reply, initialize: Request, now: float) -> list[Outcome]:
        """`server/discover` was answered. A late answer waits for that to the `initialize` that went out meanwhile."""
        if isinstance(reply, Result) and discovery.speaks_modern(reply.result):
            self.discovered, self.found = reply.result, Found(modern=True)
            is_waiting = self._is_greeted and self._refusal is None
            self.due = now + self._patience
            return [] if is_waiting else self._decide(Phase.MODERN)
        self.due = FOREVER
        if self._begins == "modern":
            self.found = Found(modern=False)
            if discovery.speaks_other_revisions(reply):
                return self._refuse(failure(initialize.id, Unavailable(_STRANGE, reason="unsupported_revision")))
        return self._otherwise(_unspoken(initialize.id, reply), initialize)

    def _otherwise(self, refusal: Failure, initialize: Request) -> list[Outcome]:
        """Nothing came of `server/discover`."""
        if self._refusal is not None:
            return self._refuse(self._refusal)
        if self._is_greeted:
            return []
        return self._greet(initialize) if self._falls_back else self._refuse(refusal)

    def _decide(self, phase: Phase) -> list[Outcome]:
        self.phase, self.due = phase, FOREVER
        if self._refusal is not None:
            self.found = Found(legacy=False, modern=True)
        return []

    def _refuse(self, refusal: Failure) -> list[Outcome]:
        self.phase, self.due = Phase.REFUSED, FOREVER
        return [ToSession(refusal)]


_STRANGE = "the server speaks no revision that we do"


def _unspoken(ident: RequestId, reply: Reply) -> Failure:
    """The server's own error, or ours where it speaks some other revision."""
    if isinstance(reply, Failure):
        return Failure(ident, reply.error)
    return failure(ident, Unavailable(f"the server does not speak {MODERN.date}", reason="initialize_refused"))
