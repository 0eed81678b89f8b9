"""A child that no signal ends, as one that hangs in the kernel: its session ends all the same, and others go on."""

import os
import signal
import time
from collections.abc import Iterator

import pytest

from tests.chaos.planting import program
from tests.support.client import Client, called
from tests.support.gateway import Gateway, config, entry, eventually, serving, stateless_entry
from tests.support.http import on_loop
from tests.support.metrics import number
from tests.support.stateless import CALL, StatelessClient

PLANT = """
    import os, signal
    from app.upstreams import proc
    killpg, send = os.killpg, signal.pidfd_send_signal
    def is_stuck(pid):
        return proc.variable(pid, b"STUCK") is not None
    os.killpg = lambda pid, number: None if is_stuck(pid) else killpg(pid, number)
    def sent(handle, *rest):
        told = open(f"/proc/self/fdinfo/{handle}").read()
        pid = int(told.rpartition("Pid:")[2].split()[0])
        return None if is_stuck(pid) else send(handle, *rest)
    signal.pidfd_send_signal = sent
"""
BRISK = {"stopTimeout": 0.2, "killTimeout": 0.2, "giveUpTimeout": 0.4}
STUCK = {**BRISK, "env": {"STUCK": "1"}}


@pytest.fixture
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """When it ends, the kernel does what it could not."""
    servers = {
        "calm": entry(**BRISK),
        "stuck": entry("--mode", "ignores_all", requestTimeout=0.4, **STUCK),
        "modern": stateless_entry("--mode", "ignores_eof", requestTimeout=0.4, **STUCK),
    }
    content = config(servers, stateless={"maxChildren": 2, "idleTimeout": 0.2})
    with serving(content, tmp_path_factory.mktemp("unkillable"), program=program(PLANT)) as gateway:
        yield gateway


def alarms(gateway: Gateway) -> int:
    return gateway.log.count("child would not die")


@on_loop
async def test_its_session_ends_others_go_on_and_there_is_an_alarm(gateway: Gateway) -> None:
    others, client = await Client(gateway, "calm").open(), await Client(gateway, "stuck").open()
    pid = int(await client.tool("pid"))
    assert (await client.delete()).status == 204
    assert await client.status() == 404
    assert eventually(lambda: alarms(gateway) == 1, 3)
    assert pid in gateway.children()
    assert await number(gateway, "viaduct_sessions", server="stuck") == 0
    assert await others.tool("echo", nonce="others") == "others"
    assert int(await (await Client(gateway, "stuck").open()).tool("pid")) != pid
    os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: not os.path.exists(f"/proc/{pid}"), 3), "nobody read its status"


@pytest.mark.parametrize("server", ["stuck", "modern"])
@on_loop
async def test_stateless_calls_are_served_by_another(gateway: Gateway, server: str) -> None:
    client = StatelessClient(gateway, server)
    pid = int(await client.tool("pid"))
    assert (await client.call(CALL, called("swallow")))["error"]["code"] == -31003
    assert eventually(lambda: alarms(gateway) >= 1, 4)
    assert int(await client.tool("pid")) != pid


@on_loop
async def test_it_does_not_keep_the_gateway(gateway: Gateway) -> None:
    await Client(gateway, "stuck").open()
    began = time.monotonic()
    assert gateway.stop() == 0
    assert time.monotonic() - began < 8
    assert alarms(gateway) == 1
    assert eventually(lambda: not gateway.children(), 1)
