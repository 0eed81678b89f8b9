"""HTTP+SSE of 2024-11-05: one event stream for all that is said, and POSTs that are only ever accepted."""

from urllib.parse import parse_qs

from app.edge.asgi import respond
from app.edge.heads import accepted, check_content
from app.edge.incoming import Incoming, check_greeting
from app.edge.refusals import Refusal, not_allowed
from app.edge.responses import EVENT_STREAM
from app.protocol.faults import InvalidRequest, ShuttingDown
from app.protocol.jsonrpc import Request, read_all

STREAM_METHODS = b"GET, OPTIONS"
MESSAGE_METHODS = b"POST, OPTIONS"
_SESSION = "session_id"


async def serve_stream(incoming: Incoming) -> None:
    """The stream is the session: it opens with it, and ends it. It lasts no longer than the token."""
    if incoming.scope["method"] != "GET":
        raise not_allowed(STREAM_METHODS, "the stream of HTTP+SSE is opened with GET")
    if not accepted(incoming.head.get(b"accept"))[1]:
        raise Refusal(406, "not_acceptable", "this is answered with text/event-stream; accept that")
    live = incoming.gateway.open(incoming.bound(), incoming.principal.key, "sse")
    live.is_confirmed, live.principal = True, incoming.principal
    response = incoming.settings.streams.response()
    # Relative, so that it is right under any prefix that a proxy in front may add (2024-11-05: "a URI").
    up = "../" if incoming.scope["path"].endswith("/") else ""
    endpoint = f"{up}messages?{_SESSION}={live.ident}"
    response.named_event("endpoint", endpoint)
    live.speak_on(response)
    term = incoming.principal.term
    term.watch(response.part)
    try:
        await response.write(
            incoming.receive,
            incoming.send,
            [*EVENT_STREAM, *incoming.cors],
            keep_alive=incoming.settings.streams.keep_alive,
            close_after=None,
        )
    finally:
        term.unwatch(response.part)
        live.close("disconnected")


async def serve_message(incoming: Incoming) -> None:
    if incoming.scope["method"] != "POST":
        raise not_allowed(MESSAGE_METHODS, "messages are sent with POST")
    check_content(incoming.head)
    idents = parse_qs(incoming.scope["query_string"].decode("ascii", "replace")).get(_SESSION, [])
    if len(idents) != 1:
        raise Refusal(400, "no_session", f"send messages to the URI that the endpoint event named, with {_SESSION}")
    message = read_all(await incoming.body(), incoming.settings.batch_max)
    live = incoming.gateway.find(idents[0], incoming.upstream.name, incoming.principal.key, "sse")
    if isinstance(message, list):
        raise InvalidRequest("HTTP+SSE has no batches; send one message in each POST")
    if isinstance(message, Request):
        if incoming.gateway.is_draining:
            raise ShuttingDown("the gateway is shutting down", retry_after=5.0)
        check_greeting(message, incoming.settings)
        if incoming.gateway.is_learning(incoming.upstream):
            await incoming.gateway.learn(incoming.upstream, message)
            incoming.check_term()
        live.ask_on_sole(message, incoming.permit)
    else:
        live.tell(message, incoming.permit)
    await respond(incoming.send, 202, [*incoming.cors])
