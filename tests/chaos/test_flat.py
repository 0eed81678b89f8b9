"""Sessions that are opened and abandoned by the thousand cost what a hundred cost: memory stays flat.

Ten thousand share one child, for a process each would take minutes; five hundred have a child of their
own. Measured is the resident memory of the gateway when all sessions have ended, after the first tenth or fifth and
at the end.
"""

import asyncio
import json
from pathlib import Path
from urllib.request import Request, urlopen

from tests.chaos.test_escapees import ROOMY, SLIGHT
from tests.support.client import Client, greeting
from tests.support.gateway import TOKEN, Gateway, config, serving
from tests.support.http import Reply, bounded, connection, head, read_reply, soon
from tests.support.metrics import number, shown

CAP = 100
FLAT = 1.1
SERVER: dict[str, object] = {"command": "sh", "args": [str(SLIGHT)], "era": "legacy"}
FAST = dict.fromkeys(("rate", "burst", "ratePerPrincipal", "burstPerPrincipal"), 100_000)
SESSIONS = {"max": CAP, "maxPerPrincipal": CAP, "confirmTimeout": 0.1, **FAST}
CLIENTS = 8


class Visitor:
    """A connection on which session after session is opened, and none is ended."""

    def __init__(self, gateway: Gateway, server: str) -> None:
        self._client = Client(gateway, server)
        self.said = b""
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, message: object) -> Reply:
        if self._streams is None:
            self._streams = await connection(self._client.port)
        body = json.dumps(message).encode()
        headers = {**self._client.headers(), "Content-Length": str(len(body))}
        self._streams[1].write(head(self._client.port, "POST", self._client.path, headers) + body)
        reply = await read_reply(*self._streams)
        self.said = await reply.rest()
        return reply

    async def open(self) -> None:
        """As soon as there is room for one more."""
        self._client.session = None
        reply = await self.post(greeting())
        while reply.status == 503:
            await asyncio.sleep(0.02)
            reply = await self.post(greeting())
        assert "mcp-session-id" in reply.headers, self.said
        self._client.session = reply.headers["mcp-session-id"]

    async def use(self) -> None:
        assert (await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})).status in (202, 404)
        assert (await self.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status in (200, 404)

    async def listen(self) -> None:
        (await self._client.listen()).drop()


async def abandon(gateway: Gateway, server: str, count: int) -> None:
    """Every third is used before, and every ninth listened to."""
    numbers = iter(range(count))

    async def visit() -> None:
        visitor = Visitor(gateway, server)
        for place in numbers:
            await visitor.open()
            if place % 3 == 0:
                await visitor.use()
            if place % 9 == 0:
                await visitor.listen()

    await asyncio.gather(*(visit() for _ in range(CLIENTS)))

    async def all_ended() -> bool:
        return await number(gateway, "viaduct_sessions") == 0

    assert await soon(all_ended)


def grown(folder: Path, server: dict[str, object], idle: float, first: int, then: int) -> tuple[float, float]:
    """Memory after all sessions, as a multiple of what it was after the first of them; and how many were refused."""
    with serving(config({"s": server}, **ROOMY, sessions={**SESSIONS, "idleTimeout": idle}), folder) as gateway:
        bounded(abandon(gateway, "s", first), 60)
        early = gateway.rss()
        bounded(abandon(gateway, "s", then), 120)
        late = gateway.rss()
        print(f"{early >> 10} kB after {first} sessions, {late >> 10} kB after {first + then}")
        told = shown(metrics_of(gateway))
    assert sum(told["viaduct_sessions_opened_total"].values()) == first + then
    return late / early, sum(told.get("viaduct_refusals_total", {}).values())


def metrics_of(gateway: Gateway) -> str:
    asked = Request(f"{gateway.url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    with urlopen(asked, timeout=5) as reply:
        return str(reply.read(), "utf-8")


def test_ten_thousand_sessions_opened_and_abandoned_leave_memory_flat(tmp_path: Path) -> None:
    multiple, refused = grown(tmp_path, {**SERVER, "isolation": "shared"}, 0.1, 1000, 9000)
    assert multiple < 1.02
    assert refused > 0, "there were never as many sessions as there may be"


def test_sessions_with_children_of_their_own_leave_memory_flat(tmp_path: Path) -> None:
    assert grown(tmp_path, SERVER, 2, 100, 400)[0] < FLAT
