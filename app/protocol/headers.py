"""The headers that mirror a stateless request, and how their values are written (2026-07-28, basic/transports)."""

from binascii import Error, a2b_base64, b2a_base64
from collections.abc import Mapping
from functools import lru_cache

from app.protocol.faults import HeaderMismatch

VERSION = b"mcp-protocol-version"
METHOD = b"mcp-method"
NAME = b"mcp-name"
PARAM = b"mcp-param-"

_BEGIN, _END = "=?base64?", "?="
_KNOWN_BYTES = 128
_SPACE = b" \t"
_ALLOWED = bytes(range(0x21, 0x7F)) + _SPACE


def plain(headers: Mapping[bytes, bytes], name: bytes) -> str | None:
    """What the header says, to the letter; None where it is absent.

    Raises:
        HeaderMismatch: it has characters that no header may have.
    """
    value = headers.get(name)
    if value is None:
        return None
    said = _known(value) if len(value) <= _KNOWN_BYTES else _read(value)
    if said is None:
        raise HeaderMismatch(f"{title(name)} has invalid characters")
    return said


def _read(value: bytes) -> str | None:
    return None if value.translate(None, _ALLOWED) else value.strip(_SPACE).decode("ascii")


_known = lru_cache(maxsize=1024)(_read)
"""What is said in headers is said again and again."""


def decoded(headers: Mapping[bytes, bytes], name: bytes) -> str | None:
    """What the header says, written in Base64 or not ("Value Encoding"); None where it is absent.

    Raises:
        HeaderMismatch: it has invalid characters, or Base64 as no encoder writes it.
    """
    value = plain(headers, name)
    if value is None or not (value.startswith(_BEGIN) and value.endswith(_END)):
        return value
    coded = value[len(_BEGIN) : -len(_END)].encode()
    try:
        text = a2b_base64(coded)
        if b2a_base64(text, newline=False) == coded and len(value) >= len(_BEGIN + _END):
            return text.decode()
    except (Error, UnicodeDecodeError) as wrong:
        raise HeaderMismatch(f"{title(name)} is not Base64 of UTF-8") from wrong
    raise HeaderMismatch(f"{title(name)} is not Base64 of UTF-8")


def title(name: bytes) -> str:
    """The name as people write it."""
    return name.decode("ascii", "replace").title()
