"""The ASGI application: which URL is what, and who comes that far.

Every request passes, in this order: Host, Origin, the URL map, the token. The first two hold for every path, the
token for every path that is not listed as open.
"""

import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from app.auth.principal import Principal
from app.edge import oauth, sse, streamable
from app.edge.asgi import JSON, Again, Event, Headers, Receive, Scope, Send, Way, remembers, respond
from app.edge.bearer import Authentication, Bearer
from app.edge.guards import Guards, preflight
from app.edge.heads import Head, refuse_secrets_in_query, sent
from app.edge.incoming import EdgeSettings, Incoming, Repeat, too_large
from app.edge.oauth import Resource, ResourceServer
from app.edge.refusals import Refusal, insufficient_scope, not_allowed, reason_of, refused
from app.edge.views import Views
from app.gateway.credentials import headers_in
from app.gateway.gateway import Gateway
from app.gateway.settings import WHOLE_NAME, UpstreamSettings
from app.protocol.faults import GatewayFault, GatewayLimit, UpstreamFault
from app.telemetry.tally import count

log = logging.getLogger("viaduct.edge")

_KEPT = ("type", "method", "path", "raw_path", "query_string", "headers")
"""Of the scope of a request, for a later one with the same head."""


async def _nothing(incoming: Incoming) -> None:
    raise AssertionError(incoming)


@dataclass(frozen=True, slots=True)
class Place:
    """What is at a path: an endpoint of a server, or one of those that tell how we are."""

    allow: bytes
    upstream: UpstreamSettings | None = None
    serve: Callable[[Incoming], Coroutine[None, None, Repeat | None]] = _nothing
    asks_ready: bool = False
    asks_numbers: bool = False
    resource: Resource | None = None
    """As which OAuth knows it, where that is configured."""
    document: bytes | None = None
    headers: frozenset[str] = frozenset()
    """Those that the server's children are given."""
    views: Views | None = None
    """Of servers that are one."""


class Numbers(Protocol):
    """What is counted, as text for who reads it regularly."""

    needs_token: bool
    content_type: bytes

    def start(self) -> None: ...

    async def text(self) -> bytes: ...

    def stop(self) -> None: ...


class Viaduct:
    """`authentication` is None where the operator asked for none; `prefix` is publicUrl's path; `numbers` is None where
    nobody shall read them; `oauth` is None where nobody could get a token from an issuer."""

    def __init__(
        self,
        gateway: Gateway,
        settings: EdgeSettings,
        guards: Guards,
        authentication: Authentication | None,
        prefix: str = "",
        numbers: Numbers | None = None,
        oauth: ResourceServer | None = None,
    ) -> None:
        self.gateway = gateway
        self.tally = settings.streams.tally
        self.authentication = authentication
        self._bearer = Bearer(authentication)
        self.disagreement = ""
        """Why it did not begin to serve."""
        self._generation = 0
        """How often the application became another one: what was judged before is judged again."""
        self._set(settings, guards, prefix, numbers, oauth)
        gateway.on_left = self._drop_left

    def _set(
        self,
        settings: EdgeSettings,
        guards: Guards,
        prefix: str,
        numbers: Numbers | None,
        server: ResourceServer | None,
    ) -> None:
        self._numbers = numbers
        self._settings = settings
        self._guards = guards
        upstreams, left = tuple(self.gateway.upstreams.values()), self.gateway.left
        self._places = _places(
            upstreams,
            prefix,
            has_numbers=numbers is not None,
            server=server,
            joints=self.gateway.joints,
            left=left,
        )

    def adopt(
        self,
        settings: EdgeSettings,
        guards: Guards,
        authentication: Authentication | None,
        prefix: str = "",
        numbers: Numbers | None = None,
        oauth: ResourceServer | None = None,
    ) -> None:
        """Be another application, around the same gateway, from the next request on."""
        if self._numbers is not None:
            self._numbers.stop()
        self._generation += 1
        self._set(settings, guards, prefix, numbers, oauth)
        self.authentication = authentication
        self._bearer.succeed(authentication)
        if numbers is not None:
            numbers.start()

    def _drop_left(self, upstream: UpstreamSettings) -> None:
        """The server is used no more, and nothing is at its paths, unless another one of its name is."""
        self._places = {
            path: place
            for path, place in self._places.items()
            if place.upstream is None or place.upstream.site != upstream.site
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Whatever is refused was refused before a response began; a bug is the server's to answer, and ours to log."""
        if scope["type"] != "http":
            await self._live(scope, receive, send)
            return
        cors: Headers = []
        principal: Principal | None = None
        generation = self._generation
        try:
            head = Head(scope)
            self._guards.check_host(head.get(b"host"))
            if b"origin" in head:
                cors = self._guards.check_origin(head[b"origin"])
            place = self._places.get(_path(scope)) or _unknown()
            if self._numbers is not None and place.asks_numbers and scope["method"] != "OPTIONS":
                await self._show(self._numbers, scope, head, place, send, cors)
                return
            if place.upstream is None or scope["method"] == "OPTIONS":
                await self._tell(scope["method"], place, send, cors)
                return
            if scope["query_string"]:
                refuse_secrets_in_query(scope)
            principal = await self._bearer.ask(head, place.resource)
            self._check_entry(principal, place.upstream)
            views, query = place.views, scope["query_string"]
            upstream = place.upstream if views is None or not query else views.of(query)
            said = sent(scope, head, place.headers) if place.headers else {}
            incoming = Incoming(
                scope, head, receive, send, self.gateway, self._settings, upstream, principal, cors, said
            )
            repeat = await place.serve(incoming)
            remember = remembers(scope)
            if repeat is not None and remember is not None and generation == self._generation:
                remember(self._again(incoming, repeat))
        except (GatewayFault, Refusal) as wrong:
            status, headers, body = self._refused(wrong, _path(scope), scope["method"], principal)
            await respond(send, status, [*headers, *cors], body)

    def _again(self, former: Incoming, repeat: Repeat) -> Again:
        """As `__call__`, for a request with the head of `former`: only its token may have ended since."""
        head, path, cors, upstream = former.head, _path(former.scope), former.cors, former.upstream
        resource, generation = self._places[path].resource, self._generation
        scope = {name: former.scope[name] for name in _KEPT if name in former.scope}

        def again(text: bytes, way: Way) -> None:
            if generation != self._generation:
                way.serve(partial(self._anew, scope, text))
                return
            principal: Principal | None = None
            try:
                if len(text) > self._settings.body_max:
                    raise too_large(self._settings)
                principal = self._bearer.find(head, resource)
                if principal is None or self.gateway.is_learning(upstream):
                    way.serve(partial(self._anew, scope, text))
                else:
                    self._check_entry(principal, upstream)
                    repeat(text, principal, way)
            except (GatewayFault, Refusal) as wrong:
                status, headers, body = self._refused(wrong, path, "POST", principal)
                way.answer(status, (*headers, *cors), body)

        return again

    async def _anew(self, scope: Scope, text: bytes, _scope: Scope, receive: Receive, send: Send) -> None:
        """A later request that must wait until its token is known, or what it is for."""
        body = [{"type": "http.request", "body": text, "more_body": False}]

        async def receive_body() -> Event:
            return body.pop() if body else await receive()

        await self(scope, receive_body, send)

    def _refused(
        self, wrong: GatewayFault | Refusal, path: str, method: str, principal: Principal | None
    ) -> tuple[int, Headers, bytes]:
        # Of a path of ours only: in any other there may be a token, from a client that was told to put it there.
        place = self._places.get(path)
        told = "unknown" if place is None else path
        reason, upstream = reason_of(wrong), None if place is None else place.upstream
        count(self.tally.refusals if upstream is None else upstream.tally.refusals, reason)
        cause = {"cause": wrong.cause} if isinstance(wrong, Refusal) and wrong.cause is not None else {}
        log.info("refused", extra={"path": told, "method": method, "reason": reason, **cause})
        if self.gateway.access.witness is not None:
            about = wrong.about if isinstance(wrong, GatewayFault) else {}
            server = None if upstream is None else upstream.name
            owner = None if principal is None else principal.key
            self.gateway.access.witness.refused(owner, server, reason, {"http": method, "path": told, **about})
        if isinstance(wrong, UpstreamFault | GatewayLimit) and upstream is not None:
            wrong.details.setdefault("server", upstream.name)
        return refused(wrong, None if place is None else place.resource)

    def _check_entry(self, principal: Principal, upstream: UpstreamSettings) -> None:
        """A server that one may use nothing of is like one that does not exist."""
        decision = self.gateway.access.enter(principal, upstream.servers)
        if not decision.is_allowed:
            raise insufficient_scope(decision.scopes) if decision.scopes else _no_such()

    async def _show(self, numbers: Numbers, scope: Scope, head: Head, place: Place, send: Send, cors: Headers) -> None:
        """They name servers, so they are for who may use these, unless the operator says otherwise."""
        if scope["query_string"]:
            refuse_secrets_in_query(scope)
        if numbers.needs_token:
            await self._bearer.ask(head, place.resource)
        if scope["method"] not in ("GET", "HEAD"):
            raise not_allowed(place.allow, "ask with GET")
        await respond(send, 200, [(b"content-type", numbers.content_type), *cors], await numbers.text())

    async def _tell(self, method: str, place: Place, send: Send, cors: Headers) -> None:
        """What needs no token: what a browser may send, and how we are. Alive is whoever answers at all."""
        if place.upstream is not None or (place.document is not None and method == "OPTIONS"):
            asked = preflight(place.allow, place.headers) if cors else []
            await respond(send, 204, [(b"allow", place.allow), *cors, *asked])
        elif method not in ("GET", "HEAD"):
            raise not_allowed(place.allow, "ask with GET")
        elif place.document is not None:
            await respond(send, 200, [JSON, *cors], place.document)
        elif place.asks_ready and not self.gateway.is_ready:
            status = b'{"status":"draining"}' if self.gateway.is_draining else b'{"status":"no server can be started"}'
            await respond(send, 503, [JSON, (b"retry-after", b"5"), *cors], status)
        else:
            await respond(send, 200, [JSON, *cors], b'{"status":"ready"}' if place.asks_ready else b'{"status":"ok"}')

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await send({"type": "websocket.close", "code": 1002})
            return
        await receive()
        self.gateway.start()
        self._bearer.start()
        if self._numbers is not None:
            self._numbers.start()
        self.disagreement = await self.gateway.disagreement()
        if self.disagreement and not self.gateway.is_draining:
            await self._stop()
            await send({"type": "lifespan.startup.failed", "message": self.disagreement})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def _stop(self) -> None:
        if self._numbers is not None:
            self._numbers.stop()
        await self.gateway.stop()
        self._bearer.stop()


def _path(scope: Scope) -> str:
    """As it was written: who stands before us and judges by the path must not see another one than we do."""
    raw: bytes | None = scope.get("raw_path")
    path: str = scope["path"] if raw is None else raw.decode("latin-1")
    return path


def _unknown() -> Place:
    raise _no_such()


def _no_such() -> Refusal:
    sentence = "nothing is here; MCP is served at /mcp, /groups/<name>/mcp and /servers/<name>/mcp"
    return Refusal(404, "unknown_path", sentence)


def _places(
    upstreams: tuple[UpstreamSettings, ...],
    prefix: str,
    *,
    has_numbers: bool = True,
    server: ResourceServer | None = None,
    joints: tuple[UpstreamSettings, ...] = (),
    left: Iterable[UpstreamSettings] = (),
) -> dict[str, Place]:
    """Every path, in both spellings; with a public prefix too, for proxies that leave it in. Who still uses a server
    that was `left` reaches it where it was."""
    places = {"/healthz": Place(b"GET, HEAD"), "/readyz": Place(b"GET, HEAD", asks_ready=True)}
    if has_numbers:
        places["/metrics"] = Place(b"GET, HEAD", asks_numbers=True, resource=_resource(server, ""))
    headers = {upstream.name: headers_in(upstream.templates) for upstream in (*left, *upstreams)}
    served = {_base(upstream): upstream for upstream in left} | _served(upstreams, joints)
    for base, upstream in served.items():
        places |= _places_of(base, upstream, server, headers)
    if server is not None:
        places |= _documents(places, server, prefix)
    places |= {f"{path}/": place for path, place in places.items()}
    if prefix:
        places |= {prefix + path: place for path, place in places.items()}
    return places


def _served(
    upstreams: tuple[UpstreamSettings, ...], joints: tuple[UpstreamSettings, ...]
) -> dict[str, UpstreamSettings]:
    """What is where, by what the paths of its endpoints begin with. A single server is also at the shortest ones."""
    served = {_base(upstream): upstream for upstream in (*upstreams, *joints)}
    if len(upstreams) == 1:
        served.setdefault("", served[_base(upstreams[0])])
    return served


def _base(upstream: UpstreamSettings) -> str:
    """What the paths of its endpoints begin with."""
    if upstream.joint is None:
        return f"/servers/{upstream.name}"
    return "" if upstream.name == WHOLE_NAME else upstream.name


def _places_of(
    base: str,
    upstream: UpstreamSettings,
    server: ResourceServer | None,
    headers_by_server: Mapping[str, frozenset[str]],
) -> dict[str, Place]:
    """To OAuth, where the messages of a stream are sent is a part of that."""
    joint = upstream.joint
    names = (upstream.name,) if joint is None else joint.servers
    place = partial(
        Place,
        upstream=upstream,
        headers=frozenset[str]().union(*(headers_by_server.get(name, frozenset()) for name in names)),
        views=None if joint is None else Views(upstream, joint),
    )
    mcp, stream = (_resource(server, f"{base}/{end}") for end in ("mcp", "sse"))
    return {
        f"{base}/mcp": place(streamable.METHODS, serve=streamable.serve, resource=mcp),
        f"{base}/sse": place(sse.STREAM_METHODS, serve=sse.serve_stream, resource=stream),
        f"{base}/messages": place(sse.MESSAGE_METHODS, serve=sse.serve_message, resource=stream),
    }


def _resource(server: ResourceServer | None, path: str) -> Resource | None:
    return None if server is None else server.resource(path)


def _documents(places: dict[str, Place], server: ResourceServer, prefix: str) -> dict[str, Place]:
    """What OAuth clients read about each endpoint, and about all of us."""
    resources = {"": server.resource()}
    for path, place in places.items():
        if place.resource is not None and place.resource.url.endswith(f"{prefix}{path}"):
            resources[path] = place.resource
    return {
        where: Place(b"GET, HEAD, OPTIONS", document=resource.document)
        for path, resource in resources.items()
        for where in oauth.paths(path, prefix)
    }
