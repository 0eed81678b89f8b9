"""What waits for a server that is not ready, and what finds no room."""

import pytest

from app.core.anteroom import Anteroom
from app.protocol.jsonrpc import Failure, Message, Notification, Request, Result
from tests.core.sessions import raw

FIRST, SECOND, THIRD = (Request(ident, "x") for ident in (1, 2, 3))
GREETING = Request(9, "initialize")
INITIALIZED = Notification("notifications/initialized")


def test_all_that_waits_comes_out_once_and_in_order() -> None:
    anteroom = Anteroom(10, 1000)
    assert anteroom.take(FIRST, 7)
    assert anteroom.take(SECOND, 8)
    assert anteroom.empty() == [(7, FIRST), (8, SECOND)]
    assert anteroom.empty() == []


def test_no_more_fit_than_may_by_count() -> None:
    anteroom = Anteroom(2, 1000)
    assert [anteroom.take(message) for message in (FIRST, SECOND, THIRD)] == [True, True, False]
    assert anteroom.withdraw(1)
    assert anteroom.take(THIRD)
    assert anteroom.empty() == [(0, SECOND), (0, THIRD)]


@pytest.mark.parametrize(
    "large",
    [
        Request(1, "x", raw("y" * 99)),
        Notification("x" * 60, raw("y" * 40)),
        Result(1, raw("y" * 100)),
        Failure(1, raw("y" * 100)),
    ],
)
def test_no_more_fit_than_may_by_bytes(large: Message) -> None:
    anteroom = Anteroom(10, 200)
    assert [anteroom.take(large) for _ in range(3)] == [True, True, False]
    anteroom.empty()
    assert anteroom.take(large)


def test_what_was_withdrawn_or_forgotten_leaves_its_bytes() -> None:
    large = Request(1, "x", raw("y" * 99))
    anteroom = Anteroom(10, 100)
    for leave in (lambda: anteroom.withdraw(1), lambda: anteroom.forget(5)):
        assert anteroom.take(large, 5)
        assert not anteroom.take(large, 5)
        leave()
    assert anteroom.take(large, 5)


def test_only_a_request_that_waits_can_be_withdrawn() -> None:
    anteroom = Anteroom(10, 1000)
    anteroom.take(Result(1, raw("{}")))
    assert not anteroom.withdraw(1)
    anteroom.take(FIRST)
    assert anteroom.withdraw(1)
    assert not anteroom.withdraw(1)


@pytest.mark.parametrize("greets", [GREETING, INITIALIZED])
def test_what_greets_has_room_once_for_each_party(greets: Message) -> None:
    anteroom = Anteroom(1, 1000)
    anteroom.take(FIRST)
    assert [anteroom.take(greets, party) for party in (1, 1, 2)] == [True, False, True]
    anteroom.forget(1)
    assert anteroom.empty() == [(0, FIRST), (2, greets)]
