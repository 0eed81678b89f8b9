"""Errors as they come from servers, and what we make of them for clients of another era."""

from msgspec import DecodeError, Raw, Struct, field
from msgspec.json import Decoder

from app.protocol import methods
from app.protocol.jsonrpc import payload

_METHOD_NOT_FOUND = -32601


class _Untold(Struct):
    message: str = ""


class _Error(Struct):
    code: int
    message: str


class _FaultData(Struct):
    source: str = ""
    reason: str = ""


class _Fault(Struct):
    data: _FaultData = field(default_factory=_FaultData)


class _Elicitations(Struct):
    elicitations: list[Raw] = field(default_factory=list)


class _UrlError(Struct):
    data: _Elicitations = field(default_factory=_Elicitations)


_fields: Decoder[dict[str, Raw]] = Decoder(dict[str, Raw])
_untold = Decoder(_Untold)
_errors = Decoder(_Error)
_faults = Decoder(_Fault)
_url_errors = Decoder(_UrlError)


def is_error(error: Raw) -> bool:
    """Whether it has what JSON-RPC's errors have."""
    try:
        _errors.decode(error)
    except DecodeError:
        return False
    return True


def fault_reason(error: Raw) -> str:
    """The reason of an error of ours; nothing of anybody else's."""
    try:
        data = _faults.decode(error).data
    except DecodeError:
        return ""
    return data.reason if data.source == "gateway" else ""


def with_code(error: Raw, code: int) -> Raw:
    """The error under another code."""
    fields = _fields.decode(error)
    fields["code"] = Raw(b"%d" % code)
    return payload(fields)


def as_unknown_method(error: Raw) -> Raw:
    """The error with the code for an unknown method, where it is what servers on `mcp` 1.x say to one.

    Their SDK finds no model for the request and says so in the words that it has for bad parameters.
    """
    try:
        is_theirs = _untold.decode(error).message == "Invalid request parameters"
    except DecodeError:
        return error
    return with_code(error, _METHOD_NOT_FOUND) if is_theirs else error


def elicitations(error: Raw) -> list[Raw]:
    """What an error of "URL elicitation required" asks for, as parameters of elicitations (2025-11-25)."""
    try:
        listed = _url_errors.decode(error).data.elicitations
        return [methods.without(params, "elicitationId") for params in listed]
    except DecodeError:
        return []
