"""What a server says of its resources, as a client must hear it."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from app.core.links import relinked
from tests.core.inventories import raw


def public(uri: str) -> str:
    return uri if uri.startswith("own:") else f"viaduct://a/{uri}"


def said(result: object) -> object:
    return json.loads(bytes(relinked(raw(result), public)))


def link(uri: object) -> dict[str, object]:
    return {"type": "resource_link", "uri": uri, "name": "x"}


def embedded(uri: object) -> dict[str, object]:
    return {"type": "resource", "resource": {"uri": uri, "text": "uri"}, "annotations": {"uri": "x:1"}}


TEXT = {"type": "text", "text": '"uri": "x:1"', "uri": "x:1", "resource": {"uri": "x:1"}}
PLACES: dict[str, Callable[[object], object]] = {
    "a link in a tool's result": lambda uri: {"content": [TEXT, link(uri)], "isError": False},
    "a resource in a tool's result": lambda uri: {"content": [embedded(uri), TEXT]},
    "a link in a prompt": lambda uri: {"messages": [{"role": "user", "content": link(uri)}, {"content": TEXT}]},
    "a resource in a prompt": lambda uri: {"messages": [{"role": "user", "content": embedded(uri)}]},
    "one of several in a message": lambda uri: {"messages": [{"role": "user", "content": [TEXT, embedded(uri)]}]},
    "a tool's result in a question": lambda uri: {
        "messages": [{"content": [{"type": "tool_result", "content": [TEXT, link(uri), embedded(uri)]}]}],
        "maxTokens": 10,
    },
    "what was read": lambda uri: {"contents": [{"uri": uri, "text": "uri"}, {"uri": "own:1", "blob": ""}]},
    "everything at once": lambda uri: {
        "content": [link(uri), embedded(uri)], "contents": [{"uri": uri}], "messages": [{"content": [link(uri)]}],
    },
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_a_uri_is_said_as_it_is_in_public(place: str) -> None:
    assert said(PLACES[place]("x:1")) == PLACES[place]("viaduct://a/x:1")


@pytest.mark.parametrize("place", PLACES)
def test_what_does_not_change_is_the_very_same(place: str) -> None:
    result = raw(PLACES[place]("own:1"))
    assert relinked(result, public) is result


@pytest.mark.parametrize("wrong", [None, 1, [], {}, [1], True, 1.5])
@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_uri_stays_as_it_is(place: str, wrong: object) -> None:
    result = raw(PLACES[place](wrong))
    assert relinked(result, public) is result


ELSEWHERE = [
    {"structuredContent": link("x:1"), "uri": "x:1", "resource": {"uri": "x:1"}},
    {"_meta": {"content": [link("x:1")]}},
    {
        "content": [
            {"type": "other", "uri": "x:1"},
            {"uri": "x:1"},
            {"type": 1, "uri": "x:1"},
            {"type": "resource_link"},
        ]
    },
    {"content": [{"type": "resource", "uri": "x:1"}, {"type": "resource_link", "resource": {"uri": "x:1"}}]},
    {"contents": {"uri": "x:1"}},
    {"contents": [[{"uri": "x:1"}]]},
    {"messages": {"content": [link("x:1")]}},
    {"messages": [[link("x:1")], link("x:1"), {"content": [[link("x:1")]]}]},
    {"content": [{"type": "tool_result", "content": [{"type": "tool_result", "content": [link("x:1")]}]}]},
    {"content": "uri"},
    [link("x:1")],
    "uri",
]


@pytest.mark.parametrize("result", ELSEWHERE, ids=str)
def test_a_uri_elsewhere_stays_as_it_is(result: object) -> None:
    written = raw(result)
    assert relinked(written, public) is written


@pytest.mark.parametrize(
    "result", [b"", b"{", b'{"uri"', b'{"content": ["uri"', b"null", b'{"content": [{"uri": \xff}]}']
)
def test_what_is_no_json_stays_as_it_is(result: bytes) -> None:
    written = Raw(result)
    assert relinked(written, public) is written


def test_what_has_no_uri_is_not_looked_at() -> None:
    def never(uri: str) -> str:
        raise AssertionError(uri)

    result = Raw(b'{"content": [{"type": "text", "text": "uri"}] and no JSON')
    assert relinked(result, never) is result


def test_everything_else_stays_the_bytes_it_was() -> None:
    result = b'{"x":1.000000000000000000001e400,"content":[{"type":"text","text":"\\u4e2d"},{"type":"resource_link",'
    end = b'"name":"\\ud83d\\ude00","size":1.0,"_meta":{"a" :  1.0}}],"structuredContent":{"a" : [1,  2],"uri": "x:1"}}'
    assert bytes(relinked(Raw(result + b'"uri":"x:1",' + end), public)) == result + b'"uri":"viaduct://a/x:1",' + end


def test_a_uri_is_found_however_its_name_is_written() -> None:
    result = Raw(b'{"contents": [{"\\u0075ri": "x:\\u4e2d"}]}')
    assert json.loads(bytes(relinked(result, public))) == {"contents": [{"uri": "viaduct://a/x:中"}]}


def test_the_uri_counts_that_was_written_last() -> None:
    result = Raw(b'{"contents": [{"uri": "x:1", "uri": "x:2"}]}')
    assert bytes(relinked(result, public)) == b'{"contents":[{"uri":"viaduct://a/x:2"}]}'


words = st.sampled_from(["type", "uri", "content", "contents", "messages", "resource", "resource_link", "tool_result"])
anything = st.recursive(
    st.none() | st.integers() | words | st.just("x:1"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(words, anything, max_size=4))
def test_nothing_but_uris_ever_changes(result: dict[str, object]) -> None:
    def without(value: object) -> object:
        match value:
            case dict():
                return {key: without(each) for key, each in value.items()}
            case list():
                return [without(each) for each in value]
            case str():
                return value.removeprefix("viaduct://a/")
            case _:
                return value

    assert without(said(result)) == result


@given(st.dictionaries(words, anything, max_size=4))
def test_what_was_said_in_public_is_not_said_otherwise_again(result: dict[str, object]) -> None:
    def once(uri: str) -> str:
        return uri if uri.startswith("viaduct:") else f"viaduct://a/{uri}"

    first = relinked(raw(result), once)
    assert relinked(first, once) is first
