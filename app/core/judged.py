"""A client's request after it was judged: what becomes of it, and who keeps account of it."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from msgspec import Raw

from app.protocol.faults import GatewayFault
from app.protocol.jsonrpc import Failure, Message, Reply, Request, RequestId, Result, failure

Sieve: TypeAlias = Callable[[Raw], Raw]
"""What of a result its client may see."""


class Docket(Protocol):
    """What is noted of one call."""

    def over(self, reply: Reply | None) -> None:
        """Told once, with what it was answered with; None where nobody waits for an answer any more."""


class Judged(Request, frozen=True, kw_only=True):
    """With a `fault`, it is answered with that, and its server never hears of it."""

    fault: GatewayFault | None = None
    sieve: Sieve | None = None
    docket: Docket | None = None


def docket_of(request: Request) -> Docket | None:
    return request.docket if isinstance(request, Judged) else None


def void(asked: Request | Sequence[Message]) -> None:
    """Nothing came of it."""
    for message in [asked] if isinstance(asked, Request) else asked:
        docket = docket_of(message) if isinstance(message, Request) else None
        if docket is not None:
            docket.over(None)


def sieve_of(request: Request) -> Sieve | None:
    return request.sieve if isinstance(request, Judged) else None


def refusal(request: Request, server: str) -> Failure | None:
    """What the client is told in place of the server; None where that may hear of the request."""
    if not isinstance(request, Judged) or request.fault is None:
        return None
    if server:
        request.fault.details.setdefault("server", server)
    return failure(request.id, request.fault)


def replied(reply: Reply, ident: RequestId, sieve: Sieve | None) -> Reply:
    """The server's reply as its client may see it, under the id that this knows."""
    match reply:
        case Result():
            return Result(ident, reply.result if sieve is None else sieve(reply.result))
        case Failure():
            return Failure(ident, reply.error)
