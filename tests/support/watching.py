"""Somebody else's session while a fault strikes: a steady beat of calls and of health checks, each of them timed.

A process of its own, so that a busy test delays nothing here: `python -m tests.support.watching PORT SERVER`. It says
`ready`; between a line `begin` and a line `end` it beats, and then says what it saw, as JSON.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections import deque
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

from tests.support.client import Client
from tests.support.gateway import OTHER_TOKEN, PATIENCE, ROOT, Gateway
from tests.support.http import close_all, request

BEAT = 0.025
LIMIT = 0.2
SWITCHES = 2.0
"""A call changes between processes twice as often as an echo does."""


@dataclass
class Sight:
    """Delays are in seconds, less what the machine itself needed at the same time."""

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
    command = [sys.executable, "-m", "tests.support.watching", str(gateway.port), server]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        bystander = Bystander(process)
        assert bystander._hear() == "ready\n"
        yield bystander
        assert process.stdin is not None
        process.stdin.close()
        process.wait(2 * PATIENCE)


class Machine:
    """How long the machine itself takes now to wake another process and hear from it: `cat`, and nothing of ours."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._waiting: deque[asyncio.Future[float]] = deque()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls) -> "Machine":
        pipe = asyncio.subprocess.PIPE
        return cls(await asyncio.create_subprocess_exec("cat", stdin=pipe, stdout=pipe))

    async def beat(self) -> float:
        assert self._process.stdin is not None
        answered: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting.append(answered)
        began = time.monotonic()
        self._process.stdin.write(b"\n")
        return await answered - began

    async def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._reading
        await self._process.wait()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while await self._process.stdout.read(1):
            self._waiting.popleft().set_result(time.monotonic())


class Watch:
    def __init__(self, client: Client, machine: Machine) -> None:
        self._client = client
        self._machine = machine
        self._sight = Sight()

    async def run(self, ended: asyncio.Event) -> Sight:
        """Beats do not wait for each other."""
        self._sight = Sight()
        beats: list[asyncio.Task[None]] = []
        while not ended.is_set():
            beats.append(asyncio.create_task(self._beat(len(beats))))
            await asyncio.sleep(BEAT)
        _, unanswered = await asyncio.wait(beats, timeout=PATIENCE)
        self._sight.wrong += [f"{len(unanswered)} beats were never answered"] if unanswered else []
        return self._sight

    async def _beat(self, number: int) -> None:
        work = self._healthy() if number % 4 == 3 else self._echo(f"beat {number}")
        own, machines = await asyncio.gather(self._timed(work, number), self._machine.beat())
        self._sight.delays.append(own - SWITCHES * machines)

    async def _timed(self, work: Awaitable[None], number: int) -> float:
        began = time.monotonic()
        try:
            await work
        except (AssertionError, OSError, ValueError, KeyError, EOFError, TimeoutError) as broken:
            self._sight.wrong.append(f"beat {number}: {broken!r}")
        return time.monotonic() - began

    async def _echo(self, nonce: str) -> None:
        params = {"name": "echo", "arguments": {"nonce": nonce}}
        answer = await self._client.settle(await self._client.ask("tools/call", params, ident=1), 1)
        assert answer["result"]["content"][0]["text"] == nonce, answer

    async def _healthy(self) -> None:
        reply = await request(self._client.port, "GET", "/healthz", token=None)
        assert reply.status == 200, reply.status
        await reply.body()


async def _watch(port: int, server: str) -> None:
    words = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(words), sys.stdin)
    client, machine = await Client(port, server, OTHER_TOKEN).open(), await Machine.start()
    watch = Watch(client, machine)
    print("ready", flush=True)
    while await words.readline():
        ended = asyncio.Event()
        running = asyncio.create_task(watch.run(ended))
        await words.readline()
        ended.set()
        print(json.dumps(asdict(await running)), flush=True)
    await machine.stop()
    await (await client.delete()).body()
    await close_all()


if __name__ == "__main__":
    asyncio.run(_watch(int(sys.argv[1]), sys.argv[2]))
