"""A setting that is read reaches whoever it is for."""

from collections.abc import Iterator

import pytest
from pydantic import BaseModel

from app.asgi import create_app
from app.cli.serving import _http, _uvicorn
from app.config import Config
from app.config.loading import open_logs
from app.config.tree import Limits, Restarts, Server, ServerLimits, Sessions, Stateless, Streams
from tests.config.conftest import TIME, Loading


def numbers(model: type[BaseModel]) -> Iterator[tuple[str, float]]:
    """Every deadline, cap and interval of a block, with its default."""
    for name, field in model.model_fields.items():
        if type(field.default) in (int, float) or field.default is None:
            yield field.alias or name, field.default or 0


def composed(config: Config) -> str:
    """All that is built of a configuration, as text."""
    app, wire = create_app(config), _uvicorn(config)
    return repr(
        (app.gateway.settings, app._settings, vars(_http(config, app.tally))["limits"], wire.timeout_keep_alive)
    )


ELSEWHERE = {"logRate", "memory"}
"""Tried below."""

BLOCKS: dict[str, type[BaseModel]] = {
    "sessions": Sessions,
    "streams": Streams,
    "limits": Limits,
    "stateless": Stateless,
    "restarts": Restarts,
}
SETTINGS = [
    (block, name, value) for block, model in BLOCKS.items() for name, value in numbers(model) if name not in ELSEWHERE
]


@pytest.mark.parametrize(("block", "name", "value"), SETTINGS, ids=[f"{block}.{name}" for block, name, _ in SETTINGS])
def test_each_number_of_the_viaduct_block_changes_what_is_built(
    loading: Loading, block: str, name: str, value: float
) -> None:
    no_auth = {"VIADUCT_NO_AUTH": "1"}
    changed = loading(viaduct={block: {name: value + 1}}, environ=no_auth)
    assert composed(changed) != composed(loading(environ=no_auth))


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, value in numbers(Server) if name != "cwd"])
def test_each_number_of_a_server_changes_what_is_built(loading: Loading, name: str, value: float) -> None:
    changed = loading({"time": {**TIME, name: value + 1}}, environ={"VIADUCT_NO_AUTH": "1"})
    assert composed(changed) != composed(loading(environ={"VIADUCT_NO_AUTH": "1"}))


LIMITS = {"memory": 1 << 28, "processes": 64, "cpuTime": 60, "openFiles": 256}


def test_the_limits_of_a_server_are_these() -> None:
    assert set(LIMITS) == {name for name, _ in numbers(ServerLimits)}


@pytest.mark.parametrize("name", LIMITS)
def test_each_limit_of_a_server_reaches_its_children(loading: Loading, name: str) -> None:
    config = loading({"time": {**TIME, "limits": {name: LIMITS[name]}}}, environ={"VIADUCT_NO_AUTH": "1"})
    upstream = create_app(config).gateway.upstreams["time"]
    assert list(upstream.command.allowance.asked().values()) == [LIMITS[name]]


def test_the_gateway_has_as_much_memory_as_is_said(loading: Loading) -> None:
    config = loading(viaduct={"limits": {"memory": 1 << 30}}, environ={"VIADUCT_NO_AUTH": "1"})
    assert create_app(config).gateway.settings.supervisor.room.memory_bytes == 1 << 30


def test_as_many_children_start_at_once_as_is_said(loading: Loading) -> None:
    settings = create_app(loading(viaduct={"starts": 7}, environ={"VIADUCT_NO_AUTH": "1"})).gateway.settings
    assert settings.supervisor.starts_max == 7


def test_connections_have_as_long_to_close_as_is_said(loading: Loading) -> None:
    assert _uvicorn(loading(viaduct={"closeTimeout": 0.25})).timeout_graceful_shutdown == 0.25


def test_the_log_has_the_rate_that_is_said(loading: Loading, monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, object] = {}
    monkeypatch.setattr("app.telemetry.logs.configure", lambda *_, **settings: told.update(settings))
    open_logs(loading(viaduct={"limits": {"logRate": 7}}))
    assert told == {"rate": 7}
