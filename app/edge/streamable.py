"""Streamable HTTP (2025-03-26 to 2026-07-28, basic/transports), and of which era each request is."""

from functools import partial
from typing import NamedTuple, Protocol, TypeGuard

from app.auth.principal import Principal
from app.auth.term import Term
from app.core.admission import Admission
from app.core.effects import StreamId
from app.edge import stateless
from app.edge.asgi import JSON, Receive, Scope, Send, Way, respond
from app.edge.heads import accepted, check_content
from app.edge.incoming import SESSION_ID, VERSION, Incoming, Repeat, StreamSettings, check_greeting, named_revision
from app.edge.refusals import Refusal, not_allowed
from app.edge.responses import EVENT_STREAM, Response
from app.gateway.access import Permit
from app.gateway.live import LiveSession
from app.protocol import methods
from app.protocol.faults import GatewayFault, InvalidRequest, ShuttingDown, UnknownSession
from app.protocol.jsonrpc import Message, Request, read_all
from app.protocol.revisions import MODERN, Revision

METHODS = b"POST, GET, DELETE, OPTIONS"
_MODERN_KEY = b"io.modelcontextprotocol/protocolVersion"
_MODERN = MODERN.date.encode()


async def serve(incoming: Incoming) -> Repeat | None:
    ident, owner = incoming.head.text(SESSION_ID), incoming.principal.key
    if ident is not None and incoming.gateway.is_asleep(ident, incoming.upstream.name, owner):
        if incoming.scope["method"] == "DELETE":
            await incoming.gateway.delete_asleep(ident)
            await respond(incoming.send, 204, [*incoming.cors])
            return None
        await incoming.gateway.wake(ident, incoming.bound(), owner)
    match incoming.scope["method"]:
        case "POST":
            return await _post(incoming)
        case "GET":
            await _get(incoming)
        case "DELETE":
            await _delete(incoming)
        case _:
            raise not_allowed(METHODS, "use POST, GET or DELETE here")
    return None


async def _post(incoming: Incoming) -> Repeat:
    post = _Post(incoming)
    text = await incoming.body()
    if incoming.gateway.is_learning(incoming.upstream):
        await incoming.gateway.learn(incoming.upstream, read_all(text, incoming.settings.batch_max))
        incoming.check_term()
    spoken = post.take(text, incoming.principal)
    if spoken is None:
        await respond(incoming.send, 202, [*incoming.cors])
        return post.again
    await spoken.ready(incoming.receive)
    if spoken.response.body is None:
        await spoken.stream(incoming.scope, incoming.receive, incoming.send)
    else:
        status, headers = spoken.head()
        await respond(incoming.send, status, [*headers], spoken.response.body)
    return post.again


class Spoken(Protocol):
    """A POST that waits for its answer, of either era."""

    response: Response

    async def ready(self, receive: Receive) -> None:
        """Until it is known which form the answer has."""

    def watch(self, way: Way) -> None:
        """Take note of a client that goes before that."""

    def head(self) -> tuple[int, tuple[tuple[bytes, bytes], ...]]:
        """Status and headers of an answer in JSON."""

    async def stream(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Answer in events."""


class _InSession:
    """What a handshake client said in its session."""

    def __init__(
        self, post: "_Post", live: LiveSession, stream: StreamId, response: Response, term: Term, *, begins: bool
    ) -> None:
        self.response = response
        self._term = term
        self._post = post
        self._live = live
        self._stream = stream
        self._begins = begins

    async def ready(self, receive: Receive) -> None:
        """Who waits for a server to start may lose patience, and come again."""
        if self._begins:
            await self.response.ready_or_gone(receive)
        else:
            await self.response.ready()

    def watch(self, way: Way) -> None:
        """Its session lives on, and so does the call (2025-11-25, basic/transports: "Sending Messages")."""
        if self._begins:
            way.watch(self.response.end)

    def head(self) -> tuple[int, tuple[tuple[bytes, bytes], ...]]:
        if self._begins and not self._live.is_over:
            return 200, (*self._post.json, (SESSION_ID, self._live.ident.encode()))
        return 200, self._post.json

    async def stream(self, _scope: Scope, receive: Receive, send: Send) -> None:
        writing = _Writing(self._post.settings.streams, self._post.cors, receive, send, self._term)
        await writing.run(self._live, self._stream, self.response, is_named=self._begins or self._post.is_named)


class _Post:
    """The head of a POST, judged. All requests that a client sends in one session have the same."""

    def __init__(self, incoming: Incoming) -> None:
        head = incoming.head
        check_content(head)
        self._takes_json, self._takes_stream = accepted(head.get(b"accept"))
        if not (self._takes_json or self._takes_stream):
            raise Refusal(406, "not_acceptable", "accept application/json, text/event-stream or both")
        self.settings = incoming.settings
        self.cors = tuple(incoming.cors)
        self.json = (JSON, *incoming.cors)
        self._events = (*EVENT_STREAM, *incoming.cors)
        self._head = head
        self._admission = Admission(head)
        self._is_modern = head.get(VERSION) == _MODERN
        self._ident = head.text(SESSION_ID)
        self._gateway = incoming.gateway
        self._upstream = incoming.upstream
        self._said = incoming.said

    @property
    def is_named(self) -> bool:
        """Whether it names a session."""
        return self._ident is not None

    def again(self, text: bytes, principal: Principal, way: Way) -> None:
        """A request with this head once more."""
        spoken = self.take(text, principal)
        if spoken is None:
            way.answer(202, self.cors, b"")
        else:
            spoken.watch(way)
            spoken.response.when_ready(partial(self._answer, spoken, way))

    def take(self, text: bytes, principal: Principal) -> Spoken | None:
        """Hand on what the client says; None where that wants no answer."""
        message = read_all(text, self.settings.batch_max)
        try:
            if self._is_stateless(text, message):
                return self._exchange(message, principal)
            return self._in_session(message, principal)
        except GatewayFault as fault:
            # An unknown session's answer is one and the same, whoever asks.
            if isinstance(message, Request) and not isinstance(fault, UnknownSession):
                fault.answers = message.id
            raise

    def _is_stateless(self, text: bytes, message: Message | list[Message]) -> bool:
        """The body says so, or a header does; but `initialize` negotiates, whatever its headers say."""
        if self._is_modern and not _is_initialize(message):
            return True
        return _MODERN_KEY in text and isinstance(message, Request) and methods.names_version(message)

    def _in_session(self, message: Message | list[Message], principal: Principal) -> Spoken | None:
        is_initialize = _is_initialize(message)
        if is_initialize:
            check_greeting(message, self.settings)
        live = self._session_of(message, principal, is_initialize=is_initialize)
        live.principal = principal
        permit = self._gateway.access.permit(principal, self._upstream.name)
        if not _wants_answer(message):
            _tell(live, message, permit)
            return None
        self._check_open()
        response = self.settings.streams.response()
        stream = live.ask(
            message, response, takes_json=self._takes_json, takes_stream=self._takes_stream, permit=permit
        )
        return _InSession(self, live, stream, response, principal.term, begins=is_initialize)

    def _exchange(self, message: Message | list[Message], principal: Principal) -> Spoken | None:
        request = stateless.admitted(message, self._admission, takes_stream=self._takes_stream)
        if request is None:
            return None
        self._check_open()
        response = self.settings.streams.response()
        live, stream = self._gateway.exchanges.ask(
            self._gateway.bound(self._upstream, self._said, principal),
            principal.key,
            request,
            self._head,
            response,
            takes_json=self._takes_json,
            takes_stream=self._takes_stream,
            permit=self._gateway.access.permit(principal, self._upstream.name),
        )
        told = self.settings.streams, self.json, self._events
        return stateless.InExchange(*told, live, stream, response, principal.term)

    def _check_open(self) -> None:
        if self._gateway.is_draining:
            raise ShuttingDown("the gateway is shutting down", retry_after=5.0)

    def _answer(self, spoken: Spoken, way: Way) -> None:
        body = spoken.response.body
        if body is None:
            way.serve(spoken.stream)
        else:
            way.answer(*spoken.head(), body)

    def _session_of(
        self, message: Message | list[Message], principal: Principal, *, is_initialize: bool
    ) -> LiveSession:
        # On initialize the version header is never judged: the version is being negotiated there.
        named = None if is_initialize else named_revision(self._head)
        if isinstance(message, list) and not message:
            raise InvalidRequest("a batch must not be empty")
        if self._ident is not None:
            live = self._gateway.find(self._ident, self._upstream.name, principal.key)
            if isinstance(message, list) and not live.revision.batches:
                raise InvalidRequest(f"{live.revision.date} has no batches; send one message in each POST")
            return live
        if isinstance(message, Request) and is_initialize:
            upstream = self._gateway.bound(self._upstream, self._said, principal)
            return self._gateway.begin(upstream, principal.key, message)
        return self._implicit(message, principal, named)

    def _implicit(self, message: Message | list[Message], principal: Principal, named: Revision | None) -> LiveSession:
        if isinstance(message, list) and any(_is_initialize(member) for member in message):
            raise InvalidRequest("initialize must not be part of a batch")
        if not self.settings.takes_sessionless:
            raise InvalidRequest("Mcp-Session-Id is missing; send initialize without one to open a session")
        if isinstance(message, Request) and message.method == methods.SHUTDOWN:
            raise InvalidRequest("shutdown ends a session, and without an Mcp-Session-Id there is none of yours")
        if isinstance(message, list) and named is not None and not named.batches:
            raise InvalidRequest(f"{named.date} has no batches; send one message in each POST")
        upstream = self._gateway.bound(self._upstream, self._said, principal)
        return self._gateway.implicit(upstream, principal.key, None if named is None else named.date)


async def _get(incoming: Incoming) -> None:
    ident = _session_id(incoming)
    if ident is None:
        raise not_allowed(b"POST, OPTIONS", "a GET needs the Mcp-Session-Id of an open session")
    if not accepted(incoming.head.get(b"accept"))[1]:
        raise Refusal(406, "not_acceptable", "a GET is answered with text/event-stream; accept that")
    live = incoming.gateway.find(ident, incoming.upstream.name, incoming.principal.key)
    live.permit, live.principal = incoming.permit, incoming.principal
    response = incoming.settings.streams.response()
    last = incoming.head.text(b"last-event-id")
    stream = live.listen(response) if last is None else live.resume(last, response)
    term = incoming.principal.term
    writing = _Writing(incoming.settings.streams, tuple(incoming.cors), incoming.receive, incoming.send, term)
    await writing.run(live, stream, response, is_named=True)


async def _delete(incoming: Incoming) -> None:
    ident = _session_id(incoming)
    if ident is None:
        raise not_allowed(b"POST, OPTIONS", "a DELETE needs the Mcp-Session-Id of an open session")
    live = incoming.gateway.find(ident, incoming.upstream.name, incoming.principal.key)
    incoming.gateway.delete(live)
    await live.committed()
    await respond(incoming.send, 204, [*incoming.cors])


def _session_id(incoming: Incoming) -> str | None:
    """There are none for a client of the stateless era, who has nothing to get or to delete either."""
    named = named_revision(incoming.head)
    return None if named is not None and named.modern else incoming.head.text(SESSION_ID)


class _Writing(NamedTuple):
    """Events on their way to a client."""

    settings: StreamSettings
    cors: tuple[tuple[bytes, bytes], ...]
    receive: Receive
    send: Send
    term: Term

    async def run(self, live: LiveSession, stream: StreamId, response: Response, *, is_named: bool) -> None:
        """As long as the token lasts. The id of an implicit session is told to nobody: it has no GET stream."""
        headers = [*EVENT_STREAM, *self.cors]
        if is_named:
            headers.append((SESSION_ID, live.ident.encode()))
        self.term.watch(response.part)
        try:
            await response.write(
                self.receive,
                self.send,
                headers,
                keep_alive=self.settings.keep_alive,
                close_after=self.settings.close_after if live.revision.primes else None,
            )
        finally:
            self.term.unwatch(response.part)
            live.detach(stream, response)


def _is_initialize(message: Message | list[Message]) -> bool:
    return isinstance(message, Request) and message.method == methods.INITIALIZE


def _wants_answer(message: Message | list[Message]) -> TypeGuard[Request | list[Message]]:
    if isinstance(message, list):
        return any(isinstance(member, Request) for member in message)
    return isinstance(message, Request)


def _tell(live: LiveSession, message: Message | list[Message], permit: Permit | None) -> None:
    for told in message if isinstance(message, list) else [message]:
        if not isinstance(told, Request):
            live.tell(told, permit)
