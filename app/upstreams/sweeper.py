"""The sweep off the loop, for many at once."""

import asyncio
import logging

from app.upstreams.sweep import kill_tagged, sweep_forsaken

log = logging.getLogger("viaduct.session")

_sweepers: dict[asyncio.AbstractEventLoop, "Sweeper"] = {}


class Sweeper:
    """One look through /proc serves everybody who asks while it is being prepared."""

    def __init__(self) -> None:
        self._wanted: set[str] = set()
        self._next: asyncio.Task[None] | None = None
        self._scanning = asyncio.Lock()

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> "Sweeper":
        for old in [known for known in _sweepers if known.is_closed()]:
            del _sweepers[old]
        if loop not in _sweepers:
            _sweepers[loop] = cls()
        return _sweepers[loop]

    async def clean(self, tag: str) -> None:
        """Kill whatever carries `tag`, and see it dead."""
        self._wanted.add(tag)
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._run(), name="sweep")
        await asyncio.shield(self._next)

    async def _run(self) -> None:
        async with self._scanning:
            tags, self._wanted, self._next = self._wanted, set(), None
            await asyncio.to_thread(kill_tagged, tags)


async def sweep_forsaken_off_loop() -> None:
    """A gateway that was killed could not stop what its children had started."""
    killed = await asyncio.to_thread(sweep_forsaken)
    if killed:
        log.warning("processes of a gateway that is gone were killed", extra={"count": len(killed)})
