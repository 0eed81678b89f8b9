"""What follows from a thing is done after the things that were there before it."""

import pytest

from app.gateway.inorder import InOrder


def test_what_follows_waits_for_what_was_there() -> None:
    done: list[int] = []

    def do(number: int) -> None:
        done.append(number)
        if number < 10:
            assert not order.perform([number * 10, number * 10 + 1])

    order = InOrder(do)
    assert order.perform([1, 2])
    assert done == [1, 2, 10, 11, 20, 21]


def test_a_failure_leaves_the_rest_to_the_next_who_performs() -> None:
    done: list[int] = []

    def do(number: int) -> None:
        if number == 0:
            raise ValueError("a bug")
        done.append(number)

    order = InOrder(do)
    with pytest.raises(ValueError, match="a bug"):
        order.perform([0, 1])
    assert order.perform([2])
    assert done == [1, 2]
