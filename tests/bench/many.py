"""What many servers behind one URL cost before anybody calls one: to read their lists, to know them, to list them.

    python -m tests.bench.many [--servers N...] [--tools N]

Each gateway is asked twice: as soon as it listens, and by new sessions once it knows all its servers.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.support.client import Client
from tests.support.gateway import Gateway, cpu_seconds, eventually, serving
from tests.support.shelves import library

SESSIONS = 21
LISTS = 100
CATALOG = {"read": "use", "listTimeout": 120}


class Row(NamedTuple):
    filled_seconds: float
    filled_cpu: float
    idle_bytes: int
    opened: float
    listed: float
    list_cpu: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=int, nargs="+", default=[2, 50])
    parser.add_argument("--tools", type=int, default=20)
    options = parser.parse_args()
    rows: dict[int, Row] = {}
    for servers in options.servers:
        content = library(servers, options.tools, catalog=CATALOG)
        with tempfile.TemporaryDirectory() as folder, serving(content, Path(folder)) as gateway:
            rows[servers] = asyncio.run(_measured(gateway, servers * options.tools))
        report(servers, rows[servers])
    few, most = min(rows), max(rows)
    if few < most:
        each = (rows[most].idle_bytes - rows[few].idle_bytes) / (most - few)
        print(f"each server beyond {few}: {each / 1024:.0f} kB, {options.tools} tools")
    return 0


async def _measured(gateway: Gateway, tools: int) -> Row:
    cpu, began = cpu_seconds(gateway.pid), time.monotonic()
    client = await Client(gateway, "/mcp").open()
    await _list(client)
    filled = time.monotonic() - began
    assert eventually(lambda: not gateway.children())
    filled_cpu, idle = cpu_seconds(gateway.pid) - cpu, gateway.rss()
    opened, listed = [], []
    for _ in range(SESSIONS):
        began = time.monotonic()
        client = await Client(gateway, "/mcp").open()
        opened.append(time.monotonic() - began)
        began = time.monotonic()
        assert await _list(client) == min(tools, 500)
        listed.append(time.monotonic() - began)
    cpu = cpu_seconds(gateway.pid)
    for _ in range(LISTS):
        await _list(client)
    list_cpu = (cpu_seconds(gateway.pid) - cpu) / LISTS
    assert not gateway.children()
    return Row(filled, filled_cpu, idle, statistics.median(opened), statistics.median(listed), list_cpu)


async def _list(client: Client) -> int:
    """How many tools are on the first page."""
    return len((await client.call("tools/list"))["result"]["tools"])


def report(servers: int, row: Row) -> None:
    print(
        f"{servers:3d} servers  known after {row.filled_seconds:5.2f} s, {row.filled_cpu:5.2f} s of CPU"
        f"  idle {row.idle_bytes / 2**20:5.1f} MB  a session opens in {row.opened * 1e3:5.1f} ms"
        f"  tools/list {row.listed * 1e3:5.1f} ms, {row.list_cpu * 1e3:5.2f} ms of CPU"
    )


if __name__ == "__main__":
    sys.exit(main())
