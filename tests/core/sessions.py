"""What the tests of a session begin with."""

from msgspec import Raw

from app.core.deadlines import Deadlines
from app.core.effects import Effect, ToUpstream
from app.core.session import Session
from app.protocol.faults import Cancelled
from app.protocol.jsonrpc import Request, failure, payload

LIMITS = Deadlines(start=10, request=60, max_request=600, stream_after=0.25, shutdown_grace=5)
GREETING = payload({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}, "roots": {}}})
GREETED = payload({"protocolVersion": "2025-11-25", "capabilities": {}})

CANCELLED = failure(1, Cancelled("cancelled by the client", executed="unknown"))
"""The last word on a call that its client knows as 1."""


def raw(text: str) -> Raw:
    return Raw(text.encode())


def never(ident: int) -> bool:
    return False


def post(session: Session, stream: int, *, can_stream: bool = True, now: float = 0.0) -> None:
    session.outlets.post(stream, can_stream=can_stream, begin_at=now + LIMITS.stream_after)


def ask(session: Session, request: Request, stream: int, *, now: float = 0.0, can_stream: bool = True) -> list[Effect]:
    post(session, stream, can_stream=can_stream, now=now)
    return session.ask(request, stream, now)


def call(ident: int | str, name: str = "echo") -> Request:
    return Request(ident, "tools/call", payload({"name": name}))


def ours(ident: int, name: str = "echo") -> ToUpstream:
    return ToUpstream(Request(ident, "tools/call", payload({"name": name})))
