"""The invariants: whatever strikes, nothing of it is left, and nobody else notices."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from tests.support.client import Client
from tests.support.gateway import TOKEN, Gateway, eventually
from tests.support.http import bounded
from tests.support.watching import Bystander, standing_by

CANARY = "canary-c0ffee-in-a-payload"
"""In payloads that tests send; never in a log."""

Connect = Callable[..., Awaitable[Client]]


@pytest.fixture(scope="module")
def bystander(gateway: Gateway) -> Iterator[Bystander]:
    with standing_by(gateway) as bystander:
        yield bystander


@pytest.fixture
def undisturbed(gateway: Gateway, bystander: Bystander) -> Iterator[list[Client]]:
    """Around a test: a bystander, and at the end a look for what is left. Yields the sessions to be ended."""
    clients: list[Client] = []
    fds, children, lines = gateway.fds(), set(gateway.children()), len(gateway.log_lines)
    bystander.begin()
    try:
        yield clients
    finally:
        bounded(_end(clients))
        sight = bystander.end()
    assert eventually(lambda: set(gateway.children()) <= children, 4), "children were left behind"
    assert eventually(lambda: gateway.fds() <= fds, 4), f"{gateway.fds() - fds} descriptors were left behind"
    log = gateway.own_log(lines)
    assert "Traceback" not in log, log
    assert CANARY not in log, log
    assert TOKEN not in log, log
    sight.check()


@pytest.fixture
def connect(gateway: Gateway, undisturbed: list[Client]) -> Connect:
    """Opens a session that is ended after the test, whatever became of it."""

    async def opened(server: str = "calm", **options: Any) -> Client:
        token = options.pop("token", TOKEN)
        client = Client(gateway, server, token)
        undisturbed.append(client)
        return await client.open(**options)

    return opened


async def _end(clients: list[Client]) -> None:
    for client in clients:
        if client.session is not None:
            reply = await client.delete()
            assert reply.status in (204, 404), reply.status
            await reply.body()
            await reply.writer.wait_closed()
