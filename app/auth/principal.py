"""Who is calling."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from app.auth.term import Term

_NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Principal:
    """`issuer` is None for a static token, whose `name` its operator chose; otherwise `name` is its subject."""

    name: str
    scopes: frozenset[str]
    expires_at: float | None = None
    """Unix seconds, by the wall clock."""
    issuer: str | None = None
    client: str = ""
    """The OAuth client that the token was given to."""
    resources: frozenset[str] | None = None
    """The URLs that the token is for; None for every place here."""
    claims: Mapping[str, object] = field(default_factory=lambda: _NOTHING, repr=False, hash=False)
    """What the issuer says of it."""
    term: Term = field(default_factory=Term, repr=False, compare=False)
    """Of the token that it came with."""

    @property
    def key(self) -> str:
        """Equal keys mean one and the same principal: sessions are bound to it.

        No name, subject or client has a control character in it, so that nobody's key is somebody else's.
        """
        return self.name if self.issuer is None else f"\x1f{self.issuer}\x1f{self.name}\x1f{self.client}"


ANONYMOUS = Principal("anonymous", frozenset({"*"}))
"""Everybody, where the operator asked for no authentication."""
