"""Somebody else's session while a fault strikes: a steady beat of calls and of health checks, each of them timed.

A process of its own, so that a busy test delays nothing here: `python -m tests.support.watching PORT PID SERVER`.
It says `ready`; between a line `begin` and a line `end` it beats, and then says what it saw, as JSON.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.support.client import Client
from tests.support.gateway import OTHER_TOKEN, PATIENCE, ROOT, Gateway
from tests.support.http import close_all, request

BEAT = 0.025
LIMIT = 0.2


@dataclass
class Sight:
    """Delays are in seconds, less what the machine kept the processes waiting."""

    delays: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def check(self) -> None:
        """One slow beat in a hundred is borne, and one in all."""
        assert not self.wrong, self.wrong[:5]
        assert self.delays, "the bystander never got an answer"
        slow = sorted(delay for delay in self.delays if delay > LIMIT)
        assert len(slow) <= max(1, len(self.delays) // 100), f"{len(slow)} of {len(self.delays)} were late: {slow[-5:]}"


class Bystander:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def begin(self) -> None:
        self._say("begin")

    def end(self) -> Sight:
        self._say("end")
        return Sight(**json.loads(self._hear()))

    def _say(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()

    def _hear(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the bystander has died"
        return line


@contextmanager
def standing_by(gateway: Gateway, server: str = "calm") -> Iterator[Bystander]:
    command = [sys.executable, "-m", "tests.support.watching", str(gateway.port), str(gateway.pid), server]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        bystander = Bystander(process)
        assert bystander._hear() == "ready\n"
        yield bystander
        assert process.stdin is not None
        process.stdin.close()
        process.wait(2 * PATIENCE)


class Machine:
    """How long these processes, each ready to run, had to wait for a processor: the machine's fault, not theirs."""

    def __init__(self, pids: list[int]) -> None:
        self._pids = pids

    def waited(self) -> float:
        return sum(map(_waited, self._pids))


def _waited(pid: int) -> float:
    """Seconds since it began; 0 where the kernel does not tell."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


class Watch:
    def __init__(self, client: Client, machine: Machine) -> None:
        self._client = client
        self._machine = machine
        self._sight = Sight()

    async def run(self, ended: asyncio.Event) -> Sight:
        """Beats do not wait for each other."""
        self._sight = Sight()
        beats: list[asyncio.Task[None]] = []
        while not (beats and ended.is_set()):
            beats.append(asyncio.create_task(self._beat(len(beats))))
            await asyncio.sleep(BEAT)
        _, unanswered = await asyncio.wait(beats, timeout=PATIENCE)
        self._sight.wrong += [f"{len(unanswered)} beats were never answered"] if unanswered else []
        return self._sight

    async def _beat(self, number: int) -> None:
        work = self._healthy() if number % 4 == 3 else self._echo(f"beat {number}")
        began, waited = time.monotonic(), self._machine.waited()
        try:
            await work
        except (AssertionError, OSError, ValueError, KeyError, EOFError, TimeoutError) as broken:
            self._sight.wrong.append(f"beat {number}: {broken!r}")
        self._sight.delays.append(time.monotonic() - began - (self._machine.waited() - waited))

    async def _echo(self, nonce: str) -> None:
        params = {"name": "echo", "arguments": {"nonce": nonce}}
        answer = await self._client.settle(await self._client.ask("tools/call", params, ident=1), 1)
        assert answer["result"]["content"][0]["text"] == nonce, answer

    async def _healthy(self) -> None:
        reply = await request(self._client.port, "GET", "/healthz", token=None)
        assert reply.status == 200, reply.status
        await reply.body()


async def _watch(port: int, gateway: int, server: str) -> None:
    words = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(words), sys.stdin)
    client = await Client(port, server, OTHER_TOKEN).open()
    watch = Watch(client, Machine([gateway, int(await client.tool("pid")), os.getpid()]))
    print("ready", flush=True)
    while await words.readline():
        ended = asyncio.Event()
        running = asyncio.create_task(watch.run(ended))
        await words.readline()
        ended.set()
        print(json.dumps(asdict(await running)), flush=True)
    await (await client.delete()).body()
    await close_all()


if __name__ == "__main__":
    asyncio.run(_watch(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
