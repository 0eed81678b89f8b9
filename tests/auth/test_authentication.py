"""Whom a token admits, whatever its kind, for how long that is kept, and who is told when it is over."""

import asyncio
from dataclasses import replace

import pytest

from app.auth.authentication import Authentication
from app.auth.compact import Compact
from app.auth.principal import Principal
from app.auth.tokens import Entry, hash_of
from app.auth.verdicts import CannotVerify
from tests.auth.world import KEEPING, NOW, STATIC, World, asked_again, in_world, known, told
from tests.support.http import soon
from tests.support.issuer import OTHER_KEY, claims, compact, header


@in_world
async def test_three_kinds_of_credential_are_let_in_at_once(world: World) -> None:
    assert [await world.outcome(token) for token in (STATIC, world.signed(), "opaque")] == ["laptop", "ada", "eve"]
    keys = {(await world.all.ask(token)).key for token in (STATIC, world.signed(), "opaque")}
    assert len(keys) == 3


@in_world
async def test_what_was_verified_is_known_from_then_on(world: World) -> None:
    token = world.signed()
    assert world.all.find(token) is None
    principal = await world.all.ask(token)
    assert world.all.find(token) is principal
    assert (await world.all.ask("opaque"), world.all.find("opaque")) == (world.asked.known["opaque"],) * 2
    await world.all.ask("opaque")
    assert world.asked.count == 1


@in_world
async def test_it_is_known_no_longer_than_the_token_lasts(world: World) -> None:
    token = world.signed(exp=int(NOW) + 20)
    await world.all.ask(token)
    world.now = NOW + 19.9
    assert world.all.find(token) is not None
    world.now = NOW + 20
    assert world.all.find(token) is None
    assert await world.outcome(token) == "expired"


@in_world
async def test_a_key_that_its_issuer_took_back_admits_nobody_once_its_tokens_are_verified_again(world: World) -> None:
    token = world.signed(exp=int(NOW) + 3600)
    await world.all.ask(token)
    world.listed = [OTHER_KEY.jwk()]
    world.now = NOW + 599
    assert await world.outcome(token) == "ada"
    world.now = NOW + 599 + 300
    assert await world.outcome(token) == "unknown_key"


@in_world
async def test_a_token_that_its_issuer_ended_is_asked_about_again_after_a_while(world: World) -> None:
    await world.all.ask("opaque")
    del world.asked.known["opaque"]
    world.now = NOW + 59
    assert await world.outcome("opaque") == "eve"
    world.now = NOW + 60
    assert await world.outcome("opaque") == "inactive"


@in_world
async def test_all_who_present_one_token_at_once_make_one_question(world: World) -> None:
    world.asked.gate = asyncio.Event()
    waiting = [asyncio.ensure_future(world.outcome("opaque")) for _ in range(20)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    world.asked.gate.set()
    assert await asyncio.gather(*waiting[1:]) == ["eve"] * 19
    assert world.asked.count == 1


@in_world
async def test_a_token_that_was_active_is_known_when_it_is_asked_about_again_until_it_is_not(world: World) -> None:
    eve = world.asked.known["opaque"]
    for is_active in (True, True, False, True, True):
        world.asked.known = {"opaque": eve} if is_active else {}
        world.now += 60
        await world.outcome("opaque")
    assert world.asked.welcomed == [False, True, True, False, True]


@in_world
async def test_a_no_is_remembered_for_a_while(world: World) -> None:
    assert [await world.outcome("unknown") for _ in range(5)] == ["inactive"] * 5
    assert world.asked.count == 1
    world.now += 10
    await world.outcome("unknown")
    assert world.asked.count == 2


@in_world
async def test_what_one_of_our_issuers_signed_is_asked_for_nowhere_else(world: World) -> None:
    bad = compact(header(), claims(NOW), OTHER_KEY)
    assert await world.outcome(bad) == "bad_signature"
    assert world.asked.count == 0


@in_world
async def test_a_signed_token_of_somebody_else_is_introspected(world: World) -> None:
    foreign = compact(header(), claims(NOW, iss="https://foreign.example"), OTHER_KEY)
    world.asked.known[foreign] = Principal("far", frozenset(), None, "https://other")
    assert await world.outcome(foreign) == "far"


@in_world
async def test_our_own_kind_of_token_is_shown_to_nobody(world: World) -> None:
    assert not world.all.is_askable("vdt_0000_revoked")
    assert await world.outcome("vdt_0000_revoked") == "unknown"
    assert world.asked.count == 0


@pytest.mark.parametrize(
    "wrong",
    [
        ValueError(),
        KeyError("x"),
        TypeError(),
        AttributeError(),
        RecursionError(),
        OverflowError(),
        OSError(),
        RuntimeError(),
        AssertionError(),
        MemoryError(),
        UnicodeError(),
        ZeroDivisionError(),
    ],
    ids=lambda wrong: type(wrong).__name__,
)
def test_whatever_goes_wrong_nobody_is_let_in(wrong: Exception) -> None:
    async def run() -> None:
        world = World()
        world.asked.wrong = wrong
        assert await world.outcome("opaque") == "cannot"
        assert world.all.find("opaque") is None

        async def broken(_token: Compact) -> Principal:
            raise wrong

        world.verifier.verify = broken  # type: ignore[method-assign]
        assert await world.outcome(world.signed()) == "cannot"

    asyncio.run(run())


@pytest.mark.parametrize("token", ["", "a b", "a,b", '"a"', "a=b", "<a>", "a\t"])
def test_what_no_issuer_could_have_made_is_asked_about_nowhere(token: str) -> None:
    world = World()
    assert not world.all.is_askable(token)
    assert asyncio.run(world.outcome(token)) == "unknown"
    assert world.asked.count == 0


def test_without_introspection_only_what_could_be_signed_is_asked_about() -> None:
    world = World(introspects=False)
    assert [world.all.is_askable(token) for token in ("opaque", "a.b", world.signed())] == [False, False, True]
    foreign = compact(header(), claims(NOW, iss="https://foreign.example"))
    assert asyncio.run(world.outcome(foreign)) == "wrong_issuer"


@in_world
async def test_so_many_are_kept_and_the_oldest_goes_that_nobody_waits_for(world: World) -> None:
    tokens = [world.signed(sub=f"s{number}") for number in range(6)]
    first = await world.all.ask(tokens[0])
    ended = asyncio.ensure_future(told(first))
    await asyncio.sleep(0)
    for token in tokens[1:]:
        await world.all.ask(token)
    assert [world.all.find(token) is not None for token in tokens] == [True, False, False, True, True, True]
    world.now = NOW + 300
    world.all.start()
    assert await ended == "expired"


# Ends.


@in_world
async def test_who_waits_for_it_hears_that_a_token_expired(world: World) -> None:
    ends = [
        asyncio.ensure_future(told(await world.all.ask(token)))
        for token in ("guest", world.signed(exp=int(NOW) + 100))
    ]  # fmt: skip
    await asyncio.sleep(0)
    world.now = NOW + 100
    world.all.start()
    assert await asyncio.gather(*ends) == ["expired", "expired"]


@in_world
async def test_who_waits_for_it_hears_that_a_static_token_was_removed(world: World) -> None:
    end = asyncio.ensure_future(told(await world.all.ask(STATIC)))
    await asyncio.sleep(0)
    assert world.static.replace([Entry("guest", hash_of("guest"), expires_at=NOW + 100)]) == ([], ["laptop"])
    assert await end == "revoked"
    assert world.all.find(STATIC) is None


@in_world
async def test_who_waits_for_it_hears_that_an_issuer_ended_a_token(world: World) -> None:
    end = asyncio.ensure_future(told(await world.all.ask("opaque")))
    await asyncio.sleep(0)
    del world.asked.known["opaque"]
    world.now = NOW + 60
    world.all.start()
    assert await end == "revoked"


@in_world
async def test_a_token_that_is_still_good_goes_on_unnoticed(world: World) -> None:
    principal = await world.all.ask("opaque")
    end = asyncio.ensure_future(told(principal))
    await asyncio.sleep(0)
    world.now = NOW + 60
    world.all.start()
    assert await soon(lambda: known(world, "opaque"))
    found = world.all.find("opaque")
    assert found is not None
    assert found.term is principal.term
    assert not end.done()
    end.cancel()


@in_world
async def test_a_token_whose_life_its_issuer_lengthens_goes_on_until_its_new_end(world: World) -> None:
    world.asked.known["opaque"] = eve = Principal("eve", frozenset(), NOW + 100, "https://other")
    end = asyncio.ensure_future(told(await world.all.ask("opaque")))
    await asyncio.sleep(0)
    world.asked.known["opaque"] = replace(eve, expires_at=NOW + 200)
    world.now = NOW + 60
    await world.all.ask("opaque")
    world.now = NOW + 119
    world.all.start()
    assert world.all.find("opaque") is not None
    assert not end.done()
    world.now = NOW + 200
    assert await end == "expired"


@in_world
async def test_while_nobody_can_say_what_was_let_in_stays_and_nothing_new_is(world: World) -> None:
    principal = await world.all.ask("opaque")
    end = asyncio.ensure_future(told(principal))
    await asyncio.sleep(0)
    world.asked.wrong = CannotVerify("down", 60)
    world.now = NOW + 60
    world.all.start()
    assert await soon(lambda: asked_again(world))
    assert await world.outcome("opaque") == "cannot"
    assert not end.done()
    end.cancel()


@in_world
async def test_whose_token_says_something_else_now_is_somebody_else(world: World) -> None:
    end = asyncio.ensure_future(told(await world.all.ask("opaque")))
    await asyncio.sleep(0)
    world.asked.known["opaque"] = Principal("eve", frozenset(), None, "https://other")
    world.now = NOW + 60
    assert (await world.all.ask("opaque")).scopes == frozenset()
    assert await end == "revoked"


@in_world
async def test_who_comes_after_the_end_hears_of_it_at_once(world: World) -> None:
    principal = await world.all.ask(STATIC)
    world.static.replace([])
    assert await told(principal) == "revoked"


# Another configuration.


def successor(world: World, *, introspects: bool = True) -> Authentication:
    asked = world.asked if introspects else None
    following = Authentication(world.static, [], asked, KEEPING, None, lambda: world.now, former=world.all)
    world.all.retire()
    following.start()
    return following


@in_world
async def test_who_is_let_in_by_the_next_rules_too_goes_on_unnoticed(world: World) -> None:
    principal = await world.all.ask("opaque")
    ends: list[str] = []
    principal.term.watch(ends.append)
    following = successor(world)
    assert following.find("opaque") is None
    assert (await following.ask("opaque")).term is principal.term
    assert ends == []
    following.stop()


@in_world
async def test_who_is_not_let_in_by_the_next_rules_hears_so(world: World) -> None:
    principal = await world.all.ask("opaque")
    ending = asyncio.create_task(told(principal))
    await asyncio.sleep(0)
    following = successor(world, introspects=False)
    assert await ending == "revoked"
    following.stop()


@in_world
async def test_who_waited_for_the_former_rules_is_to_ask_again(world: World) -> None:
    world.asked.gate = asyncio.Event()
    waiting = asyncio.create_task(world.all.ask("opaque"))
    await asyncio.sleep(0)
    following = successor(world)
    world.asked.gate.set()
    with pytest.raises(CannotVerify):
        await waiting
    assert following.find("opaque") is None
    following.stop()


@in_world
async def test_whom_the_former_rules_would_have_refused_only_the_next_ones_may_refuse(world: World) -> None:
    principal = await world.all.ask("opaque")
    world.now += KEEPING.introspected
    world.asked.gate = asyncio.Event()
    waiting = asyncio.create_task(world.all.ask("opaque"))
    await asyncio.sleep(0)
    following = successor(world)
    del world.asked.known["opaque"]
    world.asked.gate.set()
    with pytest.raises(CannotVerify):
        await waiting
    assert principal.term.how is None
    following.stop()
