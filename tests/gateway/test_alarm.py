"""One timer for many things."""

import asyncio

import pytest

from app.core.deadlines import FOREVER
from app.gateway.alarm import Alarm
from tests.support.http import on_loop


@on_loop
async def test_it_rings_at_the_earliest_time_that_was_asked_for() -> None:
    loop, rung = asyncio.get_running_loop(), asyncio.Event()
    began, times = loop.time(), []

    def ring(now: float) -> float:
        times.append(now - began)
        rung.set()
        return FOREVER

    alarm = Alarm(ring)
    for delay in (5.0, 0.02, 3.0):
        alarm.by(began + delay)
    await asyncio.wait_for(rung.wait(), 2)
    assert 0.02 <= times[0] < 2
    alarm.by(loop.time() + 0.01)
    rung.clear()
    await asyncio.wait_for(rung.wait(), 2)
    assert len(times) == 2


@on_loop
async def test_it_rings_again_when_it_was_told_to_and_not_once_it_was_stopped() -> None:
    loop, done, count = asyncio.get_running_loop(), asyncio.Event(), 0

    def ring(now: float) -> float:
        nonlocal count
        count += 1
        if count == 3:
            alarm.stop()
            done.set()
            return FOREVER
        return now + 0.01

    alarm = Alarm(ring)
    alarm.by(loop.time())
    await asyncio.wait_for(done.wait(), 2)
    alarm.by(loop.time() + 60)
    alarm.stop()
    assert count == 3


@on_loop
async def test_a_bug_in_what_rings_does_not_silence_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.gateway.alarm._AGAIN_SECONDS", 0.01)
    loop, again, complaints, count = asyncio.get_running_loop(), asyncio.Event(), [], 0
    loop.set_exception_handler(lambda _loop, context: complaints.append(context))

    def ring(_now: float) -> float:
        nonlocal count
        count += 1
        if count == 1:
            raise ValueError("a bug")
        again.set()
        return FOREVER

    Alarm(ring).by(loop.time())
    await asyncio.wait_for(again.wait(), 2)
    assert len(complaints) == 1
