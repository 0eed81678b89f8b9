"""Tokens whose verdict is kept no more: what they opened, or are about to open, ends with them all the same."""

import asyncio

from app.auth.tokens import Entry, hash_of
from tests.auth.world import KEEPING, NOW, World, in_world, told


async def looked(world: World) -> None:
    """Ends were looked for, which shows in that a token that is over is told so."""
    over = Entry("over", hash_of("over"), expires_at=world.now - 1)
    world.static.replace([over])
    (principal,) = world.static
    world.all.start()
    assert await told(principal) == "expired"


@in_world
async def test_who_waits_for_the_end_of_a_token_that_was_forgotten_meanwhile_hears_of_it_all_the_same(
    world: World,
) -> None:
    principal = await world.all.ask("opaque")
    world.now = NOW + 60
    await looked(world)
    assert world.all.find("opaque") is None
    end = asyncio.ensure_future(told(principal))
    await asyncio.sleep(0)
    del world.asked.known["opaque"]
    assert await end == "revoked"


@in_world
async def test_who_waits_for_the_end_of_a_token_that_had_to_make_room_hears_of_it_all_the_same(world: World) -> None:
    principal = await world.all.ask(world.signed(sub="early", exp=int(NOW) + 100))
    for number in range(KEEPING.count_max):
        await world.all.ask(world.signed(sub=f"later-{number}"))
    end = asyncio.ensure_future(told(principal))
    await asyncio.sleep(0)
    world.now = NOW + 100
    world.all.start()
    assert await end == "expired"


@in_world
async def test_a_token_that_was_forgotten_and_comes_again_ends_for_all_at_once(world: World) -> None:
    former = await world.all.ask("opaque")
    world.now = NOW + 60
    await looked(world)
    again = await world.all.ask("opaque")
    assert again.term is former.term
