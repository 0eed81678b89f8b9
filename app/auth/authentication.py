"""Whom a token admits, whatever its kind: static, signed by an issuer, or known to its issuer only.

`find` answers from memory and is asked in every call. What it does not know, `ask` finds out, and keeps for a while.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from app.auth.compact import Compact, is_compact, parse
from app.auth.known import Known, KnownTokens, is_expired
from app.auth.principal import Principal
from app.auth.tokens import BEARER, OURS, StaticTokens, digest
from app.auth.verdicts import BadToken, CannotVerify

log = logging.getLogger("viaduct.auth")

_BUG_SECONDS = 5.0
_RETIRED_SECONDS = 1.0
_Note = TypeVar("_Note")


@dataclass(frozen=True, slots=True)
class Keeping:
    """For how long a verdict is kept, in seconds, and how many are. `interval` is how often ends are looked for."""

    signed: float = 300
    introspected: float = 60
    refused: float = 10
    count_max: int = 4096
    interval: float = 0.5


class Signed(Protocol):
    """Verifies what one issuer signs."""

    @property
    def issuer(self) -> str: ...

    async def verify(self, token: Compact) -> Principal:
        """
        Raises:
            BadToken, CannotVerify: as `Authentication.ask`.
        """

    def stop(self) -> None: ...


class Introspected(Protocol):
    """Has an issuer say what a token is."""

    async def verify(self, token: str, *, is_known: bool) -> Principal:
        """A token that `is_known` was active when it was asked about last, and is to be asked about first.

        Raises:
            BadToken, CannotVerify: as `Authentication.ask`.
        """


class Authentication:
    """`reload` looks whether other static tokens are let in now."""

    def __init__(
        self,
        static: StaticTokens,
        issuers: Iterable[Signed] = (),
        introspection: Introspected | None = None,
        keeping: Keeping | None = None,
        reload: Callable[[], None] | None = None,
        wall_clock: Callable[[], float] = time.time,
        former: "Authentication | None" = None,
    ) -> None:
        """Whom the `former` one knew is verified again, by these rules, before anything more comes of it."""
        self.static = static
        self.issuers = {verifier.issuer: verifier for verifier in issuers}
        """Who sign tokens that are let in, by name."""
        self._introspection = introspection
        self._keeping = keeping or Keeping()
        self._reload = reload
        self._wall_clock = wall_clock
        known: KnownTokens | None = None if former is None else former._known
        self._known: KnownTokens = KnownTokens(self._keeping.count_max, wall_clock, known)
        self._refused: dict[bytes, float] = {}
        """Tokens that their issuer did not know, and until when it is not asked about them again."""
        self._active: dict[bytes, None] = {} if former is None else dict(former._active)
        """Tokens that their issuer knew when it was asked last: those of strangers must not crowd them out."""
        self._asking: dict[bytes, asyncio.Task[Principal]] = {}
        self._again: dict[bytes, asyncio.Task[None] | asyncio.TimerHandle] = {}
        """Tokens that are being verified again, or will be, without anybody who presents them."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_retired = False

    def find(self, token: str) -> Principal | None:
        """Whom it admits as far as is known."""
        sha256 = digest(token)
        return self.static.find(sha256) or self._known.find(sha256)

    def is_askable(self, token: str) -> bool:
        """Whether more can be found out about a token that is not known. What no issuer could have made is shown to
        none: it might take the question for a malformed one."""
        if token.startswith(OURS) or not BEARER.fullmatch(token):
            return False
        return self._introspection is not None or (bool(self.issuers) and is_compact(token))

    async def ask(self, token: str) -> Principal:
        """
        Raises:
            BadToken: it admits nobody.
            CannotVerify: that cannot be found out now.
        """
        known = self.find(token)
        if known is not None:
            return known
        if not self.is_askable(token):
            raise BadToken("unknown")
        sha256 = digest(token)
        try:
            principal, seconds = await self._verified(token, sha256)
        except BadToken:
            self._check_asked()
            self._known.forget(sha256)
            raise
        except CannotVerify:
            raise
        except Exception as bug:
            log.exception("a token cannot be verified")
            raise CannotVerify("an error of ours", _BUG_SECONDS) from bug
        self._check_asked()
        return self._known.keep(token, sha256, principal, seconds)

    def _check_asked(self) -> None:
        if self._is_retired:
            raise CannotVerify("it is somebody else's to say now", _RETIRED_SECONDS)

    async def _verified(self, token: str, sha256: bytes) -> tuple[Principal, float]:
        """And for how long that may be kept. What one of our issuers signed is not asked for elsewhere."""
        compact = self._read(token)
        issuer = None if compact is None else compact.claims.get("iss")
        verifier = self.issuers.get(issuer) if isinstance(issuer, str) else None
        if compact is not None and verifier is not None:
            return await verifier.verify(compact), self._keeping.signed
        if self._introspection is None:
            raise BadToken("wrong_issuer")
        return await self._introspected(self._introspection, token, sha256), self._keeping.introspected

    def _read(self, token: str) -> Compact | None:
        if not self.issuers or not is_compact(token):
            return None
        try:
            return parse(token)
        except BadToken:
            if self._introspection is None:
                raise
            return None

    async def _introspected(self, introspection: Introspected, token: str, sha256: bytes) -> Principal:
        """One question for all who wait for the same answer; a no is remembered, too."""
        if self._wall_clock() < self._refused.get(sha256, 0.0):
            raise BadToken("inactive")
        task = self._asking.get(sha256)
        if task is None:
            asked = introspection.verify(token, is_known=sha256 in self._active)
            task = asyncio.get_running_loop().create_task(asked, name="introspection")
            self._asking[sha256] = task
            task.add_done_callback(lambda _: self._asking.pop(sha256, None))
        try:
            principal = await asyncio.shield(task)
        except BadToken:
            self._active.pop(sha256, None)
            self._noted(self._refused, sha256, self._wall_clock() + self._keeping.refused)
            raise
        self._active.pop(sha256, None)
        self._noted(self._active, sha256, None)
        return principal

    def _noted(self, notes: dict[bytes, _Note], sha256: bytes, note: _Note) -> None:
        if len(notes) >= self._keeping.count_max:
            del notes[next(iter(notes))]
        notes[sha256] = note

    # Ends.

    def start(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._keeping.interval, self._look)

    def retire(self) -> None:
        """Another one is asked from now on, and who waits for an answer of this one is to ask that."""
        self._is_retired = True
        if self._timer is not None:
            self._timer.cancel()
        for work in self._again.values():
            work.cancel()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for verifier in self.issuers.values():
            verifier.stop()
        for work in [*self._asking.values(), *self._again.values()]:
            work.cancel()

    def _look(self) -> None:
        """For tokens that are good no more, of those that something waits for the end of."""
        self.start()
        if self._reload is not None:
            self._reload()
        for principal in self.static:
            if is_expired(principal, self._wall_clock()):
                principal.term.end("expired")
        for sha256, known in self._known.outdated():
            if sha256 not in self._again:
                self._again[sha256] = asyncio.get_running_loop().create_task(self._ask_again(sha256, known))

    async def _ask_again(self, sha256: bytes, known: Known) -> None:
        """Where nobody can say, what was let in stays: it is refused anew with its next request."""
        try:
            await self.ask(known.token)
        except BadToken:
            self._known.forget(sha256)
        except CannotVerify as cannot:
            later = asyncio.get_running_loop().call_later(cannot.retry_after, self._again.pop, sha256, None)
            self._again[sha256] = later
            return
        self._again.pop(sha256, None)
