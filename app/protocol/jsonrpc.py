"""The JSON-RPC envelope, and the only code that turns bytes into messages and messages into bytes.

The envelope is read and the payload is carried: `params`, `result` and `error` stay the bytes that the sender
wrote, so numbers, key order and fields of revisions we have never seen survive. The envelope itself is always
written by us, so whoever reads it next sees exactly what we judged.
"""

from typing import TypeAlias

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, ValidationError
from msgspec.json import Decoder, Encoder

from app.protocol.border import check_text
from app.protocol.faults import GatewayFault, InvalidRequest, Malformed

RequestId: TypeAlias = int | str
"""Compared with its JSON type: `1` and `"1"` are two ids."""

MAX_ID_CHARACTERS = 256
_ID_RANGE = range(-(2**63), 2**64)


class Request(Struct, frozen=True):
    """Somebody wants an answer. `params` are an object's bytes, or None where there were none."""

    id: RequestId
    method: str
    params: Raw | None = None


class Notification(Struct, frozen=True):
    method: str
    params: Raw | None = None


class Result(Struct, frozen=True):
    id: RequestId
    result: Raw


class Failure(Struct, frozen=True):
    """An answer that is an error; `id` is None where the sender could not tell which request it answers."""

    id: RequestId | None
    error: Raw


Reply: TypeAlias = Result | Failure
Message: TypeAlias = Request | Notification | Reply


class _Envelope(Struct):
    jsonrpc: str = ""
    id: int | str | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Object(Struct):
    """Any object at all."""


_objects: Decoder[_Object] = Decoder(_Object)
_envelopes: Decoder[_Envelope] = Decoder(_Envelope)
_batches: Decoder[list[Raw]] = Decoder(list[Raw])
_encoder = Encoder()


def read(text: bytes) -> Message:
    """One message.

    Raises:
        Malformed: not JSON that we pass on.
        InvalidRequest: JSON, but no JSON-RPC 2.0 message.
    """
    check_text(text)
    return _message(text)


def read_all(text: bytes, members_max: int = 1000) -> Message | list[Message]:
    """One message, or those of a batch (which may be empty).

    Raises:
        Malformed, InvalidRequest: as `read`; one bad member refuses the whole batch.
    """
    check_text(text)
    if text[:1] != b"[" and text.lstrip(b" \t\r\n")[:1] != b"[":
        return _message(text)
    try:
        members = _batches.decode(text)
        if len(members) > members_max:
            raise InvalidRequest(f"a batch may have at most {members_max} members")
        return [_message(member) for member in members]
    except ValidationError as wrong:
        raise InvalidRequest("a batch must be an array of JSON-RPC messages") from wrong
    except (DecodeError, RecursionError) as broken:
        raise Malformed(f"not JSON: {broken}") from broken


def _message(text: bytes | Raw) -> Message:
    try:
        envelope = _envelopes.decode(text)
    except ValidationError as wrong:
        raise InvalidRequest(f"not a JSON-RPC 2.0 message: {wrong}") from wrong
    except (DecodeError, RecursionError) as broken:
        raise Malformed(f"not JSON: {broken}") from broken
    if envelope.jsonrpc != "2.0":
        raise InvalidRequest('not a JSON-RPC 2.0 message: "jsonrpc" must be "2.0"')
    if envelope.method is not UNSET:
        return _spoken(envelope, envelope.method)
    return _replied(envelope)


def _spoken(envelope: _Envelope, method: str) -> Request | Notification:
    if envelope.result is not UNSET or envelope.error is not UNSET:
        raise InvalidRequest("a message has either a method or an answer, not both")
    params = None if envelope.params is UNSET else _object(envelope.params)
    if envelope.id is UNSET:
        return Notification(method, params)
    return Request(_checked(envelope.id), method, params)


def _replied(envelope: _Envelope) -> Reply:
    if envelope.result is not UNSET and envelope.error is UNSET:
        return Result(_checked(envelope.id), envelope.result)
    if envelope.error is not UNSET and envelope.result is UNSET:
        ident = None if envelope.id is UNSET or envelope.id is None else _checked(envelope.id)
        return Failure(ident, envelope.error)
    raise InvalidRequest("neither a request, a notification nor a reply")


def _object(params: Raw) -> Raw | None:
    try:
        _objects.decode(params)
    except ValidationError as wrong:
        if bytes(params) == b"null":
            return None
        raise InvalidRequest("params must be an object") from wrong
    return params


def _checked(ident: int | str | UnsetType | None) -> RequestId:
    if isinstance(ident, str):
        if len(ident) > MAX_ID_CHARACTERS:
            raise InvalidRequest(f"an id may have at most {MAX_ID_CHARACTERS} characters")
        return ident
    if isinstance(ident, int):
        if ident not in _ID_RANGE:
            raise InvalidRequest("an id must fit in 64 bits")
        return ident
    raise InvalidRequest("an id must be a string or an integer")


def line(message: Message) -> bytes:
    """The message for a pipe: one line, without its newline."""
    return one_line(encode(message))


def one_line(text: bytes) -> bytes:
    """The same JSON without line breaks: in strings it has them escaped, and elsewhere they are only white space."""
    return text.translate(_ONE_LINE) if b"\n" in text or b"\r" in text else text


_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")


def encode(message: Message) -> bytes:
    """The message as JSON; its payload as it came."""
    match message:
        case Result():
            return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (_id(message.id), message.result)
        case Request():
            head = b'{"jsonrpc":"2.0","id":%b,"method":%b' % (_id(message.id), _text(message.method))
            return b"%b}" % head if message.params is None else b'%b,"params":%b}' % (head, message.params)
        case Notification():
            head = b'{"jsonrpc":"2.0","method":%b' % _text(message.method)
            return b"%b}" % head if message.params is None else b'%b,"params":%b}' % (head, message.params)
        case Failure():
            ident = b"null" if message.id is None else _id(message.id)
            return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (ident, message.error)


def _id(ident: RequestId) -> bytes:
    return b"%d" % ident if type(ident) is int else _encoder.encode(ident)


_texts: dict[str, bytes] = {}


def _text(method: str) -> bytes:
    """A method as JSON. The common ones are kept, of a client's inventions only a few."""
    known = _texts.get(method)
    if known is None:
        known = _encoder.encode(method)
        if len(_texts) < 256 and len(method) < 64:
            _texts[method] = known
    return known


def result(ident: RequestId, value: object) -> Result:
    """A result of our own making."""
    return Result(ident, payload(value))


def failure(ident: RequestId | None, fault: GatewayFault) -> Failure:
    """The fault as the answer to `ident`."""
    return Failure(ident, payload({"code": fault.code, "message": fault.message, "data": fault.data()}))


def payload(value: object) -> Raw:
    """JSON of our own making."""
    return Raw(_encoder.encode(value))
