"""Faults as HTTP answers: the only place that knows which status a fault has."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from app.edge.asgi import JSON, Headers
from app.edge.oauth import Resource, challenge
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
    faults.InsufficientScope: 403,
}
_ANSWERED = {
    faults.UnknownMethod.code: 404,
    faults.HeaderMismatch.code: 400,
    faults.MissingCapability.code: 400,
    faults.UnsupportedRevision.code: 400,
}
STATE_UNKNOWN = "state_unknown"
_OF_REASONS = {
    **dict.fromkeys(
        (
            "sessions.maxPerPrincipal",
            "sessions.ratePerPrincipal",
            "limits.inFlight",
            "stateless.maxChildrenPerPrincipal",
            "stateless.maxRequests",
            "stateless.maxParked",
            "stateless.maxBytes",
            "streams.maxPerSession",
            "policy_limit",
        ),
        429,
    ),
    "audit_failed": 503,
    "unknown_server": 404,
}
"""What somebody has too many of alone is 429. Where it is all together, it is 503."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """What a client is told about the token that it should send (RFC 6750, section 3)."""

    error: str = ""
    scopes: tuple[str, ...] = ()


class Refusal(Exception):
    """Refused by HTTP's own rules, before there was a message to judge."""

    challenge: Challenge | None = None
    cause: str | None = None
    """For our log only."""

    def __init__(self, status: int, reason: str, message: str, headers: Headers | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.fault = faults.InvalidRequest(message, reason=reason)
        self.headers = headers or []


def reason_of(wrong: GatewayFault | Refusal) -> str:
    return wrong.fault.reason if isinstance(wrong, Refusal) else wrong.reason


def refused(wrong: GatewayFault | Refusal, resource: Resource | None = None) -> tuple[int, Headers, bytes]:
    """Status, headers and body of the answer; `resource` is what was asked for, where OAuth knows it."""
    if isinstance(wrong, Refusal):
        headers = [JSON, *wrong.headers]
        if wrong.challenge is not None:
            value = challenge(resource, wrong.challenge.error, wrong.challenge.scopes)
            headers.append((b"www-authenticate", value))
        return wrong.status, headers, encode(failure(None, wrong.fault))
    status = _OF_REASONS.get(wrong.reason) or _STATUS.get(type(wrong), 400)
    headers = [JSON]
    if wrong.retry_after is not None:
        headers.append((b"retry-after", b"%d" % max(1, ceil(wrong.retry_after))))
    if isinstance(wrong, faults.InsufficientScope):
        headers.append((b"www-authenticate", challenge(resource, "insufficient_scope", wrong.scopes)))
    return status, headers, encode(failure(wrong.answers, wrong))


def status_of(reply: Reply) -> int:
    """Of a stateless request's answer that comes first, whoever wrote it (2026-07-28, basic/transports)."""
    if not isinstance(reply, Failure):
        return 200
    code = error_code(reply.error)
    if code == faults.BadParams.code:  # A state that is of no use is refused alike, whenever that turns out.
        return 400 if fault_reason(reply.error) == STATE_UNKNOWN else 200
    return _ANSWERED.get(code, 200)


def unauthorized(cause: str | None = None) -> Refusal:
    """One and the same for every cause; the cause goes to our log only. None: there was no token."""
    refusal = Refusal(401, "unauthorized", "send a valid token: Authorization: Bearer <token>")
    refusal.challenge = Challenge("" if cause is None else "invalid_token")
    refusal.cause = cause
    return refusal


def insufficient_scope(scopes: Iterable[str]) -> Refusal:
    """`scopes` are all that the operation needs: a client gets a token for exactly these (2025-11-25, "Step-Up")."""
    refusal = Refusal(403, "insufficient_scope", "this needs a token with further scopes, which the challenge names")
    refusal.challenge = Challenge("insufficient_scope", tuple(scopes))
    return refusal


def auth_unavailable(cause: str, retry_after: float) -> Refusal:
    """Nobody can say whether the token is good. A 401 would make the client throw it away."""
    retry = (b"retry-after", b"%d" % max(1, round(retry_after)))
    refusal = Refusal(503, "auth_unavailable", "the token cannot be verified now; try again later", [retry])
    refusal.cause = cause
    return refusal


def not_allowed(allow: bytes, message: str) -> Refusal:
    return Refusal(405, "method_not_allowed", message, [(b"allow", allow)])


def internal_error() -> tuple[int, Headers, bytes]:
    """A bug of ours: its traceback is in our log, and nothing of it here."""
    body = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"internal error"}}'
    return 500, [JSON], body
