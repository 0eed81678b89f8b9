"""How a call ends whose child speaks the handshake: in time or not, by whom, and what each side is told."""

from collections.abc import Callable

import pytest

from app.core.effects import Doubt, Effect, Ended
from app.core.interview import Interview
from app.protocol.faults import Exited, Unavailable
from app.protocol.jsonrpc import Failure, Result
from tests.core.exchanges import (
    LIMITS,
    always,
    begun,
    cancelled,
    completed,
    done,
    form,
    is_at_rest,
    never,
    parked,
    progress,
    raw,
    refused,
    request,
    retry,
    unanswered,
    withdrawal,
)

LAPSED = [(1, -31001, "client_unreachable"), ("1", -31001, "client_unreachable")]
QUESTIONS = form(1, "a"), form("1", "b")


def asked() -> Interview:
    """Two questions are open, and not yet asked."""
    core = begun()
    for question in QUESTIONS:
        core.deliver(question, 1.0)
    return core


def resumed() -> Interview:
    """Of two questions that were asked one is answered."""
    core = parked(begun(), form(0, "x"), *QUESTIONS)
    core.resume(retry(2, {"x": {}}), 1, 2, 10.0, can_stream=True)
    return core


def is_silent(core: Interview) -> bool:
    """Whatever happens now, nothing is said or owed any more."""
    said = [
        *core.deliver(Result(100, raw("{}")), 9999.0),
        *core.deliver(form(9, "z"), 9999.0),
        *core.tick(9999.0, never),
        *core.lost(Exited("gone")),
        *core.close(),
        *core.gone(1),
        *core.gone(2),
    ]
    return said == [] and is_at_rest(core) and not core.is_parked


# The client closes.


@pytest.mark.parametrize(("core", "stream"), [(begun, 1), (asked, 1), (resumed, 2)])
def test_closing_the_response_cancels_the_call_and_its_questions(core: Callable[[], Interview], stream: int) -> None:
    call = core()
    assert call.gone(9) == []
    effects = call.gone(stream)
    assert unanswered(effects) == ([] if core is begun else LAPSED)
    assert effects[-2:] == [cancelled(100, "the client closed the response"), Ended("cancelled")]
    assert call.is_owed
    assert is_silent(call)


def test_closing_a_response_that_was_given_in_full_cancels_nothing() -> None:
    core = parked(begun(), form(1, "a"))
    assert core.gone(1) == []
    core.resume(retry(2, {"a": {}}), 1, 2, 10.0, can_stream=True)
    assert core.gone(1) == []
    core.deliver(Result(100, raw("{}")), 11.0)
    assert core.gone(2) == []


# The gateway stops.


@pytest.mark.parametrize(("core", "stream"), [(begun, 1), (asked, 1), (resumed, 2)])
def test_a_stopping_gateway_answers_whoever_waits(core: Callable[[], Interview], stream: int) -> None:
    call = core()
    effects = call.close()
    assert unanswered(effects) == ([] if core is begun else LAPSED)
    assert effects[-4] == cancelled(100, "the gateway is shutting down")
    assert refused(effects, stream) == (stream, -31006, "shutting_down", "unknown")
    assert is_silent(call)


def test_a_stopping_gateway_cancels_a_parked_call_that_nobody_waits_for() -> None:
    core = parked(begun(), *QUESTIONS)
    *told, cancel, ended = core.close()
    assert unanswered(told) == LAPSED
    assert (cancel, ended) == (cancelled(100, "the gateway is shutting down"), Ended("answered"))
    assert is_silent(core)


@pytest.mark.parametrize("end", [Interview.close, lambda core: core.tick(400.0, never)])
def test_a_parked_call_that_is_answered_is_not_cancelled(end: Callable[[Interview], list[Effect]]) -> None:
    core = parked(begun(), form(1, "a"))
    core.deliver(Result(100, raw("{}")), 2.0)
    (ended,) = end(core)
    assert isinstance(ended, Ended)
    assert is_silent(core)


# Time.


def test_a_call_that_is_not_answered_in_time_is_cancelled() -> None:
    core = begun()
    effects = core.tick(60.0, never)
    assert effects[:2] == [cancelled(100, "timed out at the gateway"), Doubt()]
    assert refused(effects, 1) == (1, -31003, "timed_out", "unknown")
    assert core.is_owed
    assert is_silent(core)


def test_a_call_of_which_nothing_was_sent_is_taken_back_and_its_child_is_as_good_as_before() -> None:
    core = begun()
    effects = core.tick(60.0, always)
    assert refused(effects, 1) == (1, -31003, "timed_out", "no")
    assert len(effects) == 3
    assert not core.is_owed
    assert is_silent(core)


def test_progress_extends_the_quiet_deadline_and_not_the_last_one() -> None:
    core = begun(request(token="p"))
    for now in range(50, 600, 50):
        core.tick(now, never)
        core.deliver(progress(100), now)
    core.tick(599.0, never)
    assert not core.is_over
    assert refused(core.tick(600.0, never), 1)[1] == -31003


def test_no_deadline_of_the_request_runs_while_it_is_parked() -> None:
    core = parked(begun(request(token="p")), form(1, "a"))
    core.deliver(progress(100), 2.0)
    assert core.tick(301.0, never) == []
    assert core.due == 301.02


def test_the_deadlines_of_a_retry_are_its_own() -> None:
    core = parked(begun(), form(1, "a"))
    core.resume(retry("r", {"a": {}}), 1, 2, 300.0, can_stream=True)
    core.tick(359.9, never)
    assert not core.is_over
    assert refused(core.tick(360.0, never), 2) == ("r", -31003, "timed_out", "unknown")
    assert is_silent(core)


def test_a_call_that_nobody_comes_back_for_is_cancelled_at_its_deadline() -> None:
    call = parked(begun(), *QUESTIONS)
    assert call.tick(301.0, never) == []
    *told, cancel, ended = call.tick(301.02, never)
    assert unanswered(told) == LAPSED
    assert (cancel, ended) == (cancelled(100, "the client did not return"), Ended("abandoned"))
    assert call.is_owed
    assert is_silent(call)


def test_every_round_has_the_whole_time() -> None:
    core = parked(begun(), form(1, "a"))
    core.resume(retry(2, {}), 1, 2, 300.0, can_stream=True)
    core.tick(300.02, never)
    assert core.due == 300.02 + LIMITS.park


# The child.


def test_a_child_that_answers_while_the_call_is_parked_answers_the_retry() -> None:
    core = parked(begun(), *QUESTIONS)
    assert unanswered(core.deliver(Result(100, raw('{"x":1}')), 2.0)) == LAPSED
    assert core.is_parked
    assert core.is_owed
    assert core.resume(retry("r", {"a": {}}), 1, 2, 3.0, can_stream=True) == done(2, completed("r", x=1))
    assert is_silent(core)


def test_an_error_that_comes_while_the_call_is_parked_answers_the_retry_in_the_words_of_the_revision() -> None:
    core = parked(begun(), form(1, "a"))
    core.deliver(Failure(100, raw('{"code":-32002,"message":"m"}')), 2.0)
    assert core.resume(retry("r", {"a": {}}), 1, 2, 3.0, can_stream=True) == done(
        2, Failure("r", raw('{"code":-32602,"message":"m"}'))
    )


def test_a_question_after_the_answer_is_no_question_of_the_call() -> None:
    core = parked(begun(), form(1, "a"))
    core.deliver(Result(100, raw("{}")), 2.0)
    assert unanswered(core.deliver(form(2, "b"), 3.0)) == [(2, -31001, "client_unreachable")]
    assert core.is_owed
    assert core.resume(retry(2, {}), 1, 2, 3.0, can_stream=True) == done(2, completed(2))


def test_a_child_that_asks_after_its_answer_is_suspect() -> None:
    core = parked(begun(), form(1, "a"))
    core.deliver(withdrawal(1), 2.0)
    core.deliver(Result(100, raw("{}")), 2.0)
    owed = [core.is_owed]
    core.deliver(form(2, "b"), 3.0)
    assert [*owed, core.is_owed] == [False, True]


@pytest.mark.parametrize(("core", "stream"), [(begun, 1), (asked, 1), (resumed, 2)])
def test_a_lost_child_is_told_of_at_once_to_whoever_waits(core: Callable[[], Interview], stream: int) -> None:
    call = core()
    effects = call.lost(Exited("gone", executed="unknown"))
    assert refused(effects, stream) == (stream, -31002, "exited", "unknown")
    assert len(effects) == 3
    assert not call.is_owed
    assert is_silent(call)


def test_of_a_child_that_is_lost_while_the_call_is_parked_the_retry_hears() -> None:
    core = parked(begun(), *QUESTIONS)
    assert core.lost(Exited("gone", executed="unknown")) == []
    assert core.is_parked
    assert not core.is_owed
    effects = core.resume(retry("r", {"a": {}}), 1, 2, 3.0, can_stream=True)
    assert refused(effects, 2) == ("r", -31002, "exited", "unknown")
    assert len(effects) == 3
    assert is_silent(core)


def test_nobody_is_told_anything_when_the_client_does_not_come_back_to_a_lost_child() -> None:
    core = parked(begun(), *QUESTIONS)
    core.lost(Exited("gone"))
    assert core.tick(301.02, never) == [Ended("abandoned")]
    assert is_silent(core)


def test_an_answer_counts_though_the_child_is_lost_before_the_retry() -> None:
    core = parked(begun(), form(1, "a"))
    core.deliver(Result(100, raw("{}")), 2.0)
    assert core.lost(Exited("gone")) == []
    assert core.resume(retry(2, {}), 1, 2, 3.0, can_stream=True) == done(2, completed(2))


def test_a_child_that_never_came_is_told_of() -> None:
    assert refused(begun().lost(Unavailable("no")), 1) == (1, -31001, "unavailable", "no")


def test_a_child_is_owed_nothing_after_a_plain_answer() -> None:
    core = parked(begun(), form(1, "a"))
    core.resume(retry(2, {"a": {}}), 1, 2, 3.0, can_stream=True)
    effects: list[Effect] = core.deliver(Result(100, raw("{}")), 4.0)
    assert effects == done(2, completed(2))
    assert not core.is_owed
    assert is_silent(core)
