"""What a session writes down of its calls and of the questions to its client, until they are settled,
and the last words of our own that settle them.
"""

from collections.abc import Iterable
from copy import copy

from msgspec import Struct

from app.core.effects import StreamId
from app.core.judged import Sieve
from app.protocol.faults import Cancelled, GatewayFault, Overloaded, Unavailable
from app.protocol.jsonrpc import Failure, RequestId, failure


class Call(Struct):
    """A client's request in flight."""

    id: RequestId
    method: str
    stream: StreamId
    token: RequestId | None
    max_at: float
    quiet_at: float
    patience: float
    """Seconds that its server may be silent for."""
    sieve: Sieve | None = None
    server: str = ""
    """Which of several has it."""


class Ask(Struct):
    """A server's question in flight."""

    id: RequestId
    stream: StreamId | None
    """None until there is one that can carry it."""
    max_at: float


def expires_at(call: Call, asks: Iterable[Ask]) -> float:
    """A call whose client is being asked something has all the time there is."""
    if any(ask.stream == call.stream for ask in asks):
        return call.max_at
    return min(call.quiet_at, call.max_at)


def too_many() -> Overloaded:
    return Overloaded("too many calls in flight in this session", reason="limits.inFlight", retry_after=1.0)


def too_many_questions() -> Overloaded:
    return Overloaded("too many questions are open", reason="questions")


def too_many_subscriptions() -> Overloaded:
    return Overloaded("too many resources are subscribed to in this session", reason="limits.subscriptions")


def no_room() -> Overloaded:
    return Overloaded("the server is not ready, and what waits for it is full", reason="queue", retry_after=1.0)


def failed(call: Call, fault: GatewayFault, server: str) -> Failure:
    """Each failure names the server; only a session alone, in a test, has none."""
    if server:
        fault.details.setdefault("server", call.server or server)
    return failure(call.id, fault)


def unexecuted(fault: GatewayFault) -> GatewayFault:
    """The same, for a request of which not one byte was sent."""
    spared = copy(fault)
    spared.executed, spared.details = "no", dict(fault.details)
    return spared


def cancelled(call: Call, server: str) -> Failure:
    """The last word on a response to a POST."""
    return failed(call, Cancelled("cancelled by the client", executed="unknown"), server)


def unanswered(ask: Ask) -> Failure:
    """What the server is told of a question that its client did not answer, or could not be asked."""
    no_stream = "the client has no stream open that could carry a question"
    why = no_stream if ask.stream is None else "the client did not answer in time"
    return failure(ask.id, Unavailable(why, reason="client_unreachable"))
