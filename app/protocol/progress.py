"""Progress tokens, as a server gets them: what we route by is read by us and written by us.

Of a member that is there twice some servers read the first, and some (Go's encoding/json) take any case for the
right one. A token of the sender's that such a server found, and we did not, could be that of somebody else's call.
"""

from msgspec import DecodeError, Raw
from msgspec.json import Decoder, Encoder

from app.protocol.jsonrpc import Request, RequestId

_META = "_meta"
_TOKEN = "progressToken"  # noqa: S105 - of progress

_encoder = Encoder()
_fields: Decoder[dict[str, Raw]] = Decoder(dict[str, Raw])
_tokens: Decoder[int | str] = Decoder(int | str)


def under_token(request: Request, ours: int) -> tuple[Request, RequestId | None]:
    """The request with our token where it had a good one, and with none elsewhere; and the token that it had."""
    if request.params is None:
        return request, None
    params = _fields.decode(request.params)
    spellings = [name for name in params if is_meta(name)]
    if not spellings:
        return request, None
    theirs: RequestId | None = None
    if _META in params:
        params[_META], theirs = with_token(params[_META], ours)
    for name in spellings:
        if name != _META:
            del params[name]
    return Request(request.id, request.method, Raw(_encoder.encode(params))), theirs


def is_meta(name: str) -> bool:
    """Whether some server may take the member for `_meta`."""
    return len(name) == len(_META) and name.casefold() == _META


def with_token(meta: Raw, ours: int) -> tuple[Raw, RequestId | None]:
    """The `_meta` with our token where it had a good one, and with none elsewhere; and the token that it had."""
    try:
        members = _fields.decode(meta)
    except DecodeError:
        return meta, None
    theirs = _token(members.get(_TOKEN))
    for name in [name for name in members if name.casefold() == _TOKEN.casefold()]:
        if name == _TOKEN and theirs is not None:
            members[name] = Raw(b"%d" % ours)
        else:
            del members[name]
    return Raw(_encoder.encode(members)), theirs


def _token(written: Raw | None) -> RequestId | None:
    try:
        return None if written is None else _tokens.decode(written)
    except DecodeError:
        return None
