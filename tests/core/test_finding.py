"""Two tools in place of many."""

import json
from typing import Any

import pytest
from msgspec import Raw

from app.core import finding
from app.core.catalog import Entry
from app.core.finding import Search, found, search, unwrapped
from app.protocol.faults import BadParams
from app.protocol.jsonrpc import Request, payload
from tests.core.inventories import raw


def call(name: object, arguments: object = None, **more: object) -> Request:
    given = {} if arguments is None else {"arguments": arguments}
    return Request(7, "tools/call", raw({"name": name, **given, **more}))


def said(request: Request) -> Any:
    assert request.params is not None
    return json.loads(bytes(request.params))


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        ({"query": "mail"}, Search("mail", 8)),
        ({"query": "发邮件", "limit": 3}, Search("发邮件", 3)),
        ({"query": "", "limit": None}, Search("", 8)),
        ({"query": "x", "limit": 0}, Search("x", 1)),
        ({"query": "x", "limit": -(10**15)}, Search("x", 1)),
        ({"query": "x", "limit": 10**15}, Search("x", finding.FOUND_MAX)),
        ({"query": "x", "other": [1]}, Search("x", 8)),
    ],
)
def test_what_is_to_be_found_is_a_text_and_a_number_within_bounds(arguments: object, asked: Search) -> None:
    assert search(call(finding.FIND, arguments), 8) == asked


def test_no_more_of_a_question_is_kept_than_is_looked_at() -> None:
    asked = search(call(finding.FIND, {"query": "邮" * 100_000}), 8)
    assert asked == Search("邮" * finding.QUERY_MAX, 8)


@pytest.mark.parametrize(
    "arguments",
    [None, [], "mail", {}, {"query": None}, {"query": 1}, {"query": ["x"]}, {"query": "x", "limit": "3"}],
)
def test_a_search_that_does_not_say_for_what_is_refused(arguments: object) -> None:
    with pytest.raises(BadParams):
        search(call(finding.FIND, arguments), 8)


def test_what_is_no_search_is_none() -> None:
    assert search(call("a__find", {"query": 1}), 8) is None
    assert search(call(finding.CALL, {"name": finding.FIND}), 8) is None
    assert search(Request(7, "prompts/get", raw({"name": finding.FIND})), 8) is None
    assert search(Request(7, "tools/list"), 8) is None


@pytest.mark.parametrize("name", [None, 1, [], {}])
def test_a_call_of_nothing_that_has_a_name_is_refused(name: object) -> None:
    for read in (lambda request: search(request, 8), unwrapped):
        with pytest.raises(BadParams):
            read(call(name))


def test_a_call_of_a_call_is_the_inner_one_with_what_the_outer_carries() -> None:
    inner = {"name": "a__find", "arguments": {"name": "x", "n": 1}}
    request = call(finding.CALL, inner, _meta={"progressToken": 3}, other=[1])
    assert said(unwrapped(request)) == {**inner, "_meta": {"progressToken": 3}, "other": [1]}
    assert unwrapped(request).id == 7
    assert said(unwrapped(call(finding.CALL, {"name": "a__find"}))) == {"name": "a__find", "arguments": {}}


def test_members_that_could_be_taken_for_the_name_are_left_out() -> None:
    request = call(finding.CALL, {"name": "a__find", "Name": "b__push"}, NAME="b__push", Arguments={"x": 1})
    assert said(unwrapped(request)) == {"name": "a__find", "arguments": {}}


def test_of_several_names_one_is_read_and_written() -> None:
    params = Raw(b'{"name": "x", "name": "call_tool", "arguments": {"name": "b__push", "name": "a__find"}}')
    assert unwrapped(Request(7, "tools/call", params)).params == payload({"name": "a__find", "arguments": {}})


@pytest.mark.parametrize(
    "arguments",
    [None, [], "x", {}, {"name": 1}, {"name": None}, {"name": "a__find", "arguments": []}, {"arguments": {}}],
)
def test_a_call_of_a_call_that_cannot_be_read_is_refused(arguments: object) -> None:
    with pytest.raises(BadParams):
        unwrapped(call(finding.CALL, arguments))


def test_what_is_no_call_of_a_call_stays_the_very_request() -> None:
    for request in (call("a__find", {"name": "b"}), Request(7, "prompts/get", raw({"name": finding.CALL}))):
        assert unwrapped(request) is request


@pytest.mark.parametrize("name", [finding.CALL, finding.FIND])
def test_a_call_of_a_call_of_a_call_is_refused(name: str) -> None:
    """What is judged is what is called."""
    with pytest.raises(BadParams):
        unwrapped(call(finding.CALL, {"name": name, "arguments": {"name": "a__find"}}))


def test_what_is_found_is_the_text_of_a_result_as_it_is_shown() -> None:
    shown = [Raw(b'{"name": "a__find",  "x": 1.00}'), Raw('{"name":"b__找"}'.encode())]
    result = found(Entry("a", "find", "a__find", each) for each in shown)
    [content] = json.loads(bytes(result))["content"]
    assert content == {"type": "text", "text": '{"tools":[{"name": "a__find",  "x": 1.00},{"name":"b__找"}]}'}


def test_the_two_tools_are_listed_with_what_they_need() -> None:
    tools = json.loads(bytes(finding.TOOLS))["tools"]
    assert [(tool["name"], tool["inputSchema"]["required"]) for tool in tools] == [
        ("find_tools", ["query"]),
        ("call_tool", ["name"]),
    ]
