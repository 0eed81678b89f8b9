"""Whose a client's request is, of many servers', and what it says there: names and URIs are read once, and written
back, so that nobody reads another one there."""

from msgspec import DecodeError, Raw, Struct
from msgspec.json import Decoder
from msgspec.structs import replace

from app.core.catalog import Catalog, Entry
from app.core.inventory import Shelf
from app.protocol import aims, methods
from app.protocol.faults import BadParams, UnknownMethod
from app.protocol.jsonrpc import Request, payload
from app.protocol.stateless import Admitted, fields_of

_NOUNS = {"tools": "tool", "prompts": "prompt", "resources": "resource"}
_ADDRESSED = frozenset({aims.READ, methods.SUBSCRIBE, methods.UNSUBSCRIBE})
_SHOWN = 100
_UNSAID = Raw(b"{}")

_fields: Decoder[dict[str, Raw]] = Decoder(dict[str, Raw])


class Routed(Struct, frozen=True):
    """A request as its server gets it."""

    server: str
    request: Request
    public: str
    """What it was sent to, as its client says,"""
    shelf: Shelf
    entry: Entry
    """and what that is now. Of a resource nothing else is said than its URI."""


def routed(request: Request, catalog: Catalog) -> Routed:
    """
    Raises:
        BadParams: it is sent to nothing that there is.
        UnknownMethod: nobody could say whose it is.
    """
    match request.method:
        case methods.CALL_TOOL:
            return _named(request, catalog, "tools")
        case "prompts/get":
            return _named(request, catalog, "prompts")
        case method if method in _ADDRESSED:
            return _addressed(request, catalog)
        case aims.COMPLETE:
            return _completed(request, catalog)
        case _:
            raise UnknownMethod(f"unknown method {request.method[:_SHOWN]!r}")


def unknown(kind: str, name: str) -> BadParams:
    """A resource is named in full, too (2026-07-28, server/resources: "Error Handling")."""
    sentence = f"unknown {_NOUNS[kind]} {name[:_SHOWN]!r}; what may be used here is in {kind}/list"
    return BadParams(sentence, reason="unknown_target", details={"uri": name} if kind == "resources" else None)


def rewritten(request: Request, fields: dict[str, Raw], target: str) -> Request:
    """The request with other parameters, sent to something else."""
    if isinstance(request, Admitted):
        return replace(request.with_fields(fields), target=target)
    return Request(request.id, request.method, payload(fields))


def _named(request: Request, catalog: Catalog, shelf: Shelf) -> Routed:
    fields = fields_of(request)
    public = aims.text(fields, "name", "params.name")
    entry = catalog.find(shelf, public)
    if entry is None:
        raise unknown(shelf, public)
    ours = aims.written(fields, "name", payload(entry.own))
    ours.pop("task", None)  # We offer no tasks: whoever asks for one all the same is answered as if it had not.
    return Routed(entry.server, rewritten(request, ours, entry.own), public, shelf, entry)


def _addressed(request: Request, catalog: Catalog) -> Routed:
    fields = fields_of(request)
    uri = aims.text(fields, "uri", "params.uri")
    entry = _resource(catalog, uri)
    ours = rewritten(request, aims.written(fields, "uri", payload(entry.own)), entry.own)
    return Routed(entry.server, ours, uri, "resources", entry)


def _completed(request: Request, catalog: Catalog) -> Routed:
    fields = fields_of(request)
    try:
        reference = _fields.decode(fields.get("ref", b"null"))
    except DecodeError as wrong:
        raise BadParams("params.ref must be an object") from wrong
    kind = aims.text(reference, "type", "params.ref.type")
    if kind not in ("ref/prompt", "ref/resource"):
        raise BadParams("params.ref.type must be ref/prompt or ref/resource")
    member = "name" if kind == "ref/prompt" else "uri"
    public = aims.text(reference, member, f"params.ref.{member}")
    shelf, entry = _referred(catalog, kind, public)
    reference = aims.written(aims.written(reference, "type", payload(kind)), member, payload(entry.own))
    ours = aims.written(fields, "ref", payload(reference))
    return Routed(entry.server, rewritten(request, ours, entry.own), public, shelf, entry)


def _referred(catalog: Catalog, kind: str, public: str) -> tuple[Shelf, Entry]:
    if kind != "ref/prompt":
        return "resources", _resource(catalog, public)
    entry = catalog.find("prompts", public)
    if entry is None:
        raise unknown("prompts", public)
    return "prompts", entry


def _resource(catalog: Catalog, uri: str) -> Entry:
    owner = catalog.owner_of(uri)
    if owner is None:
        raise unknown("resources", uri)
    return Entry(*owner, uri, _UNSAID)
