"""A gateway that counts: servers of different kinds, and what has been told of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.gateway import Gateway, config, entry, serving
from tests.support.http import soon
from tests.support.metrics import number, numbers

STREAMS = {"logCount": 4, "streamAfter": 0.05}


@contextmanager
def counting(folder: Path) -> Iterator[Gateway]:
    servers = {
        "stage": entry(),
        "shared": entry(isolation="shared", era="legacy", onExit="end"),
        "deaf": entry("--mode", "never_reads", "--discover", "-32601", requestTimeout=60),
        "gone": {"command": "no-such-command"},
    }
    with serving(config(servers, streams=STREAMS), folder) as gateway:
        yield gateway


async def calls(gateway: Gateway, server: str = "stage") -> dict[tuple[str, str, str], float]:
    """How many, by era, method and outcome."""
    told = (await numbers(gateway)).get("viaduct_calls_total", {})
    found = {}
    for labels, value in told.items():
        named = dict(labels)
        if named["server"] == server:
            found[named["era"], named["method"], named["outcome"]] = value
    return found


async def comes_true(gateway: Gateway, value: float, name: str, **labels: str) -> bool:
    async def claim() -> bool:
        return await number(gateway, name, **labels) == value

    return await soon(claim)
