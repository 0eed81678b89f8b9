"""What an issuer says of a token, judged: for whom, from whom, since when and until when; and who that is."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType

from app.auth.compact import Claims
from app.auth.principal import Principal
from app.auth.tokens import SCOPE
from app.auth.verdicts import BadToken

_TEXT_MAX = 1024
_EVERYTHING = "*"
"""As a scope it means everything, which only the operator of this gateway may give."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a token must say to be for us. `audiences` admit to every place, `resources` each to its own only."""

    issuer: str
    audiences: frozenset[str]
    resources: frozenset[str] = frozenset()
    scope_claim: str = "scope"
    leeway: float = 30
    lifetime_max: float = 86_400
    is_expiry_needed: bool = True
    claims_read: frozenset[str] | None = None
    """Those that anybody here looks at, beside the above; None for all. What else an issuer says may be new with each
    answer, as the seconds that are left, and makes nobody somebody else."""


@dataclass(frozen=True, slots=True)
class Ours:
    """What is asked of every issuer's tokens here: the URLs they may be for, and the claims that anybody looks at."""

    resources: frozenset[str]
    claims_read: frozenset[str]


def admitted(claims: Claims, expected: Expected, now: float) -> Principal:
    """Whom they name. Its scopes, times and audience are judged; its signature is another's concern.

    Raises:
        BadToken: they are not for us, or not now.
    """
    if claims.get("iss") != expected.issuer:
        raise BadToken("wrong_issuer")
    resources = _resources(_listed(claims.get("aud")), expected)
    expires_at = _expires_at(claims, expected, now)
    subject = _text(claims.get("sub"), "no_subject")
    client = claims.get("client_id", claims.get("azp"))
    return Principal(
        subject,
        _scopes(claims, expected.scope_claim),
        expires_at,
        expected.issuer,
        "" if client is None else _text(client, "bad_client"),
        resources,
        MappingProxyType(_read(claims, expected.claims_read)),
    )


def spellings(urls: Iterable[str]) -> frozenset[str]:
    """An audience is compared letter by letter, and people write a URL with and without a slash at its end."""
    bare = [url.rstrip("/") for url in urls]
    return frozenset([*bare, *(f"{url}/" for url in bare)])


def _resources(audience: list[str], expected: Expected) -> frozenset[str] | None:
    if not expected.audiences.isdisjoint(audience):
        return None
    named = expected.resources.intersection(audience)
    if not named:
        raise BadToken("wrong_audience")
    return named


def _listed(audience: object) -> list[str]:
    if isinstance(audience, str):
        return [audience]
    if not isinstance(audience, list) or not all(isinstance(each, str) for each in audience):
        raise BadToken("wrong_audience")
    return audience


def _expires_at(claims: Claims, expected: Expected, now: float) -> float | None:
    """With the leeway that clocks are given. A year-long token is an issuer's mistake, and could not be taken back."""
    expiry, begin, issued = (_moment(claims, name) for name in ("exp", "nbf", "iat"))
    if begin is not None and begin > now + expected.leeway:
        raise BadToken("not_yet_valid")
    if issued is not None and issued > now + expected.leeway:
        raise BadToken("issued_in_future")
    if expiry is None:
        if expected.is_expiry_needed:
            raise BadToken("no_expiry")
        return None
    if now >= expiry + expected.leeway:
        raise BadToken("expired")
    if expiry - (now if issued is None else issued) > expected.lifetime_max:
        raise BadToken("too_long_lived")
    return expiry + expected.leeway


def _moment(claims: Claims, name: str) -> float | None:
    value = claims.get(name)
    if value is None and name not in claims:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e12:
        raise BadToken(f"bad_{name}")
    return math.floor(value)


def _read(claims: Claims, names: frozenset[str] | None) -> Claims:
    return claims if names is None else {name: value for name, value in claims.items() if name in names}


def _text(value: object, cause: str) -> str:
    """What may be part of a principal's key, of a log and of a header: no control characters, no lone surrogates."""
    if not isinstance(value, str) or not value or len(value) > _TEXT_MAX or not value.isprintable():
        raise BadToken(cause)
    return value


def _scopes(claims: Claims, name: str) -> frozenset[str]:
    """A string of words or a list of them; `scp` is what some issuers call it."""
    value = claims.get(name, claims.get("scp", ""))
    words = value.split() if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) and SCOPE.fullmatch(word) for word in words):
        raise BadToken("bad_scope")
    return frozenset(words) - {_EVERYTHING}
