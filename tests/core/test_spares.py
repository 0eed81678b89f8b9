"""Which child that nobody uses is given up for whom."""

from app.core.spares import Spare, choose

SPARES = [Spare(1, "a", 5.0), Spare(2, "b", 1.0), Spare(3, "a", 3.0), Spare(4, "c", 2.0)]


def test_ones_own_first() -> None:
    assert choose(SPARES, "c") == Spare(4, "c", 2.0)


def test_else_of_who_has_most_the_one_that_is_idle_for_longest() -> None:
    assert choose(SPARES, "d") == choose(SPARES, None) == Spare(3, "a", 3.0)


def test_none_of_none() -> None:
    assert choose([], "a") is None
