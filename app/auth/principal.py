"""Who is calling."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Principal:
    name: str
    scopes: frozenset[str]
    expires_at: float | None = None
    """Unix seconds, by the wall clock."""
    claims: Mapping[str, object] = field(default_factory=dict, hash=False)
    """What an issuer said of it, where one did."""

    @property
    def key(self) -> str:
        """Equal keys mean one and the same principal: sessions are bound to it."""
        return self.name


ANONYMOUS = Principal("anonymous", frozenset({"*"}))
"""Everybody, where the operator asked for no authentication."""
