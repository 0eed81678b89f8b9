"""What no parser behind us may be shown: checked once, where bytes come in.

msgspec's `Raw` checks the syntax (NaN, lone surrogates and trailing data are refused there) but neither UTF-8 nor
depth, so these two are checked here. Both cost about a nanosecond a byte.
"""

import codecs

from app.protocol.faults import Malformed

MAX_DEPTH = 64
_CHUNK = 65536
_STRUCTURE = b'"[]{}'
_REST = bytes(set(range(256)) - set(_STRUCTURE))


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
    """Leave only the brackets, then peel: what is left after as many rounds as may be nested was nested deeper."""
    unescaped = text.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in text else text
    skeleton = unescaped.translate(None, _REST)
    brackets = b"".join(skeleton.split(b'"')[::2])
    for _ in range(MAX_DEPTH):
        if not brackets:
            return
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    if brackets:
        raise Malformed(f"nested deeper than {MAX_DEPTH}")
