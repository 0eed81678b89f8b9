"""What no parser behind us may be shown: checked once, where bytes come in.

msgspec's `Raw` checks the syntax (NaN, lone surrogates and trailing data are refused there) but neither UTF-8 nor
depth, so these two are checked here, in time that grows with the text's length and with nothing else.
"""

import codecs
import sys
from array import array
from functools import cache
from itertools import accumulate
from operator import add

from app.protocol.faults import Malformed

MAX_DEPTH = 64
_CHUNK = 65536
_STRUCTURE = b'"[]{}'
_REST = bytes(set(range(256)) - set(_STRUCTURE))
_BITS = bytes.maketrans(b"[]{}", b"0101")
_WORD = 16


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
    """Leave only the brackets, and look at sixteen of them at a time: how high they rise, and where they end."""
    unescaped = text.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in text else text
    skeleton = unescaped.translate(_BITS, _REST).replace(b'""', b"")
    words = _words(b"".join(skeleton.split(b'"')[::2]))
    rises, peaks = _tables()
    heights = list(accumulate(map(rises.__getitem__, words), initial=0))
    if max(heights) <= MAX_DEPTH - _WORD:
        return
    if max(map(add, heights, map(peaks.__getitem__, words))) > MAX_DEPTH:
        raise Malformed(f"nested deeper than {MAX_DEPTH}")


def _words(bits: bytes) -> "array[int]":
    """Sixteen brackets are a number of sixteen bits; the last is filled up with closing ones."""
    bits += b"1" * (-len(bits) % _WORD)
    words = array("H", int(b"0" + bits, 2).to_bytes(len(bits) // 8, "big"))
    if sys.byteorder == "little":
        words.byteswap()
    return words


@cache
def _tables() -> tuple[list[int], list[int]]:
    """By how much each word ends above its beginning, and how far above it its highest place is."""
    rises, peaks = [1, -1], [1, 0]
    for _ in range(_WORD.bit_length() - 1):
        peaks = [max(peak, rise + later) for rise, peak in zip(rises, peaks, strict=True) for later in peaks]
        rises = [rise + later for rise in rises for later in rises]
    return rises, peaks
