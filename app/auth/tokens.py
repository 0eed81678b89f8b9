"""Static bearer tokens: known by the SHA-256 of what is presented, so that no secret lies in a file or in memory.

A token holds 256 random bits, which needs no slow hash.
"""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from app.auth.principal import Principal

PREFIX = "sha256:"
OURS = "vdt_"
"""How tokens that we made begin."""
BEARER = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""RFC 6750, section 2.1: what an Authorization header can carry."""
SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
"""RFC 6749, section 3.3."""
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

    @property
    def digest(self) -> bytes:
        return bytes.fromhex(self.hash.removeprefix(PREFIX))

    def principal(self) -> Principal:
        return Principal(self.name, self.scopes, self.expires_at)


class StaticTokens:
    def __init__(self, entries: Iterable[Entry], wall_clock: Callable[[], float] = time.time) -> None:
        self._principals: dict[bytes, Principal] = {}
        self._digests: dict[bytes, bytes] = {}
        self._wall_clock = wall_clock
        self.replace(entries)

    def __iter__(self) -> Iterator[Principal]:
        return iter(list(self._principals.values()))

    def find(self, presented: bytes) -> Principal | None:
        """The principal of a token with that `digest`, or None: unknown, expired and ill-formed look alike."""
        stored = self._digests.get(presented, _NOBODY)
        if not hmac.compare_digest(stored, presented):
            return None
        principal = self._principals[presented]
        if principal.expires_at is not None and self._wall_clock() >= principal.expires_at:
            return None
        return principal

    def replace(self, entries: Iterable[Entry]) -> tuple[list[str], list[str]]:
        """From now on these are let in and no others: the names of those that came and went, or changed."""
        former, self._principals = self._principals, {}
        came = []
        for entry in entries:
            principal = entry.principal()
            if former.get(entry.digest) == principal:
                principal = former.pop(entry.digest)
            else:
                came.append(entry.name)
            self._principals[entry.digest] = principal
        self._digests = {digest: digest for digest in self._principals}
        for gone in former.values():
            gone.term.end("revoked")
        return came, [gone.name for gone in former.values()]


def mint() -> str:
    """A fresh token. Its key id is no secret: it tells tokens apart in a list."""
    return f"{OURS}{secrets.token_hex(4)}_{secrets.token_urlsafe(32)}"


def hash_of(token: str) -> str:
    return PREFIX + digest(token).hex()


def digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
