"""Many servers' resources as one list, and whose each is."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.catalog import composed
from app.core.inventory import Inventory
from app.core.shaping import WHOLE, Choice, Shaping
from app.core.targets import Pattern, Target
from tests.core.inventories import item, offers, publics, raw, shown

TIME = offers(tools=("now", "status"))
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


def test_what_is_listed_is_called_as_it_is_listed() -> None:
    servers = {"a": offers(resources=["x://1"], templates=["x://1"]), "b": offers(templates=["x://{n}"])}
    catalog = composed(servers, "prefix", WHOLE)
    assert publics(catalog, "templates") == ["viaduct://a/x://1", "viaduct://b/x://{n}"]
    assert catalog.public_uri("a", "x://1") == "x://1"


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
        (Choice(deny=tuple(map(Pattern, deny))),),
        {"a": frozenset({"t"}), "b": frozenset({"u"})},
        tuple(map(frozenset, wanted)),
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
