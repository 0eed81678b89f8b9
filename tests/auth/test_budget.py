"""How many calls in a minute, and how many at once."""

import pytest

from app.auth.budget import Budget
from app.auth.policy import Limits


def test_a_minutes_calls_may_be_made_at_once_and_the_next_when_there_was_time_for_it() -> None:
    limits = Limits(per_minute=60)
    budget = Budget(limits, 0.0)
    assert [budget.take(limits, 0.0) for _ in range(60)] == [0.0] * 60
    assert budget.take(limits, 0.0) == 1.0
    assert budget.take(limits, 0.5) == 0.5
    assert budget.take(limits, 1.0) == 0.0
    assert budget.take(limits, 1000.0, 60) == 0.0
    assert budget.take(limits, 1000.0) == 1.0


def test_calls_at_once_are_counted_until_they_are_over() -> None:
    limits = Limits(concurrent=2)
    budget = Budget(limits, 0.0)
    assert budget.take(limits, 0.0, 2) == 0.0
    assert budget.take(limits, 0.0) > 0.0
    budget.give_back()
    assert budget.take(limits, 0.0) == 0.0
    assert budget.taken == 2


def test_what_is_refused_takes_nothing() -> None:
    limits = Limits(per_minute=2, concurrent=1)
    budget = Budget(limits, 0.0)
    assert budget.take(limits, 0.0) == 0.0
    assert [budget.take(limits, 0.0) for _ in range(9)] == [1.0] * 9
    budget.give_back()
    assert budget.take(limits, 0.0) == 0.0
    budget.give_back()
    assert budget.take(limits, 0.0) == pytest.approx(30.0)
    assert budget.taken == 0


def test_more_calls_in_one_batch_than_there_are_in_a_minute_are_never_let_in() -> None:
    limits = Limits(per_minute=2)
    budget = Budget(limits, 0.0)
    assert budget.take(limits, 600.0, 3) > 0.0
