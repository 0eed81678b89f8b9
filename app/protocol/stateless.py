"""The words of revision 2026-07-28: what every request carries, and what its results say of themselves.

What is not named here stays the bytes it was; a member that is replaced is replaced whole.
"""

from collections.abc import Mapping
from functools import lru_cache

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, field
from msgspec.json import Decoder, Encoder

from app.protocol.faults import BadParams
from app.protocol.jsonrpc import Notification, Request, RequestId, payload
from app.protocol.progress import is_meta, with_token

_PREFIX = "io.modelcontextprotocol/"
VERSION_KEY = _PREFIX + "protocolVersion"
CLIENT_INFO_KEY = _PREFIX + "clientInfo"
CAPABILITIES_KEY = _PREFIX + "clientCapabilities"
LOG_LEVEL_KEY = _PREFIX + "logLevel"
SUBSCRIPTION_KEY = _PREFIX + "subscriptionId"
SERVER_INFO_KEY = _PREFIX + "serverInfo"
_ENVELOPE = (VERSION_KEY, CLIENT_INFO_KEY, CAPABILITIES_KEY, LOG_LEVEL_KEY)

DISCOVER = "server/discover"
LISTEN = "subscriptions/listen"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"

COMPLETE = "complete"
INPUT_REQUIRED = "input_required"

ASKING = frozenset({"tools/call", "prompts/get", "resources/read"})
"""The requests that a server may answer with questions (basic/patterns/mrtr: "Supported Requests")."""
CACHEABLE = frozenset(
    {DISCOVER, "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"}
)
"""server/utilities/caching: "Cacheable Results"."""
REMOVED = frozenset(
    {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "shutdown"}
)
"""Methods of the handshake revisions that this one does not have (changelog: "Major changes", 2, 4 and 5)."""

_META_LENGTH = len("_meta")
_OF_RETRIES = frozenset({"inputResponses", "requestState"})
_KEPT_BYTES = 2048

_fields: Decoder[dict[str, Raw]] = Decoder(dict[str, Raw])
_strings: Decoder[str] = Decoder(str)
_sorted = Encoder(order="sorted")


class Envelope(Struct, frozen=True):
    """What a request says of its client (basic: "Per-request protocol fields")."""

    version: str
    capabilities: dict[str, Raw]
    client_info: Raw | None = None
    log_level: str = ""


class Meta(Struct, frozen=True):
    """A request's `_meta`, read: `written` has each member once, the `rest` is what this revision has no key for."""

    carried: Envelope
    written: Raw
    rest: Raw | None
    told: bytes
    """The capabilities: one and the same for whoever declares the same."""


class Admitted(Request, frozen=True, kw_only=True):
    """A request of which each member was read once: `fields` are those of its parameters, not to be changed."""

    fields: dict[str, Raw]
    meta: Meta
    target: str
    """What it is sent to: a tool, a prompt, a resource."""

    def with_fields(self, fields: dict[str, Raw]) -> "Admitted":
        """The same with other parameters."""
        return Admitted(self.id, self.method, payload(fields), fields=fields, meta=self.meta, target=self.target)


class Question(Struct, frozen=True):
    """One of the `inputRequests` of a result."""

    method: str
    params: Raw | None = None


class _Kind(Struct):
    kind: str = field(default=COMPLETE, name="resultType")


class _Asked(Struct):
    method: str
    params: Raw | UnsetType = UNSET


class _Required(Struct):
    requests: dict[str, _Asked] = field(default_factory=dict, name="inputRequests")
    state: str | UnsetType = field(default=UNSET, name="requestState")


class _Answered(Struct):
    responses: dict[str, Raw] = field(default_factory=dict, name="inputResponses")
    state: str | UnsetType | None = field(default=UNSET, name="requestState")


_kinds = Decoder(_Kind)
_required = Decoder(_Required)
_answered = Decoder(_Answered)


def meta(params: Raw | None) -> dict[str, Raw]:
    """The members of `_meta`; none where it is absent or no object."""
    try:
        return _fields.decode(_fields.decode(params or b"{}").get("_meta", b"{}"))
    except DecodeError:
        return {}


def envelope(request: Request) -> Envelope:
    """What the request carries.

    Raises:
        BadParams: as `read_meta`.
    """
    return read_meta(fields_of(request)).carried


def fields_of(request: Request) -> dict[str, Raw]:
    """Its parameters, not to be changed."""
    return request.fields if isinstance(request, Admitted) else _fields.decode(request.params or b"{}")


def read_meta(fields: Mapping[str, Raw]) -> Meta:
    """The `_meta` of these parameters. A client's requests have the same, to the byte, but for tokens and traces.

    Raises:
        BadParams: a required field is missing, or one is not of its type (basic: "Per-request protocol fields").
    """
    written = bytes(fields.get("_meta", b"{}"))
    return _kept_meta(written) if len(written) <= _KEPT_BYTES else _read_meta(written)


def _read_meta(written: bytes) -> Meta:
    try:
        fields = _fields.decode(written)
    except DecodeError:
        fields = {}
    try:
        version = _strings.decode(fields.get(VERSION_KEY, b"null"))
    except DecodeError as wrong:
        raise BadParams(f'_meta["{VERSION_KEY}"] is missing or not a string', reason="meta_missing") from wrong
    try:
        capabilities = _fields.decode(fields.get(CAPABILITIES_KEY, b"null"))
    except DecodeError as wrong:
        raise BadParams(f'_meta["{CAPABILITIES_KEY}"] is missing or not an object', reason="meta_missing") from wrong
    try:
        level = _strings.decode(fields.get(LOG_LEVEL_KEY, b'""'))
    except DecodeError as wrong:
        raise BadParams(f'_meta["{LOG_LEVEL_KEY}"] is not a string', reason="bad_params") from wrong
    carried = Envelope(version, capabilities, fields.get(CLIENT_INFO_KEY), level)
    rest = {key: value for key, value in fields.items() if key not in _ENVELOPE}
    return Meta(carried, payload(fields), payload(rest) if rest else None, _sorted.encode(capabilities))


_kept_meta = lru_cache(maxsize=256)(_read_meta)


def may_have_token(request: Request) -> bool:
    """Whether there may be a token for progress in it, as some server would read it."""
    if not isinstance(request, Admitted) or request.meta.rest is not None:
        return True
    return any(is_meta(name) for name in request.fields if name != "_meta")


def without_envelope(request: Request, ours: int) -> tuple[Raw, RequestId | None]:
    """The parameters as a server of the handshake revisions knows them, with our token in the place of the client's;
    and the token that they had.

    Raises:
        BadParams: as `read_meta`.
    """
    fields = fields_of(request)
    rest = request.meta.rest if isinstance(request, Admitted) else read_meta(fields).rest
    kept = {
        name: value
        for name, value in fields.items()
        if name not in _OF_RETRIES and (len(name) != _META_LENGTH or not is_meta(name))
    }
    token = None
    if rest is not None:
        kept["_meta"], token = with_token(rest, ours)
    return payload(kept), token


def with_envelope(params: Raw | None, carried: Envelope) -> Raw:
    """The parameters with what a stateless server wants to know of its client."""
    fields = _fields.decode(params or b"{}")
    said: dict[str, object] = dict(meta(params))
    said[VERSION_KEY] = carried.version
    said[CAPABILITIES_KEY] = carried.capabilities
    if carried.client_info is not None:
        said[CLIENT_INFO_KEY] = carried.client_info
    if carried.log_level:
        said[LOG_LEVEL_KEY] = carried.log_level
    return payload({**fields, "_meta": said})


def with_meta(params: Raw | None, name: str, value: object) -> Raw:
    """The parameters, or a result, with one member of `_meta` set; with None, without it."""
    fields: dict[str, object] = dict(_fields.decode(params or b"{}"))
    said: dict[str, object] = dict(meta(params))
    if value is None:
        said.pop(name, None)
    else:
        said[name] = value
    if said:
        fields["_meta"] = said
    else:
        fields.pop("_meta", None)
    return payload(fields)


def with_field(params: Raw | None, name: str, value: object) -> Raw:
    """The parameters with one member set."""
    return payload({**_fields.decode(params or b"{}"), name: value})


def subscription_id(notification: Notification) -> RequestId | None:
    """Which subscription the notification belongs to, if any."""
    return _ident(meta(notification.params).get(SUBSCRIPTION_KEY))


def _ident(raw: Raw | None) -> RequestId | None:
    try:
        return None if raw is None else _idents.decode(raw)
    except DecodeError:
        return None


_idents: Decoder[int | str] = Decoder(int | str)


def result_kind(result: Raw) -> str:
    """Absent means complete (basic: "ResultType")."""
    try:
        return _kinds.decode(result).kind
    except DecodeError:
        return COMPLETE


def completed(result: Raw, server_info: Raw | None, hints: Mapping[str, object]) -> Raw:
    """A handshake server's result for a stateless client; `hints` are its caching hints, where it has any.

    Raises:
        DecodeError: the result is no object.
    """
    said = _fields.decode(result)
    fields: dict[str, object] = {"resultType": COMPLETE, **said, **hints}
    fields["resultType"] = COMPLETE  # Whatever it says itself: of a server of its era that means nothing.
    if server_info is not None:
        known = meta(result) if "_meta" in said else {}
        fields["_meta"] = {**known, SERVER_INFO_KEY: server_info}
    return payload(fields)


def plain(result: Raw) -> Raw:
    """A stateless server's result without what handshake clients do not know."""
    try:
        fields = _fields.decode(result)
    except DecodeError:
        return result
    for name in ("resultType", "ttlMs", "cacheScope"):
        fields.pop(name, None)
    kept = {key: value for key, value in meta(result).items() if key != SERVER_INFO_KEY}
    fields.pop("_meta", None)
    return payload({**fields, "_meta": kept} if kept else fields)


def input_required(questions: Mapping[str, Question], state: str | None) -> Raw:
    """A result that asks (basic/patterns/mrtr: "InputRequiredResult")."""
    asked = {
        key: {"method": question.method} | ({} if question.params is None else {"params": question.params})
        for key, question in questions.items()
    }
    fields: dict[str, object] = {"resultType": INPUT_REQUIRED}
    if asked:
        fields["inputRequests"] = asked
    if state is not None:
        fields["requestState"] = state
    return payload(fields)


def questions(result: Raw) -> tuple[dict[str, Question], str | None]:
    """What an `input_required` result asks, and its state.

    Raises:
        DecodeError: it is not of that shape.
    """
    said = _required.decode(result)
    asked = {
        key: Question(asked.method, None if asked.params is UNSET else asked.params)
        for key, asked in said.requests.items()
    }
    return asked, None if said.state is UNSET else said.state


def answers(request: Request) -> tuple[dict[str, Raw], str | None]:
    """`inputResponses` and `requestState` of a retry; both are empty in a first request.

    Raises:
        BadParams: not of their types.
    """
    if request.params is None or (isinstance(request, Admitted) and not _is_retry(request)):
        return {}, None
    try:
        said = _answered.decode(request.params)
    except DecodeError as wrong:
        raise BadParams(f"inputResponses or requestState: {wrong}") from wrong
    return said.responses, None if said.state is UNSET else said.state


def _is_retry(request: Admitted) -> bool:
    return "requestState" in request.fields or "inputResponses" in request.fields


def is_object(value: Raw) -> bool:
    try:
        _fields.decode(value)
    except DecodeError:
        return False
    return True


def with_answers(params: Raw | None, responses: Mapping[str, Raw], state: str | None) -> Raw:
    """The parameters of a retry."""
    fields: dict[str, object] = dict(_fields.decode(params or b"{}"))
    fields.pop("inputResponses", None)
    fields.pop("requestState", None)
    if responses:
        fields["inputResponses"] = responses
    if state is not None:
        fields["requestState"] = state
    return payload(fields)
