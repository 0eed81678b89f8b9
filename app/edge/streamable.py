"""Streamable HTTP of the handshake revisions (2025-03-26 to 2025-11-25, basic/transports)."""

from functools import partial
from typing import NamedTuple, TypeGuard

from app.core.effects import StreamId
from app.edge.asgi import JSON, Receive, Scope, Send, Way, respond
from app.edge.heads import accepted, check_content_type
from app.edge.incoming import SESSION_ID, Incoming, Repeat, StreamSettings, named_revision
from app.edge.refusals import Refusal, not_allowed
from app.edge.responses import EVENT_STREAM, Response
from app.gateway.live import LiveSession
from app.protocol import methods
from app.protocol.faults import GatewayFault, InvalidRequest, ShuttingDown, UnknownSession
from app.protocol.jsonrpc import Message, Request, read_all
from app.protocol.revisions import Revision

METHODS = b"POST, GET, DELETE, OPTIONS"
_MODERN_KEY = b"io.modelcontextprotocol/protocolVersion"


async def serve(incoming: Incoming) -> Repeat | None:
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
    spoken = post.take(await incoming.body(), incoming.principal.key)
    if spoken is None:
        await respond(incoming.send, 202, [*incoming.cors])
        return post.again
    response = spoken.response
    await response.ready()
    if response.body is None:
        await post.stream(spoken, incoming.scope, incoming.receive, incoming.send)
    else:
        await respond(incoming.send, 200, [*post.headers(spoken)], response.body)
    return post.again


class _Spoken(NamedTuple):
    """A POST that waits for its answers, and what they are written to."""

    live: LiveSession
    stream: StreamId
    response: Response
    is_initialize: bool


class _Post:
    """The head of a POST, judged. All requests that a client sends in one session have the same."""

    def __init__(self, incoming: Incoming) -> None:
        head = incoming.head
        check_content_type(head.get(b"content-type"))
        self._takes_json, self._takes_stream = accepted(head.get(b"accept"))
        if not (self._takes_json or self._takes_stream):
            raise Refusal(406, "not_acceptable", "accept application/json, text/event-stream or both")
        self._head = head
        self._ident = head.text(SESSION_ID)
        self._gateway = incoming.gateway
        self._upstream = incoming.upstream
        self._settings = incoming.settings
        self._cors = tuple(incoming.cors)
        self._json = (JSON, *incoming.cors)

    def again(self, text: bytes, owner: str, way: Way) -> None:
        """A request with this head once more."""
        spoken = self.take(text, owner)
        if spoken is None:
            way.answer(202, self._cors, b"")
        else:
            spoken.response.when_ready(partial(self._answer, spoken, way))

    def take(self, text: bytes, owner: str) -> _Spoken | None:
        """Hand the session what the client says; None where that wants no answer."""
        message = read_all(text)
        is_initialize = isinstance(message, Request) and message.method == methods.INITIALIZE
        try:
            live = self._session_of(text, message, owner, is_initialize=is_initialize)
            if not _wants_answer(message):
                _tell(live, message)
                return None
            if self._gateway.is_draining:
                raise ShuttingDown("the gateway is shutting down", retry_after=5.0)
            response = self._settings.streams.response()
            stream = live.ask(message, response, takes_json=self._takes_json, takes_stream=self._takes_stream)
        except GatewayFault as fault:
            # An unknown session's answer is one and the same, whoever asks.
            if isinstance(message, Request) and not isinstance(fault, UnknownSession):
                fault.answers = message.id
            raise
        return _Spoken(live, stream, response, is_initialize)

    def headers(self, spoken: _Spoken) -> tuple[tuple[bytes, bytes], ...]:
        """Of an answer in JSON."""
        if spoken.is_initialize and not spoken.live.is_over:
            return (*self._json, (SESSION_ID, spoken.live.ident.encode()))
        return self._json

    async def stream(self, spoken: _Spoken, _scope: Scope, receive: Receive, send: Send) -> None:
        is_named = spoken.is_initialize or self._ident is not None
        writing = _Writing(self._settings.streams, self._cors, receive, send)
        await writing.run(spoken.live, spoken.stream, spoken.response, is_named=is_named)

    def _answer(self, spoken: _Spoken, way: Way) -> None:
        body = spoken.response.body
        if body is None:
            way.serve(partial(self.stream, spoken))
        else:
            way.answer(200, self.headers(spoken), body)

    def _session_of(
        self, text: bytes, message: Message | list[Message], owner: str, *, is_initialize: bool
    ) -> LiveSession:
        # On initialize the version header is never judged: the version is being negotiated there.
        named = None if is_initialize else named_revision(self._head)
        if (named is not None and named.modern) or (_MODERN_KEY in text and _names_version(message)):
            # So that their clients fall back to a handshake, until there is an edge for them.
            raise InvalidRequest("stateless requests are not served here; open a session with initialize")
        if isinstance(message, list) and not message:
            raise InvalidRequest("a batch must not be empty")
        if self._ident is not None:
            live = self._gateway.find(self._ident, self._upstream.name, owner)
            if isinstance(message, list) and not live.revision.batches:
                raise InvalidRequest(f"{live.revision.date} has no batches; send one message in each POST")
            return live
        if is_initialize:
            return self._gateway.open(self._upstream, owner)
        return self._implicit(message, owner, named)

    def _implicit(self, message: Message | list[Message], owner: str, named: Revision | None) -> LiveSession:
        if isinstance(message, list) and any(_is_initialize(member) for member in message):
            raise InvalidRequest("initialize must not be part of a batch")
        if not self._settings.takes_sessionless:
            raise InvalidRequest("Mcp-Session-Id is missing; send initialize without one to open a session")
        if isinstance(message, list) and named is not None and not named.batches:
            raise InvalidRequest(f"{named.date} has no batches; send one message in each POST")
        return self._gateway.implicit(self._upstream, owner, None if named is None else named.date)


async def _get(incoming: Incoming) -> None:
    ident = incoming.head.text(SESSION_ID)
    if ident is None:
        raise not_allowed(b"POST, OPTIONS", "a GET needs the Mcp-Session-Id of an open session")
    if not accepted(incoming.head.get(b"accept"))[1]:
        raise Refusal(406, "not_acceptable", "a GET is answered with text/event-stream; accept that")
    named_revision(incoming.head)
    live = incoming.gateway.find(ident, incoming.upstream.name, incoming.principal.key)
    response = incoming.settings.streams.response()
    last = incoming.head.text(b"last-event-id")
    stream = live.listen(response) if last is None else live.resume(last, response)
    writing = _Writing(incoming.settings.streams, tuple(incoming.cors), incoming.receive, incoming.send)
    await writing.run(live, stream, response, is_named=True)


async def _delete(incoming: Incoming) -> None:
    ident = incoming.head.text(SESSION_ID)
    if ident is None:
        raise not_allowed(b"POST, OPTIONS", "a DELETE needs the Mcp-Session-Id of an open session")
    named_revision(incoming.head)
    incoming.gateway.find(ident, incoming.upstream.name, incoming.principal.key).close("deleted")
    await respond(incoming.send, 204, [*incoming.cors])


class _Writing(NamedTuple):
    """Events on their way to a client."""

    settings: StreamSettings
    cors: tuple[tuple[bytes, bytes], ...]
    receive: Receive
    send: Send

    async def run(self, live: LiveSession, stream: StreamId, response: Response, *, is_named: bool) -> None:
        """The id of an implicit session is told to nobody: such a session has no GET stream."""
        headers = [*EVENT_STREAM, *self.cors]
        if is_named:
            headers.append((SESSION_ID, live.ident.encode()))
        try:
            await response.write(
                self.receive,
                self.send,
                headers,
                keep_alive=self.settings.keep_alive,
                close_after=self.settings.close_after if live.revision.primes else None,
            )
        finally:
            live.detach(stream, response)


def _names_version(message: Message | list[Message]) -> bool:
    return isinstance(message, Request) and methods.names_version(message)


def _is_initialize(message: Message) -> bool:
    return isinstance(message, Request) and message.method == methods.INITIALIZE


def _wants_answer(message: Message | list[Message]) -> TypeGuard[Request | list[Message]]:
    if isinstance(message, list):
        return any(isinstance(member, Request) for member in message)
    return isinstance(message, Request)


def _tell(live: LiveSession, message: Message | list[Message]) -> None:
    for told in message if isinstance(message, list) else [message]:
        if not isinstance(told, Request):
            live.tell(told)
