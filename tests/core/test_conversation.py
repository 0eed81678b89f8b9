"""How much a child is borne with, and when silence ends it."""

from itertools import count

import pytest

from app.core.conversation import FOREVER, Conversation, Tolerance
from app.protocol.faults import GatewayFault, SpokeNonsense, TimedOut
from app.protocol.jsonrpc import Request


@pytest.fixture
def talk() -> Conversation:
    return Conversation(Tolerance(bad_lines=3, oversized=2, ping=30, recover=5), count(7))


def told(fault: GatewayFault | None) -> tuple[type, str, str]:
    assert fault is not None
    return type(fault), fault.reason, fault.executed


def test_stray_lines_are_borne_until_there_are_too_many_in_a_minute(talk: Conversation) -> None:
    assert [talk.nonsense(now) for now in (0, 20, 40)] == [None, None, None]
    assert told(talk.nonsense(60)) == (SpokeNonsense, "spoke_nonsense", "unknown")


def test_stray_lines_of_more_than_a_minute_ago_are_forgiven(talk: Conversation) -> None:
    assert [talk.nonsense(now) for now in (0, 20, 40, 60.1, 80.1, 100.1, 200)] == [None] * 7


def test_stray_lines_alone_raise_no_doubt(talk: Conversation) -> None:
    talk.nonsense(0)
    assert talk.due == FOREVER


def test_oversized_lines_are_counted_for_good(talk: Conversation) -> None:
    for now in (0, 1000):
        assert talk.oversized(now) is None
        talk.heard()
    assert told(talk.oversized(9999)) == (SpokeNonsense, "spoke_nonsense", "unknown")


def test_after_an_oversized_line_something_sensible_must_follow_soon(talk: Conversation) -> None:
    talk.oversized(10)
    assert talk.due == 15
    assert talk.tick(14.9) is None
    assert told(talk.tick(15)) == (SpokeNonsense, "spoke_nonsense", "unknown")
    assert (talk.due, talk.tick(16)) == (FOREVER, None)


def test_a_sensible_line_after_an_oversized_one_dispels_the_suspicion(talk: Conversation) -> None:
    talk.oversized(10)
    talk.heard()
    assert (talk.due, talk.tick(15)) == (FOREVER, None)


def test_a_doubted_child_is_asked_for_a_sign_of_life_and_silence_ends_it(talk: Conversation) -> None:
    assert talk.doubt(10) == Request(7, "ping")
    assert talk.due == 40
    assert talk.tick(39.9) is None
    assert told(talk.tick(40)) == (TimedOut, "unresponsive", "unknown")


def test_a_child_that_is_under_suspicion_is_not_asked_again(talk: Conversation) -> None:
    talk.doubt(10)
    assert talk.doubt(20) is None
    assert talk.due == 40
    talk.heard()
    assert talk.doubt(50) == Request(8, "ping")


def test_anything_sensible_is_a_sign_of_life(talk: Conversation) -> None:
    talk.doubt(10)
    talk.heard()
    assert (talk.due, talk.tick(40)) == (FOREVER, None)


def test_nothing_is_due_as_long_as_nothing_is_suspected(talk: Conversation) -> None:
    assert talk.tick(1e12) is None
