"""Who has a handshake child to itself, and what the child has asked it.

A child's question names no call, nor does its log message. While one party holds the child, both are that party's.
Many a server asks for its client's roots once, as soon as it is greeted; where nobody holds it then, that waits for the
next who does.
"""

from collections.abc import Collection

from app.core.anteroom import size_of
from app.core.ledger import too_many_questions
from app.core.parties import Outcome, Party, ToChild, ToParty
from app.protocol import methods
from app.protocol.faults import Unavailable, UnknownMethod
from app.protocol.jsonrpc import Notification, Reply, Request, RequestId, failure


class Holding:
    """`capabilities` are what the child was told that it may ask."""

    def __init__(self, capabilities: Collection[str], questions_max: int = 100, bytes_max: int = 8 << 20) -> None:
        self.party: Party | None = None
        self._capabilities = capabilities
        self._questions_max = questions_max
        self._bytes_max = bytes_max
        self._asked: dict[RequestId, int] = {}
        """With the bytes of each: who is asked keeps it until it is answered."""
        self._kept: dict[RequestId, Request] = {}

    def take(self, party: Party) -> list[Outcome]:
        """The child is this party's now; one who still held it holds it no more."""
        ended: list[Outcome] = [] if self.party is None or self.party == party else self.end(self.party)
        self.party = party
        kept, self._kept = self._kept, {}
        self._asked.update((ident, size_of(question)) for ident, question in kept.items())
        return [*ended, *(ToParty(party, question) for question in kept.values())]

    def end(self, party: Party) -> list[Outcome]:
        """The child is nobody's any more, and hears that its questions will not be answered."""
        if party != self.party:
            return []
        self.party = None
        asked, self._asked = self._asked, {}
        gone = Unavailable("the client that was asked does not answer any more", reason="client_unreachable")
        return [ToChild(failure(ident, gone)) for ident in asked]

    def ask(self, question: Request) -> list[Outcome]:
        """A question under an id that is still open is dropped, for one answer is all that can be told apart."""
        if methods.NEEDED_CAPABILITY.get(question.method) not in self._capabilities:
            undeclared = f"what {question.method!r} needs was not declared to this server"
            return [ToChild(failure(question.id, UnknownMethod(undeclared, reason="capability_not_declared")))]
        sizes = [*self._asked.values(), *map(size_of, self._kept.values())]
        is_full = len(sizes) >= self._questions_max or (sizes and sum(sizes) + size_of(question) > self._bytes_max)
        if self.party is None and question.method == methods.LIST_ROOTS and not is_full:
            self._kept.setdefault(question.id, question)
            return []
        if self.party is None:
            nobody = "no call is in progress whose client could be asked"
            return [ToChild(failure(question.id, Unavailable(nobody, reason="client_unreachable")))]
        if question.id in self._asked:
            return []
        if is_full:
            return [ToChild(failure(question.id, too_many_questions()))]
        self._asked[question.id] = size_of(question)
        return [ToParty(self.party, question)]

    def give_up(self) -> list[Outcome]:
        """What is kept for the next who holds is answered with an error: the child may be waiting for nothing else."""
        kept, self._kept = self._kept, {}
        nobody = Unavailable("no call came whose client could be asked", reason="client_unreachable")
        return [ToChild(failure(ident, nobody)) for ident in kept]

    def answer(self, party: Party, reply: Reply) -> list[Outcome]:
        if party != self.party or reply.id is None or reply.id not in self._asked:
            return []
        del self._asked[reply.id]
        return [ToChild(reply)]

    def take_back(self, notification: Notification) -> list[Outcome]:
        """The child does not want to know any more."""
        ident = methods.cancelled_id(notification)
        if ident is not None and self._kept.pop(ident, None) is not None:
            return []
        if self.party is None or ident is None or ident not in self._asked:
            return []
        del self._asked[ident]
        return [ToParty(self.party, notification)]
