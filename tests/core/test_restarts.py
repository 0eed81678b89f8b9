"""How soon what died is started again."""

import pytest

from app.core.restarts import RestartPolicy, Restarts

POLICY = RestartPolicy(first=0.2, longest=30, deaths=5, window=60, cool_down=300, uptime=60)


@pytest.fixture
def restarts() -> Restarts:
    return Restarts(POLICY)


def fail(restarts: Restarts, now: float = 0.0) -> None:
    for _ in range(POLICY.deaths):
        restarts.died(now, 0.0)


def test_what_never_died_starts_at_once(restarts: Restarts) -> None:
    assert restarts.pause(0) == 0
    assert restarts.refused_for(0) is None
    assert not restarts.begin(0)


def test_each_pause_is_twice_as_long_up_to_the_longest(restarts: Restarts) -> None:
    pauses = []
    for number in range(10):
        now = number * 100.0  # too far apart to be too many
        restarts.died(now, 0.0)
        pauses.append(restarts.pause(now))
    assert pauses == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 20, 20, 20])


@pytest.mark.parametrize("attempts", [1, 3, 40, 5000])
def test_chance_makes_a_pause_longer_and_never_longer_than_the_longest(attempts: int) -> None:
    lucky, unlucky = Restarts(POLICY), Restarts(POLICY)
    for number in range(attempts):
        lucky.died(number * 100.0, 0.0)
        unlucky.died(number * 100.0, 0.999)
    now = (attempts - 1) * 100.0
    assert 0.2 <= lucky.pause(now) < unlucky.pause(now) < 1.5 * lucky.pause(now) <= 30.001


def test_a_pause_passes(restarts: Restarts) -> None:
    restarts.died(10, 0.0)
    assert restarts.pause(10.15) == pytest.approx(0.05)
    assert restarts.pause(10.3) == 0


def test_too_many_deaths_in_the_window_are_a_failure_and_no_fewer(restarts: Restarts) -> None:
    for now in (0, 10, 20, 30):
        restarts.died(now, 0.0)
    restarts.died(60.5, 0.0)  # the first is out of the window
    assert restarts.refused_for(60.5) is None
    restarts.died(61, 0.0)
    assert restarts.is_failed
    assert restarts.refused_for(61) == 300
    assert restarts.refused_for(361) is None


def test_after_the_cool_down_one_start_is_tried_and_all_others_wait_for_it(restarts: Restarts) -> None:
    fail(restarts)
    assert not restarts.begin(299)
    assert restarts.begin(300)
    assert restarts.refused_for(300) == 1.0
    assert not restarts.begin(301)


def test_a_trial_that_gets_ready_is_the_end_of_the_failure(restarts: Restarts) -> None:
    fail(restarts)
    restarts.begin(300)
    restarts.ready()
    assert not restarts.is_failed
    assert restarts.refused_for(300) is None


def test_a_trial_that_dies_fails_for_another_cool_down(restarts: Restarts) -> None:
    fail(restarts)
    restarts.begin(300)
    restarts.died(301, 0.0)
    assert restarts.is_failed
    assert restarts.refused_for(302) == 299


def test_a_trial_that_nobody_wants_any_more_leaves_room_for_the_next(restarts: Restarts) -> None:
    fail(restarts)
    restarts.begin(300)
    restarts.spared()
    assert restarts.refused_for(301) is None
    assert restarts.begin(301)


@pytest.mark.parametrize(("uptime", "pause"), [(59, 0.8), (60, 0.2)])
def test_what_was_up_for_long_enough_begins_anew(restarts: Restarts, uptime: float, pause: float) -> None:
    restarts.died(0, 0.0)
    restarts.died(1, 0.0)
    restarts.ready()
    restarts.lived(uptime)
    restarts.died(62, 0.0)
    assert restarts.pause(62) == pytest.approx(pause)
