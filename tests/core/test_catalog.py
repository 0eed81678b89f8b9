"""Many servers' lists as one."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Raw

from app.core.catalog import Catalog, Conflict, Entry, composed
from app.core.inventory import Inventory, Item, Shelf
from app.core.public_names import Naming, prefixed
from app.core.shaping import WHOLE, Change, Choice, Shaping
from app.core.targets import Pattern, Target
from tests.core.inventories import SHELVES, alike_names, alike_servers, item, names, offers, raw, shown

GIT = offers(tools=("commit", "status"), prompts=("review",), resources=("file:///repo",))
TIME = offers(tools=("now", "status"))


def publics(catalog: Catalog, shelf: Shelf = "tools") -> list[str]:
    return [entry.public for entry in catalog.entries[shelf]]


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


# Resources.


FILES = offers(resources=("file:///a", "file:///b"), templates=("file:///{path}", "search:{query}"))
NOTES = offers(resources=("file:///b", "note://1"), templates=("note://{id}",))


def test_a_uri_is_kept_where_one_server_alone_has_it() -> None:
    catalog = composed({"files": FILES, "notes": NOTES}, "prefix", WHOLE)
    assert shown(catalog, "resources") == [
        {"uri": "file:///a"},
        {"uri": "viaduct://files/file:///b"},
        {"uri": "viaduct://notes/file:///b"},
        {"uri": "note://1"},
    ]
    assert shown(catalog, "templates") == [
        {"uriTemplate": "viaduct://files/file:///{path}"},
        {"uriTemplate": "search:{query}"},
        {"uriTemplate": "note://{id}"},
    ]


OWNERS = {
    "file:///a": ("files", "file:///a"),
    "viaduct://files/file:///a": ("files", "file:///a"),
    "viaduct://files/file:///b": ("files", "file:///b"),
    "viaduct://notes/file:///b": ("notes", "file:///b"),
    "viaduct://files/file:///c": ("files", "file:///c"),
    "search:gold": ("files", "search:gold"),
    "note://2": ("notes", "note://2"),
    "search:{query}": ("files", "search:{query}"),
    "viaduct://files/file:///{path}": ("files", "file:///{path}"),
    "file:///b": None,
    "file:///c": None,
    "other:1": None,
    "viaduct://others/file:///a": None,
    "viaduct://files": None,
    "": None,
}


@pytest.mark.parametrize("uri", OWNERS)
def test_a_public_uri_is_its_owner_s(uri: str) -> None:
    catalog = composed({"files": FILES, "notes": NOTES}, "prefix", WHOLE)
    assert catalog.owner_of(uri) == OWNERS[uri]
    owner = OWNERS[uri]
    assert catalog.target("resources", uri) == (None if owner is None else Target(owner[0], "resources", owner[1]))


def test_the_only_server_with_resources_has_any() -> None:
    catalog = composed({"files": FILES, "time": TIME}, "prefix", WHOLE)
    assert catalog.owner_of("other:1") == ("files", "other:1")
    assert catalog.public_uri("files", "other:1") == "other:1"
    assert catalog.public_uri("files", "viaduct://time/x") == "viaduct://files/viaduct://time/x"


def test_of_a_server_without_resources_nothing_is_found() -> None:
    catalog = composed({"files": FILES, "notes": NOTES, "time": TIME}, "prefix", WHOLE)
    assert catalog.owner_of("viaduct://time/file:///a") is None
    assert catalog.public_uri("time", "ui://clock") == "ui://clock"
    assert catalog.public_uri("time", "file:///a") == "viaduct://time/file:///a"


uris = st.sampled_from(
    [
        "x://1",
        "x://1/2",
        "x://2",
        "y:1",
        "x://",
        "",
        "viaduct://a/x://1",
        "viaduct://b/x://1",
        "viaduct://a/",
        "viaduct:",
        "中",
    ]
)
templates = st.sampled_from(
    [
        "x://{one}",
        "x://{two}",
        "x://{one}/{two}",
        "x://1",
        "y:{y}",
        "{+any}",
        "viaduct://b/{uri}",
        "via{x}",
        "x://1{?q}",
        "中{文}",
    ]
)
joined = st.dictionaries(
    st.sampled_from(["a", "b", "c.d"]),
    st.builds(
        lambda resources, templates: offers(resources=resources, templates=templates),
        st.lists(uris, max_size=5),
        st.lists(templates, max_size=4),
    ),
    min_size=1,
)
shapings = st.builds(
    lambda deny, wanted: Shaping(
        (Choice(deny=tuple(map(Pattern, deny))),), {"a": frozenset({"t"}), "b": frozenset({"u"})}, frozenset(wanted)
    ),
    st.lists(st.sampled_from(["a/resources/x:*", "b", "*/resources/y:1", "*/resources/*{*"]), max_size=2),
    st.lists(st.sampled_from("tu"), max_size=1),
)


def may_be_reached(servers: Mapping[str, Inventory], shaping: Shaping, server: str, uri: str) -> bool:
    return server in servers and shaping.keeps(Target(server, "resources", uri))


@given(joined, uris)
def test_every_uri_of_every_server_is_found_again_by_its_public_one(
    servers: dict[str, Inventory], unlisted: str
) -> None:
    catalog = composed(servers, "prefix", WHOLE)
    for server, inventory in servers.items():
        for uri in (unlisted, *(each.name for each in (*inventory.resources, *inventory.templates))):
            assert catalog.owner_of(catalog.public_uri(server, uri)) == (server, uri)
    for shelf in ("resources", "templates"):
        for entry in catalog.entries[shelf]:
            assert catalog.owner_of(entry.public) == (entry.server, entry.own)


@given(joined, st.sampled_from(["", "1", "1/2", "viaduct", "a/x"]))
def test_what_a_client_makes_of_a_template_is_its_server_s(servers: dict[str, Inventory], value: str) -> None:
    catalog = composed(servers, "prefix", WHOLE)
    for entry in catalog.entries["templates"]:
        made = entry.public.replace("{?q}", "?q=" + value)
        own = entry.own.replace("{?q}", "?q=" + value)
        for name in ("{one}", "{two}", "{y}", "{+any}", "{uri}", "{x}", "{文}"):
            made, own = made.replace(name, value), own.replace(name, value)
        assert catalog.owner_of(made) == (entry.server, own)
        assert catalog.owner_of(catalog.public_uri(entry.server, own)) == (entry.server, own)


@given(joined, shapings, uris | templates, st.sampled_from(["a", "b", "c.d", "d"]))
def test_what_is_hidden_is_reached_by_no_uri(
    servers: dict[str, Inventory], shaping: Shaping, uri: str, server: str
) -> None:
    catalog = composed(servers, "prefix", shaping)
    for asked in (uri, f"viaduct://{server}/{uri}"):
        owner = catalog.owner_of(asked)
        assert owner is None or may_be_reached(servers, shaping, *owner)
    if may_be_reached(servers, shaping, server, uri):
        assert catalog.owner_of(catalog.public_uri(server, uri)) == (server, uri)


@given(joined, shapings)
def test_no_two_listed_resources_have_one_uri(servers: dict[str, Inventory], shaping: Shaping) -> None:
    catalog = composed(servers, "prefix", shaping)
    for shelf in ("resources", "templates"):
        listed = publics(catalog, shelf)
        assert len(set(listed)) == len(listed)
        assert all(may_be_reached(servers, shaping, each.server, each.own) for each in catalog.entries[shelf])


def test_resources_and_prompts_are_shown_as_they_were_said() -> None:
    server = Inventory(
        {"resources": raw({}), "prompts": raw({})},
        prompts=(item("prompts", "review", arguments=[{"name": "x"}]),),
        resources=(item("resources", "x:1", name="one", size=1),),
        templates=(item("templates", "x:{n}", name="some", mimeType="text/plain"),),
    )
    catalog = composed({"git": server}, "prefix", WHOLE)
    assert shown(catalog, "prompts") == [{"name": "git__review", "arguments": [{"name": "x"}], "title": "review"}]
    assert shown(catalog, "resources") == [{"uri": "x:1", "name": "one", "size": 1}]
    assert shown(catalog, "templates") == [{"uriTemplate": "x:{n}", "name": "some", "mimeType": "text/plain"}]
