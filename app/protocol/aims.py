"""What a client's requests aim at, and what lists show: read, and written back so that nobody reads another name there.

Of a member that is there twice the last counts, and one whose name differs only in case is left out.
"""

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, TypeAlias

from msgspec import DecodeError, Raw, Struct, field
from msgspec.json import Decoder

from app.protocol import methods, stateless
from app.protocol.faults import BadParams
from app.protocol.jsonrpc import Request, payload
from app.protocol.stateless import Admitted, fields_of

Kind: TypeAlias = Literal["tools", "prompts", "resources"]
Aim: TypeAlias = tuple[Kind, str]

COMPLETE = "completion/complete"
READ = "resources/read"

_AIMED: Mapping[str, tuple[Kind, str]] = {
    methods.CALL_TOOL: ("tools", "name"),
    "prompts/get": ("prompts", "name"),
    READ: ("resources", "uri"),
    methods.SUBSCRIBE: ("resources", "uri"),
    methods.UNSUBSCRIBE: ("resources", "uri"),
}
_REFERENCES: Mapping[str, tuple[Kind, str]] = {"ref/prompt": ("prompts", "name"), "ref/resource": ("resources", "uri")}
CALLS = frozenset({methods.CALL_TOOL, "prompts/get", READ, COMPLETE})
"""What makes a server work."""
_RECORDED = "arguments"
"""Is in the audit, so that nothing else may pass for it."""
_AIMLESS = frozenset(
    {
        *(method for method in methods.OF_HANDSHAKE - _AIMED.keys() - {COMPLETE} if not method.startswith("tasks/")),
        methods.SHUTDOWN,
        stateless.DISCOVER,
    }
)


class Listed(NamedTuple):
    """A method that lists: what, under which member of its result, and by which member each is known."""

    kind: Kind
    key: str
    name: str


LISTS: Mapping[str, Listed] = {
    methods.LIST_TOOLS: Listed("tools", "tools", "name"),
    "prompts/list": Listed("prompts", "prompts", "name"),
    "resources/list": Listed("resources", "resources", "uri"),
    "resources/templates/list": Listed("resources", "resourceTemplates", "uriTemplate"),
}


class Annotations(Struct):
    """Of one of the wrong type nothing is taken."""

    read_only: bool | None = field(default=None, name="readOnlyHint")
    destructive: bool | None = field(default=None, name="destructiveHint")


_fields: Decoder[dict[str, Raw]] = Decoder(dict[str, Raw])
_strings: Decoder[str] = Decoder(str)
_many: Decoder[list[str]] = Decoder(list[str])
_USUAL = frozenset({"_meta", "arguments", "name", "uri"})
"""Members that nobody takes for each other, nor for any that is written."""
_PRIVATE = Raw(b'"private"')
_items: Decoder[list[Raw]] = Decoder(list[Raw])
_annotations = Decoder(Annotations)


def aimed(request: Request) -> tuple[Request, tuple[Aim, ...]] | None:
    """The request as it is to go on, and all that it aims at; None where we do not know what its method aims at.

    Raises:
        BadParams: what it aims at cannot be read.
    """
    method = request.method
    if (member := _AIMED.get(method)) is not None:
        kind, name = member
        fields = fields_of(request)
        aim = text(fields, name, f"params.{name}")
        return _with_fields(request, _alone(written(fields, name, fields[name]), _RECORDED)), ((kind, aim),)
    if method == COMPLETE:
        return _completion(request)
    if method == stateless.LISTEN:
        return _subscription(request)
    return (request, ()) if method in _AIMLESS else None


def is_known(method: str) -> bool:
    """Whether we know what it aims at, if at anything."""
    return method in _AIMED or method in _AIMLESS or method in (COMPLETE, stateless.LISTEN)


def is_request(method: str) -> bool:
    """Whether a notification of that name would be one of our requests without an id: some servers would serve it."""
    return not method.startswith("notifications/") and method not in methods.ALIASES


def shown(result: Raw, listed: Listed, may_see: Callable[[str, Raw], bool]) -> Raw:
    """A page of a list with only what `may_see` has nothing against; it is given each name, and all that is said."""
    try:
        fields = _fields.decode(result)
        items = _items.decode(fields.get(listed.key, b"[]"))
    except DecodeError:
        return payload({listed.key: []})
    kept = []
    for item in items:
        try:
            said = _fields.decode(item)
            name = _strings.decode(said.get(listed.name, b"null"))
        except DecodeError:
            continue
        whole = payload(written(said, listed.name, said[listed.name]))
        if may_see(name, whole):
            kept.append(whole)
    return private(payload(written(fields, listed.key, payload(kept))))


def private(result: Raw) -> Raw:
    """Not to be shown to others, whatever its server says: they may not use the same (2026-07-28, server/utilities)."""
    said = bytes(result)
    if b"cacheScope" not in said and b"\\u" not in said:
        return result
    try:
        fields = _fields.decode(result)
    except DecodeError:
        return result
    return payload(written(fields, "cacheScope", _PRIVATE)) if "cacheScope" in fields else result


def annotations(tool: Raw) -> Annotations:
    """What a server says of one of its tools; nothing where that is not readable."""
    try:
        return _annotations.decode(_fields.decode(tool).get("annotations", b"{}"))
    except DecodeError:
        return Annotations()


def _completion(request: Request) -> tuple[Request, tuple[Aim, ...]]:
    fields = fields_of(request)
    try:
        reference = _fields.decode(fields.get("ref", b"null"))
    except DecodeError as wrong:
        raise BadParams("params.ref must be an object") from wrong
    kind = text(reference, "type", "params.ref.type")
    if kind not in _REFERENCES:
        raise BadParams("params.ref.type must be ref/prompt or ref/resource")
    named, member = _REFERENCES[kind]
    aim = text(reference, member, f"params.ref.{member}")
    reference = written(written(reference, "type", reference["type"]), member, reference[member])
    return _with_fields(request, written(fields, "ref", payload(reference))), ((named, aim),)


def _subscription(request: Request) -> tuple[Request, tuple[Aim, ...]]:
    fields = fields_of(request)
    try:
        wanted = _fields.decode(fields.get("notifications", b"{}"))
        uris = _many.decode(wanted.get(_URIS, b"[]"))
    except DecodeError as wrong:
        raise BadParams("params.notifications is not readable") from wrong
    wanted = written(wanted, _URIS, payload(uris))
    if not uris:
        del wanted[_URIS]
    aims: tuple[Aim, ...] = tuple(("resources", uri) for uri in uris)
    return _with_fields(request, written(fields, "notifications", payload(wanted))), aims


_URIS = "resourceSubscriptions"


def text(fields: Mapping[str, Raw], name: str, where: str) -> str:
    """
    Raises:
        BadParams: it is missing, or no text.
    """
    try:
        return _strings.decode(fields.get(name, b"null"))
    except DecodeError as wrong:
        raise BadParams(f"{where} must be a string") from wrong


def written(fields: Mapping[str, Raw], name: str, value: Raw) -> dict[str, Raw]:
    """With one member of that name, and none that a reader who does not mind the case could take for it."""
    kept = fields if fields.keys() <= _USUAL else _alone(fields, name)
    return {**kept, name: value}


def _alone(fields: Mapping[str, Raw], name: str) -> dict[str, Raw]:
    folded = name.casefold()
    return {other: said for other, said in fields.items() if other == name or other.casefold() != folded}


def _with_fields(request: Request, fields: dict[str, Raw]) -> Request:
    if isinstance(request, Admitted):
        return request.with_fields(fields)
    return Request(request.id, request.method, payload(fields))
