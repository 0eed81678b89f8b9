"""What of a tool can be searched."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from msgspec import Raw
from msgspec.json import encode

from app.core.ranking import MAX_DESCRIPTION, MAX_PARAMETERS, Document, described

JSON = some.recursive(
    some.none() | some.booleans() | some.integers(-9, 9) | some.text(max_size=5),
    lambda inner: (
        some.lists(inner, max_size=3)
        | some.dictionaries(
            some.sampled_from(["title", "description", "annotations", "inputSchema", "properties", "items", "anyOf"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


def of(tool: Any) -> Document:
    return described("office__send", "office", Raw(encode(tool)))


def test_a_tool_is_described_by_what_its_server_says_of_it() -> None:
    tool = {
        "name": "send",
        "title": "Send mail",
        "description": "Sends a letter.",
        "inputSchema": {"type": "object", "properties": {"to": {"description": "Who gets it"}, "text": {}}},
    }
    assert of(tool) == Document("office__send", "Send mail", "Sends a letter.", "office", "to Who gets it\ntext")


def test_the_title_among_the_annotations_is_read_where_there_is_no_other() -> None:
    assert of({"annotations": {"title": "Send"}}).title == "Send"
    assert of({"title": "Post", "annotations": {"title": "Send"}}).title == "Post"


def test_what_is_inside_of_a_parameter_comes_after_those_beside_it() -> None:
    letter = {"type": "array", "items": {"properties": {"subject": {"description": "Of the letter"}}}}
    schema = {"properties": {"letters": letter, "account": {}}, "anyOf": [{"properties": {"draft": {}}}]}
    assert of({"inputSchema": schema}).parameters == "letters\naccount\nsubject Of the letter\ndraft"


@pytest.mark.parametrize("tool", [{"title": 3, "description": [], "inputSchema": "x"}, {"annotations": 1}, {}, [], 7])
def test_what_is_not_of_its_type_says_nothing(tool: Any) -> None:
    assert of(tool) == Document("office__send", server="office")


@pytest.mark.parametrize("tool", [b"", b"{", b"[" * 100_000])
def test_what_is_no_json_says_nothing(tool: bytes) -> None:
    assert described("a", "b", Raw(tool)) == Document("a", server="b")


def test_long_texts_are_cut() -> None:
    many = {f"p{i}": {"description": "x" * 100} for i in range(10_000)}
    found = of({"description": "y" * 10_000, "inputSchema": {"properties": many}})
    assert (len(found.description), len(found.parameters)) == (MAX_DESCRIPTION, MAX_PARAMETERS)


def test_many_short_parameters_are_too_many_at_some_time() -> None:
    found = of({"inputSchema": {"properties": {f"{i:x}": {} for i in range(1000)}}})
    assert len(found.parameters.split()) == 256


def test_what_is_too_deep_is_not_read() -> None:
    schema: Any = {"properties": {"deepest": {}}}
    for level in range(20):
        schema = {"properties": {f"level{level}": schema}}
    assert "level19" in of({"inputSchema": schema}).parameters
    assert "deepest" not in of({"inputSchema": schema}).parameters


@given(JSON)
def test_any_json_is_described(tool: Any) -> None:
    assert of(tool).name == "office__send"
