"""Who is calling."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Principal:
    name: str
    scopes: frozenset[str]
    expires_at: float | None = None
    """Unix seconds, by the wall clock."""

    @property
    def key(self) -> str:
        """Equal keys mean one and the same principal: sessions are bound to it."""
        return self.name


ANONYMOUS = Principal("anonymous", frozenset({"*"}))
"""Everybody, where the operator asked for no authentication."""
