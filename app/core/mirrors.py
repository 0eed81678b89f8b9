"""Which arguments of a tool its caller repeats in headers, and whether they do (2026-07-28, basic/transports).

A tool says so by `x-mcp-header` in its `inputSchema` ("Custom Headers from Tool Parameters"). Clients that read this
leave out a tool that says it wrongly, so of such a tool's calls nothing is checked.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, field
from msgspec.json import Decoder

from app.protocol import headers as written
from app.protocol.faults import HeaderMismatch
from app.protocol.jsonrpc import payload
from app.protocol.stateless import Admitted

_KEY = "x-mcp-header"
_TYPES = frozenset({"string", "integer", "boolean"})
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]{0,63})(\.[0-9]{1,64})?")
_NUMBER = re.compile(_DECIMAL.pattern + r"([eE][+-]?[0-9]{1,3})?")
_SAFE = 2**53 - 1
_NONE = Raw(b"{}")

_SCHEMA = frozenset(
    "additionalItems additionalProperties contains contentSchema else if items not propertyNames then "
    "unevaluatedItems unevaluatedProperties".split()
)
_SCHEMAS = frozenset("allOf anyOf items oneOf prefixItems".split())
_NAMED_SCHEMAS = frozenset("$defs definitions dependencies dependentSchemas patternProperties properties".split())
"""Keywords that hold a schema, an array of them, an object of them. What others hold is data."""

Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mirror:
    """A header, by its whole name in lower case, and the argument that it repeats."""

    header: bytes
    path: Path
    is_integer: bool = False


@dataclass(frozen=True, slots=True)
class Invalid:
    """The tool's annotations are void, and why."""

    why: str


Mirrors: TypeAlias = tuple[Mirror, ...] | Invalid


class _Tool(Struct):
    name: str
    schema: Raw | UnsetType = field(default=UNSET, name="inputSchema")


class _Listed(Struct):
    tools: list[Raw] = field(default_factory=list)


_tools = Decoder(_Tool)
_lists = Decoder(_Listed)
_fields: Decoder[dict[str, Raw]] = Decoder(dict[str, Raw])
_strings: Decoder[str] = Decoder(str)
_values: Decoder[object] = Decoder(object)


def mirrors(listed: Raw) -> dict[str, Mirrors]:
    """Of each tool in a result of `tools/list`. What is no tool is not there."""
    found: dict[str, Mirrors] = {}
    try:
        tools = _lists.decode(listed).tools
    except (DecodeError, RecursionError):
        return found
    for each in tools:
        try:
            tool = _tools.decode(each)
        except DecodeError:
            continue
        found[tool.name] = () if tool.schema is UNSET else _of_schema(bytes(tool.schema))
    return found


def check_call(tools: Mapping[str, Mirrors], call: Admitted, headers: Mapping[bytes, bytes]) -> Admitted:
    """Judge a `tools/call` by what its tool asks for; what goes on is the call as it was judged.

    Raises:
        HeaderMismatch: as `check_mirrors`.
    """
    annotated = tools.get(call.target, ())
    if not annotated:
        return call
    given = call.fields.get("arguments", _NONE)
    check_mirrors(annotated, given, headers)
    judged = as_judged(annotated, given)
    if judged is given:
        return call
    return call.with_fields({**call.fields, "arguments": judged}) if "arguments" in call.fields else call


def check_mirrors(annotated: Mirrors, arguments: Raw, headers: Mapping[bytes, bytes]) -> None:
    """Compare a call's headers, whose names are in lower case, with its arguments ("Server Behavior").

    What no header can say, an array or an object, is left to the server's own judgement of its arguments, and so is
    a header that the tool does not ask for.

    Raises:
        HeaderMismatch: a header is there without its argument, absent, malformed or says something else.
    """
    if isinstance(annotated, Invalid):
        return
    read = _Arguments(arguments)
    for mirror in annotated:
        if not _agree(mirror, written.decoded(headers, mirror.header), read.at(mirror.path)):
            name, path = written.title(mirror.header), ".".join(mirror.path)
            raise HeaderMismatch(f"{name} must be there if the argument {path} is, and repeat it")


def as_judged(annotated: Mirrors, arguments: Raw) -> Raw:
    """The arguments as `check_mirrors` read them: of a name that is there twice, the value that counted."""
    if isinstance(annotated, Invalid) or not annotated:
        return arguments
    read = _Arguments(arguments)
    for mirror in annotated:
        read.at(mirror.path)
    return read.rewritten() or arguments


class _Arguments:
    """The objects on the way to what is mirrored, each read once."""

    def __init__(self, raw: Raw) -> None:
        self._levels: dict[Path, dict[str, Raw]] = {}
        self._read((), raw)

    def at(self, path: Path) -> Raw | None:
        for depth in range(1, len(path)):
            if (here := path[:depth]) not in self._levels:
                self._read(here, self._levels.get(here[:-1], {}).get(here[-1]))
        return self._levels.get(path[:-1], {}).get(path[-1])

    def rewritten(self) -> Raw | None:
        """None where they are no object."""
        whole = None
        for path in sorted(self._levels, key=len, reverse=True):
            whole = payload(self._levels[path])
            if path:
                self._levels[path[:-1]][path[-1]] = whole
        return whole

    def _read(self, path: Path, raw: Raw | None) -> None:
        if raw is None:
            return
        try:
            self._levels[path] = _fields.decode(raw)
        except DecodeError:
            return


def _agree(mirror: Mirror, said: str | None, value: Raw | None) -> bool:
    text = b"null" if value is None else bytes(value)
    if text == b"null" or text[:1] in (b"{", b"["):
        return said is None
    if said is None:
        return False
    if text[:1] == b'"':
        return said == _strings.decode(text)
    if text in (b"true", b"false"):
        return said == text.decode()
    return _is_number(said, text.decode(), is_integer=mirror.is_integer)


def _is_number(said: str, text: str, *, is_integer: bool) -> bool:
    """By value ("Server Validation"), so that 42.0 is 42; integers only where no reader would round them."""
    if not _NUMBER.fullmatch(text):
        return False
    number = Decimal(text)
    if is_integer and not -_SAFE <= number <= _SAFE:
        return False
    return said == text or (_DECIMAL.fullmatch(said) is not None and Decimal(said) == number)


def _of_schema(schema: bytes) -> Mirrors:
    if _KEY.encode() not in schema and b"\\u" not in schema:
        return ()
    try:
        root = _values.decode(schema)
    except (DecodeError, RecursionError):
        return Invalid("the inputSchema cannot be read")
    found: dict[bytes, Mirror] = {}
    for path, node in _walk(root):
        if _KEY not in node:
            continue
        mirror = _annotated(path, node)
        if isinstance(mirror, Invalid):
            return mirror
        if mirror.header in found:
            return Invalid(f"two properties have the {_KEY} {node[_KEY]!r}")
        found[mirror.header] = mirror
    return tuple(found.values())


def _annotated(path: Path | None, node: Mapping[str, object]) -> Mirror | Invalid:
    if not path:
        return Invalid(f"{_KEY} belongs on properties that are reached by nothing but properties")
    name, kind = node[_KEY], node.get("type")
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        return Invalid(f"the {_KEY} of {'.'.join(path)} is not a token")
    if not isinstance(kind, str) or kind not in _TYPES:
        return Invalid(f"the type of {'.'.join(path)}, which has an {_KEY}, is not string, integer or boolean")
    return Mirror(written.PARAM + name.lower().encode(), path, kind == "integer")


def _walk(root: object) -> Iterator[tuple[Path | None, dict[str, object]]]:
    """Every schema in a schema, and the chain of properties that leads there, if nothing else is on the way."""
    found: list[tuple[Path | None, object]] = [((), root)]
    for path, node in found:
        if isinstance(node, dict):
            yield path, node
            for keyword, value in node.items():
                found.extend(_below(path, keyword, value))


def _below(path: Path | None, keyword: str, value: object) -> list[tuple[Path | None, object]]:
    if isinstance(value, dict) and keyword in _NAMED_SCHEMAS:
        if keyword == "properties" and path is not None:
            return [((*path, name), each) for name, each in value.items()]
        return [(None, each) for each in value.values()]
    if isinstance(value, list) and keyword in _SCHEMAS:
        return [(None, each) for each in value]
    return [(None, value)] if keyword in _SCHEMA else []
