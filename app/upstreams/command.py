"""What is to be run, and whether it can be: judged here, for through a wrapper a missing command is only an exit."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from app.protocol.faults import Unavailable

_KEPT = frozenset(
    {"HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"}
    | {name for proxy in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY") for name in (proxy, proxy.lower())}
    | {"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}
)
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Command:
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    """What is added to the clean environment."""
    cwd: str | None = None


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
    if any("\0" in text for text in (*command.argv, *command.env, *command.env.values(), command.cwd or "")):
        raise Unavailable("a NUL character cannot be part of a command or its environment", reason="bad_argument")
    cwd = Path(command.cwd or ".")
    if not cwd.is_dir():
        raise Unavailable(f"the working directory {command.cwd!r} does not exist; correct cwd", reason="bad_cwd")
    name = command.argv[0]
    found = [cwd / name] if "/" in name else _on_path(name, cwd, environment(command)["PATH"])
    for path in found:
        if path.is_file() and os.access(path, os.X_OK):
            return str(path.absolute())
    if any(path.is_file() for path in found):
        raise Unavailable(f"{name!r} is not executable; chmod +x it", reason="not_executable")
    raise Unavailable(f"{name!r} is not installed here; correct command or its PATH", reason="command_not_found")


def _on_path(name: str, cwd: Path, path: str) -> list[Path]:
    return [cwd / folder / name for folder in path.split(":")]
