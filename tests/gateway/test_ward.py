"""A child that nobody wants any more, at each step of its start."""

import asyncio
import sys

import pytest

from app.core.supervision import State
from app.gateway.settings import SupervisorSettings, UpstreamSettings
from app.gateway.supervisor import Supervisor
from app.gateway.tasks import Tasks
from app.upstreams.child import Exit
from app.upstreams.command import Command


class Deaf:
    def on_line(self, _text: bytes) -> None: ...

    def on_oversize(self) -> None: ...

    def on_exit(self, _exit: Exit) -> None: ...


@pytest.mark.parametrize("for_later", [False, True])
@pytest.mark.parametrize("turns", range(6))
def test_whenever_a_child_becomes_unwanted_nothing_of_it_is_left(turns: int, for_later: bool) -> None:
    async def work() -> None:
        upstream = UpstreamSettings("x", Command((sys.executable, "-I", "-S", "-c", "input()")))
        supervisor = Supervisor(SupervisorSettings(starts_max=1), Tasks())
        ward = supervisor.ward(upstream)
        start = ward.start_for_later(Deaf()) if for_later else ward.start(Deaf())
        starting = asyncio.create_task(start)
        for _ in range(turns):
            await asyncio.sleep(0)
        ward.unwanted()
        child = await starting
        if child is not None:
            assert [view.state for view in supervisor.views([upstream])[0].children] == [State.STOPPING]
            await ward.stop(child)
        assert supervisor.views([upstream])[0].children == ()
        following = await supervisor.ward(upstream).start(Deaf())
        assert following is not None
        await following.stop()

    asyncio.run(work())
