"""What no parser behind us may be shown: checked once, where bytes come in.

msgspec's `Raw` checks the syntax (NaN, lone surrogates and trailing data are refused there) but neither UTF-8 nor
depth, so these two are checked here, in time that grows with the text's length and with nothing else.
"""

import codecs
from itertools import accumulate

from app.protocol.faults import Malformed

MAX_DEPTH = 64
_CHUNK = 65536
_STRUCTURE = b'"[]{}'
_REST = bytes(set(range(256)) - set(_STRUCTURE))
_ROUND = bytes.maketrans(b"[]{}", b"()()")
_PEELS = 8


def check_text(text: bytes) -> None:
    """Refuse what is not UTF-8, and what nests deeper than 64.

    Raises:
        Malformed: naming which of the two.
    """
    if not text.isascii():
        _check_utf8(text)
    if text.count(b"{") + text.count(b"[") > MAX_DEPTH:
        _check_depth(text)


def _check_utf8(text: bytes) -> None:
    decode = codecs.getincrementaldecoder("utf-8")().decode
    view = memoryview(text)
    try:
        for start in range(0, len(text), _CHUNK):
            decode(view[start : start + _CHUNK], start + _CHUNK >= len(text))
    except UnicodeDecodeError as broken:
        raise Malformed("not UTF-8") from broken


def _check_depth(text: bytes) -> None:
    """Leave only the brackets, peel those that hold nothing a few times, then look at the peaks that are left.

    Where a peak is left after so many rounds, at least so many pairs were peeled off it: the peaks are few.
    """
    unescaped = text.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in text else text
    skeleton = unescaped.translate(_ROUND, _REST).replace(b'""', b"")
    brackets = b"".join(skeleton.split(b'"')[::2])
    for _ in range(_PEELS):
        brackets = brackets.replace(b"()", b"")
    valleys = brackets.split(b"()")
    if any(depth >= MAX_DEPTH - _PEELS for depth in accumulate(map(_rise, valleys))):
        raise Malformed(f"nested deeper than {MAX_DEPTH}")


def _rise(valley: bytes) -> int:
    """How much higher the peak behind a valley is than the one before it."""
    return len(valley) - 2 * valley.count(b")")
