"""JWT access tokens of one issuer (RFC 9068): verified with the one key that `kid` names, judged by their claims."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from app.auth.claims import Expected, admitted
from app.auth.compact import Compact, kind_of
from app.auth.jwks import KeySet
from app.auth.principal import Principal
from app.auth.verdicts import BadToken


@dataclass(frozen=True, slots=True)
class JwtRules:
    expected: Expected
    algorithms: tuple[str, ...] = ("RS256",)
    types: tuple[str, ...] = ("at+jwt",)
    """Values of `typ`, which keep what the same issuer signs for other purposes, as ID tokens, from being used here."""


class JwtVerifier:
    def __init__(self, rules: JwtRules, keys: KeySet, wall_clock: Callable[[], float] = time.time) -> None:
        self.keys = keys
        self._rules = rules
        self._types = frozenset(kind_of(typ) for typ in rules.types)
        self._wall_clock = wall_clock

    @property
    def issuer(self) -> str:
        return self._rules.expected.issuer

    def stop(self) -> None:
        self.keys.stop()

    async def verify(self, token: Compact) -> Principal:
        """
        Raises:
            BadToken: it is not a token of this issuer for us and for now.
            CannotVerify: its issuer's keys cannot be had.
        """
        if token.algorithm not in self._rules.algorithms:
            raise BadToken("wrong_algorithm")
        if token.kind not in self._types:
            raise BadToken("wrong_type")
        key = await self.keys.find(token.kid)
        if token.algorithm not in key.algorithms:
            raise BadToken("wrong_algorithm")
        if not key.made(token.signature, token.signed, token.algorithm):
            raise BadToken("bad_signature")
        return admitted(token.claims, self._rules.expected, self._wall_clock())
