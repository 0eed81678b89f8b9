"""Everything that can go wrong between a client and a server, each with its name, its code and its wording.

    GatewayFault
    ├── ClientFault     the client sent something that cannot be served
    ├── UpstreamFault   the server behind us could not do its part
    └── GatewayLimit    we will not, for a reason of our own

Codes of JSON-RPC keep their meaning; our own lie outside its reserved range (2026-07-28, basic: "Error Codes").
HTTP statuses are not known here: `app.edge.refusals` chooses them.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

Executed = Literal["no", "unknown"]
"""`no`: not one byte of the request reached the server. `unknown`: some may have."""


class GatewayFault(Exception):
    """A failure with a code, told to whoever must hear of it.

    `reason` is a constant for programs, the message a sentence for people; `details` are further fields of the
    error's `data`, never a payload or a secret.
    """

    code: ClassVar[int]
    reason: str = "fault"
    retryable: bool = False

    def __init__(
        self,
        message: str,
        *,
        reason: str | None = None,
        executed: Executed = "no",
        retryable: bool | None = None,
        retry_after: float | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        if retryable is not None:
            self.retryable = retryable
        self.message = message
        self.reason = reason or type(self).reason
        self.executed: Executed = executed
        self.retry_after = retry_after
        self.answers: int | str | None = None
        """The id of the request that is refused, where it could be read."""
        self.details: dict[str, object] = dict(details or {})
        self.about: dict[str, object] = {}
        """What was refused, where that is known; told to nobody but the audit."""

    def data(self) -> dict[str, object]:
        """The `data` member of the JSON-RPC error."""
        return {
            "source": "gateway",
            "reason": self.reason,
            "executed": self.executed,
            "retryable": self.retryable,
            **self.details,
        }


class ClientFault(GatewayFault):
    code = -32600


class Malformed(ClientFault):
    """Not JSON, or not JSON that we would pass on."""

    code = -32700
    reason = "malformed"


class InvalidRequest(ClientFault):
    """JSON, but no message that can be served here and now."""

    code = -32600
    reason = "invalid_request"


class UnknownMethod(ClientFault):
    code = -32601
    reason = "unknown_method"


class BadParams(ClientFault):
    """Bad parameters, or a target that does not exist."""

    code = -32602
    reason = "bad_params"


class HeaderMismatch(ClientFault):
    """A header does not say what the body says, or is missing (2026-07-28, basic/transports: "Server Validation")."""

    code = -32020
    reason = "header_mismatch"


class MissingCapability(ClientFault):
    """The request needs what its client did not declare; `required` is shaped like the client's capabilities."""

    code = -32021
    reason = "missing_capability"

    def __init__(self, message: str, required: Mapping[str, object]) -> None:
        super().__init__(message, details={"requiredCapabilities": dict(required)})


class UnsupportedRevision(ClientFault):
    code = -32022
    reason = "unsupported_revision"

    def __init__(self, message: str, requested: str, supported: Sequence[str]) -> None:
        super().__init__(message, details={"supported": list(supported), "requested": requested})


class UnknownSession(ClientFault):
    """Unknown, ended or somebody else's: the caller cannot tell which."""

    code = -32001
    reason = "unknown_session"

    def __init__(self) -> None:
        super().__init__("session not found; send initialize without a session id to open a new one")


class UpstreamFault(GatewayFault):
    retryable = True


class Unavailable(UpstreamFault):
    """The server cannot be started, or did not become ready."""

    code = -31001
    reason = "unavailable"


class Exited(UpstreamFault):
    """The server's process ended while it owed an answer."""

    code = -31002
    reason = "exited"


class TimedOut(UpstreamFault):
    code = -31003
    reason = "timed_out"


class SpokeNonsense(UpstreamFault):
    """The server wrote what is no message, too often or too much."""

    code = -31004
    reason = "spoke_nonsense"


class GatewayLimit(GatewayFault):
    retryable = True


class Overloaded(GatewayLimit):
    code = -31005
    reason = "overloaded"


class ShuttingDown(GatewayLimit):
    """The session, or the whole gateway, is ending."""

    code = -31006
    reason = "shutting_down"


class Denied(GatewayLimit):
    code = -31007
    reason = "denied"
    retryable = False


class InsufficientScope(GatewayLimit):
    """A token with more scopes could; `scopes` are all that it needs (RFC 6750, section 3.1)."""

    code = -31010
    reason = "insufficient_scope"
    retryable = False

    def __init__(self, message: str, scopes: Sequence[str]) -> None:
        super().__init__(message, details={"scopes": list(scopes)})
        self.scopes = tuple(scopes)


class EventsLost(GatewayLimit):
    """The answer was given, but its event is no longer kept."""

    code = -31008
    reason = "events_lost"
    retryable = False


class Cancelled(GatewayLimit):
    """The client took its request back, and its transport still needs a last word."""

    code = -31009
    reason = "cancelled"
    retryable = False
