"""Whose turn it is."""

import asyncio
from collections.abc import Callable
from functools import wraps

from app.core.fairness import Rank, Wish, all_of
from app.gateway.turns import Turn, Turns


def in_loop(test: Callable[[], None]) -> Callable[[], None]:
    @wraps(test)
    def run() -> None:
        async def body() -> None:
            test()

        asyncio.run(body())

    return run


def came(*turns: Turn) -> list[bool]:
    return [turn.came.done() and turn.came.result() for turn in turns]


@in_loop
def test_so_many_come_at_once_and_the_others_in_their_order() -> None:
    turns = Turns(all_of(2))
    one, two, three, four = (turns.ask(Wish()) for _ in range(4))
    assert came(one, two, three, four) == [True, True, False, False]
    two.give_back()
    assert came(three, four) == [True, False]


@in_loop
def test_who_asks_for_later_comes_after_all_others() -> None:
    turns = Turns(all_of(1))
    first = turns.ask(Wish())
    later, sooner = turns.ask(Wish(rank=Rank.FOR_LATER)), turns.ask(Wish())
    first.give_back()
    assert came(later, sooner) == [False, True]
    sooner.give_back()
    assert came(later) == [True]


@in_loop
def test_a_turn_that_is_given_back_while_it_waits_is_passed_over() -> None:
    turns = Turns(all_of(1))
    first, second, third = (turns.ask(Wish()) for _ in range(3))
    second.give_back()
    assert (second.came.done(), second.came.result()) == (True, False)
    first.give_back()
    assert came(third) == [True]


@in_loop
def test_giving_back_twice_frees_one_turn() -> None:
    turns = Turns(all_of(1))
    first = turns.ask(Wish())
    first.give_back()
    first.give_back()
    assert came(turns.ask(Wish()), turns.ask(Wish())) == [True, False]
