"""What keeps a child from harming others, and the wrappers that see to it.

Each protection is a row: its name, by which it is told of, and how it is had. What is missing is told, too.
"""

import logging
import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache

from app.protocol.faults import Unavailable
from app.upstreams.command import Allowance, Command

log = logging.getLogger("viaduct.child")

_SETPRIV = ("--pdeathsig", "KILL", "--no-new-privs", "--")
_TRIED_WITH = {"setpriv": _SETPRIV, "prlimit": ("--nofile", "--")}
"""Options that they must know: BusyBox has a `setpriv` too, that does not know ours."""
_LIMITS = {"memory": "data", "processes": "nproc", "cpu_seconds": "cpu", "open_files": "nofile"}
"""The fields of an allowance, and the options of `prlimit` for them.

For memory it is what is written to and shared with nobody: some runtimes map address space by the gigabyte and hardly
use it (Node.js does not start with less than that).
"""
_SHOWN = {"memory": "memory", "processes": "processes", "cpu_seconds": "cpu time", "open_files": "open files"}


@dataclass(frozen=True, slots=True)
class Protection:
    """`missing` says why it is not there."""

    name: str
    value: int | None = None
    missing: str = ""

    def __str__(self) -> str:
        told = self.name if self.value is None else f"{self.name} {self.value}"
        return f"{told} ({self.missing})" if self.missing else told


def wrapped(command: Command) -> tuple[str, ...]:
    """What the command is to be started through, innermost last.

    Raises:
        Unavailable: it shall have limits, and nothing here can set them.
    """
    return (*_setpriv(), *_limits(command.allowance))


def protections(command: Command) -> list[Protection]:
    """What there is for a child of this command, and what of it is missing."""
    no_setpriv = "" if _setpriv() else "not active: setpriv of util-linux is missing"
    no_prlimit = "" if _tool("prlimit") else "not active: prlimit of util-linux is missing, so it is not started"
    found = [
        Protection("own session"),
        Protection("death signal", missing=no_setpriv),
        Protection("no new privileges", missing=no_setpriv),
    ]
    for field, value in command.allowance.asked().items():
        missing = no_prlimit
        if field == "processes" and not missing and _is_exempt():
            missing = "not enforced: the kernel does not count the processes of root"
        found.append(Protection(_SHOWN[field], value, missing))
    return found


def tell(server: str, command: Command) -> None:
    """One line that says what protects us from the server's children."""
    found = protections(command)
    active = [str(protection) for protection in found if not protection.missing]
    missing = [str(protection) for protection in found if protection.missing]
    if missing:
        log.warning("server is protected in part", extra={"server": server, "active": active, "missing": missing})
    else:
        log.info("server is protected", extra={"server": server, "active": active})


@cache
def _setpriv() -> tuple[str, ...]:
    setpriv = _tool("setpriv")
    if setpriv is None:
        log.warning("setpriv of util-linux is missing: a killed gateway may leave children behind; install util-linux")
        return ()
    return (setpriv, *_SETPRIV)


def _limits(allowance: Allowance) -> tuple[str, ...]:
    asked = allowance.asked()
    if not asked:
        return ()
    prlimit = _tool("prlimit")
    if prlimit is None:
        sentence = "its limits cannot be set: prlimit of util-linux is missing; install util-linux or remove limits"
        raise Unavailable(sentence, reason="no_prlimit")
    return (prlimit, *(f"--{_LIMITS[field]}={value}" for field, value in asked.items()), "--")


@cache
def _tool(name: str) -> str | None:
    """Where it is, tried once."""
    found = shutil.which(name)
    if found is None:
        return None
    command = [found, *_TRIED_WITH[name], found, "--version"]
    try:
        tried = subprocess.run(command, capture_output=True, timeout=5, check=False)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    return found if tried.returncode == 0 else None


def _is_exempt() -> bool:
    return os.getuid() == 0
