"""What is counted of event streams and their clients."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

from app.edge.responses import Response
from app.telemetry.tally import Tally


def response(tally: Tally, bytes_max: int = 100) -> Response:
    return Response(bytes_max=bytes_max, retry_ms=1, tally=tally)


async def never() -> MutableMapping[str, Any]:
    return await asyncio.get_running_loop().create_future()


def test_notifications_left_out_are_counted() -> None:
    tally = Tally()
    slow = response(tally)
    assert not slow.skips()
    slow.event(None, b"x" * 60)
    assert slow.skips()
    assert slow.skips()
    assert tally.left_out == 2


def test_a_client_that_is_cut_off_is_counted_once() -> None:
    tally = Tally()
    slow = response(tally)
    for _ in range(5):
        slow.event(None, b"x" * 101)
    assert tally.cut_off == 1


def test_what_a_client_has_not_taken_is_known_until_its_connection_ends() -> None:
    async def write() -> None:
        tally = Tally()
        slow = response(tally, 1 << 20)
        taken, is_taking, may_take = list[int](), asyncio.Event(), asyncio.Event()

        async def send(event: MutableMapping[str, Any]) -> None:
            if event.get("body"):
                (stream,) = tally.writing
                taken.append(stream.waiting_bytes)
                is_taking.set()
                await may_take.wait()

        slow.event(None, b"x" * 200_000)
        writing = asyncio.ensure_future(slow.write(never, send, [], keep_alive=60, close_after=None))
        await asyncio.wait_for(is_taking.wait(), 5)
        slow.event(None, b"y" * 992)
        assert [stream.waiting_bytes for stream in tally.writing] == [200_008 + 1_000]
        slow.end()
        may_take.set()
        await writing
        assert taken[0] == 200_008
        assert tally.writing == set()
        assert slow.waiting_bytes == 0

    asyncio.run(write())
