"""What strikes while clients are at work: children, and one of the two gateways itself."""

import asyncio
import os
import random
import signal
from collections.abc import Callable
from contextlib import suppress

from tests.chaos.soaking.history import History
from tests.chaos.soaking.hosts import Host

CHILD_STRIKES = {"child killed": signal.SIGKILL, "child stopped": signal.SIGSTOP, "child terminated": signal.SIGTERM}
GATEWAY_STRIKES = {"gateway killed": signal.SIGKILL, "gateway stopped": signal.SIGTERM}
BETWEEN = (0.5, 2.0)


class Striker:
    """`spared` are processes that nothing strikes."""

    def __init__(self, enduring: Host, mortal: Host, spared: set[int], history: History, chance: random.Random) -> None:
        self._enduring = enduring
        self._mortal = mortal
        self._spared = spared
        self._history = history
        self._chance = chance
        self._at_gateway: asyncio.Task[None] | None = None

    async def run(self, until: float) -> None:
        """Each strike at a gateway is over before the next begins, and children are struck meanwhile."""
        loop = asyncio.get_running_loop()
        while loop.time() < until:
            await asyncio.sleep(self._chance.uniform(*BETWEEN))
            self._strike(self._chance.random())
            if self._at_gateway is not None and self._at_gateway.done():
                self._at_gateway = self._at_gateway.result()
        if self._at_gateway is not None:
            await self._at_gateway

    def _strike(self, chance: float) -> None:
        if chance < 0.6 or self._at_gateway is not None:
            self._strike_child()
        elif chance < 0.9 or not self._mortal.has_store:
            kind = self._chance.choice(list(GATEWAY_STRIKES))
            self._history.faults[kind] += 1
            work = self._mortal.strike(GATEWAY_STRIKES[kind], self._chance.random() / 2)
            self._at_gateway = asyncio.create_task(work)
        else:
            self._history.faults["disk full"] += 1
            self._at_gateway = asyncio.create_task(self._mortal.fill_disk(self._chance.random()))

    def _strike_child(self) -> None:
        host = self._chance.choice([self._enduring, self._mortal])
        kind = self._chance.choice(list(CHILD_STRIKES))
        targets = sorted(set(host.gateway.children()) - self._spared)
        if targets:
            self._history.faults[kind] += 1
            _signal(self._chance.choice(targets), CHILD_STRIKES[kind])


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def wake(children: Callable[[], list[int]], spared: set[int]) -> None:
    """Whoever is still halted goes on."""
    for pid in set(children()) - spared:
        _signal(pid, signal.SIGCONT)


def kill(children: Callable[[], list[int]], spared: set[int]) -> None:
    for pid in set(children()) - spared:
        _signal(pid, signal.SIGKILL)
