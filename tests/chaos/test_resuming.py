"""Streams that are resumed after long, or of which much was missed."""

from pathlib import Path

import pytest

from app.core.replay import REMEMBERED_STREAMS
from tests.chaos.test_streams import BRISK, CALL, next_with_id, progress
from tests.support.client import Client
from tests.support.gateway import config, entry, serving
from tests.support.http import on_loop


@on_loop
async def test_a_stream_that_was_silent_through_a_thousand_others_is_resumed(tmp_path: Path) -> None:
    with serving(config({"calm": entry(**BRISK)}), tmp_path) as gateway:
        client = await Client(gateway, "calm").open()
        listener = await client.listen()
        last = (await next_with_id(listener)).id
        for _ in range(REMEMBERED_STREAMS + 30):
            reply = await client.post({"id": 1, "jsonrpc": "2.0", "method": "ping"}, Accept="text/event-stream")
            assert await reply.body()
        listener.drop()
        resumed = await client.listen(last)
        assert resumed.status == 200
        await client.tool("changed", what="tools")
        assert "list_changed" in (await resumed.next_message())["method"]


@pytest.mark.parametrize("store", ["memory", "sqlite://{}/sessions.db"])
@on_loop
async def test_who_missed_more_than_a_connection_may_hold_back_hears_it_over_several(
    tmp_path: Path, store: str
) -> None:
    content = config({"calm": entry(**BRISK)}, streams={"queueBytes": 4096}, store=store.format(tmp_path))
    with serving(content, tmp_path) as gateway:
        client = await Client(gateway, "calm").open()
        first = await client.ask(CALL, progress(200, 0.001), ident="x")
        last = (await next_with_id(first)).id
        first.drop()
        assert await client.tool("sleep", seconds=0.5) == "slept"
        numbers, connections = list[int](), 0
        while 0 not in numbers:
            connections += 1
            async for event in (await client.listen(last)).events():
                if event.data:
                    last = event.id
                    numbers.append(event.message.get("params", {}).get("progress", 0))
        assert numbers == [*range(1, 201), 0]
        assert 2 < connections < 20
