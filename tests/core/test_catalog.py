"""Many servers' lists as one."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Raw

from app.core.catalog import Conflict, Entry, composed
from app.core.inventory import Inventory, Item, Shelf
from app.core.public_names import Naming, prefixed
from app.core.shaping import WHOLE, Change, Choice, Shaping
from app.core.targets import Pattern, Target
from tests.core.inventories import SHELVES, alike_names, alike_servers, item, names, offers, publics, shown

GIT = offers(tools=("commit", "status"), prompts=("review",), resources=("file:///repo",))
TIME = offers(tools=("now", "status"))


# Names.


@pytest.mark.parametrize(
    ("naming", "listed"),
    [
        ("prefix", ["git__commit", "git__status", "time__now", "time__status"]),
        ("onConflict", ["commit", "git__status", "now", "time__status"]),
        ("none", ["commit", "status", "now"]),
    ],
)
def test_tools_are_listed_in_the_order_of_their_servers_under_public_names(naming: Naming, listed: list[str]) -> None:
    assert publics(composed({"git": GIT, "time": TIME}, naming, WHOLE)) == listed


def test_a_name_that_two_have_is_the_first_s_and_the_conflict_is_named() -> None:
    catalog = composed({"git": GIT, "time": TIME}, "none", WHOLE)
    assert catalog.conflicts == (Conflict("tools", "status", ("git", "time")),)
    assert catalog.target("tools", "status") == Target("git", "tools", "status")


def test_what_one_server_lists_twice_is_there_once() -> None:
    catalog = composed({"a": offers(tools=("x", "y", "x"), resources=("x:1", "x:1"))}, "none", WHOLE)
    assert publics(catalog) == ["x", "y"]
    assert publics(catalog, "resources") == ["x:1"]
    assert catalog.conflicts == ()
    twice = Inventory(tools=(item("tools", "x", title="First"), item("tools", "x", title="Second")))
    assert shown(composed({"a": twice}, "none", WHOLE), "tools") == [{"name": "x", "title": "First"}]


def test_a_public_name_is_found_and_others_are_not() -> None:
    catalog = composed({"git": GIT, "time": TIME}, "prefix", WHOLE)
    found = catalog.find("tools", "time__now")
    assert found == Entry("time", "now", "time__now", found.shown if found else Raw())
    assert catalog.target("prompts", "git__review") == Target("git", "prompts", "review")
    for unknown in ("now", "git__now", "time__", "", "git__review"):
        assert catalog.find("tools", unknown) is None
        assert catalog.target("tools", unknown) is None


naming_rules = st.sampled_from(["prefix", "onConflict", "none"])
some_servers = st.dictionaries(
    alike_servers, st.lists(alike_names, max_size=6).map(lambda own: offers(tools=own)), max_size=4
)


@given(some_servers, naming_rules)
@example({"a": offers(tools=["b/c"]), "b": offers(tools=[prefixed("a", "b/c")])}, "onConflict")
@example({"a": offers(tools=["x"]), "b": offers(tools=["x", "a__x"])}, "onConflict")
def test_every_name_is_one_thing_s_and_a_thing_without_one_is_named_as_a_conflict(
    servers: dict[str, Inventory], naming: Naming
) -> None:
    catalog = composed(servers, naming, WHOLE)
    things = {(server, tool.name) for server, inventory in servers.items() for tool in inventory.tools}
    listed = publics(catalog)
    assert len(set(listed)) == len(listed)
    assert [catalog.find("tools", public) for public in listed] == list(catalog.entries["tools"])
    left_out = things - {(entry.server, entry.own) for entry in catalog.entries["tools"]}
    assert {(conflict.servers[1], conflict.public) for conflict in catalog.conflicts} == left_out
    assert not left_out or naming == "none"


@given(st.lists(names, max_size=8), st.randoms())
def test_prefixed_names_do_not_depend_on_what_else_there_is(things: list[tuple[str, str]], chance: object) -> None:
    def publicly(chosen: list[tuple[str, str]]) -> dict[tuple[str, str], str]:
        servers: dict[str, Inventory] = {}
        for server, own in chosen:
            servers[server] = offers(tools=[*(tool.name for tool in servers.get(server, Inventory()).tools), own])
        return {
            (entry.server, entry.own): entry.public for entry in composed(servers, "prefix", WHOLE).entries["tools"]
        }

    whole = publicly(things)
    assert set(whole) == set(things)
    for fewer in (things[::2], things[::-1], things[1:]):
        assert publicly(fewer) == {thing: whole[thing] for thing in fewer}


@given(some_servers)
def test_where_a_name_is_kept_it_is_the_only_one_of_its_kind(servers: dict[str, Inventory]) -> None:
    catalog = composed(servers, "onConflict", WHOLE)
    for entry in catalog.entries["tools"]:
        if entry.public == entry.own:
            assert [server for server, has in servers.items() if entry.own in {tool.name for tool in has.tools}] == [
                entry.server
            ]
        else:
            assert entry.public == prefixed(entry.server, entry.own)


# What is shown.


def only(tool: Item, naming: Naming = "prefix", change: Change | None = None) -> dict[str, object]:
    choices = () if change is None else (Choice(changes={Target("maps", "tools", tool.name): change}),)
    catalog = composed({"maps": Inventory(tools=(tool,))}, naming, Shaping(choices))
    return shown(catalog, "tools")[0]


def test_what_a_server_says_of_a_thing_is_shown_under_its_public_name() -> None:
    said = item("tools", "find", title="Find", description="Finds.", inputSchema={"type": "object"}, _meta={"x": 1})
    assert only(said) == {
        "name": "maps__find",
        "title": "Find",
        "description": "Finds.",
        "inputSchema": {"type": "object"},
        "_meta": {"x": 1},
    }


def test_a_thing_without_a_title_has_its_own_name_for_one_where_it_is_called_otherwise() -> None:
    assert only(item("tools", "查询天气")) == {"name": "maps_1ixta747cy", "title": "查询天气"}
    assert only(item("tools", "find"), "none") == {"name": "find"}
    assert only(item("tools", "")) == {"name": prefixed("maps", "")}
    assert "title" not in only(item("tools", "find", annotations={"title": "Find it"}))
    assert only(item("tools", "find", annotations={"readOnlyHint": True}))["title"] == "find"
    assert only(item("tools", "find", annotations=["title"]))["title"] == "find"


def test_numbers_are_shown_as_they_were_written() -> None:
    tool = Item("find", {"name": Raw(b'"find"'), "_meta": Raw(b'{"x": 1.000000000000000000001e400}')})
    catalog = composed({"maps": Inventory(tools=(tool,))}, "prefix", WHOLE)
    assert b'"_meta":{"x": 1.000000000000000000001e400}' in bytes(catalog.entries["tools"][0].shown)


def test_an_operator_may_call_a_thing_otherwise_and_say_something_else_of_it() -> None:
    said = item("tools", "find", title="Find", description="Finds.")
    assert only(said, change=Change("route", "Route", "Finds a way.")) == {
        "name": "route",
        "title": "Route",
        "description": "Finds a way.",
    }
    assert only(said, change=Change(description="Finds a way.")) == {
        "name": "maps__find",
        "title": "Find",
        "description": "Finds a way.",
    }


def renamed(server: str, own: str, name: str) -> Shaping:
    return Shaping((Choice(changes={Target(server, "tools", own): Change(name)}),))


def test_a_name_that_an_operator_gave_is_nobody_else_s() -> None:
    servers = {"git": GIT, "time": TIME}
    assert publics(composed(servers, "onConflict", renamed("git", "status", "changes"))) == [
        "commit", "changes", "now", "status",
    ]  # fmt: skip
    assert publics(composed(servers, "onConflict", renamed("git", "status", "now"))) == [
        "commit", "now", "time__now", "status",
    ]  # fmt: skip
    catalog = composed(servers, "prefix", renamed("git", "status", "git__commit"))
    assert publics(catalog) == ["git__commit", "time__now", "time__status"]
    assert catalog.conflicts == (Conflict("tools", "git__commit", ("git", "git")),)


def test_what_an_operator_took_away_is_not_there() -> None:
    shaping = Shaping((Choice(deny=(Pattern("git/*commit"), Pattern("time"), Pattern("git/resources/*"))),))
    catalog = composed({"git": GIT, "time": TIME}, "onConflict", shaping)
    assert publics(catalog) == ["status"]
    assert publics(catalog, "prompts") == ["review"]
    assert publics(catalog, "resources") == []


# Pages.


def test_a_page_holds_so_many_and_says_how_to_go_on() -> None:
    catalog = composed({"git": GIT, "time": TIME}, "prefix", WHOLE)
    first = json.loads(bytes(catalog.page("tools", None, 3, lambda entry: True)))
    assert [tool["name"] for tool in first["tools"]] == ["git__commit", "git__status", "time__now"]
    second = json.loads(bytes(catalog.page("tools", first["nextCursor"], 3, lambda entry: True)))
    assert second == {"tools": [{"name": "time__status", "title": "status"}]}


@pytest.mark.parametrize("shelf", SHELVES)
def test_an_empty_list_is_one_empty_page(shelf: Shelf) -> None:
    key = "resourceTemplates" if shelf == "templates" else shelf
    page = composed({}, "prefix", WHOLE).page(shelf, None, 10, lambda entry: True)
    assert json.loads(bytes(page)) == {key: []}


@given(some_servers, st.integers(1, 30), st.sets(alike_names))
def test_the_pages_are_what_may_be_seen_of_the_list(servers: dict[str, Inventory], size: int, hidden: set[str]) -> None:
    catalog = composed(servers, "prefix", WHOLE)
    cursor, seen = None, list[object]()
    while True:
        page = json.loads(bytes(catalog.page("tools", cursor, size, lambda entry: entry.own not in hidden)))
        assert len(page["tools"]) == size or "nextCursor" not in page
        assert page["tools"] or cursor is None
        seen += page["tools"]
        cursor = page.get("nextCursor")
        if cursor is None:
            break
    may_be_seen = [entry.own not in hidden for entry in catalog.entries["tools"]]
    assert seen == [tool for tool, may in zip(shown(catalog, "tools"), may_be_seen, strict=True) if may]


def test_lists_are_alike_where_they_show_the_same() -> None:
    one, same = (composed({"git": GIT, "time": TIME}, "prefix", WHOLE) for _ in range(2))
    other = composed({"git": GIT}, "prefix", WHOLE)
    assert one.is_like(same, "tools")
    assert not one.is_like(other, "tools")
    assert one.is_like(other, "resources")


def test_what_two_catalogs_have_alike_is_there_but_once() -> None:
    whole = {"git": offers(tools=["log", "push"]), "files": offers(tools=["read"], resources=["file:///a"])}
    before = composed(whole, "prefix", WHOLE)
    after = composed({**whole, "git": offers(tools=["log", "pull"])}, "prefix", WHOLE, before)
    assert publics(after, "tools") == ["git__log", "git__pull", "files__read"]
    for public in ("git__log", "files__read"):
        assert after.find("tools", public) is before.find("tools", public)
    assert after.find("resources", "file:///a") is before.find("resources", "file:///a")
