"""Finding what escaped: processes that left their group are known by a tag in their environment.

A tag is `<run>:<number>`. The run names its gateway by number, time of start and PID namespace, so that a later one
can tell whether whoever started a process is still there.

The guardian imports this, so it imports little.
"""

import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from app.upstreams import proc

TAG = "VIADUCT_CHILD"
_LOOKS = 2
"""A process that becomes another program has no environment for an instant, so one look is not enough."""
_SECONDS_MAX = 2.0
"""Who was killed is waited for, and who was started meanwhile looked for, no longer than this."""


def run_tag() -> str:
    return _run_tag(os.getpid())


def kill_tagged(tags: set[str]) -> list[int]:
    """Kill the processes that carry one of the tags; which they were."""
    return kill_while(lambda pid: _tag_of(pid) in tags)


def kill_run(run: str) -> list[int]:
    """Kill whatever a gateway's children are and have left behind; which they were."""
    return kill_while(lambda pid: run_of(pid) == run)


def sweep_forsaken() -> list[int]:
    """Kill what gateways that are gone have left behind; which they were. For when a gateway starts."""
    return kill_while(lambda pid: _is_forsaken(run_of(pid)))


def run_of(pid: int) -> str:
    """Which gateway's it is; empty where that is not known."""
    return _tag_of(pid).partition(":")[0]


def kill_while(is_wanted: Callable[[int], bool]) -> list[int]:
    """Again and again until none is found: one that is being killed may just have started another."""
    killed: list[int] = []
    quiet, until = 0, time.monotonic() + _SECONDS_MAX
    while quiet < _LOOKS and time.monotonic() < until:
        with ExitStack() as handles:
            found = {pid: _handle(pid, handles) for pid in proc.pids() if pid != os.getpid() and is_wanted(pid)}
            dying = [pid for pid, handle in found.items() if _kill(pid, handle, is_wanted)]
            killed += [pid for pid in dying if pid not in killed]
            quiet = 0 if dying else quiet + 1
            _see_dead([found[pid] for pid in dying], until)
    return killed


@cache
def _run_tag(pid: int) -> str:
    own = proc.status(pid)
    return f"{proc.pid_namespace()}.{pid}.{own.started if own else 0}.{os.urandom(4).hex()}"


def _is_forsaken(run: str) -> bool:
    """Of a gateway that ran here and runs no more; one in another PID namespace cannot be judged."""
    namespace, pid, started, *_ = [*run.split("."), "", "", ""]
    if not namespace or namespace != proc.pid_namespace() or not pid.isdigit():
        return False
    gateway = proc.status(int(pid))
    if gateway is None:
        return not Path(f"/proc/{pid}").exists()
    return not gateway.is_alive or str(gateway.started) != started


def _tag_of(pid: int) -> str:
    return (proc.variable(pid, TAG.encode()) or b"").decode("ascii", "replace")


def _handle(pid: int, handles: ExitStack) -> int:
    try:
        handle = os.pidfd_open(pid)
    except (OSError, AttributeError):
        return -1
    handles.callback(os.close, handle)
    return handle


def _kill(pid: int, handle: int, is_wanted: Callable[[int], bool]) -> bool:
    """Looked at again now that there is a handle, so that a number used anew is never hit."""
    if not is_wanted(pid):
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
