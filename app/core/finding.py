"""Two tools in place of hundreds: one that finds the others, and one that calls what was found."""

from collections.abc import Iterable, Mapping

from msgspec import DecodeError, Raw, Struct
from msgspec.json import Decoder

from app.core.catalog import Entry
from app.core.routing import rewritten
from app.protocol import aims, methods
from app.protocol.faults import BadParams
from app.protocol.jsonrpc import Request, payload
from app.protocol.stateless import fields_of

FIND = "find_tools"
CALL = "call_tool"
FOUND_MAX = 50
QUERY_MAX = 500
"""What is longer is looked at so far; questions wait for each other."""

_fields: Decoder[dict[str, Raw]] = Decoder(dict[str, Raw])


class Search(Struct, frozen=True):
    query: str
    limit: int


class _Asked(Struct):
    query: str
    limit: int | None = None


_asked = Decoder(_Asked)

_TOOLS: tuple[Mapping[str, object], ...] = (
    {
        "name": FIND,
        "title": "Find tools",
        "description": "Find tools by what they do. Say in a few words what you want to do, in any language. The "
        "answer lists the best matches, best first, each with its name, description and the schema of its arguments; "
        f"call one with {CALL}. If nothing fits, ask again in other words.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "what the tool should do"},
                "limit": {"type": "integer", "minimum": 1, "maximum": FOUND_MAX, "description": "how many at most"},
            },
            "required": ["query"],
        },
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    },
    {
        "name": CALL,
        "title": "Call a tool",
        "description": f"Call a tool that {FIND} found, by its name, with arguments that fit its schema.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": f"the tool's name, as {FIND} says it"},
                "arguments": {"type": "object", "description": "the arguments of the tool"},
            },
            "required": ["name"],
        },
    },
)
TOOLS: Raw = payload({"tools": _TOOLS})
"""The list that a client sees."""


def search(call: Request, default: int) -> Search | None:
    """What is to be found; None where it is a call of something else.

    Raises:
        BadParams: it does not say what.
    """
    if call.method != methods.CALL_TOOL:
        return None
    fields = fields_of(call)
    if aims.text(fields, "name", "params.name") != FIND:
        return None
    try:
        asked = _asked.decode(fields.get("arguments", b"{}"))
    except DecodeError as wrong:
        raise BadParams(f"{FIND} needs a query, a text, and may have a limit, a number") from wrong
    limit = default if asked.limit is None else asked.limit
    return Search(asked.query[:QUERY_MAX], max(1, min(limit, FOUND_MAX)))


def unwrapped(call: Request) -> Request:
    """A call of the tool that calls another one, as a call of that; any other request as it is.

    Raises:
        BadParams: it does not say which, or means one of these two, or its arguments are no object.
    """
    if call.method != methods.CALL_TOOL:
        return call
    fields = fields_of(call)
    if aims.text(fields, "name", "params.name") != CALL:
        return call
    try:
        inner = _fields.decode(fields.get("arguments", b"{}"))
        _fields.decode(inner.get("arguments", b"{}"))
    except DecodeError as wrong:
        raise BadParams(f"{CALL} needs a name, a text, and may have arguments, an object") from wrong
    name = aims.text(inner, "name", "params.arguments.name")
    if name in (FIND, CALL):  # Whoever unwraps it once more would find another call than the one that was judged.
        raise BadParams(f"{CALL} calls what {FIND} found, and neither of these", reason="unknown_target")
    outer = {key: said for key, said in fields.items() if key.casefold() not in ("name", "arguments")}
    ours = {**outer, "name": inner["name"], "arguments": inner.get("arguments", Raw(b"{}"))}
    return rewritten(call, ours, name)


def found(entries: Iterable[Entry]) -> Raw:
    """The result of a search."""
    tools = payload({"tools": [entry.shown for entry in entries]})
    return payload({"content": [{"type": "text", "text": bytes(tools).decode()}]})
