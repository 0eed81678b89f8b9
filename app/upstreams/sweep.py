"""Finding what escaped: processes that left their group are known by a tag in their environment.

A tag is `<run>:<number>`. The run names its gateway by number, time of start and PID namespace, so that a later one
can tell whether whoever started a process is still there.
"""

import asyncio
import os
import secrets
import select
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache

from app.upstreams import proc

TAG = "VIADUCT_CHILD"
_SECONDS_MAX = 2.0
"""Who was killed is waited for, and who was started meanwhile looked for, no longer than this."""

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


def run_tag() -> str:
    return _run_tag(os.getpid())


def kill_tagged(tags: set[str]) -> list[int]:
    """Kill the processes that carry one of the tags; which they were."""
    return _kill_while(tags.__contains__)


def sweep_forsaken() -> list[int]:
    """Kill what gateways that are gone have left behind; which they were. For when a gateway starts."""
    return _kill_while(_is_forsaken)


@cache
def _run_tag(pid: int) -> str:
    own = proc.status(pid)
    return f"{proc.pid_namespace()}.{pid}.{own.started if own else 0}.{secrets.token_hex(4)}"


def _is_forsaken(tag: str) -> bool:
    """Of a gateway that ran here and runs no more; one in another PID namespace cannot be judged."""
    namespace, pid, started, *_ = [*tag.partition(":")[0].split("."), "", "", ""]
    if not namespace or namespace != proc.pid_namespace() or not pid.isdigit():
        return False
    gateway = proc.status(int(pid))
    return gateway is None or not gateway.is_alive or str(gateway.started) != started


def _kill_while(is_wanted: Callable[[str], bool]) -> list[int]:
    """Again and again until none is found: one that is being killed may just have started another."""
    killed: list[int] = []
    until = time.monotonic() + _SECONDS_MAX
    while time.monotonic() < until:
        with ExitStack() as handles:
            found = {pid: _handle(pid, handles) for pid in _tagged(is_wanted)}
            dying = [pid for pid, handle in found.items() if _kill(pid, handle, is_wanted)]
            killed += [pid for pid in dying if pid not in killed]
            if not dying:
                break
            _see_dead([found[pid] for pid in dying], until)
    return killed


def _tagged(is_wanted: Callable[[str], bool]) -> list[int]:
    return [pid for pid in proc.pids() if pid != os.getpid() and _carries(pid, is_wanted)]


def _carries(pid: int, is_wanted: Callable[[str], bool]) -> bool:
    tag = proc.variable(pid, TAG.encode())
    return tag is not None and is_wanted(tag.decode("ascii", "replace"))


def _handle(pid: int, handles: ExitStack) -> int:
    try:
        handle = os.pidfd_open(pid)
    except (OSError, AttributeError):
        return -1
    handles.callback(os.close, handle)
    return handle


def _kill(pid: int, handle: int, is_wanted: Callable[[str], bool]) -> bool:
    """Looked at again now that there is a handle, so that a number used anew is never hit."""
    if not _carries(pid, is_wanted):
        return False
    try:
        if handle >= 0:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)
    except OSError:
        return False
    return True


def _see_dead(handles: list[int], until: float) -> None:
    deaths = select.poll()
    waiting = {handle for handle in handles if handle >= 0}
    for handle in waiting:
        deaths.register(handle, select.POLLIN)
    while waiting and time.monotonic() < until:
        for handle, _ in deaths.poll(max(0.0, until - time.monotonic()) * 1000):
            deaths.unregister(handle)
            waiting.discard(handle)
