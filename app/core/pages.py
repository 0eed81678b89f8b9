"""Cursors of a list that was put together from many: they say after what to go on, so that a change elsewhere in the
list neither hides anything nor shows it twice.

Where that is gone, too, its place at its server counts, so that the things of other servers still come once. Those of
its own server may then be missed or come twice, if what stood before it there has changed as well. And a list that is
in another order than before promises nothing.
"""

from base64 import b64decode, urlsafe_b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Annotated, TypeAlias

from msgspec import DecodeError, Meta, Struct
from msgspec.json import Decoder

from app.protocol.faults import BadParams
from app.protocol.jsonrpc import payload

Name: TypeAlias = tuple[str, str]
"""A server, and what it calls a thing."""

_LENGTH_MAX = 8192
_NAME_MAX = 128
_SERVERS_MAX = 16


class _Place(Struct, array_like=True, forbid_unknown_fields=True):
    """After what is called `own` at the last of `servers`, where it is number `index`; the others came before it."""

    own: str
    index: Annotated[int, Meta(ge=0)]
    servers: Annotated[tuple[str, ...], Meta(min_length=1, max_length=_SERVERS_MAX)]


_places = Decoder(_Place)


def cursor(names: Sequence[Name], end: int) -> str:
    """For what comes after the first `end`; the things of one server are beside each other."""
    server, own = names[end - 1]
    servers = tuple(dict.fromkeys(name[0] for name in names[:end]))
    index = end - 1 - next(at for at, name in enumerate(names) if name[0] == server)
    return urlsafe_b64encode(bytes(payload(_Place(_brief(own), index, servers[-_SERVERS_MAX:])))).decode()


def begin(cursor: str | None, names: Sequence[Name]) -> int:
    """Where the cursor says that the next page begins; what it names may be gone since.

    Raises:
        BadParams: no cursor of ours.
    """
    if not cursor:
        return 0
    place = _place(cursor)
    server = place.servers[-1]
    there = [at for at, name in enumerate(names) if name[0] == server]
    found = next((at for at in there if _brief(names[at][1]) == place.own), None)
    if found is not None:
        return found + 1
    if there:
        return there[0] + min(place.index, len(there))
    return 1 + max((at for at, name in enumerate(names) if name[0] in place.servers), default=-1)


def _place(cursor: str) -> _Place:
    try:
        if len(cursor) <= _LENGTH_MAX:
            return _places.decode(b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True))
    except (ValueError, DecodeError) as wrong:
        raise _not_ours() from wrong
    raise _not_ours()


def _not_ours() -> BadParams:
    return BadParams("params.cursor is none of this list; leave it out to begin anew")


def _brief(own: str) -> str:
    """Itself, or what tells it from all others where it is long."""
    return own if len(own) <= _NAME_MAX else sha256(own.encode()).hexdigest() + own[:_NAME_MAX]
