"""A client at work: one call after another, heard out or not, and everything that it is told is judged."""

import asyncio
import json
import random
import socket
import struct
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.soaking.history import History
from tests.chaos.soaking.hosts import Host
from tests.support.client import called
from tests.support.gateway import OTHER_TOKEN, TOKEN
from tests.support.http import Event, Reply, connection, head, request
from tests.support.invariants import CANARY

HASTY = {
    "startTimeout": 4.0,
    "requestTimeout": 1.5,
    "maxRequestTimeout": 3,
    "pingTimeout": 0.4,
    "stopTimeout": 0.3,
    "killTimeout": 0.3,
}
OUTCOME_SECONDS = 30.0
"""Every call has one by then: its deadlines, the starts that it may wait for, and the gateway's own."""
BROKEN = (OSError, EOFError, asyncio.IncompleteReadError)
CALL = "tools/call"
TOOLS = {"incr": 8, "echo": 5, "sleep": 3, "flood": 3, "progress": 3, "interview": 3, "swallow": 1}
"""Each with how often it is chosen, of all together."""
HABITS = {"patient": 65, "slow": 5, "vanishes": 6, "drops": 6, "resets": 6, "closes its half": 4, "resumes": 8}
REFUSED = "refused"


@dataclass
class Call:
    """`prefix` is what all nonces of its client begin with; `epoch` and `kills` are its gateway's when it was asked."""

    tool: str
    nonce: str
    prefix: str
    params: dict[str, Any]
    epoch: int
    kills: int
    habit: str
    progress: int = 0
    last: str | None = None
    """The newest event id,"""
    seen: set[str] = field(default_factory=set)
    """and all of them."""


class Worker(ABC):
    """`era` is that of the client."""

    era: str

    def __init__(self, host: Host, name: str, file: Path, history: History, chance: random.Random) -> None:
        self.host = host
        self.name = name
        self.history = history
        self.chance = chance
        self._file = file
        self._count = 0
        self._client_count = 0

    async def run(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < until:
            await self.host.up.wait()
            self._client_count += 1
            server = self.chance.choice(["struck", "struck", "shared", "modern", "modern"])
            token = self.chance.choice([TOKEN, OTHER_TOKEN])
            try:
                await self.serve_time(server, token, until)
            except BROKEN as broken:
                self._excuse(f"a connection to {self.host.name} broke: {broken!r}", self._epoch_before)
            if not self.host.up.is_set():
                await self.host.up.wait()

    @abstractmethod
    async def serve_time(self, server: str, token: str, until: float) -> None:
        """As one client, for a while."""

    @abstractmethod
    def message(self, call: Call) -> tuple[str, str, dict[str, str], dict[str, Any]]:
        """Path, token, headers and body of its request, which has the id 1."""

    @abstractmethod
    async def resume(self, call: Call) -> Reply | None:
        """Its stream on another connection; None where that cannot be."""

    @abstractmethod
    async def asked(self, call: Call, message: dict[str, Any]) -> bool:
        """Whether the message asks something, which is then answered."""

    def wrong(self, sentence: str) -> None:
        self.history.wrong.append(f"{self.name}: {sentence}")

    # One call.

    def compose(self) -> Call:
        self._count += 1
        self._epoch_before = self.host.epoch
        prefix = f"{CANARY}/{self.name}/{self._client_count}/"
        nonce, tool, habit = f"{prefix}{self._count}", self._any_of(TOOLS), self._any_of(HABITS)
        call = Call(tool, nonce, prefix, self._params(tool, nonce), self.host.epoch, self.host.kills, habit)
        self.history.operations[f"{self.era} {tool}"] += 1
        if habit != "patient":
            self.history.faults[f"client {habit}"] += 1
        if tool == "incr":
            self.history.told[nonce] = ""
        return call

    def _any_of(self, weights: dict[str, int]) -> str:
        return self.chance.choices(list(weights), list(weights.values()))[0]

    def _params(self, tool: str, nonce: str) -> dict[str, Any]:
        match tool:
            case "incr":
                return called("incr", file=str(self._file), nonce=nonce)
            case "sleep":
                return called("sleep", seconds=self.chance.random() / 2, nonce=nonce)
            case "flood":
                return called("log", level="error", n=self.chance.randint(1, 300), tag=nonce)
            case "progress":
                return called("progress", n=self.chance.randint(1, 8), interval=0.05, nonce=nonce)
            case "interview":
                return called("interview", rounds=[["form"], ["form"]][: self.chance.randint(1, 2)], nonce=nonce)
            case _:
                return called(tool, nonce=nonce)

    async def act(self) -> str:
        """One call, and what became of it."""
        call = self.compose()
        try:
            async with asyncio.timeout(OUTCOME_SECONDS):
                outcome = await self._asked_and_heard(call)
        except TimeoutError:
            self.wrong(f"{call.tool} {call.nonce} ({call.habit}) had no outcome in time")
            outcome = "none"
        self.history.outcomes[f"{call.tool}: {outcome}"] += 1
        if call.tool == "incr" and outcome in ("result", "no", "unknown", REFUSED):
            self.history.told[call.nonce] = "no" if outcome == REFUSED else outcome
        return outcome

    async def _asked_and_heard(self, call: Call) -> str:
        path, token, headers, body = self.message(call)
        data, port = json.dumps(body).encode(), self.host.port
        try:
            if call.habit == "vanishes":
                await self._vanish(head(port, "POST", path, _sized(headers, data), token) + data)
                return "left"
            small = 4096 if call.habit == "slow" else None
            reply = await request(port, "POST", path, headers, data, token, receive_buffer=small)
        except BROKEN as broken:
            return self._lost(call, f"no response: {broken!r}", needs_kill=False)
        return await self._heard(call, reply)

    async def _vanish(self, data: bytes) -> None:
        reader, writer = await connection(self.host.port)
        writer.write(data)
        await writer.drain()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.chance.random() / 5):
                await reader.read(1)
        writer.transport.abort()

    async def _heard(self, call: Call, reply: Reply) -> str:
        if not reply.is_stream:
            try:
                return await self._settled(call, await reply.json(), reply.status)
            except BROKEN as broken:
                return self._lost(call, f"half an answer: {broken!r}", needs_kill=True)
        if call.habit == "slow":
            await asyncio.sleep(self.chance.random())
        if call.habit in ("drops", "resets", "closes its half"):
            return await self._leave(call, reply)
        while True:
            try:
                if call.habit == "resumes":
                    await self._broken_off(call, reply)
                return await self._heard_out(call, reply)
            except BROKEN as broken:
                was_mine, call.habit = call.habit == "resumes", "patient"
                resumed = await self.resume(call)
                if resumed is None:
                    return "left" if was_mine else self._lost(call, f"the stream broke: {broken!r}", needs_kill=True)
                reply = resumed

    async def _leave(self, call: Call, reply: Reply) -> str:
        sock = reply.writer.get_extra_info("socket")
        if call.habit == "closes its half":
            sock.shutdown(socket.SHUT_WR)
            with suppress(*BROKEN):
                await reply.anything(2 * OUTCOME_SECONDS)
        if call.habit == "resets":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        reply.drop()
        return "left"

    async def _broken_off(self, call: Call, reply: Reply) -> None:
        """After the first event.

        Raises:
            EOFError: always.
        """
        await self._noted(call, await reply.next_event())
        reply.drop()
        raise EOFError("broken off")

    async def _heard_out(self, call: Call, reply: Reply) -> str:
        while True:
            outcome = await self._noted(call, await reply.anything(2 * OUTCOME_SECONDS))
            if outcome:
                await self._no_more(call, reply)
                return outcome

    async def _no_more(self, call: Call, reply: Reply) -> None:
        """Exactly one outcome, and then the end."""
        with suppress(*BROKEN):
            while (event := await reply.anything(2 * OUTCOME_SECONDS)).comment is not None:
                pass
            self.wrong(f"{call.tool} {call.nonce} was told more after its answer: {event.data[:200]}")
        reply.drop()

    async def _noted(self, call: Call, event: Event) -> str:
        """What an event says of the call: its outcome, or nothing yet."""
        if event.id is not None:
            if event.id in call.seen:
                self.wrong(f"event {event.id} came twice to {call.nonce}")
            call.seen.add(event.id)
            call.last = event.id
        if event.comment is not None or not event.data:
            return ""
        message = event.message
        if "method" in message:
            await self._overheard(call, message)
            return ""
        return await self._settled(call, message, 200)

    async def _overheard(self, call: Call, message: dict[str, Any]) -> None:
        params = message.get("params") or {}
        match message["method"]:
            case "notifications/progress":
                if params["progressToken"] != call.nonce or params["progress"] <= call.progress:
                    self.wrong(f"{call.nonce} after progress {call.progress} was told {params}")
                call.progress = params["progress"]
            case "notifications/message":
                data = params["data"]
                tag = data["tag"] if isinstance(data, dict) else data
                if not tag.startswith(call.prefix):
                    self.wrong(f"{call.nonce} heard the log of {tag}")
            case method if not await self.asked(call, message) and not method.startswith("notifications/"):
                self.wrong(f"{call.nonce} heard {message}")

    async def _settled(self, call: Call, message: dict[str, Any], status: int) -> str:
        if status != 200:
            return self._refused(call, message, status)
        if message.get("id") != 1:
            self.wrong(f"{call.nonce} was told of another call: {message}")
        if "error" in message:
            data = message["error"].get("data") or {}
            if data.get("source") != "gateway" or data.get("executed") not in ("no", "unknown"):
                self.wrong(f"{call.tool} {call.nonce} failed with {message['error']}")
            return str(data.get("executed"))
        if await self.asked(call, message):
            return "asked"
        said = message["result"]["content"][0]["text"]
        expected = {"flood": "logged", "interview": said if call.nonce in said else ""}.get(call.tool, call.nonce)
        if said != expected:
            self.wrong(f"{call.tool} {call.nonce} was answered {said}")
        return "result"

    def _refused(self, call: Call, message: dict[str, Any], status: int) -> str:
        if status not in (404, 429, 503) or "error" not in message:
            self.wrong(f"{call.tool} {call.nonce} was refused with {status}: {message}")
        self.history.outcomes[f"{REFUSED} {status}"] += 1
        return REFUSED

    # The gateway's own end.

    def _lost(self, call: Call, how: str, *, needs_kill: bool) -> str:
        """No outcome for who did not break off: only the end of the gateway excuses that, and once it had begun to
        answer only an end without warning."""
        if needs_kill:
            if self.host.kills == call.kills:
                self.wrong(f"{call.tool} {call.nonce} was never answered: {how}")
        else:
            self._excuse(f"{call.tool} {call.nonce}: {how}", call.epoch)
        return "lost"

    def _excuse(self, sentence: str, epoch: int) -> None:
        if not self._was_struck(epoch):
            self.wrong(sentence)

    def _was_struck(self, epoch: int) -> bool:
        """Whether the gateway itself was, since then."""
        return self.host.epoch != epoch or not self.host.up.is_set()


def _sized(headers: dict[str, str], body: bytes) -> dict[str, str]:
    return {**headers, "Content-Length": str(len(body))}
