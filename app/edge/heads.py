"""A request's headers, read once."""

from functools import lru_cache

from app.edge.asgi import Scope
from app.edge.refusals import Refusal

_ONCE = frozenset(
    {
        b"host",
        b"origin",
        b"authorization",
        b"content-type",
        b"content-length",
        b"transfer-encoding",
        b"mcp-session-id",
        b"mcp-protocol-version",
        b"last-event-id",
    }
)
_JOINED = frozenset({b"accept", b"content-encoding"})
_MIRRORS = frozenset({b"mcp-method", b"mcp-name"})
_PARAM = b"mcp-param-"
_QUERY_SECRETS = frozenset({b"access_token", b"token", b"api_key", b"apikey", b"authorization"})


class Head(dict[bytes, bytes]):
    """Those headers that we judge by, by their lower-case names; each is there at most once.

    What mirrors the body is judged with the body: two that should be one have a line end between them, as no header
    may, so that they mirror nothing (2026-07-28, basic/transports: -32020, by which a client knows the era).
    """

    __slots__ = ()

    def __init__(self, scope: Scope) -> None:
        # Read before the first receive(): uvicorn appends trailers to this list later.
        for name, value in scope["headers"]:
            if name in _ONCE:
                if name in self:
                    raise Refusal(400, "duplicate_header", f"more than one {name.decode()} header")
                self[name] = value
            elif name in _JOINED:
                self[name] = self[name] + b"," + value if name in self else value
            elif name in _MIRRORS or name.startswith(_PARAM):
                self[name] = self[name] + b"\n" + value if name in self else value

    def text(self, name: bytes) -> str | None:
        """As ASCII; what is not ASCII is nothing that we ever gave out."""
        value = self.get(name)
        if value is None:
            return None
        if not value.isascii():
            raise Refusal(400, "bad_header", f"{name.decode()} must be ASCII")
        return value.decode("ascii")


def refuse_secrets_in_query(scope: Scope) -> None:
    """A query ends up in logs and histories (2025-11-25, basic/authorization: "Access Token Usage")."""
    for part in scope["query_string"].lower().split(b"&"):
        if part.split(b"=", 1)[0] in _QUERY_SECRETS:
            raise Refusal(400, "token_in_query", "a token belongs in the Authorization header, never in the URL")


def sent(scope: Scope, head: Head, names: frozenset[str]) -> dict[str, str]:
    """The values of these headers, which a server's children may be given; one that is empty is not there.

    Raises:
        Refusal: one is there twice, is not ASCII, or holds the bearer token, which is for us alone.
    """
    found: dict[str, str] = {}
    token = head.get(b"authorization", b"").partition(b" ")[2].strip()
    for name, value in scope["headers"]:
        text = name.decode("latin-1")
        if text not in names or not value:
            continue
        if text in found:
            raise Refusal(400, "duplicate_header", f"more than one {text} header")
        if not value.isascii():
            raise Refusal(400, "bad_header", f"{text} must be ASCII")
        if token and token in value:
            raise Refusal(400, "token_in_header", f"the bearer token must not be in {text}: the server would get it")
        found[text] = value.decode("ascii")
    return found


def check_content(head: Head) -> None:
    """Of another type, a web page could send it without asking first (CORS: "simple requests")."""
    coding = head.get(b"content-encoding", b"identity")
    if coding.lower() != b"identity":
        plain = [(b"accept-encoding", b"identity")]
        raise Refusal(415, "content_encoding", "the body must be sent as it is, without a Content-Encoding", plain)
    value = head.get(b"content-type")
    if value == b"application/json":
        return
    kind = (value or b"").split(b";", 1)[0].strip().lower()
    if kind != b"application/json":
        raise Refusal(415, "content_type", "Content-Type must be application/json")


@lru_cache(maxsize=256)
def accepted(accept: bytes | None) -> tuple[bool, bool]:
    """Whether JSON and whether an event stream may be answered. Read leniently: absent means both."""
    if accept is None or not accept.strip():
        return True, True
    kinds = {kind for part in accept.lower().split(b",") if (kind := _kind(part))}
    anything = b"*/*" in kinds
    takes_json = anything or bool(kinds & {b"application/json", b"application/*"})
    takes_stream = anything or bool(kinds & {b"text/event-stream", b"text/*"})
    return takes_json, takes_stream


def _kind(part: bytes) -> bytes | None:
    """The media type, unless its weight says never."""
    kind, *parameters = (piece.strip() for piece in part.split(b";"))
    for parameter in parameters:
        name, _, weight = parameter.partition(b"=")
        if name.strip() == b"q" and weight.strip().rstrip(b"0") in (b"0.", b""):
            return None
    return kind
