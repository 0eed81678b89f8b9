"""The configuration is read again when its file is another one or we are told to, and takes the place of what runs.

    looked at ──another file──▶ settling ──it stays the same, or has been changing for long enough──▶ read
        ▲                                                                                              │
        └──────taken, or refused with what ran before running on; what was refused is tried again──────┘

Files are looked at by time: that works on every file system, whatever puts them there (docs/adr/0016).
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from app.auth.watched import State, Watched, state_of
from app.config import Config, ConfigError
from app.core.succession import Succession
from app.telemetry.tally import Tally, count

log = logging.getLogger("viaduct.config")

_PAUSE_SECONDS = 0.05
_PAUSES_MAX = 20
"""Who writes all the time is not waited for."""
_AGAIN_SECONDS = 5.0
"""What was refused may have been so for what another file lacked."""


class Reloading:
    """`read` raises ConfigError for what is no configuration, and `adopt` for one that cannot take over."""

    def __init__(
        self, config: Config, read: Callable[[], Config], adopt: Callable[[Config, Config], Succession], tally: Tally
    ) -> None:
        self._config = config
        self._read = read
        self._adopt = adopt
        self._tally = tally
        self._watched = _watched(config)
        self._tried = b""
        """By which the files are known that were read last,"""
        self._complaint = ""
        """and what was wrong with them."""
        self._again_at = 0.0
        self._is_told = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look, from within the loop."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="configuration")

    def tell(self) -> None:
        """Read it now, changed or not."""
        self._is_told.set()

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while True:
            is_told = await self._next()
            if self._looks_changed() or is_told or self._is_to_be_tried_again():
                try:
                    await self._settled()
                    await self._reload(is_told=is_told)
                except Exception:  # A mistake of ours with one configuration must not keep the next from being taken.
                    log.exception("a configuration could not be taken")

    async def _next(self) -> bool:
        """When it is time to look again; whether somebody told us to."""
        try:
            async with asyncio.timeout(self._config.viaduct.watch_interval):
                await self._is_told.wait()
        except TimeoutError:
            return False
        self._is_told.clear()
        return True

    def _looks_changed(self) -> bool:
        looks = [file.look() for file in self._watched]
        return any(looks)

    def _is_to_be_tried_again(self) -> bool:
        return bool(self._complaint) and asyncio.get_running_loop().time() >= self._again_at

    async def _settled(self) -> None:
        """Most files are read when nobody writes them any more."""
        before = self._states()
        for _ in range(_PAUSES_MAX):
            await asyncio.sleep(_PAUSE_SECONDS)
            now = self._states()
            if now == before:
                return
            before = now

    def _states(self) -> list[State | None]:
        return [state_of(file.path) for file in self._watched]

    async def _reload(self, *, is_told: bool) -> None:
        paths = [file.path for file in self._watched]
        digest = await asyncio.to_thread(_digest, paths)
        if digest == self._tried and not is_told and not self._complaint:
            return
        is_new, self._tried = digest != self._tried, digest
        try:
            config = await asyncio.to_thread(self._read)
            if config == self._config and not is_told and not self._complaint:
                return
            change = self._adopt(self._config, config)
        except ConfigError as wrong:
            self._refuse(str(wrong), is_new=is_new or is_told)
            return
        self._config, self._complaint, self._watched = config, "", _watched(config)
        count(self._tally.reloads, "applied")
        fields = {"added": change.added, "changed": change.changed, "removed": change.removed}
        log.info("configuration reloaded", extra={name: list(names) for name, names in fields.items() if names})

    def _refuse(self, cause: str, *, is_new: bool) -> None:
        """Once for each content, and for each thing that is wrong with it."""
        self._again_at = asyncio.get_running_loop().time() + _AGAIN_SECONDS
        if not is_new and cause == self._complaint:
            return
        self._complaint = cause
        count(self._tally.reloads, "refused")
        log.error("configuration refused, the one before stays", extra={"cause": cause})


def _watched(config: Config) -> list[Watched]:
    return [Watched(path) for path in config.files]


def _digest(paths: Iterable[Path]) -> bytes:
    whole = hashlib.sha256()
    for path in paths:
        try:
            content = path.read_bytes()
        except OSError:
            content = b""
        whole.update(b"%d " % len(content) + content)
    return whole.digest()
