"""The tasks that outlive what started them, and somebody who hears of it when one fails."""

import asyncio
import logging
from collections.abc import Coroutine

from app.upstreams.child import Child

log = logging.getLogger("viaduct")


class Tasks:
    """`is_hurried` says that there is no time left to stop anything gently."""

    def __init__(self) -> None:
        self.is_hurried = False
        self.stopping: set[Child] = set()
        self._running: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[object, object, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._done)

    def hurry(self) -> None:
        """Whatever is being stopped is killed, and whatever will be."""
        self.is_hurried = True
        for child in self.stopping:
            child.kill()

    async def finish(self) -> None:
        """Wait until all are done, those included that are spawned meanwhile."""
        while self._running:
            await asyncio.wait(self._running)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a task failed", extra={"task": task.get_name()}, exc_info=task.exception())
