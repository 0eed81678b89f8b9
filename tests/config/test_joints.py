"""Which servers a configuration makes one, and as what the gateway and its doors are told of them."""

import pytest

from app import joining
from app.asgi import create_app, gateway_settings
from app.config import Config
from app.config.joining import Catalog
from app.core.targets import Pattern
from app.gateway.settings import JointSettings, UpstreamSettings
from tests.config.conftest import TIME, Loading
from tests.config.test_effect import numbers

TWO = {"git": TIME, "mail": TIME}
OPEN = {"VIADUCT_NO_AUTH": "1"}
SHOWN = {"tools": {"deny": ["x"]}}


def named(config: Config) -> dict[str, JointSettings]:
    return {upstream.name: joint_of(upstream) for upstream in gateway_settings(config).joints}


def joint_of(upstream: UpstreamSettings) -> JointSettings:
    assert upstream.joint is not None
    return upstream.joint


def test_several_servers_are_one_at_mcp_in_the_order_of_the_file(loading: Loading) -> None:
    assert named(loading(TWO)) == {"/mcp": JointSettings(("git", "mail"))}


def test_a_single_server_is_none_but_itself(loading: Loading) -> None:
    assert named(loading()) == {}


def test_a_single_server_in_search_mode_is_one_that_keeps_its_names(loading: Loading) -> None:
    assert named(loading(viaduct={"mode": "search"})) == {
        "/mcp": JointSettings(("time",), naming="none", mode="search")
    }


def test_a_server_of_which_less_is_shown_is_served_like_that_with_its_own_names(loading: Loading) -> None:
    found = named(loading({"time": {**TIME, **SHOWN}}))
    assert list(found) == ["/servers/time"]
    joint = found["/servers/time"]
    assert (joint.servers, joint.naming, joint.mode) == (("time",), "none", "list")
    assert joint.shaping.choices[0].deny == (Pattern("time/x"),)


def test_groups_have_their_own_servers_names_and_mode(loading: Loading) -> None:
    groups = {
        "office": {"servers": ["mail"], "naming": "none", "mode": "search", "tags": ["dev"]},
        "all": {},
    }
    found = named(loading({**TWO, "git": {**TIME, "tags": ["dev"]}}, {"groups": groups, "naming": "onConflict"}))
    assert list(found) == ["/mcp", "/groups/office", "/groups/all"]
    office, everything = found["/groups/office"], found["/groups/all"]
    assert (office.servers, office.naming, office.mode) == (("mail",), "none", "search")
    assert office.shaping.wanted == (frozenset({"dev"}),)
    assert (everything.servers, everything.naming, everything.mode) == (("git", "mail"), "onConflict", "list")
    assert found["/mcp"].naming == "onConflict"


def test_the_mode_of_mcp_is_not_that_of_groups(loading: Loading) -> None:
    found = named(loading(TWO, {"mode": "search", "groups": {"all": {}}}))
    assert {name: joint.mode for name, joint in found.items()} == {"/mcp": "search", "/groups/all": "list"}


def test_a_group_whose_servers_are_disabled_is_not_there(loading: Loading) -> None:
    servers = {"git": TIME, "mail": {**TIME, "disabled": True}}
    config = loading(servers, {"groups": {"post": {"servers": ["mail"]}}}, environ=OPEN)
    assert named(config) == {}
    assert joining.places(config) == ["/servers/git", ""]


def test_one_is_as_patient_as_its_most_patient_server(loading: Loading) -> None:
    servers = {
        "git": {**TIME, "startTimeout": 7, "requestTimeout": 90, "stopTimeout": 1, "pingTimeout": 3},
        "mail": {**TIME, "startTimeout": 90, "maxRequestTimeout": 900, "stopTimeout": 9, "pingTimeout": 40},
    }
    (joint,) = gateway_settings(loading(servers)).joints
    deadlines = joint.deadlines
    assert (deadlines.start, deadlines.request, deadlines.max_request) == (90, 90, 900)
    assert (joint.limits.close_seconds, joint.tolerance.ping) == (9, 40)
    assert joint.command.argv == ()


@pytest.mark.parametrize(
    ("git", "mail", "hints"),
    [
        ((9, "public"), (5, "public"), (5000, "public")),
        ((9, "public"), (5, "private"), (5000, "private")),
        ((9, "public"), (0, "public"), (0, "public")),
    ],
)
def test_clients_keep_of_one_what_they_may_keep_of_all(
    git: tuple[float, str], mail: tuple[float, str], hints: tuple[int, str], loading: Loading
) -> None:
    servers = {
        name: {**TIME, "cacheTtl": ttl, "cacheScope": scope}
        for name, (ttl, scope) in {"git": git, "mail": mail}.items()
    }
    (joint,) = gateway_settings(loading(servers)).joints
    assert (joint.ttl_ms, joint.cache_scope) == hints


def test_each_is_counted_on_its_own(loading: Loading) -> None:
    settings = gateway_settings(loading(TWO, {"groups": {"a": {}}}))
    tallies = [upstream.tally for upstream in (*settings.upstreams, *settings.joints)]
    assert len({id(tally) for tally in tallies}) == 4


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, value in numbers(Catalog)])
def test_each_number_of_the_catalog_changes_what_is_built(loading: Loading, name: str, value: float) -> None:
    plain, changed = (gateway_settings(loading(TWO, {"catalog": catalog})) for catalog in ({}, {name: value + 1}))
    assert (plain.joints, plain.catalog) != (changed.joints, changed.catalog)


def test_lists_are_read_when_it_is_said(loading: Loading) -> None:
    assert gateway_settings(loading(TWO, {"catalog": {"read": "use"}})).catalog.begins == "use"


def test_what_was_not_changed_is_equal_when_it_is_read_again(loading: Loading) -> None:
    content = {"git": {**TIME, **SHOWN}, "mail": TIME}
    groups = {"groups": {"a": {"tools": {"allow": ["git/*"], "change": {"git/log": {"name": "log"}}}}}}
    once, again = (gateway_settings(loading(content, groups)) for _ in range(2))
    assert once.joints == again.joints
    other = gateway_settings(loading({**content, "git": {**TIME, "tools": {"deny": ["y"]}}}, groups))
    assert once.joints[0] != other.joints[0]


def test_they_are_served(loading: Loading) -> None:
    config = loading({**TWO, "git": {**TIME, **SHOWN}}, {"groups": {"a": {}}}, environ=OPEN)
    places = create_app(config)._places
    names = {base: place.upstream.name for base in joining.places(config) if (place := places[f"{base}/mcp"]).upstream}
    assert names == {
        "/servers/git": "/servers/git",
        "/servers/mail": "mail",
        "/groups/a": "/groups/a",
        "": "/mcp",
    }
