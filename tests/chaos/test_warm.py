"""Children that are started before anybody asks for them."""

import json
import os
import signal
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.client import Client
from tests.support.gateway import OTHER_TOKEN, TOKEN, Gateway, config, entry, eventually, serving
from tests.support.http import on_loop
from tests.support.metrics import at_rest, number
from tests.support.stateless import StatelessClient

BRISK = {"stopTimeout": 0.3, "killTimeout": 0.3}


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with serving(config({"stage": entry(**BRISK, warm=2)}, restarts={"backoff": 0.05}), tmp_path) as gateway:
        assert eventually(lambda: gateway.log.count("child started") == 2, 5)
        yield gateway


def is_full(gateway: Gateway, number: int = 2) -> bool:
    return len(gateway.children()) == number


async def received(client: Client) -> list[str]:
    return [json.loads(line)["method"] for line in json.loads(await client.tool("received"))]


@on_loop
async def test_a_session_takes_a_child_that_was_told_nothing_yet_and_another_is_started(gateway: Gateway) -> None:
    waiting = set(gateway.children())
    one = await Client(gateway).open()
    two = await Client(gateway, token=OTHER_TOKEN).open()
    assert {int(await one.tool("pid")), int(await two.tool("pid"))} == waiting
    for client in (one, two):
        assert await received(client) == ["initialize", "notifications/initialized", *["tools/call"] * 2]
    assert eventually(lambda: is_full(gateway, 4), 5)
    assert (await one.delete()).status == 204
    assert eventually(lambda: is_full(gateway, 3), 5)


@on_loop
async def test_a_stateless_request_takes_one_too(gateway: Gateway) -> None:
    waiting = set(gateway.children())
    for token in (TOKEN, OTHER_TOKEN):
        assert int(await StatelessClient(gateway, token=token).tool("pid")) in waiting


@on_loop
async def test_one_that_ends_while_it_waits_is_replaced(gateway: Gateway) -> None:
    for _ in range(3):
        waiting = set(gateway.children())
        os.kill(min(waiting), signal.SIGKILL)
        assert eventually(lambda: len(set(gateway.children()) - {min(waiting)}) == 2, 5)  # noqa: B023
    client = await Client(gateway).open()
    assert await client.tool("echo", nonce="fine") == "fine"


@on_loop
async def test_a_session_that_lost_its_child_goes_on_with_one_that_waited(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    pid = int(await client.tool("pid"))
    assert eventually(lambda: is_full(gateway, 3), 5)
    waiting = set(gateway.children()) - {pid}
    os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: "child exited" in gateway.log, 5)
    assert int(await client.tool("pid")) in waiting


def test_one_that_has_waited_for_too_long_is_replaced(tmp_path: Path) -> None:
    with serving(config({"stage": entry(**BRISK, warm=1, warmAge=0.3)}), tmp_path) as gateway:
        assert eventually(lambda: is_full(gateway, 1), 5)
        (first,) = gateway.children()
        assert eventually(lambda: gateway.children() and first not in gateway.children(), 5)


def test_a_server_that_does_not_start_is_not_started_for_ever(tmp_path: Path) -> None:
    broken = {"broken": entry("--mode", "exit_early", **BRISK, warm=2)}
    with serving(config(broken, restarts={"backoff": 0.01, "deaths": 3, "coolDown": 60}), tmp_path) as gateway:
        assert eventually(lambda: "server failed" in gateway.log, 5)
        assert eventually(lambda: is_full(gateway, 0), 5)
        starts = gateway.log.count("child started")
        assert not eventually(lambda: gateway.log.count("child started") > starts, 0.3)


def test_who_ends_again_and_again_before_anybody_comes_is_warned_of_once_and_counted(tmp_path: Path) -> None:
    """They live for longer than a start takes, so they do not count against their server."""
    brief = {"brief": {"command": "sh", "args": ["-c", "sleep 0.2; exit 4"], **BRISK, "warm": 1}}
    restarts = {"backoff": 0.01, "maxBackoff": 0.01, "deaths": 3, "window": 0.1}
    with serving(config(brief, restarts=restarts), tmp_path) as gateway:
        assert eventually(lambda: gateway.log.count("child started") > 5, 10)
        shown = at_rest(gateway)
        [starts] = shown["viaduct_child_starts_total"].values()
        [(labels, ends)] = shown["viaduct_child_ends_total"].items()
        assert dict(labels)["reason"] == "exited_before_ready"
        assert starts > 5
        assert starts - 1 <= ends <= starts
        assert gateway.log.count("warm children end again and again") == 1


@on_loop
async def test_one_that_is_taken_is_counted_once(gateway: Gateway) -> None:
    client = await Client(gateway).open()
    assert eventually(lambda: is_full(gateway, 3), 5)
    assert await number(gateway, "viaduct_child_starts_total") == 3
    assert (await client.delete()).status == 204
    assert eventually(lambda: is_full(gateway, 2), 5)
    assert await number(gateway, "viaduct_child_ends_total") == 1


def test_what_waits_goes_with_the_gateway(tmp_path: Path) -> None:
    slow = {"slow": entry("--mode", "slow_start", "--n", "60", **BRISK, warm=3), "calm": entry(**BRISK, warm=3)}
    with serving(config(slow, starts=1), tmp_path) as gateway:
        assert eventually(gateway.children, 5)
        began = time.monotonic()
        assert gateway.stop() == 0
        assert time.monotonic() - began < 4


def test_a_session_on_a_warm_child_opens_in_the_time_of_a_handshake(tmp_path: Path) -> None:
    """Measured beside a server that is the same but for being cold."""
    slow = ("--mode", "slow_start", "--n", "1")
    servers = {"warm": entry(*slow, **BRISK, warm=2), "cold": entry(*slow, **BRISK)}
    seconds: dict[str, list[float]] = {"warm": [], "cold": []}
    with serving(config(servers), tmp_path) as gateway:

        @on_loop
        async def measure() -> None:
            for _ in range(5):
                assert eventually(lambda: is_full(gateway), 10)
                assert not eventually(lambda: False, 1.2)  # what is warm has come up by then
                for server, taken in seconds.items():
                    client = Client(gateway, server)
                    began = time.monotonic()
                    await client.open()
                    taken.append(time.monotonic() - began)
                    await (await client.delete()).body()

        measure()
    medians = {server: round(1000 * statistics.median(taken), 1) for server, taken in seconds.items()}
    print("ms to open a session:", medians)
    assert medians["warm"] < 30
    assert medians["cold"] > 900
