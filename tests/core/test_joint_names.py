"""What is judged of a request to many servers is what its server gets."""

import pytest

from app.core import finding
from app.core.catalog import Catalog
from app.core.joint_names import JointNames
from app.core.targets import Target
from app.protocol.faults import BadParams
from app.protocol.jsonrpc import Request, payload
from tests.core.inventories import raw
from tests.core.joints import compose, offered

CALL = Request(1, "tools/call", payload({"name": finding.CALL, "arguments": {"name": "a__find"}}))
FIND = Request(1, "tools/call", payload({"name": finding.FIND, "arguments": {"query": "x"}}))


def names(*servers: str, finds: bool = False) -> JointNames:
    catalog = compose({server: offered(server) for server in servers})
    return JointNames(lambda: catalog, finds=finds)


def test_a_public_name_is_that_of_a_servers_own_thing() -> None:
    assert names("a", "b").target("tools", "b__find") == Target("b", "tools", "find")
    assert names("a", "b").target("resources", "b://one") == Target("b", "resources", "b://one")
    assert names("a", "b").target("resources", "viaduct://b/b://two") == Target("b", "resources", "b://two")


@pytest.mark.parametrize("public", ["find", "c__find", "", "a__"])
def test_what_is_not_there_is_nothing(public: str) -> None:
    assert names("a", "b").target("tools", public) is None
    assert names("a", "b").target("prompts", "a__find") is None
    assert names("a", "b").shown(public) is None


def test_what_is_said_of_a_tool_is_what_is_shown_of_it() -> None:
    assert names("a").shown("a__find") == compose({"a": offered("a")}).entries["tools"][0].shown


def test_what_counts_is_what_is_there_now() -> None:
    now: list[Catalog] = [compose({})]
    later = JointNames(lambda: now[0], finds=False)
    assert later.target("tools", "a__find") is None
    now[0] = compose({"a": offered("a")})
    assert later.target("tools", "a__find") == Target("a", "tools", "find")


def test_who_finds_tools_calls_the_one_that_was_found() -> None:
    assert names("a", finds=True).unwrapped(CALL).params == payload({"name": "a__find", "arguments": {}})
    assert names("a").unwrapped(CALL) is CALL


def test_a_search_is_one_only_where_tools_are_found() -> None:
    assert names("a", finds=True).is_search(FIND)
    assert not names("a").is_search(FIND)
    assert not names("a", finds=True).is_search(CALL)


def test_a_search_that_cannot_be_read_reaches_no_server_either() -> None:
    unreadable = Request(1, "tools/call", raw({"name": finding.FIND, "arguments": []}))
    assert names("a", finds=True).is_search(unreadable)
    assert not names("a").is_search(unreadable)
    with pytest.raises(BadParams):
        names("a", finds=True).unwrapped(Request(1, "tools/call", raw({"name": finding.CALL, "arguments": 1})))
