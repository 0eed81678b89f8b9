"""Children that are none: they keep what they are sent, and say what a test wants."""

import asyncio
from collections.abc import Callable, Iterator
from itertools import count
from typing import cast

from msgspec import Raw

from app.gateway.common import CommonChild, Member
from app.gateway.settings import UpstreamSettings
from app.protocol.faults import GatewayFault
from app.protocol.jsonrpc import Message, Request, Result
from app.upstreams.command import Command
from tests.core.inventories import raw

GREETING = raw({"capabilities": {"tools": {}, "prompts": {}}, "instructions": "Ask."})


def upstream(name: str = "a", isolation: str = "session") -> UpstreamSettings:
    return UpstreamSettings(name, Command(("none",)), "shared" if isolation == "shared" else "session")


class FakeChild:
    """As a `CommonChild`, ready from the start unless it says otherwise."""

    def __init__(self, greeting: Raw = GREETING, *, is_modern: bool = False, is_ready: bool = True) -> None:
        self.mint: Iterator[int] = count(1)
        self.is_modern = is_modern
        self.is_ready = is_ready
        self.greeted = greeting if is_ready else None
        self.sent: list[Message] = []
        self.held: list[Message] = []
        """What it asked before anybody held it."""
        self.member: Member | None = None
        self.is_closed = False
        self.is_asked = asyncio.Event()
        self.on_submit: Callable[[Message], object] = lambda _message: None
        self._greeting = greeting

    def asked(self) -> list[str]:
        """The methods of the requests that it got."""
        return [message.method for message in self.sent if isinstance(message, Request)]

    def starts(self) -> None:
        self.is_ready, self.greeted = True, self._greeting
        assert self.member is not None
        self.member.ready()

    def says(self, message: Message) -> None:
        if self.member is not None:
            self.member.deliver(message)

    def lists(self, **names: str) -> None:
        """Each list that it was asked for, of the names that it has there, and nothing for others."""
        for request in list(self.sent):
            if isinstance(request, Request) and request.method.endswith("/list"):
                key = request.method.partition("/")[0]
                entries = [{"name": name} for name in names.get(key, "").split()]
                self.says(Result(request.id, raw({key: entries})))

    def is_lost(self, fault: GatewayFault) -> None:
        member, self.member = self.member, None
        if member is not None:
            member.lost(fault)

    # As a child.

    def join(self, member: Member) -> int:
        self.member = member
        return 1

    def leave(self, _party: int) -> None:
        self.member = None

    def submit(self, _party: int, message: Message) -> None:
        self.sent.append(message)
        self.is_asked.set()
        self.on_submit(message)

    def hold(self, _party: int) -> list[Message]:
        return self.held

    def close(self) -> None:
        self.is_closed = True


class Starting:
    """Gives one child after another, or raises what is in a child's place."""

    def __init__(self, *given: FakeChild | GatewayFault) -> None:
        self.asked: list[str] = []
        self.given = list(given)

    def __call__(self, upstream: UpstreamSettings) -> CommonChild:
        self.asked.append(upstream.name)
        child = self.given.pop(0)
        if isinstance(child, GatewayFault):
            raise child
        return cast("CommonChild", child)  # It has all of it that is used.


async def past(seconds: float) -> None:
    """When every timer that was set for so long has rung."""
    rung = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds + 0.01, rung.set)
    await rung.wait()
