"""What this process has of the machine, and how much it may have. Where nobody tells, nothing is known."""

import os
import resource
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_NO_LIMIT = 1 << 60
"""Beyond this nobody meant it: the first version of cgroups writes its largest number."""
_raised_from: list[tuple[int, int]] = []
"""The limits of open files as they were, where we have raised them."""


class Memory(NamedTuple):
    """In bytes: all that is mapped, and what of it is in RAM."""

    mapped: int
    resident: int


def memory() -> Memory:
    try:
        mapped, resident, *_ = Path("/proc/self/statm").read_bytes().split()
    except (OSError, ValueError):
        return Memory(0, 0)
    page = os.sysconf("SC_PAGE_SIZE")
    return Memory(int(mapped) * page, int(resident) * page)


def mapped_max() -> int | None:
    soft, _hard = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def resident_max(root: Path = Path("/")) -> int | None:
    """The least that a cgroup of ours, or one above it, allows; of either version."""
    limits = []
    for name, folder in _cgroups(root):
        for above in (folder, *folder.parents):
            if not above.is_relative_to(root / "sys/fs/cgroup"):
                break
            limits.append(_limit(above / name))
    return min((limit for limit in limits if limit is not None), default=None)


def _cgroups(root: Path) -> list[tuple[str, Path]]:
    """Each folder that may limit memory, and the name of the file that says so."""
    found = []
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            found.append(("memory.max", root / "sys/fs/cgroup" / path.lstrip("/")))
        elif "memory" in controllers.split(","):
            found.append(("memory.limit_in_bytes", root / "sys/fs/cgroup/memory" / path.lstrip("/")))
    return found


def _limit(file: Path) -> int | None:
    """None where it is `max`, or none."""
    try:
        limit = int(file.read_text())
    except (OSError, ValueError):
        return None
    return limit if limit < _NO_LIMIT else None


# Open files.


def open_files() -> int:
    """How many descriptors there are. Linux 6.2 and later tells the number; before that they are listed."""
    try:
        return Path("/proc/self/fd").stat().st_size or len(list(Path("/proc/self/fd").iterdir()))
    except OSError:
        return 0


def open_files_max() -> int:
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def raise_open_files() -> None:
    """As many as we may have. Children get back what there was: many programs take it that there are not so many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        return  # Then there are as many as there were.
    _raised_from.append((soft, hard))


def restore_open_files(pid: int) -> None:
    """For a child that was just started, whose program the wrapper has not even begun by then."""
    if not _raised_from:
        return
    with suppress(OSError):  # It may have ended already.
        resource.prlimit(pid, resource.RLIMIT_NOFILE, _raised_from[0])
