"""Tokens that were verified: whom each admits, by its digest, until it must be verified again."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from weakref import ReferenceType, ref

from app.auth.principal import Principal
from app.auth.term import Term


@dataclass(frozen=True, slots=True)
class Known:
    token: str
    """By which it is verified again while something lives as long as it does."""
    principal: Principal
    until: float
    """By the wall clock."""


class KnownTokens:
    def __init__(
        self, count_max: int, wall_clock: Callable[[], float] = time.time, former: "KnownTokens | None" = None
    ) -> None:
        """Those of the `former` must be verified again."""
        self._count_max = count_max
        self._wall_clock = wall_clock
        self._all: dict[bytes, Known] = {}
        self._dropped: dict[bytes, tuple[ReferenceType[Term], Known]] = {}
        """What is kept no more, but for the term: as long as a request has that in its hands, it may still open
        something that must not outlive the token."""
        if former is not None:
            self._all = {sha256: replace(known, until=0.0) for sha256, known in former._all.items()}
            self._dropped = dict(former._dropped)

    def __len__(self) -> int:
        return len(self._all)

    def find(self, sha256: bytes) -> Principal | None:
        known = self._all.get(sha256)
        return None if known is None or self._wall_clock() >= known.until else known.principal

    def keep(self, token: str, sha256: bytes, principal: Principal, seconds: float) -> Principal:
        """One who is still the same keeps the term, whose end others may wait for, even if it is to come later now."""
        former = self._popped(sha256)
        if former is None:
            self._make_room()
        elif _is_same(former.principal, principal) and former.principal.term.how is None:
            principal = replace(principal, term=former.principal.term)
        else:
            former.principal.term.end("revoked")
        until = self._wall_clock() + seconds
        if principal.expires_at is not None:
            until = min(until, principal.expires_at)
        self._all[sha256] = Known(token, principal, until)
        return principal

    def forget(self, sha256: bytes) -> None:
        """It is good no more."""
        former = self._popped(sha256)
        if former is not None:
            former.principal.term.end("expired" if is_expired(former.principal, self._wall_clock()) else "revoked")

    def outdated(self) -> Iterator[tuple[bytes, Known]]:
        """Those that something waits for the end of, and that must be verified again; what has expired is forgotten."""
        now = self._wall_clock()
        self._take_back()
        for sha256, known in list(self._all.items()):
            if now < known.until:
                continue
            if is_expired(known.principal, now):
                self.forget(sha256)
            elif known.principal.term.is_watched:
                yield sha256, known
            else:
                self._drop(sha256)

    def _make_room(self) -> None:
        """By the oldest that nothing waits for the end of."""
        if len(self._all) >= self._count_max:
            idle = (sha256 for sha256, known in self._all.items() if not known.principal.term.is_watched)
            oldest = next(idle, None)
            if oldest is not None:
                self._drop(oldest)

    def _drop(self, sha256: bytes) -> None:
        known = self._all.pop(sha256)
        alike = replace(known, principal=replace(known.principal, term=Term()))
        self._dropped[sha256] = ref(known.principal.term), alike

    def _popped(self, sha256: bytes) -> Known | None:
        known = self._all.pop(sha256, None)
        if known is not None or sha256 not in self._dropped:
            return known
        held, alike = self._dropped.pop(sha256)
        term = held()
        return None if term is None else replace(alike, principal=replace(alike.principal, term=term))

    def _take_back(self) -> None:
        """What something waits for the end of after all."""
        for sha256, (held, _) in list(self._dropped.items()):
            term = held()
            if term is None:
                del self._dropped[sha256]
            elif term.is_watched and (known := self._popped(sha256)) is not None:
                self._all[sha256] = known


def _is_same(former: Principal, now: Principal) -> bool:
    """Some issuers lengthen a token's life with each use, and say so whenever they are asked."""
    return former == replace(now, expires_at=former.expires_at)


def is_expired(principal: Principal, now: float) -> bool:
    return principal.expires_at is not None and now >= principal.expires_at
