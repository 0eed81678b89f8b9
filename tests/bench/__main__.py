"""Viaduct beside its yardsticks, interleaved on one machine: calls a second, latency and CPU per call.

    python -m tests.bench [--seconds N] [--rounds N] [--smoke]

The other rows are calls to the same gateway and the same kind of child. Stateless ones are of clients of 2026-07-28: to
a child that several requests share, and to one that a request has to itself, for its client may be asked back. One of
five is a call in a session with five servers that are one. Their share of CPU is of Viaduct's own for a call in a
session.

Compare ratios of one run only. `--smoke` is short and judges nothing but that every answer is right.
"""

import argparse
import asyncio
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.bench import load
from tests.support.client import Client
from tests.support.gateway import ROOT, TOKEN, config, cpu_seconds, entry, serving, stage
from tests.support.http import bounded
from tests.support.shelves import shelf

CONNECTIONS = (1, 16, 64)
CHILDREN = 16
"""How many a gateway starts for clients that may be asked back."""
MODERN = "2026-07-28"
OURS = "viaduct"
JOINED, SHARED, ALONE = RELATED = ("one of five", "stateless, shared child", "stateless, child alone")
OTHERS = ("atlas", "beacon", "cellar", "dock")


class Target(NamedTuple):
    pid: int
    port: int
    headers: dict[str, str]
    call: bytes = load.CALL
    path: str = "/mcp"

    async def run(self, connections, seconds):
        return await load.run(self.port, self.headers, self.call, connections, seconds, self.path)


@contextlib.contextmanager
def yardstick(kind):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, str(ROOT / "tests/bench/yardsticks.py"), kind, str(port), "--", *stage()]
    process = subprocess.Popen(command)
    try:
        for _ in range(500):
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                break
            process.poll()
            os.sched_yield()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.02)
        yield Target(process.pid, port, {})
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def viaduct():
    others = {name: shelf(name, *(f"{name}_{number}" for number in range(20))) for name in OTHERS}
    servers = config({"stage": entry(), **others})
    with tempfile.TemporaryDirectory() as folder, serving(servers, Path(folder)) as gateway:
        alone, joined = Client(gateway), Client(gateway, "/mcp")
        bounded(alone.open())
        bounded(joined.open())
        plain = {"Authorization": f"Bearer {TOKEN}", "Accept": "*/*"}
        stateless = plain | {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "echo"}

        def target(headers, call, path=alone.path):
            return Target(gateway.pid, gateway.port, headers, call, path)

        yield {
            OURS: target(plain | {"Mcp-Session-Id": alone.session}, load.CALL),
            JOINED: target(plain | {"Mcp-Session-Id": joined.session}, load.JOINED_CALL, joined.path),
            SHARED: target(stateless, stateless_call({})),
            ALONE: target(stateless, stateless_call({"elicitation": {}})),
        }


def stateless_call(capabilities):
    carried = {"protocolVersion": MODERN, "clientInfo": {"name": "bench", "version": "1"}}
    carried["clientCapabilities"] = capabilities
    meta = {f"io.modelcontextprotocol/{key}": value for key, value in carried.items()}
    params = {"name": "echo", "arguments": {"nonce": "n"}, "_meta": meta}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    seconds, rounds = (0.3, 1) if options.smoke else (options.seconds, options.rounds)
    with contextlib.ExitStack() as stack:
        targets = {
            "bare uvicorn": stack.enter_context(yardstick("bare")),
            "least bridge": stack.enter_context(yardstick("bridge")),
            **stack.enter_context(viaduct()),
        }
        for target in targets.values():  # Their children are warm from now on.
            asyncio.run(target.run(CHILDREN, 0.1))
        wrong = measure(targets, seconds, rounds)
    print(f"bench: {'every answer was right' if not wrong else f'{wrong} answers were wrong'}")
    return 1 if wrong else 0


def measure(targets, seconds, rounds):
    wrong = 0
    for connections in CONNECTIONS:
        rows = {name: [] for name in targets}
        for _ in range(rounds):
            for name, target in targets.items():
                before = cpu_seconds(target.pid)
                row = asyncio.run(target.run(connections, seconds))
                row["cpu_us"] = (cpu_seconds(target.pid) - before) / row["calls"] * 1e6
                rows[name].append(row)
                wrong += row["wrong"]
        report(connections, rows)
    return wrong


def report(connections, rows):
    base = statistics.median(row["rps"] for row in rows["least bridge"])
    ours = statistics.median(row["cpu_us"] for row in rows[OURS])
    for name, of_target in rows.items():
        middle = {key: statistics.median(row[key] for row in of_target) for key in of_target[0]}
        share = f" ({middle['cpu_us'] / ours:4.2f} of {OURS})" if name in RELATED and ours else ""
        print(
            f"{connections:3d} connections  {name:23s} {middle['rps']:8.0f} calls/s ({middle['rps'] / base:4.2f} of the"
            f" bridge)  p50 {middle['p50_us']:6.0f} us  p99 {middle['p99_us']:6.0f} us"
            f"  cpu {middle['cpu_us']:4.0f} us{share}"
        )


if __name__ == "__main__":
    sys.exit(main())
