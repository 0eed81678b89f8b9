"""Sessions that a gateway which is gone has left in the store, until their clients come back or are late."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from app.stores.port import Ended, Saved, Store
from app.stores.sealed import Key, name_of

log = logging.getLogger("viaduct.session")


class Sleepers:
    """None sleep where there is no store."""

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._waking: dict[bytes, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return 0 if self._store is None else len(self._store.sleepers)

    def by_server(self) -> Counter[str]:
        """How many there are."""
        return Counter(sleeper.server for sleeper in (self._store.sleepers.values() if self._store else ()))

    def holds(self, ident: str, upstream: str, owner: str) -> bool:
        if not self:
            return False
        assert self._store is not None  # noqa: S101 - as there are some
        sleeper = self._store.sleepers.get(name_of(ident))
        return sleeper is not None and sleeper.server == upstream and sleeper.owner == owner

    async def wake(self, ident: str, take_up: Callable[[Store, Saved], None]) -> None:
        """Whoever else wants the same one meanwhile waits for it, too; nobody stops it by going away."""
        name = name_of(ident)
        waking = self._waking.get(name)
        if waking is None:
            waking = asyncio.get_running_loop().create_task(self._wake(ident, take_up), name="wake")
            self._waking[name] = waking
            waking.add_done_callback(lambda _: self._waking.pop(name))
        await asyncio.shield(waking)

    async def _wake(self, ident: str, take_up: Callable[[Store, Saved], None]) -> None:
        store, key = self._store, Key(ident)
        if store is None or key.name not in store.sleepers:
            return
        saved = await store.take_up(key)
        if key.name not in store.sleepers:
            return
        if saved is None:
            self._forget(store, key.name, "it cannot be read")
        else:
            take_up(store, saved)
            store.sleepers.pop(key.name, None)

    def expire(self, before: float) -> None:
        """Forget those that were last used before that time; they are in that order."""
        while self._store is not None and self._store.sleepers:
            name, sleeper = next(iter(self._store.sleepers.items()))
            if sleeper.used_at >= before:
                return
            self._forget(self._store, name, "nobody came back to it")

    def trim(self, count_max: int, per_owner_max: int) -> None:
        """There may be fewer than there were: those that were used last stay."""
        if self._store is None:
            return
        kept: Counter[str] = Counter()
        for name, sleeper in reversed(list(self._store.sleepers.items())):
            if kept.total() < count_max and kept[sleeper.owner] < per_owner_max:
                kept[sleeper.owner] += 1
            else:
                self._forget(self._store, name, "there may be fewer sessions now")

    def of(self, owner: str) -> int:
        return 0 if self._store is None else sum(other.owner == owner for other in self._store.sleepers.values())

    def forget_oldest_of(self, owner: str) -> None:
        """It makes room for a new session of the same owner."""
        if self._store is not None:
            name = next((name for name, other in self._store.sleepers.items() if other.owner == owner), None)
            if name is not None:
                self._forget(self._store, name, "a new session of the same principal needs its place")

    async def delete(self, ident: str, patience_seconds: float) -> None:
        """Its client does not want it any more; a disk that hangs is not waited for."""
        if self._store is not None and self._store.sleepers.pop(name_of(ident), None) is not None:
            gone = asyncio.Event()
            self._store.keep(Key(ident), [Ended()], gone.set)
            with suppress(TimeoutError):
                async with asyncio.timeout(patience_seconds):
                    await gone.wait()

    def _forget(self, store: Store, name: bytes, why: str) -> None:
        sleeper = store.sleepers.pop(name, None)
        if sleeper is not None:
            log.info("a session of before is forgotten", extra={"server": sleeper.server, "why": why})
            store.forget(name)
