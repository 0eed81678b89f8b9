"""Cursors of a list that was put together from many: they say after what to go on, so that a change elsewhere in the
list neither hides anything nor shows it twice."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence

from msgspec import DecodeError
from msgspec.json import Decoder

from app.protocol.faults import BadParams
from app.protocol.jsonrpc import payload

_positions: Decoder[tuple[str, str, int]] = Decoder(tuple[str, str, int])
_LENGTH_MAX = 8192


def cursor(server: str, own: str, index: int) -> str:
    """After what is `own` at `server`, which is where `index` is now."""
    return urlsafe_b64encode(bytes(payload((server, own, index)))).decode()


def begin(cursor: str | None, names: Sequence[tuple[str, str]]) -> int:
    """Where the cursor says that the next page begins; what it names may be gone since.

    Raises:
        BadParams: no cursor of ours.
    """
    if not cursor:
        return 0
    try:
        server, own, index = _positions.decode(urlsafe_b64decode(cursor[:_LENGTH_MAX].encode("ascii")))
    except (ValueError, DecodeError) as wrong:
        raise BadParams("params.cursor is none of this list; leave it out to begin anew") from wrong
    if (server, own) in names:
        return names.index((server, own)) + 1
    return max(0, min(index, len(names)))
