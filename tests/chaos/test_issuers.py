"""Issuers that are down, slow or change their keys, and those who would keep the gateway busy with bad tokens."""

import asyncio
import itertools
import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import Client
from tests.support.gateway import Gateway, config, entry, serving
from tests.support.http import ACCEPT, Reply, connection, head, on_loop, read_reply, soon
from tests.support.issuer import KEY, OTHER_KEY, Issuer, RsaKey, compact, header, issuing
from tests.support.reloading import reloaded

PUBLIC = "https://mcp.example.com"
PATH = "/servers/calm/mcp"
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
JWKS = "/jwks"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with issuing() as running:
        yield running


def content(issuer: Issuer, *servers: str) -> dict[str, Any]:
    settings = config({name: entry(stopTimeout=0.5) for name in ("calm", *servers)}, publicUrl=PUBLIC)
    jwt = {"issuer": issuer.url, "jwksUri": f"{issuer.url}{JWKS}"}
    settings["viaduct"]["auth"] |= {"jwt": [jwt], "jwks": {"cooldown": 0.5, "ttl": 60}}
    settings["viaduct"]["outbound"] = {"allow": ["127.0.0.0/8"], "timeout": 0.5}
    return settings


@pytest.fixture
def gateway(issuer: Issuer, tmp_path: Path) -> Iterator[Gateway]:
    with serving(content(issuer), tmp_path) as gateway:
        yield gateway


class Line:
    """A connection that is used again and again."""

    def __init__(self, gateway: Gateway) -> None:
        self.port = gateway.port
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]

    async def open(self) -> "Line":
        self.streams = await connection(self.port)
        return self

    async def ping(self, token: str) -> Reply:
        fields = {"Content-Type": "application/json", "Accept": ACCEPT, "Content-Length": str(len(PING))}
        reader, writer = self.streams
        writer.write(head(self.port, "POST", PATH, fields, token) + PING)
        reply = await read_reply(reader, writer)
        await reply.rest()
        return reply


_serial = itertools.count()


def fresh(issuer: Issuer, key: RsaKey = KEY, **more: Any) -> str:
    """One that was never seen before, of one and the same principal."""
    return issuer.token(key, aud=PUBLIC, jti=str(next(_serial)), **more)


async def status(gateway: Gateway, token: str) -> int:
    return await Client(gateway, "calm", token).status()


@on_loop
async def test_an_issuer_that_was_never_reached_makes_nobody_throw_a_token_away(
    gateway: Gateway, issuer: Issuer
) -> None:
    issuer.status = 500
    reply = await Client(gateway, "calm", fresh(issuer)).ask("ping")
    assert (reply.status, (await reply.json())["error"]["data"]["reason"]) == (503, "auth_unavailable")
    assert int(reply.headers["retry-after"]) >= 1
    assert "www-authenticate" not in reply.headers
    assert await status(gateway, "no-jwt") == 401
    issuer.status = 200
    seen = []

    async def is_known() -> bool:
        seen.append(await status(gateway, fresh(issuer)))
        return seen[-1] == 200

    assert await soon(is_known, 5)
    assert set(seen) <= {503, 200}


@pytest.mark.parametrize("fault", ["error", "hangs", "nonsense"])
@on_loop
async def test_while_an_issuer_is_down_its_known_keys_still_admit(gateway: Gateway, issuer: Issuer, fault: str) -> None:
    assert await status(gateway, fresh(issuer)) == 200
    if fault == "error":
        issuer.status = 500
    elif fault == "hangs":
        issuer.hold.clear()
    else:
        issuer.raw = b"<html>"
    assert await status(gateway, fresh(issuer)) == 200
    assert await status(gateway, compact(header(kid="new"), issuer.claims(aud=PUBLIC), OTHER_KEY)) == 401
    assert await status(gateway, fresh(issuer)) == 200


@on_loop
async def test_while_an_issuer_is_down_another_configuration_still_admits_by_its_known_keys(
    gateway: Gateway, issuer: Issuer
) -> None:
    token = fresh(issuer)
    assert await status(gateway, token) == 200
    issuer.status = 500
    await reloaded(gateway, content(issuer, "added"))
    assert await status(gateway, token) == 200
    assert await status(gateway, fresh(issuer)) == 200


@pytest.mark.parametrize("was_admitted", [True, False])
@on_loop
async def test_a_token_that_is_being_verified_is_judged_by_the_configuration_that_comes_meanwhile(
    issuer: Issuer, tmp_path: Path, was_admitted: bool
) -> None:
    before, after = content(issuer), content(issuer, "added")
    for settings in (before, after):
        settings["viaduct"] |= {"watchInterval": 0.05}
        settings["viaduct"]["outbound"]["timeout"] = 10
    if not was_admitted:
        before["viaduct"]["auth"]["jwt"][0]["audience"] = "https://elsewhere.example.com"
    with serving(before, tmp_path) as gateway:
        issuer.hold.clear()
        asking = asyncio.create_task(status(gateway, fresh(issuer)))

        async def is_asked() -> bool:
            return bool(issuer.asked)

        assert await soon(is_asked)
        await reloaded(gateway, after)
        issuer.hold.set()
        assert await asking == 200


@on_loop
async def test_keys_change_under_load_and_nobody_is_refused(gateway: Gateway, issuer: Issuer) -> None:
    statuses: list[int] = []
    key, is_over = KEY, False

    async def load() -> None:
        line = await Line(gateway).open()
        while not is_over:
            statuses.append((await line.ping(fresh(issuer, key))).status)

    clients = [asyncio.ensure_future(load()) for _ in range(8)]

    async def so_many(count: int) -> None:
        wanted = len(statuses) + count

        async def are_served() -> bool:
            return len(statuses) >= wanted

        assert await soon(are_served)

    await so_many(200)
    issuer.keys, key = [KEY.jwk(), OTHER_KEY.jwk()], OTHER_KEY
    await so_many(200)
    issuer.keys = [OTHER_KEY.jwk()]
    await so_many(200)
    is_over = True
    await asyncio.gather(*clients)
    assert set(statuses) == {200}
    assert issuer.asked == [JWKS] * 2


@pytest.mark.slow
@on_loop
async def test_a_flood_of_unknown_keys_is_refused_cheaply_and_good_tokens_do_not_notice(
    gateway: Gateway, issuer: Issuer
) -> None:
    payload = issuer.claims(aud=PUBLIC)
    bad = [compact(header(kid=f"unknown-{number}"), payload) for number in range(5000)]
    good = await Line(gateway).open()
    assert (await good.ping(fresh(issuer))).status == 200
    numbers = iter(range(5000))
    refused: list[int] = []

    async def flood() -> None:
        line = await Line(gateway).open()
        for number in numbers:
            reply = await line.ping(bad[number])
            refused.append(reply.status)

    flooding = [asyncio.ensure_future(flood()) for _ in range(4)]
    delays = []
    while len(refused) < 5000:
        began = time.monotonic()
        assert (await good.ping(fresh(issuer))).status == 200
        delays.append(time.monotonic() - began)
    await asyncio.gather(*flooding)
    assert set(refused) == {401}
    assert statistics.quantiles(delays, n=100)[98] < 0.05
    assert len(issuer.asked) < 30


@on_loop
async def test_causes_of_401_cannot_be_told_apart_by_the_time_they_take(gateway: Gateway, issuer: Issuer) -> None:
    now = int(time.time())
    tokens = {
        "malformed": "a.b.c",
        "expired": issuer.token(aud=PUBLIC, exp=now - 60),
        "audience": issuer.token(aud="https://staging.example.com"),
        "issuer": issuer.token(iss="https://other.example"),
        "key": compact(header(), issuer.claims(aud=PUBLIC), OTHER_KEY),
        "unknown": "opaque",
    }
    line = await Line(gateway).open()
    await line.ping(fresh(issuer))
    medians, bodies = {}, set()
    for name, token in tokens.items():
        delays = []
        for _ in range(20):
            began = time.monotonic()
            reply = await line.ping(token)
            delays.append(time.monotonic() - began)
            bodies.add((reply.status, json.dumps(sorted(reply.headers.items() - {("date", reply.headers["date"])}))))
        medians[name] = statistics.median(delays)
    assert len(bodies) == 1
    assert max(medians.values()) - min(medians.values()) < 0.005, medians
