"""The long run: clients at work while something strikes every moment, and a history that must make sense.

It takes VIADUCT_SOAK_SECONDS (8 where nothing is said) and repeats VIADUCT_SOAK_SEED where that is given.
"""

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import Client, called
from tests.support.gateway import OTHER_TOKEN, TOKEN, Gateway, config, entry, eventually, serving
from tests.support.http import Reply, bounded
from tests.support.invariants import undisturbed
from tests.support.watching import standing_by

SECONDS = float(os.environ.get("VIADUCT_SOAK_SECONDS", "8"))
SEED = int(os.environ.get("VIADUCT_SOAK_SEED", random.randrange(1 << 30)))
HASTY = {
    "startTimeout": 2.0,
    "requestTimeout": 1.5,
    "maxRequestTimeout": 3,
    "pingTimeout": 0.4,
    "stopTimeout": 0.3,
    "killTimeout": 0.3,
}
PATIENCE = HASTY["maxRequestTimeout"]
BROKEN = (OSError, EOFError, asyncio.IncompleteReadError)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    servers = {"calm": entry(stopTimeout=0.5), "struck": entry(**HASTY), "shared": entry(**HASTY, isolation="shared")}
    content = config(servers, sessions={"idleTimeout": 2}, streams={"keepAlive": 0.3, "logCount": 50})
    with serving(content, tmp_path_factory.mktemp("soak")) as gateway:
        yield gateway


@dataclass
class History:
    """Of each nonce that was to be executed, what its client was told: `result`, `no`, `unknown` or nothing."""

    told: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)


class Worker:
    def __init__(self, gateway: Gateway, name: str, file: Path, history: History, chance: random.Random) -> None:
        self._gateway = gateway
        self._name = name
        self._file = file
        self._history = history
        self._chance = chance
        self._count = 0

    async def run(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < until:
            server, token = (
                self._chance.choice(["struck", "struck", "shared"]),
                self._chance.choice([TOKEN, OTHER_TOKEN]),
            )
            client = Client(self._gateway, server, token)
            with suppress(AssertionError, *BROKEN):
                await client.open()
                while client.version and loop.time() < until:
                    await asyncio.gather(*(self._act(client) for _ in range(self._chance.randint(1, 4))))
                    if self._chance.random() < 0.1:
                        break
            if client.session and self._chance.random() < 0.7:
                await (await client.delete()).body()

    async def _act(self, client: Client) -> None:
        self._count += 1
        nonce = f"{self._name}/{self._count}"
        match self._chance.choice(["incr", "incr", "echo", "sleep", "log", "swallow", "progress"]):
            case "incr":
                self._history.told[nonce] = ""
                params = called("incr", file=str(self._file), nonce=nonce)
            case "sleep":
                params = called("sleep", seconds=self._chance.random() / 2, nonce=nonce)
            case "log":
                params = called("log", n=self._chance.randint(1, 200), tag=nonce)
            case "swallow":
                params = called("swallow")
            case "progress":
                params = {**called("progress", n=5, interval=0.05), "_meta": {"progressToken": nonce}}
            case _:
                params = called("echo", nonce=nonce)
        reply = await client.ask("tools/call", params, ident=1)
        await self._hear(client, reply, params["name"], nonce)

    async def _hear(self, client: Client, reply: Reply, tool: str, nonce: str) -> None:
        """To its end, or not; or with a break, and on another connection."""
        resumed: str | None = None
        if reply.is_stream and self._chance.random() < 0.3:
            resumed = (await reply.next_event()).id
            reply.drop()
            if self._chance.random() < 0.5:
                return
            reply = await client.listen(resumed)
        if reply.status == 404:
            client.version = None
            reply.drop()
            return
        try:
            async with asyncio.timeout(3 * PATIENCE):
                self._judge(tool, nonce, await client.settle(reply, 1))
        except (AssertionError, TimeoutError) as never:
            self._history.wrong.append(f"{tool} {nonce}: {resumed or 'not resumed'}, {never!r}")

    def _judge(self, tool: str, nonce: str, answer: Any) -> None:
        history = self._history
        if "result" in answer:
            said = answer["result"]["content"][0]["text"]
            if tool in ("incr", "echo", "sleep") and said != nonce:
                history.wrong.append(f"{nonce} was answered {said}")
            outcome = "result"
        else:
            outcome = str(answer["error"]["data"]["executed"])
        history.outcomes[f"{tool}: {outcome}"] += 1
        if tool == "incr":
            history.told[nonce] = outcome


async def strike(gateway: Gateway, spared: set[int], chance: random.Random, until: float) -> None:
    loop = asyncio.get_running_loop()
    while loop.time() < until:
        await asyncio.sleep(chance.uniform(0.2, 0.8))
        targets = sorted(set(gateway.children()) - spared)
        if targets:
            with suppress(ProcessLookupError):
                os.kill(chance.choice(targets), chance.choice([signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM]))


def test_whatever_strikes_the_history_makes_sense(gateway: Gateway, tmp_path: Path) -> None:
    print(f"VIADUCT_SOAK_SEED={SEED}")
    history, file, chance = History(), tmp_path / "executed", random.Random(SEED)
    file.touch()

    async def work(spared: set[int]) -> None:
        until = asyncio.get_running_loop().time() + SECONDS
        workers = [Worker(gateway, f"w{number}", file, history, random.Random(chance.random())) for number in range(6)]
        await asyncio.gather(*(worker.run(until) for worker in workers), strike(gateway, spared, chance, until))

    with standing_by(gateway) as bystander:
        spared = set(gateway.children())
        with undisturbed(gateway, bystander, 10):
            bounded(work(spared), SECONDS + 60)
            for pid in set(gateway.children()) - spared:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            assert eventually(lambda: len(set(gateway.children()) - spared) <= 1, 15), "sessions did not end"
            for pid in set(gateway.children()) - spared:
                os.kill(pid, signal.SIGKILL)
    print(dict(sorted(history.outcomes.items())))
    executed = Counter(file.read_text().split())
    assert history.wrong == []
    assert max(executed.values()) == 1
    assert [nonce for nonce, told in history.told.items() if told == "result" and nonce not in executed] == []
    assert [nonce for nonce, told in history.told.items() if told == "no" and nonce in executed] == []
    assert sum(history.outcomes.values()) > 50, history.outcomes
