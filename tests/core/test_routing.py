"""Whose a request is, of many servers', and what that server reads."""

import json
from typing import Any

import pytest

from app.core.catalog import Catalog, composed
from app.core.routing import routed
from app.core.shaping import WHOLE
from app.protocol.faults import BadParams, UnknownMethod
from app.protocol.jsonrpc import Request
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
