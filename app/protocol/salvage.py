"""Which call a line was to answer that is refused: too deep, not UTF-8, with a NaN in it, or cut off."""

import re

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType
from msgspec.json import Decoder

_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"\s*,\s*'
_BEGINNING = re.compile(
    rb'\s*\{\s*(?:%b)?"id"\s*:\s*(-?\d{1,19})\s*,\s*(?:%b)?"(?:result|error)"\s*:' % (_VERSION, _VERSION)
)


class _Reply(Struct):
    id: int
    method: Raw | UnsetType = UNSET


_replies: Decoder[_Reply] = Decoder(_Reply)


def answered_id(text: bytes) -> int | None:
    """Ours are integers; None where the line is no reply to one of them, or cannot be told to be.

    Most servers write the id before the answer, and then it does not matter what comes after.
    """
    found = _BEGINNING.match(text)
    if found is not None:
        return int(found[1])
    try:
        reply = _replies.decode(text)
    except (DecodeError, RecursionError):
        return None
    return reply.id if reply.method is UNSET else None
