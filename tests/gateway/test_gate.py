"""Who is let in, and in which order the bounds are looked at."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps

import pytest

from app.core.fairness import Wish
from app.core.rates import Rate
from app.gateway.gate import Gate
from app.gateway.settings import RoomSettings, SessionSettings, SupervisorSettings, UpstreamSettings
from app.gateway.supervisor import Supervisor
from app.gateway.tasks import Tasks
from app.protocol.faults import Overloaded
from app.upstreams.command import Command

STAGE = UpstreamSettings("stage", Command(("true",)))
SHARED = UpstreamSettings("shared", Command(("true",)), isolation="shared")


def in_loop(test: Callable[[], None]) -> Callable[[], None]:
    @wraps(test)
    def run() -> None:
        async def body() -> None:
            test()

        work: Coroutine[None, None, None] = body()
        asyncio.run(work)

    return run


class Doors:
    """A gate with a clock that is set by hand."""

    def __init__(self, settings: SessionSettings, children_max: int = 1000) -> None:
        self.now = 0.0
        self.shared: set[str] = set()
        self.supervisor = Supervisor(SupervisorSettings(room=RoomSettings(children_max)), Tasks())
        self.gate = Gate(settings, lambda: self.supervisor, self.shared.__contains__, lambda: self.now)

    def refused(
        self, owner: str = "one", upstream: UpstreamSettings = STAGE, owned: int = 0, *, is_new: bool = True
    ) -> str:
        try:
            self.gate.admit(upstream, owner, 0, owned, is_new=is_new)
        except Overloaded as fault:
            return fault.reason
        return ""


@in_loop
def test_with_the_defaults_a_principal_may_open_two_hundred_sessions_at_once() -> None:
    doors = Doors(SessionSettings())
    assert [doors.refused() for _ in range(200)] == [""] * 200


@in_loop
def test_who_is_too_fast_is_refused_and_another_is_not() -> None:
    doors = Doors(SessionSettings(rate_per_principal=Rate(1.0, 2)))
    assert [doors.refused() for _ in range(3)] == ["", "", "sessions.ratePerPrincipal"]
    assert doors.refused("other") == ""


@in_loop
def test_a_session_of_before_is_taken_up_however_fast_others_are_opened() -> None:
    doors = Doors(SessionSettings(rate_per_principal=Rate(1.0, 1)))
    assert [doors.refused(is_new=is_new) for is_new in (True, False, False)] == ["", "", ""]
    assert doors.refused() == "sessions.ratePerPrincipal"


@in_loop
def test_other_numbers_hold_from_now_on_and_equal_ones_go_on_counting() -> None:
    doors = Doors(SessionSettings(rate_per_principal=Rate(1.0, 1)))
    assert [doors.refused(), doors.refused()] == ["", "sessions.ratePerPrincipal"]
    doors.gate.resize(SessionSettings(rate_per_principal=Rate(1.0, 1), per_principal_max=3))
    assert (doors.refused(), doors.refused(owned=3)) == ("sessions.ratePerPrincipal", "sessions.maxPerPrincipal")
    doors.gate.resize(SessionSettings(rate_per_principal=Rate(1.0, 2)))
    assert doors.refused() == ""


@in_loop
def test_all_together_are_too_fast() -> None:
    doors = Doors(SessionSettings(rate=Rate(1.0, 2)))
    assert [doors.refused(owner) for owner in ("one", "other", "third")] == ["", "", "sessions.rate"]
    doors.now = 1.0
    assert doors.refused("third") == ""


@in_loop
def test_who_is_refused_uses_nothing_up() -> None:
    doors = Doors(SessionSettings(per_principal_max=1, rate=Rate(0.001, 1), rate_per_principal=Rate(0.001, 2)))
    assert [doors.refused(owned=1) for _ in range(9)] == ["sessions.maxPerPrincipal"] * 9
    assert [doors.refused() for _ in range(9)] == ["", *["sessions.rate"] * 8]
    doors.now = 1000.0
    assert [doors.refused() for _ in range(2)] == ["", "sessions.rate"]


@in_loop
def test_a_session_with_a_share_in_a_child_that_is_there_needs_no_place() -> None:
    doors = Doors(SessionSettings(), children_max=1)
    place = doors.supervisor.room.place(Wish())
    assert doors.refused(upstream=SHARED) == "limits.children"
    doors.shared.add("shared")
    assert doors.refused(upstream=SHARED) == ""
    place.give_back()


@in_loop
def test_a_stateless_request_for_a_child_that_all_share_is_refused_where_that_is_still_to_be_started() -> None:
    doors = Doors(SessionSettings(), children_max=1)
    doors.supervisor.room.place(Wish())
    doors.gate.admit_exchange(STAGE)
    with pytest.raises(Overloaded) as caught:
        doors.gate.admit_exchange(SHARED)
    assert caught.value.reason == "limits.children"
    doors.shared.add("shared")
    doors.gate.admit_exchange(SHARED)
