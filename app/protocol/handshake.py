"""A stateless server's results and errors in the words of the handshake revisions."""

from msgspec import DecodeError, Raw, Struct, ValidationError, field
from msgspec.json import Decoder

from app.protocol import errors, methods, stateless
from app.protocol.jsonrpc import Request, payload

_NOT_FOUND = -32002
_BAD_PARAMS = -32602


class _Typed(Struct):
    type: str = ""


class _Place(Struct):
    uri: str = ""


class _Misplaced(Struct):
    data: _Place = field(default_factory=_Place)


_fields: Decoder[dict[str, Raw]] = Decoder(dict[str, Raw])
_lists: Decoder[list[Raw]] = Decoder(list[Raw])
_objects: Decoder[_Typed] = Decoder(_Typed)
_blocks: Decoder[list[_Typed]] = Decoder(list[_Typed])
_misplaced = Decoder(_Misplaced)


def known_result(request: Request, result: Raw) -> Raw:
    """The result of `request` without what clients of the handshake revisions do not know, or would refuse.

    There structured content is an object, and so is what an output schema describes (changelog: "Minor changes", 10);
    anything else is left out, for such a client would refuse the whole list or result.
    """
    plain = stateless.plain(result)
    try:
        match request.method:
            case "tools/list":
                return _listed(plain)
            case "tools/call":
                return _called(plain)
            case _:
                return plain
    except DecodeError:
        return plain


def known_error(request: Request, error: Raw) -> Raw:
    """The error that answers `request`, under the code that it had in the handshake revisions.

    One has another there: a resource that does not exist (2025-11-25, server/resources: "Error Handling"), told from
    other bad parameters by the uri that the error names. `-32021` (the client lacks a capability), `-32022` and
    `-32020` are of no handshake revision, so no code of theirs would say more: they stay.
    """
    if request.method != "resources/read" or methods.error_code(error) != _BAD_PARAMS:
        return error
    uri = _misplaced_uri(error)
    return errors.with_code(error, _NOT_FOUND) if uri and uri == methods.resource_uri(request.params) else error


def _listed(result: Raw) -> Raw:
    fields = _fields.decode(result)
    tools = _lists.decode(fields.get("tools", b"null"))
    return payload({**fields, "tools": [_described(tool) for tool in tools]})


def _described(tool: Raw) -> Raw:
    fields = _fields.decode(tool)
    if "outputSchema" not in fields or _type(fields["outputSchema"]) == "object":
        return tool
    del fields["outputSchema"]
    return payload(fields)


def _called(result: Raw) -> Raw:
    """What is left out is there as text, where the server did not say it that way too."""
    fields = _fields.decode(result)
    structured = bytes(fields.pop("structuredContent", b"{}"))
    if structured.startswith(b"{"):
        return result
    content = fields.get("content", b"[]")
    if any(block.type == "text" for block in _blocks.decode(content)):
        return payload(fields)
    return payload({**fields, "content": [*_lists.decode(content), {"type": "text", "text": structured.decode()}]})


def _type(schema: Raw) -> str:
    try:
        return _objects.decode(schema).type
    except ValidationError:
        return ""


def _misplaced_uri(error: Raw) -> str:
    try:
        return _misplaced.decode(error).data.uri
    except DecodeError:
        return ""
