"""A gateway through all its lives: always at one port, and always with one configuration."""

import asyncio
import json
import random
import resource
import secrets
import signal
import socket
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tests.support.gateway import Gateway, started
from tests.support.invariants import CANARY

BELOW_EPHEMERAL = range(20_000, 32_000)
"""From these no connection of a client takes its own port while the gateway is away."""
DRAIN_SECONDS = 1.0
CATCH_UP_SECONDS = 2.0
STOP_SECONDS = DRAIN_SECONDS + 6


class Host:
    """`epoch` counts what struck the gateway itself, and `kills` those strikes that left it no last word."""

    def __init__(
        self,
        name: str,
        content: dict[str, Any],
        folder: Path,
        wrong: list[str],
        *,
        has_store: bool = False,
        program: Sequence[str] = ("-m", "app"),
    ) -> None:
        self.name = name
        self.has_store = has_store
        self.epoch = 0
        self.kills = 0
        self.up = asyncio.Event()
        self.gateway: Gateway
        self._wrong = wrong
        self._program = program
        self._mark = secrets.token_hex(8)
        self.port = _free_port()
        for server in content["mcpServers"].values():
            server["env"] = {"TEST_GATEWAY": self._mark}
        path = folder / f"{name}.json"
        path.write_text(json.dumps(content))
        self._arguments: Sequence[str] = ["serve", "--port", str(self.port), str(path)]
        self._life: AbstractContextManager[Gateway]

    async def start(self) -> None:
        self._life = started(self._arguments, self._mark, self._program)
        self.gateway = await asyncio.to_thread(self._life.__enter__)
        self.up.set()

    async def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """What it leaves behind is looked at, and is wrong."""
        self.epoch += 1
        self.kills += number == signal.SIGKILL
        self.up.clear()
        began = time.monotonic()
        try:
            code = await asyncio.to_thread(self.gateway.stop, number)
            await asyncio.to_thread(self._life.__exit__, None, None, None)
        except AssertionError as left:
            self._wrong.append(f"{self.name}: {str(left)[:2000]}")
            return
        seconds = time.monotonic() - began
        if number == signal.SIGTERM and (code != 0 or seconds > STOP_SECONDS):
            self._wrong.append(f"{self.name} was asked to stop, and ended with {code} after {seconds:.1f} s")
        if CANARY in self.gateway.own_log():
            self._wrong.append(f"{self.name} logged a payload")

    async def strike(self, number: signal.Signals, pause: float) -> None:
        await self.end(number)
        await asyncio.sleep(pause)  # as long as whoever looks after it takes to notice
        await self.start()

    async def fill_disk(self, seconds: float) -> None:
        """For so long, no file of the gateway can grow. Then it has the time to make up for what it could not keep: who
        is killed before has lost it, and says so in the log."""
        pids = [self.gateway.pid]
        _limit_files(pids, 1)
        await asyncio.sleep(seconds)
        _limit_files([*pids, *self.gateway.children()], resource.RLIM_INFINITY)
        await asyncio.sleep(CATCH_UP_SECONDS)


def _limit_files(pids: list[int], size: int) -> None:
    for pid in pids:
        try:
            _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))
        except ProcessLookupError:
            continue


def _free_port() -> int:
    while True:
        port = random.choice(BELOW_EPHEMERAL)
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) != 0:
                return port
