"""Static bearer tokens: known by the SHA-256 of what is presented, so that no secret lies in a file or in memory.

A token holds 256 random bits, which needs no slow hash.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from app.auth.principal import Principal

PREFIX = "sha256:"
WEAK_LENGTH = 16
"""A token of fewer characters can be guessed."""

_NOBODY = bytes(32)


@dataclass(frozen=True, slots=True)
class Entry:
    """One token that is let in: its name, its hash as `hash_of` writes it, and what it may do."""

    name: str
    hash: str
    scopes: frozenset[str] = frozenset({"*"})
    expires_at: float | None = None


class StaticTokens:
    def __init__(self, entries: Iterable[Entry], wall_clock: Callable[[], float] = time.time) -> None:
        self._principals = {
            bytes.fromhex(entry.hash.removeprefix(PREFIX)): Principal(entry.name, entry.scopes, entry.expires_at)
            for entry in entries
        }
        self._digests = {digest: digest for digest in self._principals}
        self._wall_clock = wall_clock

    def authenticate(self, presented: str) -> Principal | None:
        """The principal of a token, or None: unknown, expired and ill-formed look alike."""
        digest = _digest(presented)
        stored = self._digests.get(digest, _NOBODY)
        if not hmac.compare_digest(stored, digest):
            return None
        principal = self._principals[digest]
        if principal.expires_at is not None and self._wall_clock() >= principal.expires_at:
            return None
        return principal


def mint() -> str:
    """A fresh token. Its key id is no secret: it tells tokens apart in a list."""
    return f"vdt_{secrets.token_hex(4)}_{secrets.token_urlsafe(32)}"


def hash_of(token: str) -> str:
    return PREFIX + _digest(token).hex()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
