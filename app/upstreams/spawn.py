"""Starting a process on pipes of our own, in a session of its own, that dies with us and gains no privileges."""

import errno
import os
import subprocess
from dataclasses import dataclass
from itertools import count

from app.protocol.faults import Unavailable
from app.upstreams.command import Command, environment, is_known_format, resolve
from app.upstreams.machine import restore_open_files
from app.upstreams.protections import wrapped
from app.upstreams.sweep import TAG, run_tag

_numbers = count(1)

_REASONS = {
    errno.ENOEXEC: ("not_executable", "is no program that this machine can run"),
    errno.EACCES: ("not_executable", "may not be executed"),
    errno.E2BIG: ("bad_argument", "was given too many or too long arguments"),
    errno.EAGAIN: ("no_resources", "could not be started: the limit of processes is reached"),
    errno.ENOMEM: ("no_resources", "could not be started: there is no memory left"),
    errno.EMFILE: ("no_resources", "could not be started: the limit of open files is reached"),
    errno.ENFILE: ("no_resources", "could not be started: the system has no open files left"),
}


@dataclass(frozen=True, slots=True)
class Spawned:
    """A process with our ends of its pipes."""

    process: subprocess.Popen[bytes]
    tag: str
    stdin: int
    stdout: int
    stderr: int


def spawn(command: Command) -> Spawned:
    """Start it, on the thread that calls: the kernel ties the death signal to that thread.

    Raises:
        Unavailable: it could not be started.
    """
    path = resolve(command)
    tag = f"{run_tag()}:{next(_numbers)}"
    argv = [*_wrapper(command, path), path, *command.argv[1:]]
    fds: list[int] = []
    try:
        for _ in range(3):
            fds += os.pipe()
        process = subprocess.Popen(  # noqa: S603 - an argv of the operator's, and no shell
            argv,
            stdin=fds[0],
            stdout=fds[3],
            stderr=fds[5],
            cwd=command.cwd,
            env={**environment(command), TAG: tag},
            start_new_session=True,
        )
    except OSError as wrong:
        for fd in fds:
            os.close(fd)
        raise _unavailable(command, wrong) from wrong
    for fd in (fds[0], fds[3], fds[5]):
        os.close(fd)
    _offer_to_oom(process.pid)
    if command.allowance.open_files is None:
        restore_open_files(process.pid)
    return Spawned(process, tag, fds[1], fds[2], fds[4])


def _wrapper(command: Command, path: str) -> tuple[str, ...]:
    """execvp gives what the kernel does not know to a shell, so the wrapper gets no such file."""
    if is_known_format(path):
        return wrapped(command)
    if command.allowance.asked():
        sentence = f"{command.argv[0]!r} is neither a binary nor a script, and can be given no limits"
        raise Unavailable(sentence, reason="not_executable")
    return ()


def _offer_to_oom(pid: int) -> None:
    """Where memory runs out, a child goes before the gateway does."""
    try:
        with open(f"/proc/{pid}/oom_score_adj", "w") as score:  # noqa: PTH123 - a write of four bytes, each start
            score.write("500")
    except OSError:
        pass


def _unavailable(command: Command, wrong: OSError) -> Unavailable:
    reason, sentence = _REASONS.get(wrong.errno or 0, ("cannot_start", f"could not be started: {wrong.strerror}"))
    return Unavailable(f"{command.argv[0]!r} {sentence}", reason=reason)
