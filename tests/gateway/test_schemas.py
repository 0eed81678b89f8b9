"""Who reads a server's tools when the child that was asked is gone, or says nothing."""

import asyncio
from typing import Any, cast

from app.core.admission import admit
from app.gateway.common import CommonChild
from app.gateway.schemas import Schemas
from app.gateway.settings import Listing
from app.protocol.faults import Exited, GatewayFault, HeaderMismatch
from app.protocol.jsonrpc import Message, Request, Result, payload
from app.protocol.stateless import Admitted
from tests.support.http import bounded
from tests.support.stateless import StatelessClient

ECHO = {"name": "echo", "inputSchema": {"properties": {"nonce": {"type": "string", "x-mcp-header": "Nonce"}}}}


class Child:
    """As much of a child as a reader of its tools needs."""

    is_modern = False

    def __init__(self) -> None:
        self.is_over = False
        self.mint = iter(range(1, 100))
        self.members: list[Any] = []
        self.asked: list[Request] = []

    def join(self, member: Any) -> int:
        self.members.append(member)
        return len(self.members)

    def leave(self, _party: int) -> None:
        self.members.clear()

    def submit(self, _party: int, message: Message) -> None:
        assert isinstance(message, Request)
        self.asked.append(message)

    def says(self, tools: list[Any]) -> None:
        self.members[-1].deliver(Result(self.asked[-1].id, payload({"tools": tools})))

    def dies(self) -> None:
        self.is_over = True
        for member in list(self.members):
            member.lost(Exited("it ended"))


def call() -> Admitted:
    client = StatelessClient(0)
    message = client.message("tools/call", {"name": "echo", "arguments": {"nonce": "n"}})
    headers = {name.lower().encode(): value.encode() for name, value in client.headers(message).items()}
    return admit(Request(1, "tools/call", payload(message["params"])), headers)


Outcomes = list[Admitted | GatewayFault]


def check(known: Schemas, child: Child, outcomes: Outcomes) -> None:
    known.check(cast("CommonChild", child), call(), {}, outcomes.append)


def test_a_child_that_ends_meanwhile_leaves_the_reading_to_who_waits_with_another() -> None:
    async def run() -> None:
        known, dead, alive = Schemas(Listing()), Child(), Child()
        first: Outcomes = []
        second: Outcomes = []
        check(known, dead, first)
        check(known, alive, second)
        assert (len(dead.asked), len(alive.asked)) == (1, 0)
        dead.dies()
        assert (first, second, len(alive.asked)) == ([], [], 1)
        alive.says([ECHO])
        assert first == []
        assert isinstance(second[0], HeaderMismatch)

    bounded(run())


def test_what_is_not_read_in_time_is_not_checked_and_read_again_later() -> None:

    async def run() -> None:
        known, child = Schemas(Listing(patience_seconds=0.05, unread_seconds=0.0)), Child()
        judged: asyncio.Future[Admitted | GatewayFault] = asyncio.get_running_loop().create_future()
        known.check(cast("CommonChild", child), call(), {}, judged.set_result)
        assert isinstance(await judged, Admitted)
        outcomes: Outcomes = []
        check(known, child, outcomes)
        child.says([ECHO])
        assert isinstance(outcomes[0], HeaderMismatch)

    bounded(run())


def test_what_changes_while_it_is_read_is_read_again() -> None:
    async def run() -> None:
        known, child = Schemas(Listing()), Child()
        outcomes: Outcomes = []
        check(known, child, outcomes)
        known.forget()
        child.says([])
        assert isinstance(outcomes[0], Admitted)
        check(known, child, outcomes)
        assert len(child.asked) == 2
        child.says([ECHO])
        assert isinstance(outcomes[1], HeaderMismatch)

    bounded(run())
