"""The URIs in what a server says that its client may go on to read: in public they must lead to the same things.

content, of a result or of each message     {"type": "resource_link", "uri": ...}
                                            {"type": "resource", "resource": {"uri": ...}}
                                            {"type": "tool_result", "content": [...]}, where it asks for a sample
contents of what was read                   {"uri": ...}
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from msgspec import DecodeError, Raw
from msgspec.json import Decoder

from app.protocol.jsonrpc import Request, payload

Public: TypeAlias = Callable[[str], str]
_Change: TypeAlias = Callable[[Raw, Public], Raw | None]
"""None is no change, as of what is not of the shape that it should be."""

_fields: Decoder[dict[str, Raw]] = Decoder(dict[str, Raw])
_entries: Decoder[list[Raw]] = Decoder(list[Raw])
_strings: Decoder[str] = Decoder(str)


def relinked(result: Raw, public: Public) -> Raw:
    """With each such URI as it is in public; everything else stays the bytes it was, and so does all where none
    changes."""
    return (_members(result, public, _RESULT) or result) if may_link(result) else result


def may_link(result: Raw) -> bool:
    """Whether there could be such a URI; of most there is none, and that is seen at once."""
    said = bytes(result)
    return b'"uri"' in said or (b"\\" in said and b"\\u" in said)


def requoted(question: Request, public: Public) -> Request:
    """A server's question, with those URIs in what it quotes."""
    if question.params is None:
        return question
    return Request(question.id, question.method, relinked(question.params, public))


def _messages(said: Raw, public: Public) -> Raw | None:
    return _each(said, public, lambda message, public: _members(message, public, {"content": _content}))


def _contents(said: Raw, public: Public) -> Raw | None:
    return _each(said, public, _resource)


def _content(said: Raw, public: Public) -> Raw | None:
    return _each(said, public, _block) or _block(said, public)


def _block(said: Raw, public: Public) -> Raw | None:
    """A tool's result in a message holds others, but no further one."""
    return _of_type(said, public, _OUTER)


def _inner(said: Raw, public: Public) -> Raw | None:
    return _each(said, public, lambda block, public: _of_type(block, public, _BLOCKS))


def _of_type(said: Raw, public: Public, types: Mapping[str, Mapping[str, _Change]]) -> Raw | None:
    try:
        kind = _strings.decode(_fields.decode(said).get("type", b"null"))
    except DecodeError:
        return None
    return _members(said, public, types.get(kind, {}))


def _resource(said: Raw, public: Public) -> Raw | None:
    return _members(said, public, {"uri": _uri})


def _uri(said: Raw, public: Public) -> Raw | None:
    try:
        uri = _strings.decode(said)
    except DecodeError:
        return None
    changed = public(uri)
    return None if changed == uri else payload(changed)


def _members(said: Raw, public: Public, changes: Mapping[str, _Change]) -> Raw | None:
    try:
        fields = _fields.decode(said)
    except DecodeError:
        return None
    changed = {name: change(fields[name], public) for name, change in changes.items() if name in fields}
    new = {name: value for name, value in changed.items() if value is not None}
    return payload({**fields, **new}) if new else None


def _each(said: Raw, public: Public, change: _Change) -> Raw | None:
    try:
        entries = _entries.decode(said)
    except DecodeError:
        return None
    changed = [change(entry, public) for entry in entries]
    if not any(changed):
        return None
    return payload([old if new is None else new for old, new in zip(entries, changed, strict=True)])


_BLOCKS: Mapping[str, Mapping[str, _Change]] = {"resource_link": {"uri": _uri}, "resource": {"resource": _resource}}
_OUTER: Mapping[str, Mapping[str, _Change]] = {**_BLOCKS, "tool_result": {"content": _inner}}
_RESULT: Mapping[str, _Change] = {"content": _content, "messages": _messages, "contents": _contents}
