"""When an issuer's keys are fetched, and what happens while they cannot be."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from app.auth.jwks import KeySet, Patience, usable
from app.auth.outbound import Fetched, FetchFailed
from app.auth.verdicts import BadToken, CannotVerify
from tests.support.issuer import KEY, OTHER_KEY, Json

PATIENCE = Patience(ttl=600, cooldown=30, stale_max=86_400)


class Keys:
    """An issuer's JWKS by a clock of its own."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.listed: list[Json] = [KEY.jwk()]
        self.is_down = False
        self.cache_control = ""
        self.count = 0
        self.gate: asyncio.Event | None = None
        self.set = KeySet("issuer", ("RS256",), self.fetch, PATIENCE, lambda: self.now)

    async def fetch(self) -> Fetched:
        self.count += 1
        if self.gate is not None:
            await self.gate.wait()
        if self.is_down:
            raise FetchFailed("down")
        return Fetched(200, json.dumps({"keys": self.listed}).encode(), self.cache_control)

    async def outcome(self, kid: str | None) -> str:
        try:
            await self.set.find(kid)
        except BadToken as bad:
            return bad.cause
        except CannotVerify:
            return "cannot"
        return "found"


def keys_test(test: Callable[[Keys], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        async def bounded() -> None:
            async with asyncio.timeout(5):
                await test(Keys())

        asyncio.run(bounded())

    run.__name__ = test.__name__
    return run


@keys_test
async def test_keys_are_fetched_once_for_all_who_want_them_first(keys: Keys) -> None:
    assert await asyncio.gather(*(keys.outcome("one") for _ in range(50))) == ["found"] * 50
    assert keys.count == 1


@keys_test
async def test_keys_are_fetched_again_when_their_time_is_over(keys: Keys) -> None:
    await keys.outcome("one")
    keys.now += 599
    await keys.outcome("one")
    assert keys.count == 1
    keys.listed = [OTHER_KEY.jwk()]
    keys.now += 1
    assert await keys.outcome("one") == "unknown_key"


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("max-age=1", 60),
        ("public, max-age=120", 120),
        ("max-age=99999", 3600),
        ("no-store", 600),
        ("s-maxage=5", 600),
        ("max-age=x", 600),
    ],
)
def test_the_issuer_says_how_long_within_bounds(said: str, seconds: int) -> None:
    async def run() -> None:
        keys = Keys()
        keys.cache_control = said
        await keys.outcome("one")
        keys.now += seconds - 0.5
        await keys.outcome("one")
        assert keys.count == 1
        keys.now += 0.5
        await keys.outcome("one")
        assert keys.count == 2

    asyncio.run(run())


@keys_test
async def test_unknown_keys_make_us_fetch_once_in_a_cooldown_however_many_they_are(keys: Keys) -> None:
    await keys.outcome("one")
    for number in range(5000):
        assert await keys.outcome(f"unknown-{number}") == "unknown_key"
    assert keys.count == 2
    keys.now += 30
    await keys.outcome("unknown")
    assert keys.count == 3


@keys_test
async def test_those_who_want_a_new_key_at_once_all_get_it(keys: Keys) -> None:
    await keys.outcome("one")
    keys.listed = [KEY.jwk(), OTHER_KEY.jwk()]
    keys.gate = asyncio.Event()
    waiting = [asyncio.ensure_future(keys.outcome("two")) for _ in range(20)]
    await asyncio.sleep(0)
    assert await keys.outcome("one") == "found"  # Who needs no new key does not wait.
    keys.gate.set()
    assert await asyncio.gather(*waiting) == ["found"] * 20
    assert keys.count == 2


@keys_test
async def test_one_who_stops_waiting_does_not_end_it_for_the_others(keys: Keys) -> None:
    keys.gate = asyncio.Event()
    waiting = [asyncio.ensure_future(keys.outcome("one")) for _ in range(2)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    keys.gate.set()
    assert await waiting[1] == "found"


@keys_test
async def test_known_keys_stay_for_a_day_while_the_issuer_is_down(keys: Keys) -> None:
    await keys.outcome("one")
    keys.is_down = True
    keys.now += 86_399
    assert await keys.outcome("one") == "found"
    assert await keys.outcome("unknown") == "unknown_key"
    keys.now += 2
    assert await keys.outcome("one") == "cannot"


@keys_test
async def test_an_issuer_that_is_down_is_asked_once_in_a_cooldown(keys: Keys) -> None:
    await keys.outcome("one")
    keys.is_down = True
    keys.now += 600
    for _ in range(10):
        assert await keys.outcome("one") == "found"
    assert keys.count == 2
    keys.now += 30
    await keys.outcome("one")
    await asyncio.sleep(0)
    assert keys.count == 3


@keys_test
async def test_a_fetch_that_breaks_is_not_repeated_for_each_who_asks(keys: Keys) -> None:
    async def broken() -> Fetched:
        keys.count += 1
        raise ZeroDivisionError

    keys.set = KeySet("issuer", ("RS256",), broken, PATIENCE, lambda: keys.now)
    with pytest.raises(ZeroDivisionError):
        await keys.set.find("one")
    assert [await keys.outcome("one") for _ in range(10)] == ["cannot"] * 10
    assert keys.count == 1


@keys_test
async def test_while_an_issuer_is_known_to_be_down_nobody_waits_for_it_to_fail_again(keys: Keys) -> None:
    await keys.outcome("one")
    keys.is_down = True
    keys.now += 600
    await keys.outcome("one")
    keys.now += 30
    keys.gate = asyncio.Event()
    assert await keys.outcome("one") == "found"
    await asyncio.sleep(0)
    assert keys.count == 3
    keys.is_down = False
    keys.listed = [OTHER_KEY.jwk()]
    keys.gate.set()
    assert await keys.outcome("two") == "found"  # Whose key is new does wait.
    assert await keys.outcome("one") == "unknown_key"
    assert keys.count == 3


@keys_test
async def test_without_any_key_nobody_can_say_and_it_is_not_the_tokens_fault(keys: Keys) -> None:
    keys.is_down = True
    assert [await keys.outcome(kid) for kid in ("one", "unknown", None)] == ["cannot"] * 3
    assert keys.count == 1
    keys.is_down = False
    keys.now += 30
    assert await keys.outcome("one") == "found"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"keys":null}',
        b'{"keys":[]}',
        b'{"keys":[5]}',
        b'{"keys":{}}',
        b'{"keys":[],"keys":[]}',
        b"[" * 9000,
        b"\xff",
        json.dumps({"keys": [KEY.jwk()] * 33}).encode(),
        json.dumps({"keys": [KEY.jwk(kid=5)]}).encode(),
    ],
)
def test_what_is_no_jwks_is_as_good_as_none(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        usable(Fetched(200, body), ("RS256",))


def test_an_error_of_the_issuer_is_no_jwks() -> None:
    with pytest.raises(ValueError, match="status 500"):
        usable(Fetched(500, json.dumps({"keys": [KEY.jwk()]}).encode()), ("RS256",))


@pytest.mark.parametrize(("place", "outcome"), [("here", "found"), ("there", "cannot")])
def test_the_next_key_set_of_one_issuer_and_place_knows_what_the_former_knew(place: str, outcome: str) -> None:
    @keys_test
    async def test(keys: Keys) -> None:
        former = KeySet("issuer", ("RS256",), keys.fetch, PATIENCE, lambda: keys.now, "here")
        await former.find("one")
        keys.is_down = True
        keys.set = KeySet("issuer", ("RS256",), keys.fetch, PATIENCE, lambda: keys.now, place)
        keys.set.succeed(former)
        assert await keys.outcome("one") == outcome

    test()


@keys_test
async def test_a_key_set_that_never_had_keys_keeps_the_next_one_from_nothing(keys: Keys) -> None:
    keys.is_down = True
    assert await keys.outcome("one") == "cannot"
    keys.is_down = False
    former, keys.set = keys.set, KeySet("issuer", ("RS256",), keys.fetch, PATIENCE, lambda: keys.now)
    keys.set.succeed(former)
    assert await keys.outcome("one") == "found"
