"""What a policy speaks of: a server's tools, prompts and resources, and the patterns that name them.

    time               everything of the server
    time/*             the same
    git/git_*          tools
    git/prompts/*      prompts
    fs/resources/*     resources, by their URI

`*` stands for any characters, everything else for itself. A pattern with no more than a tool's name never means a
prompt or a resource, whatever these are called.
"""

from typing import Literal, NamedTuple, TypeAlias
from urllib.parse import unquote

Kind: TypeAlias = Literal["tools", "prompts", "resources"]

_PREFIXES: tuple[tuple[str, Kind], ...] = (("tools/", "tools"), ("prompts/", "prompts"), ("resources/", "resources"))
_KINDS = frozenset(prefix.rstrip("/") for prefix, _ in _PREFIXES)
"""As names they are tools, which is hardly what is meant."""
_DECODINGS_MAX = 3


class Target(NamedTuple):
    server: str
    kind: Kind
    name: str


class Glob:
    """Matched in linear time: what it is matched with comes from strangers."""

    __slots__ = ("_first", "_last", "_middle", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._first, *rest = text.split("*")
        self._last = rest.pop() if rest else None
        self._middle = [part for part in rest if part]

    def matches(self, name: str) -> bool:
        if self._last is None:
            return name == self._first
        at, end = len(self._first), len(name) - len(self._last)
        if at > end or not name.startswith(self._first) or not name.endswith(self._last):
            return False
        for part in self._middle:
            found = name.find(part, at, end)
            if found < 0:
                return False
            at = found + len(part)
        return True


class Pattern:
    """`kind` is None where it means everything of a server."""

    __slots__ = ("kind", "name", "server", "text")

    def __init__(self, text: str) -> None:
        """
        Raises:
            ValueError: it names nothing; the message says what it must be.
        """
        server, slash, name = text.partition("/")
        if not server or (slash and not name):
            raise ValueError("must be like time, git/git_status, git/prompts/*, fs/resources/* or *")
        if name in _KINDS:
            raise ValueError(f"must be like {server}/{name}/*, or {server}/tools/{name} for a tool of that name")
        self.text = text
        self.kind: Kind | None = None
        if name not in ("", "*"):
            self.kind, name = _of_kind(name)
        self.server, self.name = Glob(server), Glob(name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"

    def is_of(self, server: str) -> bool:
        return self.server.matches(server)

    def matches(self, target: Target) -> bool:
        if not self.server.matches(target.server):
            return False
        return self.kind is None or (self.kind == target.kind and self.name.matches(target.name))


def _of_kind(name: str) -> tuple[Kind, str]:
    for prefix, kind in _PREFIXES:
        if name.startswith(prefix):
            return kind, name.removeprefix(prefix) or "*"
    return "tools", name


def spellings(uri: str) -> tuple[str, ...] | None:
    """A resource as it was written, and as a server may read it: decoded or not, with dot segments resolved, with or
    without its query being a part of the path. A pattern that only some of them fit would be got round. None for what
    cannot be told: what is encoded too often, or has characters that some readers drop."""
    if " " in uri:
        return None
    decoded, seen = uri, [uri]
    for _ in range(_DECODINGS_MAX):
        if any(character < " " or character == "\x7f" for character in decoded):
            return None
        seen += [_resolved(decoded), _resolved_to_query(decoded)]
        once = unquote(decoded)
        if once == decoded:
            return tuple(dict.fromkeys(seen))
        decoded = once
    return None


def _resolved_to_query(uri: str) -> str:
    """The path alone is walked; what comes after it stays as it is."""
    cut = min((at for at in (uri.find("?"), uri.find("#")) if at >= 0), default=len(uri))
    return _resolved(uri[:cut]) + uri[cut:]


def _resolved(uri: str) -> str:
    scheme, colon, rest = uri.replace("\\", "/").partition(":")
    if not colon or "/" in scheme:
        return _walked(uri.replace("\\", "/"))
    scheme = scheme.lower()
    if not rest.startswith("//"):
        return f"{scheme}://{_walked(rest)}" if scheme == "file" else f"{scheme}:{_walked(rest)}"
    authority, slash, path = rest[2:].partition("/")
    authority = authority.lower()
    if scheme == "file":
        authority = ""  # Many a reader looks at the path alone.
    return f"{scheme}://{authority}{_walked(slash + path)}"


def _walked(path: str) -> str:
    steps: list[str] = []
    for step in path.split("/"):
        if step == "..":
            del steps[-1:]
        elif step not in ("", "."):
            steps.append(step)
    root = "/" if path.startswith("/") else ""
    end = "/" if steps and path.endswith("/") else ""
    return root + "/".join(steps) + end
