"""An issuer's keys: fetched when they are needed, kept, and kept on while the issuer cannot be asked.

    nothing yet ──fetched──▶ fresh ──ttl──▶ to be fetched again ──failed──▶ stale, tried every cooldown
         │                     ▲                    │                              │
       failed                  └──────fetched───────┴──────────────────────────────┤
         ▼                                                                     stale_max
     nobody can say  ◀─────────────────────────────────────────────────────────────┘

A key that is not among them may be a new one: it makes us fetch, at most once in a cooldown, however many ask.
"""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

from app.auth.compact import strict_object
from app.auth.outbound import Fetched, FetchFailed
from app.auth.signatures import VerifyingKey, public_key
from app.auth.verdicts import BadToken, CannotVerify

log = logging.getLogger("viaduct.auth")

_KEYS_MAX = 32
_SHORTEST_TTL, _LONGEST_TTL = 60.0, 3600.0
_MAX_AGE = re.compile(r"(?:^|[\s,])max-age=(\d{1,9})(?:$|[\s,])")

Keys = dict[str | None, VerifyingKey]
Fetch = Callable[[], Awaitable[Fetched]]


@dataclass(frozen=True, slots=True)
class Patience:
    """In seconds. `ttl` is for answers that do not say how long they may be kept."""

    ttl: float = 600
    cooldown: float = 30
    stale_max: float = 86_400


class KeySet:
    """`fetch` gives the issuer's JWKS, which is at `place`."""

    def __init__(
        self,
        issuer: str,
        algorithms: Collection[str],
        fetch: Fetch,
        patience: Patience,
        clock: Callable[[], float] = time.monotonic,
        place: str | None = None,
    ) -> None:
        self._issuer = issuer
        self._origin = issuer, frozenset(algorithms), place
        self._algorithms = algorithms
        self._fetch = fetch
        self._patience = patience
        self._clock = clock
        self._keys: Keys = {}
        self._fetched_at = float("-inf")
        self._fresh_until = float("-inf")
        self._failed_at = float("-inf")
        self._searched_at = float("-inf")
        """When an unknown key last made us fetch."""
        self._flight: asyncio.Task[None] | None = None

    @property
    def age_seconds(self) -> float:
        return self._clock() - self._fetched_at

    async def find(self, kid: str | None) -> VerifyingKey:
        """
        Raises:
            BadToken: the issuer has no such key.
            CannotVerify: nobody knows, because the issuer was never reached, or not for too long.
        """
        if self._clock() >= self._fresh_until and not self._is_cooling(self._failed_at):
            fetch = self._flying()
            if not self._is_down:  # Else it may take its time to fail again, and the old keys will do.
                await asyncio.shield(fetch)
        key = self._known(kid)
        if key is None and self._keys and not self._is_cooling(self._searched_at):
            self._searched_at = self._clock()
            await self._refresh()
            key = self._known(kid)
        elif key is None and self._flight is not None:
            await self._refresh()  # Somebody else searches already.
            key = self._known(kid)
        if not self._keys or self.age_seconds > self._patience.stale_max:
            raise CannotVerify(f"the keys of {self._issuer} cannot be fetched", self._patience.cooldown)
        if key is None:
            raise BadToken("unknown_key")
        return key

    def succeed(self, former: "KeySet") -> None:
        """Go on with the keys that another one has, where they are the same issuer's, from the same place. Who has none
        is not followed: what kept it from them may be what was put right."""
        if former._keys and former._origin == self._origin:
            self._keys = former._keys
            self._fetched_at, self._fresh_until = former._fetched_at, former._fresh_until
            self._failed_at, self._searched_at = former._failed_at, former._searched_at

    def stop(self) -> None:
        if self._flight is not None:
            self._flight.cancel()

    def _known(self, kid: str | None) -> VerifyingKey | None:
        """A token that names no key means the only one."""
        if kid is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(kid)

    def _is_cooling(self, since: float) -> bool:
        return self._clock() - since < self._patience.cooldown

    @property
    def _is_down(self) -> bool:
        """Whether the last fetch failed, and what came before it can still be used."""
        return bool(self._keys) and self._failed_at > self._fetched_at

    async def _refresh(self) -> None:
        """No one who stops waiting ends it for the others."""
        await asyncio.shield(self._flying())

    def _flying(self) -> "asyncio.Task[None]":
        """One and the same fetch for everybody."""
        if self._flight is None:
            self._flight = asyncio.get_running_loop().create_task(self._fetched(), name=f"keys of {self._issuer}")
            self._flight.add_done_callback(self._landed)
        return self._flight

    def _landed(self, _flight: "asyncio.Task[None]") -> None:
        self._flight = None

    async def _fetched(self) -> None:
        """Whatever keeps them from us, a bug too, is not tried again with each token that comes."""
        is_done = False
        try:
            answer = await self._fetch()
            keys = usable(answer, self._algorithms)
            is_done = True
        except (FetchFailed, ValueError) as error:
            fields = {"issuer": self._issuer, "cause": str(error), "known": len(self._keys)}
            log.warning("the keys of an issuer cannot be fetched", extra=fields)
            return
        finally:
            if not is_done:
                self._failed_at = self._clock()
        self._keys = keys
        self._fetched_at = self._clock()
        self._fresh_until = self._fetched_at + _ttl(answer.cache_control, self._patience.ttl)
        log.info("the keys of an issuer were fetched", extra={"issuer": self._issuer, "count": len(keys)})


def usable(answer: Fetched, algorithms: Collection[str]) -> Keys:
    """Those keys of a JWKS that could have made a signature for us, by their `kid`; two of one `kid` are neither.

    Raises:
        ValueError: it is no JWKS, or there is no such key in it.
    """
    if answer.status != 200:
        raise ValueError(f"status {answer.status}")
    listed = strict_object(answer.body).get("keys")
    if not isinstance(listed, list) or len(listed) > _KEYS_MAX:
        raise ValueError(f"not a list of at most {_KEYS_MAX} keys")
    keys: Keys = {}
    twice: set[str | None] = set()
    for fields in listed:
        kid = fields.get("kid") if isinstance(fields, dict) else None
        if not isinstance(fields, dict) or not isinstance(kid, str | None):
            continue
        key = _built(fields, algorithms)
        if key is not None:
            twice |= {kid} & keys.keys()
            keys[kid] = key
    for kid in twice:
        del keys[kid]
    if not keys:
        raise ValueError("no usable key is in it")
    return keys


def _built(fields: dict[str, object], algorithms: Collection[str]) -> VerifyingKey | None:
    try:
        return public_key(fields, algorithms)
    except ValueError as error:
        log.warning("a key of an issuer is of no use", extra={"cause": str(error)})
        return None


def _ttl(cache_control: str, otherwise: float) -> float:
    found = _MAX_AGE.search(cache_control.lower())
    if found is None:
        return otherwise
    return min(max(float(found[1]), _SHORTEST_TTL), _LONGEST_TTL)
