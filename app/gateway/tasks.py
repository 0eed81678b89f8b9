"""The tasks that outlive what started them, and somebody who hears of it when one fails."""

import asyncio
import logging
from collections.abc import Coroutine

log = logging.getLogger("viaduct")


class Tasks:
    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[object, object, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._done)

    async def finish(self) -> None:
        """Wait until all are done, those included that are spawned meanwhile."""
        while self._running:
            await asyncio.wait(self._running)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a task failed", extra={"task": task.get_name()}, exc_info=task.exception())
