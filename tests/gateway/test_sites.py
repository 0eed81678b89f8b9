"""The servers that are configured, and those that were."""

from dataclasses import replace
from typing import Any

import pytest

from app.gateway.credentials import Reference
from app.gateway.settings import GatewaySettings, UpstreamSettings
from app.gateway.sites import Sites
from app.gateway.supervisor import Supervisor
from app.protocol.faults import InvalidRequest, ShuttingDown
from app.upstreams.command import Command


def server(name: str, **settings: Any) -> UpstreamSettings:
    return UpstreamSettings(name, Command((settings.pop("argv", "true"),)), **settings)


def none() -> Supervisor:
    raise AssertionError


@pytest.fixture
def sites() -> Sites:
    return Sites(GatewaySettings((server("a"), server("b"))), none)


def succeeded(sites: Sites, *servers: UpstreamSettings) -> list[str]:
    """The names of those that are left."""
    return [site.upstream.name for site in sites.succeed(GatewaySettings(servers))[1]]


def test_a_server_that_is_the_same_stays_the_same_object(sites: Sites) -> None:
    before, site = sites.upstreams["a"], sites.now("a")
    assert succeeded(sites, server("a"), server("c")) == ["b"]
    assert sites.upstreams["a"] is before
    assert sites.now("a") is site
    assert list(sites.upstreams) == ["a", "c"]


def test_what_was_counted_at_a_server_is_counted_on_at_the_one_that_took_its_place(sites: Sites) -> None:
    before = sites.upstreams["a"]
    assert succeeded(sites, server("a", argv="false"), server("b")) == ["a"]
    assert sites.upstreams["a"].tally is before.tally
    assert sites.upstreams["a"].site != before.site


def test_a_server_that_comes_back_is_another_one(sites: Sites) -> None:
    first = sites.upstreams["a"]
    succeeded(sites, server("b"))
    succeeded(sites, server("a"), server("b"))
    assert sites.upstreams["a"].site not in (first.site, ("a", 0))
    assert sites.upstreams["a"].tally is not first.tally


def test_who_uses_a_server_that_is_left_finds_it_until_it_is_forgotten(sites: Sites) -> None:
    before = sites.upstreams["a"]
    [site] = sites.succeed(GatewaySettings((server("b"),)))[1]
    assert sites.of(replace(before, bound="filled")) is site
    sites.forget(site)
    assert sites.leaving == []
    with pytest.raises(KeyError):
        sites.of(before)


def test_a_request_that_was_on_its_way_is_let_in_at_the_server_as_it_is_now(sites: Sites) -> None:
    before = sites.upstreams["a"]
    assert sites.entered(before) is before
    succeeded(sites, server("a", argv="false"))
    assert sites.entered(before) is sites.upstreams["a"]


def test_nobody_is_let_in_where_no_server_of_that_name_is(sites: Sites) -> None:
    before = sites.upstreams["a"]
    succeeded(sites, server("b"))
    with pytest.raises(InvalidRequest) as refused:
        sites.entered(before)
    assert refused.value.reason == "unknown_server"


def test_who_was_judged_by_other_needs_of_its_server_comes_again(sites: Sites) -> None:
    before = sites.upstreams["a"]
    succeeded(sites, server("a", templates={"KEY": (Reference("header", "x-key"),)}))
    with pytest.raises(ShuttingDown) as refused:
        sites.entered(before)
    assert refused.value.retry_after


@pytest.mark.parametrize(
    ("other", "may"),
    [
        ({"argv": "false"}, True),
        ({"era": "modern"}, True),
        ({"isolation": "shared"}, False),
        ({"templates": {"KEY": (Reference("claim", "sub"),)}}, False),
    ],
)
def test_a_session_goes_on_where_its_next_child_is_its_own_as_well(
    sites: Sites, other: dict[str, Any], may: bool
) -> None:
    [site] = sites.succeed(GatewaySettings((server("a", **other), server("b"))))[1]
    successor = sites.now("a")
    assert successor is not None
    assert successor.may_succeed(site) is may


def test_ids_of_a_shared_server_are_not_minted_twice() -> None:
    sites = Sites(GatewaySettings((server("a", isolation="shared"),)), none)
    before = sites.now("a")
    assert before is not None
    mint = before.mint()
    assert [next(mint), next(mint)] == [1, 2]
    succeeded(sites, server("a", argv="false", isolation="shared"))
    successor = sites.now("a")
    assert successor is not None
    assert next(successor.mint()) == 3
    assert successor.may_succeed(before)
    succeeded(sites)
    succeeded(sites, server("a", isolation="shared"))
    again = sites.now("a")
    assert again is not None
    assert next(again.mint()) == 4
