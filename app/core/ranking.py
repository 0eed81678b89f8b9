"""What of a tool can be searched, and the port of whoever says which tools are nearest to a question."""

from collections.abc import Iterator
from typing import Protocol, TypeAlias

from msgspec import DecodeError, Raw, Struct
from msgspec.json import Decoder

Json: TypeAlias = dict[str, object]

MAX_DESCRIPTION = 4096
MAX_PARAMETERS = 4096
_MAX_TITLE = 256
_MAX_PROPERTIES = 256
_MAX_DEPTH = 8
_BRANCHES = ("allOf", "anyOf", "oneOf", "prefixItems")
_BRANCH = ("items", "additionalProperties")

_objects: Decoder[Json] = Decoder(Json)


class Document(Struct, frozen=True):
    """A tool as text. `name` is its public name, by which it is found; `parameters` are the names and descriptions
    of what its `inputSchema` asks for, those inside of others too."""

    name: str
    title: str = ""
    description: str = ""
    server: str = ""
    parameters: str = ""


class Ranker(Protocol):
    """Knows a set of documents. It may be asked by one thread only, and is closed by whoever made it."""

    def rank(self, query: str, limit: int) -> list[str]:
        """Names of the documents nearest to a question in any words, best first; none where nothing is near."""

    def close(self) -> None: ...


def described(name: str, server: str, tool: Raw) -> Document:
    """One element of `tools` as its server wrote it. What is not of its type says nothing, and long texts are cut."""
    try:
        fields = _objects.decode(tool)
    except (DecodeError, RecursionError):
        return Document(name, server=server)
    annotations = _object(fields, "annotations")
    return Document(
        name,
        title=(_text(fields, "title") or _text(annotations, "title"))[:_MAX_TITLE],
        description=_text(fields, "description")[:MAX_DESCRIPTION],
        server=server,
        parameters=_joined(_properties(fields.get("inputSchema"), _MAX_DEPTH)),
    )


def _joined(texts: Iterator[str]) -> str:
    joined = ""
    for _, text in zip(range(_MAX_PROPERTIES), texts, strict=False):
        joined = f"{joined}\n{text}" if joined else text
        if len(joined) >= MAX_PARAMETERS:
            break
    return joined[:MAX_PARAMETERS]


def _properties(schema: object, depth: int) -> Iterator[str]:
    """Each property's name and description, the outer ones before those inside of them."""
    if not isinstance(schema, dict) or depth == 0:
        return
    properties = _object(schema, "properties")
    for name, property_ in properties.items():
        description = _text(property_, "description") if isinstance(property_, dict) else ""
        yield f"{name} {description}".rstrip()
    for inner in (*properties.values(), *_inner(schema)):
        yield from _properties(inner, depth - 1)


def _inner(schema: Json) -> Iterator[object]:
    yield from (schema.get(key) for key in _BRANCH)
    for key in _BRANCHES:
        branches = schema.get(key)
        if isinstance(branches, list):
            yield from branches


def _object(fields: Json, key: str) -> Json:
    found = fields.get(key)
    return found if isinstance(found, dict) else {}


def _text(fields: Json, key: str) -> str:
    found = fields.get(key)
    return found if isinstance(found, str) else ""
