"""What a child asked before the call was sent to it is answered first."""

import pytest

from app.core.deadlines import FOREVER
from app.core.effects import Ended, EndStream, ToClient, ToUpstream
from app.core.interview import Interview
from app.protocol import methods
from app.protocol.faults import Exited
from app.protocol.jsonrpc import Failure, Result, payload
from tests.core.exchanges import (
    asking,
    call_at_child,
    completed,
    done,
    form,
    interview,
    never,
    raw,
    request,
    retry,
    roots,
    shown,
)

ROOTS = {"roots": [{"uri": "file:///a"}]}


@pytest.fixture
def early() -> Interview:
    """A call whose child wants to know the roots before it."""
    core = interview(request(1))
    assert core.deliver(roots("r"), 0.0) == []
    assert core.begin(1, 0.0, can_stream=True) == []
    return core


def test_the_client_is_asked_and_the_call_goes_out_behind_its_answer(early: Interview) -> None:
    assert asking(early.tick(0.02, never), 1, 1)["inputRequests"] == {"roots": shown(roots("r"))}
    told = early.resume(retry(2, {"roots": ROOTS}), 1, 2, 1.0, can_stream=True)
    assert told == [ToUpstream(Result("r", payload(ROOTS)))]
    assert early.due == pytest.approx(1.02)
    assert early.tick(1.02, never) == [call_at_child()]
    assert early.deliver(Result(100, raw("{}")), 2.0) == done(2, completed(2))


def test_answers_in_part_hold_the_call_back(early: Interview) -> None:
    early.deliver(form("f", "name"), 0.01)
    early.tick(0.2, never)
    assert early.resume(retry(2, {"roots": ROOTS}), 1, 2, 1.0, can_stream=True) == [
        ToUpstream(Result("r", payload(ROOTS)))
    ]
    assert list(asking(early.tick(1.1, never), 2, 2)["inputRequests"]) == ["name"]
    told = early.resume(retry(3, {"name": {"action": "decline"}}), 2, 3, 2.0, can_stream=True)
    assert told == [ToUpstream(Result("f", payload({"action": "decline"})))]
    assert early.deliver(form("g", "more"), 2.01) == []
    assert list(asking(early.tick(2.05, never), 3, 3)["inputRequests"]) == ["more"]
    early.resume(retry(4, {"more": {"action": "decline"}}), 3, 4, 3.0, can_stream=True)
    assert early.tick(3.02, never) == [call_at_child()]


def test_a_child_that_does_not_want_to_know_any_more_gets_the_call_at_once(early: Interview) -> None:
    assert early.deliver(methods.cancellation("r", ""), 0.01) == [call_at_child()]
    assert early.tick(0.2, never) == []


def test_one_that_thinks_so_while_the_client_is_asked_gets_it_with_the_retry(early: Interview) -> None:
    early.tick(0.02, never)
    assert early.deliver(methods.cancellation("r", ""), 0.5) == []
    assert early.resume(retry(2, {}), 1, 2, 1.0, can_stream=True) == []
    assert early.tick(1.02, never) == [call_at_child()]


def test_a_client_that_comes_back_with_less_has_its_call_sent_all_the_same(early: Interview) -> None:
    early.tick(0.02, never)
    told = early.resume(retry(2, {}, capabilities={}), 1, 2, 1.0, can_stream=True) + early.tick(1.02, never)
    assert [type(effect.message) for effect in told if isinstance(effect, ToUpstream)] == [Failure, type(request())]


@pytest.mark.parametrize("is_asked", [False, True])
def test_a_client_that_goes_leaves_nothing_at_the_child_but_an_error(early: Interview, is_asked: bool) -> None:
    if is_asked:
        early.tick(0.02, never)
        effects = early.tick(400, never)
    else:
        effects = early.gone(1)
    match effects:
        case [ToUpstream(Failure("r")), Ended()]:
            assert not early.is_owed
            assert early.due == FOREVER
        case _:
            pytest.fail(repr(effects))


def test_a_child_that_is_lost_meanwhile_fails_the_call(early: Interview) -> None:
    match early.lost(Exited("gone")):
        case [ToClient(1, Failure(1)), EndStream(1), Ended()]:
            pass
        case other:
            pytest.fail(repr(other))
