"""The methods that we read, and the one level of their parameters that we route or judge on."""

from typing import Any

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, field
from msgspec.json import Decoder, Encoder

from app.protocol.faults import BadParams
from app.protocol.jsonrpc import Notification, Request, RequestId

INITIALIZE = "initialize"
INITIALIZED = "notifications/initialized"
CANCELLED = "notifications/cancelled"
PROGRESS = "notifications/progress"
LOG_MESSAGE = "notifications/message"
RESOURCE_UPDATED = "notifications/resources/updated"
ROOTS_CHANGED = "notifications/roots/list_changed"
TOOLS_CHANGED = "notifications/tools/list_changed"
PROMPTS_CHANGED = "notifications/prompts/list_changed"
RESOURCES_CHANGED = "notifications/resources/list_changed"
LIST_CHANGED = frozenset({TOOLS_CHANGED, PROMPTS_CHANGED, RESOURCES_CHANGED})
MISSABLE = frozenset({LOG_MESSAGE, PROGRESS})
"""What a client who reads too slowly is better spared than cut off for."""
CALL_TOOL = "tools/call"
LIST_TOOLS = "tools/list"
PING = "ping"
SET_LEVEL = "logging/setLevel"
SUBSCRIBE = "resources/subscribe"
UNSUBSCRIBE = "resources/unsubscribe"
SHUTDOWN = "shutdown"
"""No revision has it; clients written after older descriptions of MCP send it before `notifications/exit`."""
EXIT = "notifications/exit"

OF_HANDSHAKE = frozenset(
    {
        INITIALIZE,
        PING,
        SET_LEVEL,
        SUBSCRIBE,
        UNSUBSCRIBE,
        CALL_TOOL,
        LIST_TOOLS,
        "prompts/list",
        "prompts/get",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "completion/complete",
        "tasks/list",
        "tasks/get",
        "tasks/result",
        "tasks/cancel",
    }
)
"""The requests of a client that the handshake revisions know."""

ALIASES = {"initialized": INITIALIZED}
"""What some clients write, and what they mean."""

ELICIT = "elicitation/create"
LIST_ROOTS = "roots/list"
NEEDED_CAPABILITY = {
    "sampling/createMessage": "sampling",
    ELICIT: "elicitation",
    LIST_ROOTS: "roots",
}
"""What a client must have declared before a server may ask it."""

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Most detailed first (2025-11-25, server/utilities/logging: "Log Levels")."""

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"

_encoder = Encoder()
_fields: Decoder[dict[str, Raw]] = Decoder(dict[str, Raw])


class _Meta(Struct):
    token: int | str | UnsetType | None = field(default=UNSET, name="progressToken")


class _WithMeta(Struct):
    meta: _Meta | UnsetType | None = field(default=UNSET, name="_meta")


class Greeting(Struct):
    """What a client says of itself in `initialize`."""

    version: str = field(default="", name="protocolVersion")
    capabilities: dict[str, Any] = field(default_factory=dict)


class _Greeted(Struct):
    version: str = field(default="", name="protocolVersion")


class _Cancelled(Struct):
    id: int | str | None = field(default=None, name="requestId")


class _Progress(Struct):
    token: int | str | None = field(default=None, name="progressToken")


class _Resource(Struct):
    uri: str = ""


class _Level(Struct):
    level: str = ""


class _Code(Struct):
    code: int = 0


class _Page(Struct):
    cursor: str | None = field(default=None, name="nextCursor")


class _WantedPage(Struct):
    cursor: str | None = None


class _Mode(Struct):
    mode: str = "form"


class _Schema(Struct):
    properties: dict[str, Raw] = field(default_factory=dict)


class _Form(Struct):
    schema: _Schema = field(default_factory=_Schema, name="requestedSchema")


_with_meta = Decoder(_WithMeta)
_greetings = Decoder(Greeting)
_greeted = Decoder(_Greeted)
_cancelled = Decoder(_Cancelled)
_progress = Decoder(_Progress)
_resources = Decoder(_Resource)
_levels = Decoder(_Level)
_codes = Decoder(_Code)
_modes = Decoder(_Mode)
_forms = Decoder(_Form)
_pages = Decoder(_Page)
_wanted_pages = Decoder(_WantedPage)


def progress_token(request: Request) -> RequestId | None:
    """The token under which the sender wants to hear of progress."""
    if request.params is None:
        return None
    try:
        meta = _with_meta.decode(request.params).meta
    except DecodeError:
        return None
    if not isinstance(meta, _Meta) or meta.token is UNSET:
        return None
    return meta.token


def with_progress_token(request: Request, token: RequestId) -> Request:
    """The request under another progress token; everything else stays the bytes it was."""
    params = _fields.decode(request.params or b"{}")
    meta = _fields.decode(params["_meta"])
    meta["progressToken"] = Raw(_encoder.encode(token))
    params["_meta"] = Raw(_encoder.encode(meta))
    return Request(request.id, request.method, Raw(_encoder.encode(params)))


def with_field(notification: Notification, name: str, value: RequestId) -> Notification:
    """The notification with one field replaced; everything else stays the bytes it was."""
    return Notification(notification.method, _written(notification.params, name, value))


def cancelled_id(notification: Notification) -> RequestId | None:
    try:
        return _cancelled.decode(notification.params or b"{}").id
    except DecodeError:
        return None


def reported_token(notification: Notification) -> RequestId | None:
    """The token that a progress notification reports on."""
    try:
        return _progress.decode(notification.params or b"{}").token
    except DecodeError:
        return None


def greeting(request: Request) -> Greeting:
    """What the client declared; nothing where it declared something unreadable, for the server will judge that."""
    try:
        return _greetings.decode(request.params or b"{}")
    except DecodeError:
        return Greeting()


def introduction(ident: RequestId, name: str, version: str, revision: str) -> Request:
    """Our own `initialize`, with no capabilities: where no client's is at hand."""
    params = {
        "protocolVersion": revision,
        "capabilities": {},
        "clientInfo": {"name": name, "version": version},
    }
    return Request(ident, INITIALIZE, Raw(_encoder.encode(params)))


def greeted_version(result: Raw) -> str:
    """The protocol version that the server answered `initialize` with."""
    try:
        return _greeted.decode(result).version
    except DecodeError:
        return ""


def with_version(result: Raw, version: str) -> Raw:
    """The answer to `initialize` under another protocol version; one that is no object stays as it is."""
    try:
        return _written(result, "protocolVersion", version)
    except DecodeError:
        return result


def resource_uri(params: Raw | None) -> str:
    try:
        return _resources.decode(params or b"{}").uri
    except DecodeError:
        return ""


def with_uri(request: Request, uri: str) -> Request:
    """The request with the uri that we read in it, however often it was written there."""
    return Request(request.id, request.method, _written(request.params, "uri", uri))


def _written(params: Raw | None, name: str, value: RequestId) -> Raw:
    """With one field of that name, and none that a reader who does not mind the case could take for it."""
    fields = _fields.decode(params or b"{}")
    for other in [other for other in fields if other != name and other.casefold() == name.casefold()]:
        del fields[other]
    fields[name] = Raw(_encoder.encode(value))
    return Raw(_encoder.encode(fields))


def log_level(params: Raw | None) -> str:
    try:
        return _levels.decode(params or b"{}").level
    except DecodeError:
        return ""


def error_code(error: Raw) -> int:
    try:
        return _codes.decode(error).code
    except DecodeError:
        return 0


def cancellation(ident: RequestId, reason: str) -> Notification:
    """Our word to a server that nobody waits for `ident` any more."""
    return Notification(CANCELLED, Raw(_encoder.encode({"requestId": ident, "reason": reason})))


def names_version(request: Request) -> bool:
    """Whether the request carries its own version, as every one of the stateless revisions does."""
    if request.params is None:
        return False
    try:
        meta = _fields.decode(request.params).get("_meta")
        return meta is not None and VERSION_KEY in _fields.decode(meta)
    except DecodeError:
        return False


def is_at_least(level: str, wanted: str) -> bool:
    """Whether a message of that level is for somebody who wants `wanted` and above; unknown levels are."""
    return level not in LOG_LEVELS or LOG_LEVELS.index(level) >= LOG_LEVELS.index(wanted)


def members(value: Raw | None) -> frozenset[str]:
    """The names of an object's members; none where it is no object."""
    try:
        return frozenset(_fields.decode(value or b"{}"))
    except DecodeError:
        return frozenset()


def without(params: Raw, name: str) -> Raw:
    """The parameters without one field."""
    fields = _fields.decode(params)
    return params if fields.pop(name, None) is None else Raw(_encoder.encode(fields))


def elicitation_mode(params: Raw | None) -> str:
    """A question without a mode is a form (2025-11-25, client/elicitation: "Elicitation Requests")."""
    try:
        return _modes.decode(params or b"{}").mode
    except DecodeError:
        return ""


def next_cursor(result: Raw) -> str | None:
    """Where the next page of a list begins, if there is one."""
    try:
        return _pages.decode(result).cursor
    except DecodeError:
        return None


def cursor(params: Raw | None) -> str | None:
    """Where a page is to begin; None is the beginning.

    Raises:
        BadParams: it is no text.
    """
    try:
        return _wanted_pages.decode(params or b"{}").cursor
    except DecodeError as wrong:
        raise BadParams("params.cursor must be a string") from wrong


def first_field(params: Raw | None) -> str:
    """The first field of the form that a question shows; nothing where it shows none."""
    try:
        return next(iter(_forms.decode(params or b"{}").schema.properties), "")
    except DecodeError:
        return ""
