"""A signed token in its compact form, read strictly before anybody believes a word of it (RFC 7515, RFC 8725)."""

import json
import math
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from dataclasses import dataclass

from app.auth.verdicts import BadToken
from app.protocol.border import check_text
from app.protocol.faults import Malformed

LENGTH_MAX = 8192

_FORM = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_OF_OTHERS = frozenset({"crit", "jku", "jwk", "x5u", "x5c", "zip", "b64"})
"""Header fields that would have us extend the format, or take the key from whoever sends the token."""

Claims = dict[str, object]


@dataclass(frozen=True, slots=True)
class Compact:
    algorithm: str
    kid: str | None
    kind: str
    """`typ`, lower case and without "application/"; "jwt" where there is none."""
    claims: Claims
    signed: bytes
    signature: bytes


def is_compact(token: str) -> bool:
    """Whether it has the form of one; it may be far too long."""
    return _FORM.fullmatch(token) is not None


def parse(token: str) -> Compact:
    """
    Raises:
        BadToken: it is not well-formed.
    """
    if len(token) > LENGTH_MAX:
        raise BadToken("too_long")
    if not is_compact(token):
        raise BadToken("not_compact")
    head, payload, signature = token.split(".")
    header = _object(_decoded(head), "bad_header")
    if not _OF_OTHERS.isdisjoint(header):
        raise BadToken("unsupported_header")
    algorithm, kid = header.get("alg"), header.get("kid")
    typ = header.get("typ", "JWT")
    if not isinstance(algorithm, str) or not isinstance(kid, str | None) or not isinstance(typ, str):
        raise BadToken("bad_header")
    claims = _object(_decoded(payload), "bad_claims")
    signed = f"{head}.{payload}".encode("ascii")
    return Compact(algorithm, kid, kind_of(typ), claims, signed, _decoded(signature))


def kind_of(typ: str) -> str:
    """What a `typ` means: a media type, with or without its first part (RFC 7515, section 4.1.9)."""
    return typ.lower().removeprefix("application/")


def strict_object(text: bytes) -> Claims:
    """An object of JSON that nobody could read differently.

    Raises:
        ValueError: it is none: a key is there twice, a number is not finite, it is too deep, not UTF-8.
    """
    try:
        check_text(text)
        tree = json.loads(text.decode(), object_pairs_hook=_unique, parse_constant=_no_number, parse_float=_finite)
    except (Malformed, RecursionError) as error:
        raise ValueError(str(error)) from error
    if not isinstance(tree, dict):
        raise ValueError("no object")  # noqa: TRY004 - one kind of failure for whoever calls
    return tree


def _object(text: bytes, cause: str) -> Claims:
    try:
        return strict_object(text)
    except ValueError as error:
        raise BadToken(cause) from error


def _decoded(part: str) -> bytes:
    """Only in the one spelling that base64url has for a value."""
    try:
        raw = urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except Error as error:
        raise BadToken("bad_base64") from error
    if urlsafe_b64encode(raw).rstrip(b"=").decode() != part:
        raise BadToken("bad_base64")
    return raw


def _unique(pairs: list[tuple[str, object]]) -> Claims:
    tree = dict(pairs)
    if len(tree) != len(pairs):
        raise ValueError("a key is there twice")
    return tree


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number that is not finite")
    return number
