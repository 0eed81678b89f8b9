"""Somebody else's session while a fault strikes: a steady beat of calls and of health checks, each of them timed."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Awaitable

from tests.support.client import Client
from tests.support.gateway import OTHER_TOKEN, PATIENCE, Gateway
from tests.support.http import Reply, bounded, request

BEAT = 0.025
LIMIT = 0.2
SWITCHES = 2.0
"""A call changes between processes twice as often as an echo does."""


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


class Bystander:
    """In a thread with a loop of its own, so that a busy test delays nothing here. Beats do not wait for each other."""

    def __init__(self, gateway: Gateway, server: str = "calm") -> None:
        self.delays: list[float] = []
        """In seconds, less what the machine needed at the same time."""
        self.wrong: list[str] = []
        self._gateway = gateway
        self._server = server
        self._ready = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: bounded(self._run()), daemon=True)

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(PATIENCE), "the bystander could not open a session"

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(2 * PATIENCE)
        assert not self._thread.is_alive(), "the bystander was left without an answer"

    def check(self) -> None:
        """One slow beat in a hundred is borne, and one in all."""
        assert not self.wrong, self.wrong[:5]
        assert self.delays, "the bystander never got an answer"
        slow = sorted(delay for delay in self.delays if delay > LIMIT)
        assert len(slow) <= max(1, len(self.delays) // 100), f"{len(slow)} of {len(self.delays)} were late: {slow[-5:]}"

    async def _run(self) -> None:
        client = await Client(self._gateway, self._server, OTHER_TOKEN).open()
        machine = await Machine.start()
        self._ready.set()
        beats: set[asyncio.Task[None]] = set()
        number = 0
        while not self._stop.is_set():
            number += 1
            beats.add(asyncio.create_task(self._beat(client, machine, number)))
            await asyncio.sleep(BEAT)
        await asyncio.wait(beats, timeout=PATIENCE)
        await machine.stop()
        await _closed(await client.delete())

    async def _beat(self, client: Client, machine: Machine, number: int) -> None:
        work = self._healthy() if number % 4 == 0 else self._echo(client, f"beat {number}")
        own, machines = await asyncio.gather(self._timed(work, number), machine.beat())
        self.delays.append(own - SWITCHES * machines)

    async def _timed(self, work: Awaitable[None], number: int) -> float:
        began = time.monotonic()
        try:
            await work
        except (AssertionError, OSError, ValueError, KeyError, EOFError, TimeoutError) as broken:
            self.wrong.append(f"beat {number}: {broken!r}")
        return time.monotonic() - began

    async def _echo(self, client: Client, nonce: str) -> None:
        params = {"name": "echo", "arguments": {"nonce": nonce}}
        answer = await client.settle(await client.ask("tools/call", params, ident=1), 1)
        assert answer["result"]["content"][0]["text"] == nonce, answer

    async def _healthy(self) -> None:
        reply = await request(self._gateway.port, "GET", "/healthz", token=None)
        assert reply.status == 200, reply.status
        await _closed(reply)


async def _closed(reply: Reply) -> None:
    await reply.body()
    await reply.writer.wait_closed()
