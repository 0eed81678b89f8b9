"""Faults as HTTP answers: the only place that knows which status a fault has."""

from math import ceil

from app.edge.asgi import JSON, Headers
from app.protocol import faults
from app.protocol.errors import fault_reason
from app.protocol.faults import GatewayFault
from app.protocol.jsonrpc import Failure, Reply, encode, failure
from app.protocol.methods import error_code

_STATUS: dict[type[GatewayFault], int] = {
    faults.Malformed: 400,
    faults.InvalidRequest: 400,
    faults.UnknownMethod: 404,
    faults.BadParams: 400,
    faults.HeaderMismatch: 400,
    faults.MissingCapability: 400,
    faults.UnsupportedRevision: 400,
    faults.UnknownSession: 404,
    faults.Unavailable: 503,
    faults.Overloaded: 503,
    faults.ShuttingDown: 503,
    faults.Denied: 403,
}
_ANSWERED = {
    faults.UnknownMethod.code: 404,
    faults.HeaderMismatch.code: 400,
    faults.MissingCapability.code: 400,
    faults.UnsupportedRevision.code: 400,
}
STATE_UNKNOWN = "state_unknown"
_TOO_MANY = frozenset(
    {
        "sessions.maxPerPrincipal",
        "sessions.ratePerPrincipal",
        "limits.inFlight",
        "stateless.maxRequests",
        "stateless.maxParked",
        "streams.maxPerSession",
    }
)
"""What somebody has too many of alone: 429. Where it is all together, it is 503."""


class Refusal(Exception):
    """Refused by HTTP's own rules, before there was a message to judge."""

    def __init__(self, status: int, reason: str, message: str, headers: Headers | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.fault = faults.InvalidRequest(message, reason=reason)
        self.headers = headers or []


def reason_of(wrong: GatewayFault | Refusal) -> str:
    return wrong.fault.reason if isinstance(wrong, Refusal) else wrong.reason


def refused(wrong: GatewayFault | Refusal) -> tuple[int, Headers, bytes]:
    """Status, headers and body of the answer."""
    if isinstance(wrong, Refusal):
        return wrong.status, [JSON, *wrong.headers], encode(failure(None, wrong.fault))
    status = 429 if wrong.reason in _TOO_MANY else _STATUS.get(type(wrong), 400)
    headers: Headers = [JSON]
    if wrong.retry_after is not None:
        headers.append((b"retry-after", b"%d" % max(1, ceil(wrong.retry_after))))
    return status, headers, encode(failure(wrong.answers, wrong))


def status_of(reply: Reply) -> int:
    """Of a stateless request's answer that comes first, whoever wrote it (2026-07-28, basic/transports)."""
    if not isinstance(reply, Failure):
        return 200
    code = error_code(reply.error)
    if code == faults.BadParams.code:  # A state that is of no use is refused alike, whenever that turns out.
        return 400 if fault_reason(reply.error) == STATE_UNKNOWN else 200
    return _ANSWERED.get(code, 200)


def unauthorized() -> Refusal:
    """One and the same for every cause; the cause goes to our log only (RFC 6750, section 3)."""
    challenge = (b"www-authenticate", b"Bearer")
    return Refusal(401, "unauthorized", "send a valid token: Authorization: Bearer <token>", [challenge])


def not_allowed(allow: bytes, message: str) -> Refusal:
    return Refusal(405, "method_not_allowed", message, [(b"allow", allow)])


def internal_error() -> tuple[int, Headers, bytes]:
    """A bug of ours: its traceback is in our log, and nothing of it here."""
    body = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"internal error"}}'
    return 500, [JSON], body
