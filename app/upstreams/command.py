"""What is to be run, and whether it can be: judged here, for through a wrapper a missing command is only an exit."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from app.protocol.faults import Unavailable

_KEPT = frozenset(
    {"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"}
    | {name for proxy in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY") for name in (proxy, proxy.lower())}
    | {"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}
)
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_HEAD_BYTES = 256
"""As much of a file as the kernel reads to see what it is."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What the kernel lets each process have; None is no limit of ours. `processes` counts all of its user."""

    memory: int | None = None
    processes: int | None = None
    cpu_seconds: int | None = None
    open_files: int | None = None

    def asked(self) -> dict[str, int]:
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Command:
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    """What is added to the clean environment."""
    cwd: str | None = None
    allowance: Allowance = Allowance()


def environment(command: Command) -> dict[str, str]:
    """What the child sees: little of ours, and what its configuration adds."""
    kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith("LC_")}
    # A Python server with buffered stdout looks dead behind a pipe.
    return {"PATH": _DEFAULT_PATH, "PYTHONUNBUFFERED": "1", **kept, **command.env}


def resolve(command: Command) -> str:
    """The executable, found in the child's own PATH and cwd.

    Raises:
        Unavailable: it cannot be run, and why.
    """
    _check_texts(command)
    cwd = Path(command.cwd or ".")
    if not _is_folder(cwd):
        raise Unavailable(f"the working directory {command.cwd!r} cannot be entered; correct cwd", reason="bad_cwd")
    name = command.argv[0]
    found = [cwd / name] if "/" in name else _on_path(name, cwd, environment(command)["PATH"])
    files = [path for path in found if name and _is_file(path)]
    for path in files:
        if os.access(path, os.X_OK):
            _check_interpreter(path, cwd)
            return str(path.absolute())
    if files:
        raise Unavailable(f"{name!r} is not executable; chmod +x it", reason="not_executable")
    raise Unavailable(f"{name!r} is not installed here; correct command or its PATH", reason="command_not_found")


def is_known_format(path: str) -> bool:
    """False for what is neither a binary nor a script: only the kernel can say whether it runs that."""
    head = _head(Path(path))
    return not head or head.startswith((b"\x7fELF", b"#!"))


def _check_texts(command: Command) -> None:
    if not command.argv:
        raise Unavailable("no command is given", reason="bad_argument")
    texts = (*command.argv, *command.env, *command.env.values(), command.cwd or "")
    if any("\0" in text for text in texts):
        raise Unavailable("a NUL character cannot be part of a command or its environment", reason="bad_argument")
    for name in command.env:
        if not name or "=" in name:
            raise Unavailable(f"{name!r} cannot be the name of a variable; correct env", reason="bad_argument")
    try:
        for text in texts:
            os.fsencode(text)
    except UnicodeEncodeError as wrong:
        sentence = f"{wrong.object!r} has characters that no command line can carry"
        raise Unavailable(sentence, reason="bad_argument") from wrong


def _on_path(name: str, cwd: Path, path: str) -> list[Path]:
    return [cwd / folder / name for folder in path.split(":")]


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir() and os.access(path, os.X_OK)
    except OSError:
        return False


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _check_interpreter(path: Path, cwd: Path) -> None:
    """A script whose first line names a program that is not here fails with the words of a missing script."""
    head = _head(path)
    words = head[2:].split(b"\n", 1)[0].strip(b" \t").replace(b"\t", b" ").split(b" ", 1)
    if not head.startswith(b"#!") or not words[0]:
        return
    interpreter = os.fsdecode(words[0])
    if not _is_file(cwd / interpreter) or not os.access(cwd / interpreter, os.X_OK):
        sentence = f"the first line of {str(path)!r} names {interpreter!r}, which cannot be run here; correct that line"
        raise Unavailable(sentence, reason="bad_interpreter")


def _head(path: Path) -> bytes:
    """Empty where it may be run and not read."""
    try:
        with path.open("rb", buffering=0) as file:
            return file.read(_HEAD_BYTES)
    except OSError:
        return b""
