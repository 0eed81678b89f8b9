"""What is written down of a server's children, and how it reads."""

import pytest

from app.core.restarts import RestartPolicy
from app.core.supervision import ChildView, Ending, ServerView, State, Supervision

POLICY = RestartPolicy(first=0.2, deaths=2, window=60, cool_down=300, uptime=60)
CRASH = Ending("exited_before_ready", 7, None, ("no settings",))


@pytest.fixture
def server() -> Supervision:
    return Supervision("time", POLICY)


def ready(server: Supervision, now: float = 0.0) -> int:
    number = server.wanted(now)
    server.started(number, 100 + number, now)
    server.ready(number, now)
    return number


def stillborn(server: Supervision, now: float = 0.0) -> bool:
    number = server.wanted(now)
    server.started(number, 100 + number, now)
    counts = server.died(number, CRASH, now, 0.0)
    server.gone(number)
    return counts


def test_a_server_without_children_is_idle(server: Supervision) -> None:
    assert server.view(0) == ServerView("time", State.IDLE, (), 0, 0.0, None, 0, 0, None)


def test_a_child_is_starting_until_its_handshake_is_answered(server: Supervision) -> None:
    number = server.wanted(1)
    assert server.view(1).children == (ChildView(number, State.STARTING, None, 0.0),)
    server.started(number, 42, 3)
    assert server.view(4).children == (ChildView(number, State.STARTING, 42, 1.0),)
    assert server.ready(number, 5) == 2
    view = server.view(10)
    assert (view.state, view.children) == (State.READY, (ChildView(number, State.READY, 42, 7.0),))


def test_whoever_owes_an_answer_is_busy(server: Supervision) -> None:
    one, other = ready(server), ready(server)
    view = server.view(0, {one})
    assert view.state is State.BUSY
    assert {child.number: child.state for child in view.children} == {one: State.BUSY, other: State.READY}


def test_a_child_that_is_stopped_reads_so_until_it_is_gone(server: Supervision) -> None:
    number = ready(server)
    server.stopping(number)
    assert server.view(0).state is State.STOPPING
    server.gone(number)
    assert server.view(0).state is State.IDLE
    server.stopping(number)
    server.gone(number)


def test_a_warm_child_reads_so_until_it_is_taken(server: Supervision) -> None:
    number = server.wanted(0)
    server.warmed(number)
    assert server.view(0).state is State.WARM
    server.taken(number)
    assert server.view(0).state is State.STARTING


def test_deaths_before_it_is_ready_make_the_server_back_off_and_then_fail(server: Supervision) -> None:
    assert stillborn(server)
    view = server.view(0.1)
    assert (view.state, view.attempt, view.last) == (State.BACKING_OFF, 1, CRASH)
    assert view.next_in == pytest.approx(0.1)
    assert stillborn(server, 1)
    view = server.view(11)
    assert (view.state, view.retry_in, view.deaths) == (State.FAILED, 290, 2)


def test_a_death_of_a_ready_child_is_its_sessions_own_matter(server: Supervision) -> None:
    for now in range(5):
        number = ready(server, now)
        assert not server.died(number, Ending("exited", None, 9), now, 0.0)
        server.gone(number)
    view = server.view(5)
    assert (view.state, view.deaths, view.last) == (State.IDLE, 5, Ending("exited", None, 9))


def test_the_deaths_of_a_child_that_all_share_are_the_servers() -> None:
    server = Supervision("time", POLICY, is_shared=True)
    for now in range(2):
        assert server.died(ready(server, now), Ending("exited", None, 9), now, 0.0)
    assert server.view(2).state is State.FAILED


def test_of_children_that_start_together_only_the_first_death_counts(server: Supervision) -> None:
    numbers = [server.wanted(1) for _ in range(5)]
    for number in numbers:
        server.started(number, 100 + number, 1)
    assert [server.died(number, CRASH, 2, 0.0) for number in numbers] == [True, False, False, False, False]
    assert not server.restarts.is_failed
    assert stillborn(server, 3)
    assert server.restarts.is_failed


def test_while_a_child_is_ready_nobody_says_that_its_server_does_not_start(server: Supervision) -> None:
    ready(server)
    for now in range(9):
        assert not stillborn(server, now)
    assert server.view(9).state is State.READY


def test_a_child_that_may_not_have_understood_the_question_counts_for_nothing(server: Supervision) -> None:
    number = server.wanted(0)
    server.tried(number, counts=False)
    assert not server.died(number, CRASH, 0, 0.0)


def test_one_trial_after_the_cool_down_decides(server: Supervision) -> None:
    stillborn(server)
    stillborn(server)
    assert server.view(299).state is State.FAILED
    assert server.view(300).state is State.IDLE
    number = server.wanted(300)
    assert server.is_trial(number)
    assert server.view(300).state is State.FAILED
    assert not server.is_trial(server.wanted(300))
    server.stopping(number)
    again = server.wanted(300)
    assert server.is_trial(again)
    server.ready(again, 301)
    assert server.view(301).state is State.READY


def test_restarts_are_counted(server: Supervision) -> None:
    server.wanted_in_place()
    assert server.view(0).restarts == 1
