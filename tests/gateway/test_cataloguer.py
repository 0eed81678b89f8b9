"""What servers offer, as far as somebody waits to know it."""

import asyncio
from collections.abc import Callable

import pytest

from app.gateway.cataloguer import Cataloguer
from app.gateway.settings import CatalogSettings, UpstreamSettings
from app.protocol.faults import Exited, GatewayFault, Unavailable
from tests.gateway.children import FakeChild, Starting, past, upstream
from tests.support.http import on_loop

SERVERS = {name: upstream(name) for name in ("a", "b")}


def refusal(retry_after: float | None = None) -> GatewayFault:
    return Unavailable("it does not start", reason="command_not_found", retry_after=retry_after)


def cataloguer(
    start: Starting, find: Callable[[str], UpstreamSettings | None] = SERVERS.get, **settings: float
) -> Cataloguer:
    return Cataloguer(CatalogSettings(**{"retry_seconds": 60, "fresh_seconds": 60, **settings}), find, start)  # type: ignore[arg-type]  # all of these are numbers


def names(known: Cataloguer, server: str = "a") -> list[str]:
    return [tool.name for tool in known.inventories[server].tools]


@on_loop
async def test_what_cannot_be_known_is_settled_with_a_reason() -> None:
    start = Starting(refusal(), refusal())
    known = cataloguer(start)
    await known.settle(["a", "b"])
    assert known.absences == {"a": "command_not_found", "b": "command_not_found"}
    assert start.asked == ["a", "b"]
    known.close()


@on_loop
async def test_nobody_waits_on_where_nobody_wants_to_know_any_more() -> None:
    known = cataloguer(Starting())
    known.close()
    known.close()
    await known.settle(["a"])
    waits = cataloguer(Starting(FakeChild()))
    settling = asyncio.create_task(waits.settle(["a"]))
    await past(0)
    assert not settling.done()
    waits.close()
    await settling


@on_loop
async def test_what_is_wanted_often_is_looked_at_once() -> None:
    child = FakeChild()
    start = Starting(child)
    known = cataloguer(start)
    for _ in range(3):
        known.want(["a"])
    assert not known.is_settled("a")
    child.lists(tools="find")
    known.want(["a"])
    assert (start.asked, names(known), known.version) == (["a"], ["find"], 1)
    known.close()


@on_loop
async def test_news_are_told_to_all_who_watch_and_wake_all_who_wait() -> None:
    child, heard = FakeChild(), list[str]()
    known = cataloguer(Starting(child))
    known.watch(one := lambda: heard.append("one"))
    known.watch(lambda: heard.append("other"))
    settling = asyncio.create_task(known.settle(["a"]))
    await child.is_asked.wait()
    child.lists(tools="find")
    await settling
    known.unwatch(one)
    known.unwatch(one)
    known.adopt([], [])
    assert heard == ["one", "other", "other"]
    known.close()


@on_loop
async def test_a_server_that_cannot_be_read_is_tried_again_after_twice_as_long_each_time() -> None:
    pauses: list[float] = []
    start = Starting(*(refusal() for _ in range(6)))
    known = cataloguer(start, retry_seconds=1, retry_max_seconds=8)
    known._later = lambda server, seconds: pauses.append(seconds)  # type: ignore[method-assign]  # time is not to pass
    for _ in range(6):
        known._survey("a")
    assert pauses == [1, 2, 4, 8, 8, 8]
    assert known.version == 1
    known.close()


@on_loop
async def test_who_says_when_to_come_again_is_not_tried_before() -> None:
    pauses: list[float] = []
    known = cataloguer(Starting(refusal(100.0)), retry_seconds=1)
    known._later = lambda server, seconds: pauses.append(seconds)  # type: ignore[method-assign]  # as above
    known.want(["a"])
    assert pauses == [100]
    known.close()


@on_loop
async def test_a_server_that_comes_up_later_is_known_then_and_absent_no_more() -> None:
    child = FakeChild()
    start = Starting(refusal(), refusal(), child)
    known = cataloguer(start, retry_seconds=0.005)
    known.want(["a"])
    assert known.absences == {"a": "command_not_found"}
    await child.is_asked.wait()
    child.lists(tools="find")
    assert (known.absences, names(known), start.asked) == ({}, ["find"], ["a"] * 3)
    known.close()


@on_loop
async def test_what_was_known_of_a_server_stays_when_it_cannot_be_read_again() -> None:
    first, second = FakeChild(), FakeChild()
    known = cataloguer(Starting(first, second), fresh_seconds=0)
    known.want(["a"])
    first.lists(tools="find")
    known.announced("a")
    await second.is_asked.wait()
    second.is_lost(Exited("gone"))
    assert (names(known), known.absences, known.is_settled("a")) == (["find"], {"a": "exited"}, True)
    known.close()


@on_loop
async def test_what_was_read_lately_is_not_read_again_however_often_it_is_said_to_change() -> None:
    first, second = FakeChild(), FakeChild()
    start = Starting(first, second)
    known = cataloguer(start, fresh_seconds=0.05)
    known.want(["a"])
    first.lists(tools="find")
    began = asyncio.get_running_loop().time()
    for _ in range(100):
        known.announced("a")
    await second.is_asked.wait()
    assert asyncio.get_running_loop().time() - began >= 0.04
    second.lists(tools="find read")
    assert (names(known), start.asked) == (["find", "read"], ["a", "a"])
    known.close()


@on_loop
async def test_a_change_that_is_said_while_it_is_read_is_read_once_more() -> None:
    """It may have come after the list that it is about."""
    first, second = FakeChild(), FakeChild()
    start = Starting(first, second)
    known = cataloguer(start, fresh_seconds=0.005)
    known.want(["a"])
    known.announced("a")
    known.announced("a")
    first.lists(tools="find")
    await second.is_asked.wait()
    second.lists(tools="read")
    await past(0.005)
    assert (names(known), start.asked) == (["read"], ["a", "a"])
    known.close()


@pytest.mark.parametrize("server", ["a", "nobody"])
def test_what_nobody_wanted_to_know_is_not_read_for_being_another(server: str) -> None:
    @on_loop
    async def unread() -> None:
        start = Starting()
        known = cataloguer(start, fresh_seconds=0)
        known.announced(server)
        known.adopt([server], [])
        await past(0)
        assert start.asked == []
        known.close()

    unread()


@on_loop
async def test_the_same_lists_are_no_news() -> None:
    first, second = FakeChild(), FakeChild()
    known = cataloguer(Starting(first, second), fresh_seconds=0)
    known.want(["a"])
    first.lists(tools="find")
    known.announced("a")
    await second.is_asked.wait()
    second.lists(tools="find")
    assert known.version == 1
    known.close()


@on_loop
async def test_a_server_that_is_configured_anew_is_read_anew_and_what_was_known_holds_meanwhile() -> None:
    first, second = FakeChild(), FakeChild()
    known = cataloguer(Starting(first, second))
    known.want(["a"])
    first.lists(tools="find")
    known.adopt(["a"], [])
    assert names(known) == ["find"]
    second.lists(tools="read")
    assert names(known) == ["read"]
    known.close()


@on_loop
async def test_a_look_at_what_is_configured_anew_begins_anew() -> None:
    first, second = FakeChild(), FakeChild()
    known = cataloguer(Starting(first, second))
    known.want(["a"])
    known.adopt(["a"], [])
    assert (first.is_closed, first.member) == (True, None)
    first.lists(tools="old")
    assert not known.is_settled("a")
    second.lists(tools="new")
    assert names(known) == ["new"]
    known.close()


@on_loop
async def test_of_a_server_that_is_configured_no_more_nothing_is_known_or_tried() -> None:
    child = FakeChild()
    start = Starting(child, refusal())
    known = cataloguer(start, retry_seconds=0.005)
    known.want(["a", "b"])
    child.lists(tools="find")
    known.adopt([], ["a", "b"])
    assert (known.inventories, known.absences) == ({}, {})
    assert not known.is_settled("a")
    await past(0.005)
    assert start.asked == ["a", "b"]
    known.close()


@on_loop
async def test_whoever_closes_leaves_no_child_and_no_timer_behind() -> None:
    child = FakeChild()
    start = Starting(child, refusal())
    known = cataloguer(start, retry_seconds=0.005)
    known.want(["a", "b"])
    known.close()
    assert (child.is_closed, child.member) == (True, None)
    known.want(["a", "b"])
    known.announced("a")
    await past(0.005)
    assert start.asked == ["a", "b"]
