"""Which child a stateless request gets: whom it meets there, when it waits, and when the child is stopped."""

import pytest

from app.core.deadlines import FOREVER
from app.core.leases import Leases, Need, Start, Use, Wait

ALONE, HOLDING, SHARED, LISTENING = Need.ALONE, Need.HOLDING, Need.SHARED, Need.LISTENING


@pytest.fixture
def leases() -> Leases:
    """Two children at most; requests are 11, 12 and so on, and children are 1 and 2."""
    return Leases(children_max=2, idle_seconds=60)


def test_a_request_without_a_child_starts_one_and_has_it(leases: Leases) -> None:
    assert leases.is_empty
    assert leases.request(11, ALONE) == Start(11, 1)
    assert not leases.is_empty


@pytest.mark.parametrize(
    ("there", "comes", "is_met"),
    [
        (ALONE, ALONE, False),
        (ALONE, HOLDING, False),
        (ALONE, SHARED, False),
        (ALONE, LISTENING, True),
        (HOLDING, ALONE, False),
        (HOLDING, HOLDING, False),
        (HOLDING, SHARED, True),
        (HOLDING, LISTENING, True),
        (SHARED, ALONE, False),
        (SHARED, HOLDING, True),
        (SHARED, SHARED, True),
        (SHARED, LISTENING, True),
        (LISTENING, ALONE, True),
        (LISTENING, HOLDING, True),
        (LISTENING, SHARED, True),
        (LISTENING, LISTENING, True),
    ],
)
def test_who_meets_whom_on_one_child(leases: Leases, there: Need, comes: Need, is_met: bool) -> None:
    leases.request(11, there)
    assert leases.request(12, comes) == (Use(12, 1) if is_met else Start(12, 2))


# Which child.


@pytest.mark.parametrize("need", [ALONE, HOLDING, SHARED])
def test_one_who_calls_again_meets_the_same_child(leases: Leases, need: Need) -> None:
    leases.request(11, ALONE)
    leases.request(12, ALONE)
    leases.release(12, 1)
    leases.release(11, 2)
    assert leases.request(13, need) == Use(13, 1)
    leases.release(13, 3)
    assert leases.request(14, need) == Use(14, 1)


def test_the_end_of_a_subscription_is_no_use_of_the_child(leases: Leases) -> None:
    leases.request(11, LISTENING)
    leases.request(12, ALONE)
    leases.request(13, ALONE)
    leases.release(12, 1)
    leases.release(13, 2)
    leases.release(11, 3)
    assert leases.request(14, ALONE) == Use(14, 2)


@pytest.mark.parametrize("need", [HOLDING, SHARED, LISTENING])
def test_who_may_meet_others_leaves_an_idle_child_to_who_may_not(leases: Leases, need: Need) -> None:
    leases.request(11, SHARED)
    leases.request(12, ALONE)
    leases.release(12, 1)
    assert leases.request(13, need) == Use(13, 1)
    assert leases.request(14, ALONE) == Use(14, 2)


# Waiting.


def test_where_no_child_fits_and_no_more_may_be_started_the_request_waits_its_turn(leases: Leases) -> None:
    for ticket in (11, 12):
        leases.request(ticket, ALONE)
    assert [leases.request(ticket, ALONE) for ticket in (13, 14)] == [Wait(), Wait()]
    assert leases.release(12, 1) == [Use(13, 2)]
    assert leases.release(11, 1) == [Use(14, 1)]
    assert leases.release(13, 1) == []


def test_one_who_wants_to_be_alone_is_not_overtaken_by_who_does_not(leases: Leases) -> None:
    leases.request(11, SHARED)
    leases.request(12, ALONE)
    assert [leases.request(13, ALONE), leases.request(14, SHARED), leases.request(15, SHARED)] == [Wait()] * 3
    assert leases.release(11, 1) == [Use(13, 1)]
    assert leases.release(13, 2) == [Use(14, 1), Use(15, 1)]


def test_a_subscription_waits_for_nobody(leases: Leases) -> None:
    for ticket in (11, 12, 13):
        leases.request(ticket, ALONE)
    assert leases.request(14, LISTENING) == Use(14, 2)


def test_one_who_waits_can_give_up_and_lets_those_behind_through(leases: Leases) -> None:
    leases.request(11, SHARED)
    leases.request(12, ALONE)
    for ticket, need in ((13, ALONE), (14, SHARED)):
        leases.request(ticket, need)
    assert leases.release(13, 1) == [Use(14, 1)]
    assert leases.release(12, 1) == []


def test_a_child_stays_alone_until_its_request_is_over(leases: Leases) -> None:
    for ticket, need in ((11, ALONE), (12, LISTENING), (13, ALONE), (14, SHARED)):
        leases.request(ticket, need)
    assert leases.release(12, 1) == []
    assert leases.release(99, 1) == []
    assert leases.release(11, 1) == [Use(14, 1)]
    assert leases.release(11, 1) == []


# A child that is lost.


def test_the_loss_of_a_child_is_told_to_who_had_it_and_makes_room(leases: Leases) -> None:
    for ticket, need in ((11, SHARED), (12, SHARED), (13, LISTENING), (14, ALONE), (15, ALONE)):
        leases.request(ticket, need)
    assert leases.lost(1) == ([11, 12, 13], [Start(15, 3)])
    assert leases.lost(1) == ([], [])
    assert leases.release(11, 1) == []
    assert leases.lost(3) == ([15], [])


def test_the_number_of_a_lost_child_is_not_given_again(leases: Leases) -> None:
    leases.request(11, ALONE)
    leases.lost(1)
    assert leases.is_empty
    assert leases.request(12, ALONE) == Start(12, 2)


# Idle children.


def test_a_child_that_is_idle_for_long_enough_is_to_be_stopped_the_last_one_too(leases: Leases) -> None:
    leases.request(11, ALONE)
    leases.request(12, ALONE)
    assert leases.due == FOREVER
    leases.release(12, 10)
    leases.release(11, 20)
    assert leases.due == 70
    assert leases.expire(69.9) == []
    assert leases.expire(70) == [2]
    assert leases.due == 80
    assert leases.expire(80) == [1]
    assert leases.due == FOREVER
    assert leases.is_empty
    assert leases.request(13, ALONE) == Start(13, 3)


def test_a_child_that_is_used_again_has_all_its_time_again(leases: Leases) -> None:
    leases.request(11, ALONE)
    leases.release(11, 10)
    leases.request(12, SHARED)
    assert leases.due == FOREVER
    assert leases.expire(1000) == []
    leases.release(12, 1000)
    assert leases.due == 1060


def test_a_child_with_a_subscription_is_not_idle(leases: Leases) -> None:
    leases.request(11, LISTENING)
    leases.request(12, ALONE)
    leases.release(12, 10)
    assert (leases.due, leases.expire(1000)) == (FOREVER, [])
    leases.release(11, 1000)
    assert leases.due == 1060


def test_the_child_that_is_idle_for_longest_is_given_up_and_none_that_somebody_has(leases: Leases) -> None:
    leases.request(11, ALONE)
    leases.request(12, ALONE)
    assert (leases.idle(), leases.give_up_idle(), leases.child_count) == ([], None, 2)
    leases.release(12, 1)
    leases.release(11, 2)
    assert (leases.idle(), leases.give_up_idle(), leases.child_count) == ([2, 1], 2, 1)
    assert (leases.give_up_idle(), leases.give_up_idle(), leases.is_empty) == (1, None, True)


# What a child may still say.


@pytest.mark.parametrize("need", [ALONE, HOLDING, SHARED])
def test_a_child_that_may_still_speak_of_a_request_that_is_over_is_nobodys_any_more(leases: Leases, need: Need) -> None:
    leases.request(11, HOLDING)
    leases.request(12, SHARED)
    leases.soil(1)
    assert leases.release(11, 1) == []
    assert leases.spent() == []
    assert leases.request(13, need) == Start(13, 2)
    assert leases.release(12, 2) == []
    assert leases.spent() == [1]
    assert leases.lost(1) == ([], [])


def test_whoever_waits_for_room_gets_it_when_such_a_child_is_gone() -> None:
    one = Leases(children_max=1, idle_seconds=60)
    one.request(11, HOLDING)
    one.request(12, HOLDING)
    one.soil(1)
    assert one.release(11, 1) == []
    assert one.spent() == [1]
    assert one.lost(1) == ([], [Start(12, 2)])


# Other numbers.


def test_there_may_be_more_children_from_now_on(leases: Leases) -> None:
    leases.request(11, ALONE)
    leases.request(12, ALONE)
    leases.resize(3, 60)
    assert leases.request(13, ALONE) == Start(13, 3)


def test_there_may_be_fewer_and_who_has_one_keeps_it(leases: Leases) -> None:
    leases.request(11, ALONE)
    leases.request(12, ALONE)
    leases.resize(1, 5)
    assert leases.request(13, ALONE) == Wait()
    assert leases.release(11, 100.0) == [Use(13, 1)]
    leases.release(12, 100.0)
    assert leases.due == 105.0
