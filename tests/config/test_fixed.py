"""What of a configuration needs a restart."""

import pytest

from app.config import ConfigError
from app.config.fixed import FIXED, check_fixed, fixed_changes
from app.config.tree import Viaduct
from tests.config.conftest import Loading

MAY_CHANGE: dict[str, object] = {
    "publicUrl": "https://mcp.example.com",
    "allowedHosts": ["mcp.example.com"],
    "allowedOrigins": ["https://app.example.com"],
    "policy": [{"allow": ["*"]}],
    "sessions": {"max": 5, "idleTimeout": 5},
    "stateless": {"maxChildren": 5},
    "streams": {"keepAlive": 5, "maxPerSession": 5},
    "limits": {"inFlight": 5, "line": 5000, "batch": 5, "greeting": 5000},
    "drain": 5,
    "drainOvertime": 5,
    "logLevel": "debug",
    "debugPayloads": True,
    "metrics": "off",
    "watchInterval": None,
}


@pytest.mark.parametrize("name", MAY_CHANGE)
def test_a_setting_that_is_read_anew_may_change(loading: Loading, name: str) -> None:
    changed = loading(viaduct={name: MAY_CHANGE[name]}).viaduct
    assert changed != loading().viaduct
    assert fixed_changes(loading().viaduct, changed) == []


def test_those_that_need_a_restart_are_named_as_the_file_has_them(loading: Loading) -> None:
    changed = loading(viaduct={"listen": "127.0.0.1:9", "storeTimeout": 9, "limits": {"headerBytes": 2048}}).viaduct
    assert fixed_changes(loading().viaduct, changed) == [
        "viaduct.listen", "viaduct.storeTimeout", "viaduct.limits.headerBytes",
    ]  # fmt: skip


def test_the_refusal_says_what_to_do(loading: Loading) -> None:
    with pytest.raises(ConfigError) as refused:
        check_fixed(loading().viaduct, loading(viaduct={"starts": 9, "logFormat": "json"}).viaduct)
    told = "viaduct.logFormat and viaduct.starts cannot change while the gateway runs; restart it, or change that back"
    assert str(refused.value) == told


def test_an_option_goes_before_the_file_and_so_the_file_may_say_what_it_likes(loading: Loading) -> None:
    environ = {"VIADUCT_PORT": "7", "VIADUCT_STORE": "memory"}
    changed = loading(viaduct={"listen": "127.0.0.1:9", "store": "sqlite:///x/y"}, environ=environ).viaduct
    assert fixed_changes(loading(environ=environ).viaduct, changed) == []


@pytest.mark.parametrize("path", FIXED)
def test_each_fixed_setting_exists(path: str) -> None:
    found: object = Viaduct()
    for name in path.split("."):
        found = getattr(found, name)
