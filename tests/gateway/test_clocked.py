"""Which call an answer is counted for."""

import pytest

from app.core.judged import Judged
from app.gateway.clocked import Clocked
from app.protocol.faults import Cancelled
from app.protocol.jsonrpc import Notification, Reply, Request, Result, failure, payload
from app.telemetry.tally import Calls

SOLE = 1


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def clocked(calls: Calls) -> Clocked:
    return Clocked(calls)


def counted(calls: Calls) -> list[tuple[str, str, int]]:
    return [(method, outcome, sum(timing.counts)) for method, outcome, timing in calls.all()]


def ok(ident: int | str) -> Result:
    return Result(ident, payload({}))


def test_an_answer_is_counted_for_the_call_of_its_stream(clocked: Clocked, calls: Calls) -> None:
    clocked.begin(1, Request(1, "ping"))
    clocked.begin(2, Request(1, "tools/list"))
    clocked.answered(2, ok(7))
    assert (counted(calls), len(clocked)) == ([("tools/list", "ok", 1)], 1)


def test_the_answers_of_a_batch_are_counted_by_their_ids(clocked: Clocked, calls: Calls) -> None:
    clocked.begin_all(5, [Request(1, "ping"), Notification("x"), Request("1", "tools/list")])
    clocked.answered(5, ok("1"))
    clocked.answered(5, failure(1, Cancelled("gone")))
    assert counted(calls) == [("tools/list", "ok", 1), ("ping", "cancelled", 1)]
    assert len(clocked) == 0


def test_calls_that_share_an_id_are_counted_one_by_one(clocked: Clocked, calls: Calls) -> None:
    clocked.begin_all(SOLE, [Request(1, "ping"), Request(1, "tools/call")])
    clocked.answered(SOLE, ok(1))
    assert (counted(calls), len(clocked)) == ([("tools/call", "ok", 1)], 1)
    clocked.answered(SOLE, ok(1))
    clocked.answered(SOLE, ok(1))
    assert (counted(calls), len(clocked)) == ([("tools/call", "ok", 1), ("ping", "ok", 1)], 0)


def test_a_call_that_was_taken_back_is_over(clocked: Clocked, calls: Calls) -> None:
    clocked.begin_all(SOLE, [Request(1, "tools/call")])
    clocked.cancelled(SOLE, 2)
    clocked.cancelled(SOLE, 1)
    clocked.cancelled(SOLE, 1)
    assert (counted(calls), len(clocked)) == ([("tools/call", "cancelled", 1)], 0)


def test_initialize_cannot_be_taken_back(clocked: Clocked, calls: Calls) -> None:
    clocked.begin_all(SOLE, [Request(0, "initialize")])
    clocked.cancelled(SOLE, 0)
    assert (counted(calls), len(clocked)) == ([], 1)
    clocked.answered(SOLE, ok(0))
    assert counted(calls) == [("initialize", "ok", 1)]


def test_nothing_is_kept_of_calls_that_are_over(clocked: Clocked) -> None:
    for ident in range(100):
        clocked.begin_all(SOLE, [Request(ident, "ping")])
        clocked.answered(SOLE, ok(ident))
    assert clocked._many == {}


class Noted:
    def __init__(self) -> None:
        self.replies: list[Reply | None] = []

    def over(self, reply: Reply | None) -> None:
        self.replies.append(reply)


def test_the_docket_of_a_call_is_told_once_how_it_ended(clocked: Clocked) -> None:
    answered, cancelled, left = Noted(), Noted(), Noted()
    clocked.begin(2, Judged(1, "ping", docket=answered))
    clocked.begin_all(SOLE, [Judged(1, "ping", docket=cancelled), Judged(2, "ping", docket=left)])
    clocked.answered(2, ok(1))
    clocked.cancelled(SOLE, 1)
    clocked.close()
    clocked.close()
    assert (answered.replies, cancelled.replies, left.replies) == ([ok(1)], [None], [None])
