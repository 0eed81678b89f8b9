"""Tools that are looked for in a thread of their own."""

import asyncio
import threading

import pytest

from app.core.catalog import Catalog, Sight, composed
from app.core.inventory import Inventory
from app.core.joint_rules import everything
from app.core.shaping import WHOLE
from app.gateway.searching import Searching
from tests.core.inventories import item, raw
from tests.support.gateway import eventually
from tests.support.http import on_loop


def catalog(*tools: str) -> Catalog:
    inventory = Inventory({"tools": raw({})}, "", tuple(item("tools", name, description=name) for name in tools))
    return composed({"a": inventory}, "none", WHOLE)


TOOLS = catalog("send mail", "read mail", "read file")


class Found:
    def __init__(
        self,
        searching: Searching,
        query: str,
        limit: int = 5,
        at: Catalog = TOOLS,
        sees: Sight = everything,
    ) -> None:
        self.told: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()
        searching.find(at, query, limit, sees, lambda entries: self.told.set_result([entry.own for entry in entries]))


@on_loop
async def test_the_nearest_are_found_best_first_and_no_more_than_wanted() -> None:
    looking = Searching()
    assert await Found(looking, "send a mail").told == ["send mail", "read mail"]
    assert await Found(looking, "send a mail", 1).told == ["send mail"]
    assert await Found(looking, "weather").told == []
    looking.close()


@on_loop
async def test_what_may_not_be_seen_takes_nobodys_place() -> None:
    looking = Searching()
    assert await Found(looking, "send a mail", 1, sees=lambda _shelf, entry: entry.own != "send mail").told == [
        "read mail"
    ]
    looking.close()


@on_loop
async def test_each_catalog_is_looked_at_by_itself_and_few_are_kept() -> None:
    looking = Searching()
    for number in range(12):
        at = catalog(f"tool{number} mail")
        assert await Found(looking, "mail", at=at).told == [f"tool{number} mail"]
        assert await Found(looking, "mail", at=at).told == [f"tool{number} mail"]
    assert len(looking._rankers) == 8
    looking.close()


@on_loop
async def test_a_bug_in_the_thread_is_told_to_the_log_and_finds_nothing() -> None:
    looking = Searching()
    broken = catalog("mail")
    broken.entries = {}
    assert await Found(looking, "mail", at=broken).told == []
    assert await Found(looking, "mail").told == ["read mail", "send mail"]
    looking.close()


@on_loop
async def test_whoever_still_waits_at_the_end_finds_nothing_and_no_thread_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go_on = threading.Event()

    def held(*_: object) -> list[str]:
        go_on.wait(10)
        return []

    looking = Searching()
    monkeypatch.setattr(looking, "_ranked", held)
    waiting = [Found(looking, "mail") for _ in range(3)]
    thread = looking._thread
    looking.close()
    looking.close()
    assert [await found.told for found in waiting] == [[], [], []]
    go_on.set()
    assert thread is not None
    thread.shutdown(wait=True)
    assert eventually(lambda: not [each for each in threading.enumerate() if each.name.startswith("viaduct-search")])


@on_loop
async def test_after_the_end_nothing_is_found_and_nothing_begins() -> None:
    looking = Searching()
    looking.close()
    assert await Found(looking, "mail").told == []
    assert looking._thread is None


@on_loop
async def test_the_end_closes_what_was_indexed() -> None:
    looking = Searching()
    await Found(looking, "mail").told
    thread = looking._thread
    looking.close()
    assert thread is not None
    await asyncio.to_thread(thread.shutdown)
    assert looking._rankers == {}
