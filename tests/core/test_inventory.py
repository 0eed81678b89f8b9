"""What a server says that it has."""

import json
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from app.core.inventory import LISTED, SHELF_OF, Inventory, Item, Shelf, introduced, items, rendered, wanted
from app.core.reading import Reading
from app.protocol.jsonrpc import Result
from tests.core.inventories import SHELVES, item, offers, raw


def test_a_server_introduces_itself_with_what_it_can_and_what_should_be_known() -> None:
    greeted = raw({
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {"listChanged": True}, "logging": {}},
        "instructions": "Ask first.",
    })  # fmt: skip
    assert introduced(greeted) == Inventory(
        {"tools": Raw(b'{"listChanged": true}'), "logging": Raw(b"{}")}, "Ask first."
    )


@pytest.mark.parametrize("capabilities", [None, [], "tools", 1, {}, {"tools": None}])
@pytest.mark.parametrize("instructions", [None, [], 1])
def test_what_a_server_says_in_no_way_that_can_be_read_is_not_said(capabilities: object, instructions: object) -> None:
    good = raw({"capabilities": {"prompts": {}}, "instructions": instructions})
    assert introduced(good) == Inventory({"prompts": Raw(b"{}")})
    assert introduced(raw({"capabilities": capabilities, "instructions": "Hear."})) == Inventory({}, "Hear.")


@pytest.mark.parametrize("greeted", [b"null", b"[]", b"1", b"{}", b"{", b""])
def test_no_introduction_is_an_empty_one(greeted: bytes) -> None:
    assert introduced(Raw(greeted)) == Inventory()


@pytest.mark.parametrize(
    ("capabilities", "shelves"),
    [
        ((), []),
        (("tools",), ["tools"]),
        (("resources",), ["resources", "templates"]),
        (("logging", "prompts", "tools"), ["tools", "prompts"]),
    ],
)
def test_the_lists_are_wanted_that_the_capabilities_promise(
    capabilities: tuple[str, ...], shelves: list[Shelf]
) -> None:
    assert wanted(Inventory({name: raw({}) for name in capabilities})) == shelves


def test_each_list_is_asked_for_by_its_method() -> None:
    assert dict(SHELF_OF) == {
        "tools/list": "tools",
        "prompts/list": "prompts",
        "resources/list": "resources",
        "resources/templates/list": "templates",
    }


def test_what_is_on_a_page_is_known_by_its_name_and_keeps_all_that_is_said_of_it() -> None:
    page = Raw(b'{"tools": [{"name": "now",  "x": 1.00}, {"description": "", "name": ""}], "nextCursor": "2"}')
    assert items("tools", page) == [
        Item("now", {"name": Raw(b'"now"'), "x": Raw(b"1.00")}),
        Item("", {"description": Raw(b'""'), "name": Raw(b'""')}),
    ]
    assert items("prompts", page) == []


@pytest.mark.parametrize("shelf", SHELVES)
def test_what_has_no_name_is_left_out_and_the_rest_is_there(shelf: Shelf) -> None:
    key, name = LISTED[shelf].key, LISTED[shelf].name
    page = raw({key: [None, 1, "now", [], {}, {name: None}, {name: 1}, {name: "now", "x": [1]}, {"other": "now"}]})
    assert items(shelf, page) == [item(shelf, "now", x=[1])]


@pytest.mark.parametrize("page", [b"null", b"[]", b"{}", b'{"tools": null}', b'{"tools": {"name": "now"}}', b"{", b""])
def test_what_is_no_page_has_nothing_on_it(page: bytes) -> None:
    assert items("tools", Raw(page)) == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("name", max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["name", "title", "x"]), json_values, max_size=3))
def test_an_item_is_shown_as_it_was_said(said: dict[str, object]) -> None:
    found = items("tools", raw({"tools": [said]}))
    assert [json.loads(bytes(rendered(each.said))) for each in found] == [
        said for name in [said.get("name")] if isinstance(name, str)
    ]


def test_what_is_read_again_as_it_was_is_there_but_once() -> None:
    first = offers(tools=["log", "push", "pull"])
    page = raw({"tools": [{"name": "pull"}, {"name": "log"}, {"name": "push", "title": "Push"}]})
    reading = Reading(count(1), first, ["tools"])
    [asked] = reading.begin()
    assert not reading.receive(Result(asked.id, page))
    pull, log, push = reading.inventory.tools
    assert pull is first.tools[2]
    assert log is first.tools[0]
    assert push == item("tools", "push", title="Push")
