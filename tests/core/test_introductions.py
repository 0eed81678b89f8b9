"""How several servers introduce themselves as one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from app.core.catalog import composed
from app.core.introductions import capabilities, greeted, instructions, seen
from app.core.inventory import Inventory
from app.core.joint_rules import Known, everything
from app.core.shaping import WHOLE
from app.protocol.jsonrpc import Request
from tests.core.inventories import offers, raw

CHANGES = {"listChanged": True}


def knowing(servers: dict[str, Inventory]) -> Known:
    return Known(servers, composed(servers, "prefix", WHOLE), is_whole=True)


def can(*names: str, **more: object) -> Inventory:
    return Inventory({name: raw(value) for name, value in ({name: {} for name in names} | more).items()})


def test_together_they_can_what_one_of_them_can() -> None:
    servers = {"a": can("tools", "logging", "experimental"), "b": can("prompts", "completions")}
    assert capabilities(servers, is_whole=True) == {
        "tools": CHANGES,
        "prompts": CHANGES,
        "logging": {},
        "completions": {},
    }


def test_servers_that_are_not_known_yet_may_have_any_list() -> None:
    lists = {"tools": CHANGES, "prompts": CHANGES, "resources": CHANGES}
    assert capabilities({}, is_whole=False) == lists
    assert capabilities({"a": can("logging")}, is_whole=False) == {**lists, "logging": {}}


def test_there_are_tools_in_any_case() -> None:
    assert capabilities({}, is_whole=True) == {"tools": CHANGES}


@pytest.mark.parametrize(
    ("said", "subscribes"),
    [
        ({"subscribe": True}, True),
        ({"subscribe": False}, False),
        ({}, False),
        ({"subscribe": "true"}, False),
        ([], False),
    ],
)
def test_resources_can_be_subscribed_to_where_one_server_has_that(said: object, subscribes: bool) -> None:
    offered = capabilities({"a": can("resources"), "b": can(resources=said)}, is_whole=True)["resources"]
    assert offered == ({**CHANGES, "subscribe": True} if subscribes else CHANGES)


known = st.dictionaries(
    st.text("abc", min_size=1),
    st.lists(st.sampled_from(["tools", "prompts", "resources", "logging", "completions"])).map(
        lambda names: can(*names)
    ),
    max_size=4,
)


@given(known, st.booleans())
def test_nothing_is_offered_that_no_server_has_or_may_have(servers: dict[str, Inventory], is_whole: bool) -> None:
    has = {name for server in servers.values() for name in server.capabilities} | {"tools"}
    may_have = set[str]() if is_whole else {"prompts", "resources"}
    assert set(capabilities(servers, is_whole=is_whole)) == has | may_have


def test_what_should_be_known_is_said_under_each_server_s_name() -> None:
    servers = {
        "time": Inventory({}, " Ask for a zone.\n"),
        "quiet": Inventory({}, " \n"),
        "天气": Inventory({}, "# 请问\n城市"),
    }
    assert instructions(servers) == "# time\n\nAsk for a zone.\n\n# 天气\n\n# 请问\n城市"
    assert instructions({}) == ""


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        (None, "2025-11-25"),
    ],
)
def test_a_greeting_is_answered_in_its_revision_where_a_handshake_has_that(asked: object, answered: str) -> None:
    params = raw({"protocolVersion": asked, "capabilities": {}})
    answer = greeted(Request(1, "initialize", params), knowing({"a": can("tools")}), everything, "1.2")
    assert json.loads(bytes(answer)) == {
        "protocolVersion": answered,
        "capabilities": {"tools": CHANGES},
        "serverInfo": {"name": "viaduct", "version": "1.2"},
    }


def test_a_greeting_is_answered_with_what_should_be_known() -> None:
    answer = greeted(Request(1, "initialize", Raw(b"{}")), knowing({"a": Inventory({}, "Ask.")}), everything, "1")
    assert json.loads(bytes(answer))["instructions"] == "# a\n\nAsk."


def test_a_server_of_which_nothing_is_seen_says_nothing() -> None:
    servers = {"a": offers(tools=["x"]), "b": offers(resources=["b://one"]), "c": Inventory({}, "Only this.")}
    catalog = composed(servers, "prefix", WHOLE)
    assert list(seen(servers, catalog, everything)) == ["a", "b", "c"]
    assert list(seen(servers, catalog, lambda _shelf, entry: entry.server == "b")) == ["b", "c"]
