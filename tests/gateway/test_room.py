"""How much room there is, by what is seen of the machine now and then."""

import asyncio
from collections.abc import Callable
from functools import wraps

import pytest

from app.core.fairness import Wish
from app.gateway.room import Files, Memory, Place, Room
from app.gateway.settings import RoomSettings
from app.protocol.faults import Overloaded
from app.upstreams import machine


class Machine:
    """`looks` counts how often it was looked at; a look takes `takes` seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.takes = 0.0
        self.files = 0
        self.files_max = 100
        self.memory = machine.Memory(0, 0)
        self.mapped_max: int | None = None
        self.resident_max: int | None = None
        self.looks = 0
        monkeypatch.setattr(machine, "open_files", self._open_files)
        monkeypatch.setattr(machine, "open_files_max", lambda: self.files_max)
        monkeypatch.setattr(machine, "memory", self._memory)
        monkeypatch.setattr(machine, "mapped_max", lambda: self.mapped_max)
        monkeypatch.setattr(machine, "resident_max", lambda: self.resident_max)

    def clock(self) -> float:
        return self.now

    def _open_files(self) -> int:
        self.looks += 1
        self.now += self.takes
        return self.files

    def _memory(self) -> machine.Memory:
        self.looks += 1
        return self.memory


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def in_loop(test: Callable[[Machine], None]) -> Callable[[Machine], None]:
    @wraps(test)
    def run(seen: Machine) -> None:
        async def body() -> None:
            test(seen)

        asyncio.run(body())

    return run


def refused(room: Room, *, needs_place: bool = True) -> str:
    """By which bound; empty where there is room."""
    try:
        room.admit(needs_place=needs_place)
    except Overloaded as fault:
        return fault.reason
    return ""


@in_loop
def test_as_many_places_as_there_are_and_then_none_until_one_is_given_back(seen: Machine) -> None:
    room = Room(RoomSettings(children_max=2), seen.clock)
    places = [room.place(Wish()), room.place(Wish())]
    assert (refused(room), refused(room, needs_place=False)) == ("limits.children", "")
    places[0].give_back()
    places[0].give_back()
    assert refused(room) == ""
    room.place(Wish())
    assert refused(room) == "limits.children"


@in_loop
def test_who_has_to_wait_for_a_place_gets_the_next_before_anybody_new(seen: Machine) -> None:
    room = Room(RoomSettings(children_max=1), seen.clock)
    first, second = room.place(Wish()), room.place(Wish())
    assert (first.came.done(), second.came.done()) == (True, False)
    first.give_back()
    assert second.came.result() is True
    assert refused(room) == "limits.children"


@in_loop
def test_children_for_later_leave_a_fifth_of_the_places(seen: Machine) -> None:
    room = Room(RoomSettings(children_max=10), seen.clock)
    places: list[Place] = []
    while room.has_some_for_later:
        places.append(room.place(Wish()))
    assert (len(places), refused(room)) == (8, "")


@in_loop
def test_what_was_begun_counts_before_it_is_seen(seen: Machine) -> None:
    """Four descriptors for each child, whether it is started already or still to be."""
    seen.files, seen.takes = 60, 0.001
    room = Room(RoomSettings(files_percent=80), seen.clock)
    places: list[Place] = []
    while not refused(room):
        places.append(room.place(Wish()))
    assert (len(places), refused(room)) == (5, "limits.openFilesPercent")
    for place in places:
        place.fill()
    seen.files = 80
    assert refused(room) == "limits.openFilesPercent"
    seen.files = 50
    seen.now += 1
    assert refused(room) == ""


@in_loop
def test_a_child_that_is_not_wanted_any_more_takes_no_descriptors(seen: Machine) -> None:
    seen.files = 76
    room = Room(RoomSettings(files_percent=80), seen.clock)
    place = room.place(Wish())
    assert refused(room) == "limits.openFilesPercent"
    place.give_back()
    place.give_back()
    assert refused(room) == ""


def test_descriptors_are_counted_once_a_second_as_long_as_there_are_few(seen: Machine) -> None:
    files = Files(80, seen.clock)
    for tenth in range(31):
        seen.now = tenth / 10
        assert not files.is_over()
    assert seen.looks == 4


def test_nobody_is_refused_by_an_old_count_but_counting_is_no_more_than_a_twentieth_of_the_time(seen: Machine) -> None:
    seen.files, seen.takes = 90, 0.005
    files = Files(80, seen.clock)
    assert files.is_over()
    looks, began = seen.looks, seen.now
    while seen.now - began < 10:
        assert files.is_over()
        seen.now += 0.001
    assert (seen.looks - looks) * seen.takes <= (seen.now - began) / 20
    seen.files = 10
    seen.now += 0.1
    assert not files.is_over()


def test_connections_are_taken_until_nearly_all_descriptors_are(seen: Machine) -> None:
    files = Files(80, seen.clock)
    seen.files = 85
    assert (files.is_over(), files.are_nearly_all()) == (True, False)
    for _ in range(5):
        files.add()
    seen.files = 90
    assert files.are_nearly_all()


def test_memory_is_read_once_a_second(seen: Machine) -> None:
    memory = Memory(100, seen.clock)
    for tenth in range(20):
        seen.now = tenth / 10
        memory.is_over()
    assert seen.looks == 2


@pytest.mark.parametrize(
    ("limit", "had", "resident_max", "mapped_max", "is_over"),
    [
        (100, (1000, 100), None, None, False),
        (100, (1000, 101), None, None, True),
        (100, (1000, 100), 50, 50, False),
        (None, (1000, 1000), None, None, False),
        (None, (1000, 80), 100, None, False),
        (None, (1000, 81), 100, None, True),
        (None, (80, 10), None, 100, False),
        (None, (81, 10), None, 100, True),
    ],
)
def test_memory_is_over_the_operators_limit_or_most_of_the_machines(
    seen: Machine,
    limit: int | None,
    had: tuple[int, int],
    resident_max: int | None,
    mapped_max: int | None,
    is_over: bool,
) -> None:
    seen.memory, seen.resident_max, seen.mapped_max = machine.Memory(*had), resident_max, mapped_max
    assert Memory(limit, seen.clock).is_over() is is_over
