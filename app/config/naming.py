"""The names of servers: which are allowed, and which one `run` derives from a command.

The rule: skip the runner (`uvx`, `npx`, `python -m`, `docker run`...) and its flags; of what it runs, the last part of
the path that says something; without extension, version, scope and the usual `mcp` and `server` around it.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.config.errors import ConfigError

FALLBACK = "server"

_ALLOWED = re.compile(r"[A-Za-z0-9._-]{1,64}")
_EXTENSION = re.compile(r"\.(py|pyz|js|mjs|cjs|ts|mts|jar|sh|exe|cmd|bat|rb|php|pl)$", re.IGNORECASE)
_VERSION = re.compile(r"(\[[^]]*\])?(@[^@/]*|[=<>~!]=.*|:[^:/]*)?$")
_PREFIX = re.compile(r"^(mcp-server-|server-|mcp-)(?=.)")
_SUFFIX = re.compile(r"(?<=.)(-mcp-server|-server-mcp|-server|-mcp)$")
_SAYS_NOTHING = frozenset(
    "index main __main__ server mcp app cli run start dist build src lib bin out target release debug".split()
)


@dataclass(frozen=True, slots=True)
class _Runner:
    """A program that runs another one."""

    verbs: tuple[str, ...] = ()
    """Words between the runner and its flags."""
    valued: frozenset[str] = frozenset()
    """Flags that take the next word as their value."""
    plain: frozenset[str] | None = None
    """Where most flags take a value, the ones that do not."""


_DOCKER = _Runner(
    ("run", "container"),
    plain=frozenset("-i -t -it -ti -d --rm --init --interactive --tty --privileged --read-only -P".split()),
)
_NODE = _Runner(
    ("run", "x", "exec", "dlx"),
    frozenset("-p --package -c --call -r --require --import --loader --env-file -C --prefix -w --workspace".split()),
)
_PYTHON = _Runner(valued=frozenset("-W -X --check-hash-based-pycs".split()))
_UV = _Runner(
    ("tool", "run"),
    frozenset(
        "--from --with --with-editable --with-requirements -p --python --index --index-url --extra-index-url "
        "--directory --project --env-file --spec --group --extra".split()
    ),
)
_SHELL = _Runner()

_RUNNERS = {
    **dict.fromkeys(("uvx", "uv", "pipx", "rye", "poetry"), _UV),
    **dict.fromkeys(("npx", "npm", "pnpm", "pnpx", "yarn", "bunx", "bun", "node", "tsx", "ts-node", "deno"), _NODE),
    **dict.fromkeys(("python", "python3", "pypy", "pypy3"), _PYTHON),
    **dict.fromkeys(("docker", "podman", "nerdctl"), _DOCKER),
    **dict.fromkeys(("env", "nice", "exec", "sh", "bash", "dash", "zsh", "ruby", "perl", "java", "php", "cmd"), _SHELL),
}


def derived(command: Sequence[str]) -> str:
    """The name of the server that this command starts."""
    target, is_module = _target(list(command))
    parts = target.replace("\\", "/").split("/") if not is_module else target.split(".")
    spoken = [part for part in parts if part not in ("", ".", "..", "~")]
    for part in reversed(spoken):
        name = _essence(part, is_module)
        if name not in _SAYS_NOTHING:
            return _fitting(name)
    return _fitting(_essence(spoken[-1], is_module) if spoken else FALLBACK)


def check(names: Iterable[str], where: str, kind: str = "server") -> None:
    seen: dict[str, str] = {}
    for name in names:
        if not _ALLOWED.fullmatch(name) or name in (".", ".."):
            raise ConfigError(
                f"{where}: {name!r} cannot be part of a URL; name a {kind} with 1 to 64 of A-Z a-z 0-9 . _ and -"
            )
        if name.lower() in seen:
            raise ConfigError(f"{where}: {seen[name.lower()]!r} and {name!r} differ only in case; rename one")
        seen[name.lower()] = name


def _target(words: list[str]) -> tuple[str, bool]:
    """What a runner runs, and whether that is a module of Python."""
    while words:
        program = re.sub(r"(\d+(\.\d+)*)?(\.exe|\.cmd)?$", "", words[0].replace("\\", "/").rsplit("/", 1)[-1]).lower()
        runner = _RUNNERS.get(program)
        rest = _after_flags(words[1:], runner) if runner else []
        if runner is None or not rest:
            return words[0], False
        if rest[0] == "-m" and len(rest) > 1:
            return rest[1], True
        if rest[0] == "-c":
            rest = _split(rest[1]) if runner is _SHELL and len(rest) > 1 else []
            if not rest:
                return words[0], False
        words = rest
    return FALLBACK, False


def _after_flags(words: list[str], runner: _Runner) -> list[str]:
    rest = list(words)
    while rest:
        word = rest[0]
        if (word == "-m" and runner in (_PYTHON, _UV)) or (word == "-c" and runner in (_SHELL, _PYTHON)):
            return rest
        if word == "--" or word in runner.verbs or (runner is _SHELL and re.fullmatch(r"\w+=.*|/c", word)):
            rest = rest[1:]
        elif word.startswith("-"):
            rest = rest[2:] if _takes_value(word, runner) else rest[1:]
        else:
            break
    return rest


def _takes_value(flag: str, runner: _Runner) -> bool:
    if "=" in flag:
        return False
    return flag not in runner.plain if runner.plain is not None else flag in runner.valued


def _split(script: str) -> list[str]:
    try:
        return shlex.split(script)
    except ValueError:
        return []


def _essence(part: str, is_module: bool) -> str:
    name = _EXTENSION.sub("", _VERSION.sub("", part) or part).lower()
    name = re.sub(r"[^a-z0-9.]+", "-", name).strip("-.") or part.lower()
    name = _PREFIX.sub("", name)
    return name if is_module else _SUFFIX.sub("", name)


def _fitting(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:64].strip("-.") or FALLBACK
