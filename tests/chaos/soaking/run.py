"""One soak: two gateways, of which one is never struck itself and so shows whether anything grows."""

import asyncio
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from tests.chaos.soaking.history import History
from tests.chaos.soaking.hosts import DRAIN_SECONDS, Host
from tests.chaos.soaking.legacy import LegacyWorker
from tests.chaos.soaking.modern import ModernWorker
from tests.chaos.soaking.striking import Striker, kill, wake
from tests.chaos.soaking.working import HASTY, Worker
from tests.support.gateway import config, entry, eventually, stateless_entry
from tests.support.http import bounded
from tests.support.invariants import undisturbed
from tests.support.metrics import at_rest
from tests.support.watching import Bystander, standing_by

WORKERS = {"enduring": (3, 3), "mortal": (3, 2)}
"""Of the handshake era, and stateless ones."""
WARM_SECONDS = 300.0
"""From then on memory must not grow by more than this; a run that is shorter than twice that only tells it."""
GROWTH = 1.10
SAMPLE_SECONDS = 5.0
AFTERWARDS = 60.0
"""What the last answers, and the ends of what was left, may take beyond the time."""


@dataclass
class Soak:
    """`store` is the setting of the gateway that is struck; `memory` means that its sessions end with it."""

    seconds: float
    seed: int
    folder: Path
    store: str = "memory"
    program: Sequence[str] = ("-m", "app")
    history: History = field(default_factory=History)
    rss: list[tuple[float, int]] = field(default_factory=list)

    def run(self) -> dict[str, Any]:
        """Everything that there is to say of it; `violations` must be empty."""
        print(f"VIADUCT_SOAK_SEED={self.seed}", flush=True)
        self._chance = random.Random(self.seed)
        self._file = self.folder / "executed"
        self._file.touch()
        began = time.monotonic()
        bounded(self._both(), self.seconds + 3 * AFTERWARDS)
        violations = self.history.judged(self._file) + self._growth()
        return self._summary(violations, time.monotonic() - began)

    async def _both(self) -> None:
        enduring = self._host("enduring", _content(idle=2))
        mortal = self._host("mortal", _content(idle=10, store=self.store), has_store=self.store != "memory")
        for host in (enduring, mortal):
            await host.start()
        try:
            await asyncio.to_thread(self._watched, enduring, mortal, asyncio.get_running_loop())
        finally:
            for host in (mortal, enduring):
                await host.end()

    def _host(self, name: str, content: dict[str, Any], *, has_store: bool = False) -> Host:
        return Host(name, content, self.folder, self.history.wrong, has_store=has_store, program=self.program)

    def _watched(self, enduring: Host, mortal: Host, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread of its own, for the look at what is left waits."""
        with standing_by(enduring.gateway) as bystander:
            try:
                self._look(enduring, mortal, bystander, loop)
            except AssertionError as left:
                self.history.wrong.append(f"enduring: {str(left)[:2000]}")

    def _look(self, enduring: Host, mortal: Host, bystander: Bystander, loop: asyncio.AbstractEventLoop) -> None:
        children = enduring.gateway.children
        spared = set(children())
        with undisturbed(enduring.gateway, bystander, 15, memory=128 << 20):
            asyncio.run_coroutine_threadsafe(self._work(enduring, mortal, spared), loop).result()
            wake(children, spared)
            assert eventually(lambda: _sessions(enduring) == 1, 20), "sessions did not end"
            # The child that all shared stays, and comes again while there is anybody who shares it.
            assert eventually(lambda: len(set(children()) - spared) <= 1, 20), "children outlived their sessions"
            kill(children, spared)

    async def _work(self, enduring: Host, mortal: Host, spared: set[int]) -> None:
        until = asyncio.get_running_loop().time() + self.seconds
        striker = Striker(enduring, mortal, spared, self.history, random.Random(self._chance.random()))
        workers = [*self._workers(enduring), *self._workers(mortal)]
        sampling = asyncio.create_task(self._sample(enduring))
        try:
            await asyncio.gather(*(worker.run(until) for worker in workers), striker.run(until))
        finally:
            sampling.cancel()

    def _workers(self, host: Host) -> list[Worker]:
        legacy, modern = WORKERS[host.name]
        kinds: list[type[Worker]] = [*[LegacyWorker] * legacy, *[ModernWorker] * modern]
        return [
            kind(host, f"{host.name}{number}", self._file, self.history, random.Random(self._chance.random()))
            for number, kind in enumerate(kinds)
        ]

    async def _sample(self, host: Host) -> None:
        began = time.monotonic()
        while True:
            self.rss.append((time.monotonic() - began, host.gateway.rss()))
            await asyncio.sleep(SAMPLE_SECONDS)

    def _memory(self) -> tuple[int, int] | None:
        """Bytes once it was warm, and at the end, each in the middle of a minute; None where it was too short."""
        if self.seconds < 120:
            return None
        since = min(WARM_SECONDS, self.seconds / 2)
        warm = [size for at, size in self.rss if since <= at < since + 60]
        return int(median(warm)), int(median([size for _, size in self.rss][-12:]))

    def _growth(self) -> list[str]:
        memory = self._memory()
        if memory is None or self.seconds < 2 * WARM_SECONDS or memory[1] <= GROWTH * memory[0]:
            return []
        return [f"memory grew from {memory[0]} to {memory[1]} bytes"]

    def _summary(self, violations: list[str], seconds: float) -> dict[str, Any]:
        history, memory = self.history, self._memory()
        return {
            "seed": self.seed,
            "seconds": round(seconds),
            "store": self.store.partition(":")[0],
            "operations": sum(history.operations.values()),
            "faults": sum(history.faults.values()),
            "by_operation": dict(sorted(history.operations.items())),
            "by_outcome": dict(sorted(history.outcomes.items())),
            "by_fault": dict(sorted(history.faults.items())),
            "rss_mib": [round(size / (1 << 20), 1) for size in memory or ()],
            "violations": len(violations),
            "first_violations": violations[:20],
        }


def _sessions(host: Host) -> float:
    return sum(at_rest(host.gateway)["viaduct_sessions"].values())


def _content(idle: float, store: str = "memory") -> dict[str, Any]:
    hasty: dict[str, object] = {**HASTY}
    servers = {
        "calm": entry(stopTimeout=0.5),
        "struck": entry(**hasty),
        "shared": entry(**hasty, isolation="shared"),
        "modern": stateless_entry(**hasty),
    }
    return config(
        servers,
        sessions={"idleTimeout": idle},
        streams={"keepAlive": 0.3, "logCount": 400},
        stateless={"idleTimeout": 1, "parkTimeout": 2},
        restarts={"backoff": 0.05, "maxBackoff": 0.5, "deaths": 1000},
        drain=DRAIN_SECONDS,
        **({} if store == "memory" else {"store": store}),
    )


def shown(summary: dict[str, Any]) -> str:
    """One line to be pasted into a document."""
    return json.dumps(summary, ensure_ascii=False)
