"""The chain that holds an audit file together: each line ends with the hash of the line before it and of itself.

{"seq":7,"time":"...","event":"call",...,"chain":"<sha256 of chain 6 and of this line up to here>"}
"""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec import DecodeError, Struct
from msgspec.json import Decoder

_MARK = b',"chain":"'
_HASH_BYTES = 64
_END_BYTES = len(_MARK) + _HASH_BYTES + len(b'"}')


class Head(Struct):
    """What the chain itself needs of a record; `previous` is there at the start of a file or of a process."""

    seq: int
    event: str
    previous: str | None = None


class Link(NamedTuple):
    """The last record of a chain."""

    seq: int = 0
    chain: bytes = b""


_heads = Decoder(Head)


def chained(before: bytes, body: bytes) -> bytes:
    """The hash of a record that follows one with the hash `before`."""
    return hashlib.sha256(before + body).hexdigest().encode()


def line(body: bytes, chain: bytes) -> bytes:
    return b'%b,"chain":"%b"}\n' % (body[:-1], chain)


def parts(text: bytes) -> tuple[Head, bytes, bytes] | None:
    """Of a line without its end: what it says of its place, the record as it was hashed, and its hash."""
    mark = len(text) - _END_BYTES
    if mark < 1 or text[mark : mark + len(_MARK)] != _MARK or text[-2:] != b'"}':
        return None
    body = text[:mark] + b"}"
    try:
        return _heads.decode(body), body, text[mark + len(_MARK) : -2]
    except DecodeError:
        return None


class Verified(NamedTuple):
    """`problems` are sentences, each with its file and line. `last` is worth keeping elsewhere: it must be there."""

    record_count: int
    problems: list[str]
    last: Link
    first: int = 0
    """The number of the first record; what is missing before it shows in nothing else."""


def verify(paths: Iterable[Path]) -> Verified:
    """Files in their order, the oldest first.

    Raises:
        OSError: one cannot be read.
    """
    last, first, count, problems = None, 0, 0, list[str]()
    for path in paths:
        with path.open("rb") as file:
            for number, text in enumerate(file, start=1):
                found = parts(text.removesuffix(b"\n")) if text.endswith(b"\n") else None
                if found is None:
                    problems.append(f"{path}:{number}: this is no whole record")
                    continue
                head, body, chain = found
                problems += [f"{path}:{number}: {wrong}" for wrong in _wrong(last, head, body, chain)]
                first = first or head.seq
                last, count = Link(head.seq, chain), count + 1
    return Verified(count, problems, last or Link(), first)


def _wrong(last: Link | None, head: Head, body: bytes, chain: bytes) -> Iterator[str]:
    before = last
    if head.event == "opened" and head.previous is not None:
        before = Link(head.seq - 1, head.previous.encode())
        if last is not None and last.chain != before.chain:
            yield "this does not follow the record before it"
            last = None
    if before is None:
        yield "this begins in the middle; name the file before it, too"
    elif chained(before.chain, body) != chain:
        yield "the record was changed, or the one before it is missing"
    if last is not None and head.seq != last.seq + 1:
        yield f"record {head.seq} follows {last.seq}"
