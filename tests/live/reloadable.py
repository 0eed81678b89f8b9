"""A gateway whose configuration is another now and then, and what is asked of it."""

import asyncio
import copy
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.client import Client, called
from tests.support.gateway import TOKEN, Gateway, config, entry, stateless_entry
from tests.support.http import request
from tests.support.reloading import reloaded

QUICK: dict[str, Any] = {"stopTimeout": 0.3, "killTimeout": 0.3}
CONTENT = config(
    {
        "stage": entry(**QUICK),
        "calm": entry(**QUICK),
        "common": entry(isolation="shared", **QUICK),
        "stateless": stateless_entry(**QUICK),
        "warm": entry(warm=1, **QUICK),
    },
    watchInterval=0.05,
    drain=3,
    streams={"retry": 0.05, "keepAlive": 0.2},
    logLevel="info",
)
CONTENT["viaduct"]["auth"]["checkInterval"] = 0.05


def other(**servers: Any) -> dict[str, Any]:
    """The same with other servers; None is without that one."""
    content = copy.deepcopy(CONTENT)
    content["mcpServers"] |= servers
    content["mcpServers"] = {name: server for name, server in content["mcpServers"].items() if server is not None}
    return content


def renewed(revision: int = 1, **settings: Any) -> dict[str, Any]:
    return entry(**QUICK, **settings) | {"env": {"REVISION": str(revision)}}


@contextmanager
def as_it_was(running: Gateway) -> Iterator[Gateway]:
    """At first, before and after; and nothing is left of what was in between."""
    yield running
    asyncio.run(reloaded(running, other(mark=entry(**QUICK))))
    asyncio.run(reloaded(running, CONTENT))


async def status(gateway: Gateway, path: str, token: str = TOKEN) -> int:
    reply = await request(gateway.port, "GET", path, token=token)
    reply.close()
    return reply.status


async def environment(client: Client) -> dict[str, str]:
    answer = await client.call("tools/call", called("env"))
    told: dict[str, str] = json.loads(answer["result"]["content"][0]["text"])
    return told
