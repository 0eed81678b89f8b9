"""The wall clock jumps: what is timed goes on as if nothing were, and what is dated follows it."""

import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.chaos.planting import program
from tests.support.client import Client, called
from tests.support.gateway import OTHER_TOKEN, TOKEN, Gateway, config, entry, serving, stateless_entry
from tests.support.http import on_loop, request
from tests.support.metrics import at_rest
from tests.support.stateless import StatelessClient, answers, said

CALL = "tools/call"
HOUR = 3600
JUMPS = pytest.mark.parametrize("jump", [HOUR, -HOUR])
BRISK = {"stopTimeout": 0.3, "killTimeout": 0.3}


class Clock:
    """The gateway's wall clock, which may be off by some seconds."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.jump(0)

    def jump(self, seconds: float) -> None:
        self.file.write_text(str(seconds))


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path / "clock")


@pytest.fixture
def gateway(tmp_path: Path, clock: Clock) -> Iterator[Gateway]:
    """The other token ends in half an hour."""
    plant = f"""
        import time
        right = time.time
        def jumping():
            with open({str(clock.file)!r}) as file:
                return right() + float(file.read() or 0)
        time.time = jumping
    """
    servers = {
        "stage": entry(**BRISK, requestTimeout=1),
        "modern": stateless_entry(**BRISK),
        "backing": entry("--mode", "crash_on_initialized", **BRISK),
    }
    content = config(servers, sessions={"idleTimeout": 30, "confirmTimeout": 30}, restarts={"backoff": 0.1})
    half_an_hour = datetime.now(UTC) + timedelta(seconds=HOUR / 2)
    content["viaduct"]["auth"]["tokens"][1]["expires"] = half_an_hour.isoformat()
    with serving(content, tmp_path, program=program(plant)) as gateway:
        yield gateway


@JUMPS
@on_loop
async def test_nothing_that_is_timed_ends_sooner_or_later_when_the_clock_jumps(
    gateway: Gateway, clock: Clock, jump: int
) -> None:
    client, modern = await Client(gateway).open(), StatelessClient(gateway)
    asks = await modern.asked("interview", rounds=[["form"]], nonce="parked")
    stream = await client.listen()
    began = time.monotonic()
    sleeping = await client.ask(CALL, called("sleep", seconds=0.6, nonce="slept"), ident="s")
    endless = await client.ask(CALL, called("swallow"), ident="e")
    clock.jump(jump)
    assert (await client.settle(sleeping, "s"))["result"]["content"][0]["text"] == "slept"
    assert (await client.settle(endless, "e"))["error"]["code"] == -31003
    assert 0.9 < time.monotonic() - began < 3
    answer = await modern.retry(asks, answers(asks), "interview", rounds=[["form"]], nonce="parked")
    assert json.loads(said(answer))["nonce"] == "parked"
    assert await client.status() == 200
    await client.tool("changed", what="tools")
    assert (await stream.next_message())["method"] == "notifications/tools/list_changed"


@JUMPS
@on_loop
async def test_a_child_is_started_again_in_time_when_the_clock_jumps(gateway: Gateway, clock: Clock, jump: int) -> None:
    client = await Client(gateway).open()
    began = time.monotonic()
    clock.jump(jump)
    await client.call(CALL, called("die"))
    assert await client.tool("echo", nonce="again") == "again"
    assert time.monotonic() - began < 5


@JUMPS
@on_loop
async def test_no_age_is_negative_when_the_clock_jumps(gateway: Gateway, clock: Clock, jump: int) -> None:
    client = await Client(gateway).open()
    running = await client.ask(CALL, called("sleep", seconds=0.3), ident=1)
    clock.jump(jump)
    await client.settle(running, 1)
    await (await Client(gateway, "modern").open()).tool("pid")
    told = at_rest(gateway)
    times = [value for name, values in told.items() if name.startswith("viaduct_") for value in values.values()]
    assert min(times) >= 0
    assert sum(told["viaduct_call_seconds_sum"].values()) < 30
    assert sum(told["viaduct_child_start_seconds_sum"].values()) < 30
    ready = await (await request(gateway.port, "GET", "/readyz", token=None)).body()
    assert not re.search(r":\s*-\d", ready.decode()), ready
    assert not re.search(r"=-\d", gateway.log), gateway.log


@on_loop
async def test_a_token_ends_by_the_clock_and_is_good_again_when_that_goes_back(gateway: Gateway, clock: Clock) -> None:
    client, other = await Client(gateway).open(), await Client(gateway, token=OTHER_TOKEN).open()
    for jump, status in ((0, 200), (HOUR, 401), (-HOUR, 200), (HOUR, 401), (0, 200)):
        clock.jump(jump)
        reply = await other.ask("ping")
        await reply.body()
        assert (reply.status, await client.status()) == (status, 200), jump
    assert TOKEN not in gateway.log
