"""Whose a request is, of many servers', and what that server reads."""

import json
from typing import Any

import pytest
from msgspec import Raw

from app.core.catalog import Catalog, composed
from app.core.routing import routed
from app.core.shaping import WHOLE
from app.protocol.faults import BadParams, UnknownMethod
from app.protocol.jsonrpc import Request, payload
from tests.core.inventories import offers, raw

CATALOG: Catalog = composed(
    {
        "git": offers(tools=["log"], prompts=["review"], resources=["git://head"]),
        "files": offers(tools=["read"], templates=["file:///{path}"], resources=[]),
    },
    "prefix",
    WHOLE,
)


def request(method: str, params: object) -> Request:
    return Request(7, method, raw(params))


def sent(method: str, params: object) -> tuple[str, Any]:
    """To which server it goes, and its parameters there."""
    route = routed(request(method, params), CATALOG)
    assert route.request.id == 7
    assert route.request.params is not None
    return route.server, json.loads(bytes(route.request.params))


def test_a_call_goes_to_its_server_under_the_name_it_has_there() -> None:
    call = {"name": "git__log", "arguments": {"name": "x"}, "_meta": {"progressToken": 1}}
    assert sent("tools/call", call) == ("git", {**call, "name": "log"})
    assert sent("prompts/get", {"name": "git__review"}) == ("git", {"name": "review"})
    assert sent("resources/read", {"uri": "file:///a"}) == ("files", {"uri": "file:///a"})


def test_members_that_could_be_taken_for_the_name_are_left_out_and_others_stay() -> None:
    call = {"Name": "push", "name": "git__log", "NAME": 1, "other": [1]}
    assert sent("tools/call", call) == ("git", {"name": "log", "other": [1]})
    assert sent("resources/read", {"uri": "git://head", "URI": "file:///a"}) == ("git", {"uri": "git://head"})


def test_no_task_is_asked_for_in_a_servers_name() -> None:
    assert sent("tools/call", {"name": "files__read", "task": {"ttl": 1}}) == ("files", {"name": "read"})


def test_what_is_completed_decides_whose_it_is() -> None:
    argument = {"name": "path", "value": "a"}
    reference = {"type": "ref/resource", "uri": "file:///{path}"}
    assert sent("completion/complete", {"ref": reference, "argument": argument})[0] == "files"
    reference = {"type": "ref/prompt", "name": "git__review"}
    server, said = sent("completion/complete", {"ref": reference, "argument": argument})
    assert (server, said["ref"]) == ("git", {"type": "ref/prompt", "name": "review"})


@pytest.mark.parametrize("name", [None, 1, True, ["git__log"], {"name": "git__log"}])
def test_a_name_that_is_no_text_is_refused(name: object) -> None:
    wrong: list[tuple[str, object]] = [
        ("tools/call", {"name": name}),
        ("prompts/get", {"name": name}),
        ("resources/read", {"uri": name}),
        ("resources/subscribe", {"uri": name}),
        ("resources/unsubscribe", {"uri": name}),
        ("completion/complete", {"ref": name}),
        ("completion/complete", {"ref": {"type": name, "name": "git__review"}}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": name}}),
        ("completion/complete", {"ref": {"type": "ref/resource", "uri": name}}),
        ("completion/complete", {"ref": {"type": "ref/tool", "name": "git__log"}}),
    ]
    for method, params in wrong:
        with pytest.raises(BadParams):
            routed(request(method, params), CATALOG)


@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "resources/read", "completion/complete"])
def test_a_request_without_parameters_is_sent_to_nothing(method: str) -> None:
    with pytest.raises(BadParams):
        routed(Request(7, method), CATALOG)


def test_of_a_name_that_is_written_twice_one_is_read_and_written() -> None:
    params = Raw(b'{"name": "git__push", "arguments": {}, "name": "git__log"}')
    assert routed(Request(7, "tools/call", params), CATALOG).request.params == payload({"name": "log", "arguments": {}})


def test_what_a_client_says_besides_stays_the_bytes_it_was() -> None:
    params = Raw(b'{"name":"git__log","arguments":{"n": 1.00,"n":2}}')
    assert routed(Request(7, "tools/call", params), CATALOG).request.params == Raw(
        b'{"name":"log","arguments":{"n": 1.00,"n":2}}'
    )


def test_what_a_reference_could_be_taken_for_is_left_out() -> None:
    reference = {"TYPE": "ref/tool", "type": "ref/prompt", "Name": "push", "name": "git__review", "title": "x"}
    _, said = sent("completion/complete", {"Ref": {"type": "ref/tool"}, "ref": reference, "context": {"a": 1}})
    assert said == {"ref": {"type": "ref/prompt", "name": "review", "title": "x"}, "context": {"a": 1}}


def test_who_completes_what_there_is_not_hears_so() -> None:
    for reference in ({"type": "ref/prompt", "name": "git__x"}, {"type": "ref/resource", "uri": "nobody://{x}"}):
        with pytest.raises(BadParams) as refused:
            routed(request("completion/complete", {"ref": reference}), CATALOG)
        assert refused.value.reason == "unknown_target"


def test_what_is_subscribed_to_is_called_as_its_server_calls_it() -> None:
    for method in ("resources/subscribe", "resources/unsubscribe"):
        assert sent(method, {"uri": "viaduct://git/git://head"}) == ("git", {"uri": "git://head"})


def test_a_name_in_an_error_is_cut_short() -> None:
    with pytest.raises(BadParams) as refused:
        routed(request("tools/call", {"name": "x" * 10_000}), CATALOG)
    assert len(str(refused.value)) < 300


def test_a_resource_that_there_is_not_is_named_in_the_error() -> None:
    with pytest.raises(BadParams) as refused:
        routed(request("resources/read", {"uri": "nobody://x"}), CATALOG)
    assert refused.value.details == {"uri": "nobody://x"}
    assert refused.value.reason == "unknown_target"


@pytest.mark.parametrize("name", ["log", "read", "git__read", "Git__log", ""])
def test_a_tool_that_there_is_not_is_an_error(name: str) -> None:
    with pytest.raises(BadParams):
        routed(request("tools/call", {"name": name}), CATALOG)


def test_nobody_is_sent_what_is_about_nothing_of_theirs() -> None:
    with pytest.raises(UnknownMethod):
        routed(request("tasks/get", {"taskId": "1"}), CATALOG)
