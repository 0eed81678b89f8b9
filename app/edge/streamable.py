"""Streamable HTTP of the handshake revisions (2025-03-26 to 2025-11-25, basic/transports)."""

from typing import TypeGuard

from app.edge.asgi import JSON, respond
from app.edge.heads import accepted, check_content_type
from app.edge.incoming import SESSION_ID, Incoming
from app.edge.refusals import Refusal, not_allowed
from app.edge.responses import EVENT_STREAM, Response
from app.gateway.live import LiveSession
from app.protocol import methods
from app.protocol.faults import GatewayFault, InvalidRequest, ShuttingDown, UnknownSession
from app.protocol.jsonrpc import Message, Request, read_all

METHODS = b"POST, GET, DELETE, OPTIONS"
_MODERN_KEY = b"io.modelcontextprotocol/protocolVersion"


async def serve(incoming: Incoming) -> None:
    match incoming.scope["method"]:
        case "POST":
            await _post(incoming)
        case "GET":
            await _get(incoming)
        case "DELETE":
            await _delete(incoming)
        case _:
            raise not_allowed(METHODS, "use POST, GET or DELETE here")


async def _post(incoming: Incoming) -> None:
    head = incoming.head
    check_content_type(head.get(b"content-type"))
    takes_json, takes_stream = accepted(head.get(b"accept"))
    if not (takes_json or takes_stream):
        raise Refusal(406, "not_acceptable", "accept application/json, text/event-stream or both")
    text = await incoming.body()
    message = read_all(text)
    is_initialize = isinstance(message, Request) and message.method == methods.INITIALIZE
    try:
        # On initialize the version header is never judged: the version is being negotiated there.
        named = None if is_initialize else incoming.revision()
        if (named is not None and named.modern) or (_MODERN_KEY in text and _names_version(message)):
            # So that their clients fall back to a handshake, until there is an edge for them.
            raise InvalidRequest("stateless requests are not served here; open a session with initialize")
        live = _session_of(incoming, message, is_initialize=is_initialize)
        if not _wants_answer(message):
            _tell(live, message)
            await respond(incoming.send, 202, [*incoming.cors])
            return
        if incoming.gateway.is_draining:
            raise ShuttingDown("the gateway is shutting down", retry_after=5.0)
        response = incoming.response()
        stream = live.ask(message, response, takes_json=takes_json, takes_stream=takes_stream)
    except GatewayFault as fault:
        # An unknown session's answer is one and the same, whoever asks.
        if isinstance(message, Request) and not isinstance(fault, UnknownSession):
            fault.answers = message.id
        raise
    await response.ready()
    if response.body is None:
        await _stream(incoming, live, stream, response, is_named=is_initialize or SESSION_ID in head)
        return
    headers = [JSON, *incoming.cors]
    if is_initialize and not live.is_over:
        headers.append((SESSION_ID, live.ident.encode()))
    await respond(incoming.send, 200, headers, response.body)


async def _get(incoming: Incoming) -> None:
    ident = incoming.head.text(SESSION_ID)
    if ident is None:
        raise not_allowed(b"POST, OPTIONS", "a GET needs the Mcp-Session-Id of an open session")
    if not accepted(incoming.head.get(b"accept"))[1]:
        raise Refusal(406, "not_acceptable", "a GET is answered with text/event-stream; accept that")
    incoming.revision()
    live = incoming.gateway.find(ident, incoming.upstream.name, incoming.principal.key)
    response = incoming.response()
    last = incoming.head.text(b"last-event-id")
    stream = live.listen(response) if last is None else live.resume(last, response)
    await _stream(incoming, live, stream, response, is_named=True)


async def _delete(incoming: Incoming) -> None:
    ident = incoming.head.text(SESSION_ID)
    if ident is None:
        raise not_allowed(b"POST, OPTIONS", "a DELETE needs the Mcp-Session-Id of an open session")
    incoming.revision()
    incoming.gateway.find(ident, incoming.upstream.name, incoming.principal.key).close("deleted")
    await respond(incoming.send, 204, [*incoming.cors])


async def _stream(incoming: Incoming, live: LiveSession, stream: int, response: Response, *, is_named: bool) -> None:
    """The id of an implicit session is told to nobody: such a session has no GET stream."""
    streams = incoming.settings.streams
    headers = [*EVENT_STREAM, *incoming.cors]
    if is_named:
        headers.append((SESSION_ID, live.ident.encode()))
    close_after = streams.close_after if live.revision.primes else None
    try:
        await response.write(
            incoming.receive, incoming.send, headers, keep_alive=streams.keep_alive, close_after=close_after
        )
    finally:
        live.detach(stream, response)


def _session_of(incoming: Incoming, message: Message | list[Message], *, is_initialize: bool) -> LiveSession:
    if isinstance(message, list) and not message:
        raise InvalidRequest("a batch must not be empty")
    ident = incoming.head.text(SESSION_ID)
    gateway, upstream, owner = incoming.gateway, incoming.upstream, incoming.principal.key
    if ident is not None:
        live = gateway.find(ident, upstream.name, owner)
        if isinstance(message, list) and not live.revision.batches:
            raise InvalidRequest(f"{live.revision.date} has no batches; send one message in each POST")
        return live
    if is_initialize:
        return gateway.open(upstream, owner)
    if isinstance(message, list) and any(_is_initialize(member) for member in message):
        raise InvalidRequest("initialize must not be part of a batch")
    if not incoming.settings.takes_sessionless:
        raise InvalidRequest("Mcp-Session-Id is missing; send initialize without one to open a session")
    revision = incoming.revision()
    if isinstance(message, list) and revision is not None and not revision.batches:
        raise InvalidRequest(f"{revision.date} has no batches; send one message in each POST")
    return gateway.implicit(upstream, owner, None if revision is None else revision.date)


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
