"""What is waited for before a server is left for good, and how often that is looked at."""

import asyncio
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from app.gateway.leaving import Leaving, Left
from app.gateway.settings import GatewaySettings, UpstreamSettings
from app.gateway.sites import Sites
from app.gateway.supervisor import Supervisor
from app.protocol.methods import CALL_TOOL
from app.upstreams.command import Command
from tests.support.http import on_loop

KEPT, REMOVED = (UpstreamSettings(name, Command(("true",))) for name in ("kept", "removed"))


def none() -> Supervisor:
    raise AssertionError


class Sessions(dict[str, Any]):
    """None; and how often somebody looked for some."""

    looks = 0

    def values(self) -> Any:
        self.looks += 1
        return super().values()


class Exchanges:
    def __init__(self) -> None:
        self.all: set[Any] = set()
        self.parked: list[Any] = []
        self.on_end: set[Callable[[Any], object]] = set()

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self.all))

    def begin(self, upstream: UpstreamSettings) -> Any:
        asked = SimpleNamespace(upstream=upstream, request=SimpleNamespace(method=CALL_TOOL))
        exchange = Exchange(asked)
        self.all.add(exchange)
        return exchange

    async def end(self, exchange: Any) -> None:
        self.all.discard(exchange)
        for told in list(self.on_end):
            told(exchange)
        await asyncio.sleep(0)


class Exchange:
    is_busy = True

    def __init__(self, asked: Any) -> None:
        self.asked = asked


@on_loop
async def test_what_ends_at_other_servers_is_no_reason_to_look_at_every_session_again() -> None:
    sites, sessions, exchanges, gone = Sites(GatewaySettings((KEPT, REMOVED)), none), Sessions(), Exchanges(), []
    kept, removed = sites.upstreams["kept"], sites.upstreams["removed"]
    joints: Any = SimpleNamespace(members_at=lambda _site: [])
    whatever: Any = exchanges
    leaving = Leaving(sites, sessions, whatever, gone.append, joints)
    call = exchanges.begin(removed)
    site: Left = sites.succeed(GatewaySettings((KEPT,)))[1][0]
    seen_off = asyncio.create_task(leaving.see_off(site, 5))
    await asyncio.sleep(0)
    looks = sessions.looks
    for _ in range(10):
        await exchanges.end(exchanges.begin(kept))
    assert sessions.looks == looks
    await exchanges.end(call)
    await seen_off
    assert gone == [site]
