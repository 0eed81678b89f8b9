"""Static tokens, an issuer that signs and one that is asked, under a clock that the test sets."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

from app.auth.authentication import Authentication, Keeping
from app.auth.claims import Expected, spellings
from app.auth.jwks import KeySet, Patience
from app.auth.jwt import JwtRules, JwtVerifier
from app.auth.outbound import Fetched
from app.auth.principal import Principal
from app.auth.tokens import Entry, StaticTokens, hash_of
from app.auth.verdicts import BadToken, CannotVerify
from tests.support.issuer import AUDIENCE, ISSUER, KEY, claims, compact, header

NOW = 1_800_000_000.0
STATIC = "vdt_static"
KEEPING = Keeping(signed=300, introspected=60, refused=10, count_max=4, interval=0.005)


class Asked:
    """An issuer that knows some tokens."""

    def __init__(self) -> None:
        self.known: dict[str, Principal] = {"opaque": Principal("eve", frozenset({"read"}), None, "https://other")}
        self.count = 0
        self.welcomed: list[bool] = []
        self.gate: asyncio.Event | None = None
        self.wrong: Exception | None = None

    async def verify(self, token: str, *, is_known: bool) -> Principal:
        self.count += 1
        self.welcomed.append(is_known)
        if self.gate is not None:
            await self.gate.wait()
        if self.wrong is not None:
            raise self.wrong
        if token not in self.known:
            raise BadToken("inactive")
        return self.known[token]


class World:
    def __init__(self, *, introspects: bool = True) -> None:
        self.now = NOW
        self.listed = [KEY.jwk()]
        self.fetched = 0
        self.asked = Asked()
        self.static = StaticTokens(
            [Entry("laptop", hash_of(STATIC)), Entry("guest", hash_of("guest"), expires_at=NOW + 100)], lambda: self.now
        )
        keys = KeySet(ISSUER, ("RS256",), self.fetch, Patience(), lambda: self.now)
        rules = JwtRules(Expected(ISSUER, spellings([AUDIENCE]), leeway=0))
        self.verifier = JwtVerifier(rules, keys, lambda: self.now)
        self.all = Authentication(
            self.static, [self.verifier], self.asked if introspects else None, KEEPING, None, lambda: self.now
        )

    async def fetch(self) -> Fetched:
        self.fetched += 1
        return Fetched(200, json.dumps({"keys": self.listed}).encode())

    async def outcome(self, token: str) -> str:
        try:
            return (await self.all.ask(token)).name
        except BadToken as bad:
            return bad.cause
        except CannotVerify:
            return "cannot"

    def signed(self, **more: Any) -> str:
        return compact(header(), claims(NOW, **more))


async def known(world: World, token: str) -> bool:
    return world.all.find(token) is not None


async def asked_again(world: World) -> bool:
    """And whoever asked has heard the answer."""
    return world.asked.count > 1


async def told(principal: Principal) -> str:
    """How its term ends."""
    end: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    principal.term.watch(end.set_result)
    async with asyncio.timeout(5):
        return await end


def in_world(test: Callable[[World], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        async def bounded() -> None:
            world = World()
            async with asyncio.timeout(10):
                await test(world)
            world.all.stop()

        asyncio.run(bounded())

    run.__name__ = test.__name__
    return run
