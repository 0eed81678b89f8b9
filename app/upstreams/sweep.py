"""Finding what escaped: processes that left their group are known by a tag in their environment."""

import asyncio
import os
import signal
from pathlib import Path

TAG = "VIADUCT_CHILD"


class Sweeper:
    """One look through /proc serves everybody who asks while it is being prepared."""

    def __init__(self) -> None:
        self._wanted: set[str] = set()
        self._next: asyncio.Task[None] | None = None
        self._scanning = asyncio.Lock()

    async def clean(self, tag: str) -> None:
        """Kill whatever carries `tag`."""
        self._wanted.add(tag)
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._run())
        await asyncio.shield(self._next)

    async def _run(self) -> None:
        async with self._scanning:
            tags, self._wanted, self._next = self._wanted, set(), None
            await asyncio.to_thread(kill_tagged, tags)


def kill_tagged(tags: set[str]) -> list[int]:
    """Kill the processes whose environment carries one of the tags; which they were."""
    wanted = {f"{TAG}={tag}".encode() for tag in tags}
    return [pid for pid in _pids() if _kill_if_tagged(pid, wanted)]


def _pids() -> list[int]:
    return [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit() and int(entry.name) != os.getpid()]


def _kill_if_tagged(pid: int, wanted: set[bytes]) -> bool:
    """Through a handle taken before the look, so that a number used again is never hit."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if wanted.isdisjoint(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")):
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(handle)
