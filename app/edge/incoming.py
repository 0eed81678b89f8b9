"""One request at an endpoint of a server, after the guards: who, where, and the way back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from app.auth.principal import Principal
from app.edge.asgi import Headers, Receive, Scope, Send, Way
from app.edge.heads import Head
from app.edge.refusals import Refusal, unauthorized
from app.edge.responses import Response
from app.edge.wire_refusals import BODY_FAULT, TOO_LARGE
from app.gateway.access import Permit
from app.gateway.gateway import Gateway
from app.gateway.settings import UpstreamSettings
from app.protocol import methods
from app.protocol.faults import InvalidRequest
from app.protocol.jsonrpc import Message, Request
from app.protocol.revisions import REVISIONS, Revision
from app.telemetry.tally import Tally

SESSION_ID = b"mcp-session-id"
VERSION = b"mcp-protocol-version"
_REVISIONS = {date.encode(): revision for date, revision in REVISIONS.items()}


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """In seconds but for `retry_ms`. `close_after` closes a connection, not its stream, for clients that poll;
    `expired_seconds` is what a stateless call has left when its token has expired."""

    keep_alive: float = 15.0
    close_after: float | None = None
    retry_ms: int = 1000
    queue_bytes: int = 8 << 20
    expired_seconds: float = 60.0
    tally: Tally = field(default_factory=Tally, compare=False, repr=False)
    """Where is counted what happens to them."""

    def response(self) -> Response:
        return Response(bytes_max=self.queue_bytes, retry_ms=self.retry_ms, tally=self.tally)


@dataclass(frozen=True, slots=True)
class EdgeSettings:
    streams: StreamSettings
    body_max: int = 4 << 20
    takes_sessionless: bool = True
    """Whether a request without a session id is served by an implicit session."""
    batch_max: int = 1000
    greeting_max: int = 256 << 10
    """Bytes of the parameters of `initialize`, which are kept as long as the session."""


Repeat: TypeAlias = Callable[[bytes, Principal, Way], None]
"""Serves another request with a head that was served before: its body, who sends it, and the way back."""


@dataclass(slots=True)
class Incoming:
    scope: Scope
    head: Head
    receive: Receive
    send: Send
    gateway: Gateway
    settings: EdgeSettings
    upstream: UpstreamSettings
    principal: Principal
    cors: Headers
    said: Mapping[str, str]
    """What the server's children may be given, by the lower-case names of headers."""

    def bound(self) -> UpstreamSettings:
        """The server as its children for this client are started.

        Raises:
            InvalidRequest, Denied: what they need is missing.
        """
        return self.gateway.bound(self.upstream, self.said, self.principal)

    @property
    def permit(self) -> Permit | None:
        """None where everything is permitted."""
        return self.gateway.access.permit(self.principal, self.upstream.name)

    async def body(self) -> bytes:
        """The whole body, within the bounds that the settings and the HTTP parser set.

        Raises:
            Refusal: too large, or too slow, or its token has been taken back meanwhile.
        """
        declared = self.head.get(b"content-length")
        if declared is not None and declared.isdigit() and int(declared) > self.settings.body_max:
            raise too_large(self.settings)
        event = await self.receive()
        body: bytes = event.get("body", b"")
        if event.get("more_body", False):
            body = await self._rest(body)
        fault = self.scope["state"].get(BODY_FAULT) if "state" in self.scope else None
        if len(body) > self.settings.body_max or fault == TOO_LARGE:
            raise too_large(self.settings)
        if fault is not None:
            raise Refusal(408, "too_slow", "the body did not arrive in time", [(b"connection", b"close")])
        self.check_term()
        return body

    def check_term(self) -> None:
        """To be asked after each wait: who was let in before it may not be any more.

        Raises:
            Refusal: the token is good no more.
        """
        how = self.principal.term.how
        if how is not None:
            raise unauthorized(how)

    async def _rest(self, first: bytes) -> bytes:
        parts, size = [first], len(first)
        while True:
            event = await self.receive()
            if event["type"] == "http.disconnect":
                raise Refusal(400, "incomplete", "the connection ended before the body did")
            parts.append(event.get("body", b""))
            size += len(parts[-1])
            if size > self.settings.body_max:
                raise too_large(self.settings)
            if not event.get("more_body", False):
                return b"".join(parts)


def named_revision(head: Head) -> Revision | None:
    """Of the version header; None where there is none.

    Raises:
        Refusal: no revision has that date (2025-11-25, basic/transports: "Protocol Version Header").
    """
    named = head.get(VERSION)
    if named is None:
        return None
    revision = _REVISIONS.get(named)
    if revision is None:
        known = ", ".join(REVISIONS)
        raise Refusal(400, "unknown_version", f"MCP-Protocol-Version names no revision; these are known: {known}")
    return revision


def too_large(settings: EdgeSettings) -> Refusal:
    return Refusal(413, "too_large", f"a body may have at most {settings.body_max} bytes", [(b"connection", b"close")])


def check_greeting(message: Message | list[Message], settings: EdgeSettings) -> None:
    """
    Raises:
        InvalidRequest: it is an `initialize` that says too much to be kept.
    """
    if not isinstance(message, Request) or message.method != methods.INITIALIZE or message.params is None:
        return
    if len(message.params) > settings.greeting_max:
        sentence = f"the parameters of initialize may have at most {settings.greeting_max} bytes"
        raise InvalidRequest(sentence, reason="limits.greeting")
