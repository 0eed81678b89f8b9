"""The ASGI application: which URL is what, and who comes that far.

Every request passes, in this order: Host, Origin, the URL map, the token. The first two hold for every path, the
token for every path that is not listed as open.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from app.auth.principal import ANONYMOUS, Principal
from app.edge import sse, streamable
from app.edge.asgi import JSON, Headers, Receive, Scope, Send, respond
from app.edge.guards import Guards, preflight
from app.edge.heads import Head, refuse_secrets_in_query
from app.edge.incoming import EdgeSettings, Incoming
from app.edge.refusals import Refusal, not_allowed, refused, unauthorized
from app.gateway.gateway import Gateway
from app.gateway.settings import UpstreamSettings
from app.protocol.faults import GatewayFault

log = logging.getLogger("viaduct.edge")

Authenticate = Callable[[str], Principal | None]


class Kind(Enum):
    STREAMABLE = auto()
    SSE = auto()
    MESSAGES = auto()
    HEALTH = auto()
    READY = auto()


_ALLOW = {
    Kind.STREAMABLE: streamable.METHODS,
    Kind.SSE: b"GET, OPTIONS",
    Kind.MESSAGES: b"POST, OPTIONS",
}


@dataclass(frozen=True, slots=True)
class Place:
    """What is at a path."""

    kind: Kind
    upstream: UpstreamSettings | None = None
    has_slash: bool = False


class Viaduct:
    """`authenticate` is None where the operator asked for no authentication; `prefix` is publicUrl's path."""

    def __init__(
        self,
        gateway: Gateway,
        settings: EdgeSettings,
        guards: Guards,
        authenticate: Authenticate | None,
        prefix: str = "",
    ) -> None:
        self.gateway = gateway
        self._settings = settings
        self._guards = guards
        self._authenticate = authenticate
        self._places = _places(tuple(gateway.upstreams.values()), prefix)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                await self._serve(scope, receive, send)
            case "lifespan":
                await self._live(receive, send)
            case _:
                await send({"type": "websocket.close", "code": 1002})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Whatever is refused was refused before a response began; a bug is the server's to answer, and ours to log."""
        cors: Headers = []
        try:
            head = Head(scope)
            self._guards.check_host(head.get(b"host"))
            if b"origin" in head:
                cors = self._guards.check_origin(head[b"origin"])
            await self._dispatch(scope, head, receive, send, cors)
        except (GatewayFault, Refusal) as wrong:
            log.info("refused", extra={"path": scope["path"], "method": scope["method"], "reason": _reason(wrong)})
            status, headers, body = refused(wrong)
            await respond(send, status, [*headers, *cors], body)

    async def _dispatch(self, scope: Scope, head: Head, receive: Receive, send: Send, cors: Headers) -> None:
        place = self._places.get(scope["path"])
        if place is None:
            raise Refusal(404, "unknown_path", "nothing is here; MCP is served at /servers/<name>/mcp")
        if place.upstream is None:
            await self._tell_health(scope["method"], place, send, cors)
            return
        method = scope["method"]
        if method == "OPTIONS":
            allow = _ALLOW[place.kind]
            await respond(send, 204, [(b"allow", allow), *cors, *(preflight(allow) if cors else [])])
            return
        if scope["query_string"]:
            refuse_secrets_in_query(scope)
        if place.kind is Kind.STREAMABLE:
            await streamable.serve(self._incoming(scope, head, receive, send, place.upstream, cors))
        elif place.kind is Kind.SSE:
            incoming = self._incoming(scope, head, receive, send, place.upstream, cors)
            await sse.serve_stream(incoming, has_slash=place.has_slash)
        else:
            incoming = self._incoming(scope, head, receive, send, place.upstream, cors)
            await sse.serve_message(incoming, scope["query_string"])

    def _incoming(
        self, scope: Scope, head: Head, receive: Receive, send: Send, upstream: UpstreamSettings, cors: Headers
    ) -> Incoming:
        return Incoming(scope, head, receive, send, self.gateway, self._settings, upstream, self._principal(head), cors)

    def _principal(self, head: Head) -> Principal:
        if self._authenticate is None:
            return ANONYMOUS
        value = head.get(b"authorization")
        if value is None:
            raise unauthorized()
        scheme, _, token = value.partition(b" ")
        if scheme.lower() != b"bearer":
            raise unauthorized()
        principal = self._authenticate(token.strip().decode("latin-1"))
        if principal is None:
            raise unauthorized()
        return principal

    async def _tell_health(self, method: str, place: Place, send: Send, cors: Headers) -> None:
        """Alive is whoever answers; ready is whoever would take a new session."""
        if method not in ("GET", "HEAD"):
            raise not_allowed(b"GET, HEAD", "ask with GET")
        draining = self.gateway.is_draining
        if place.kind is Kind.READY and draining:
            await respond(send, 503, [JSON, (b"retry-after", b"5"), *cors], b'{"status":"draining"}')
            return
        status = b'{"status":"ready"}' if place.kind is Kind.READY else b'{"status":"ok"}'
        await respond(send, 200, [JSON, *cors], status)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self.gateway.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.gateway.stop()
        await send({"type": "lifespan.shutdown.complete"})


def _places(upstreams: tuple[UpstreamSettings, ...], prefix: str) -> dict[str, Place]:
    """Every path, in both spellings; with a public prefix too, for proxies that leave it in."""
    places: dict[str, Place] = {"/healthz": Place(Kind.HEALTH), "/readyz": Place(Kind.READY)}
    for upstream in upstreams:
        places |= _places_of(f"/servers/{upstream.name}", upstream)
    if len(upstreams) == 1:
        places |= _places_of("", upstreams[0])
    slashed = {f"{path}/": Place(place.kind, place.upstream, has_slash=True) for path, place in places.items()}
    places |= slashed
    if prefix:
        places |= {prefix + path: place for path, place in places.items()}
    return places


def _places_of(base: str, upstream: UpstreamSettings) -> dict[str, Place]:
    kinds = {"mcp": Kind.STREAMABLE, "sse": Kind.SSE, "messages": Kind.MESSAGES}
    return {f"{base}/{name}": Place(kind, upstream) for name, kind in kinds.items()}


def _reason(wrong: GatewayFault | Refusal) -> str:
    return wrong.reason if isinstance(wrong, GatewayFault) else wrong.fault.reason
