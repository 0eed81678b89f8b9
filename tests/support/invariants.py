"""What holds whatever strikes: nothing is left of it, nobody else notices, and nothing secret is logged."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.client import Client
from tests.support.gateway import TOKEN, Gateway, eventually
from tests.support.http import bounded
from tests.support.watching import Bystander

CANARY = "canary-c0ffee-in-a-payload"
"""In payloads that tests send; never in a log."""
SECONDS = 4.0
"""What the end of a session may take: the ladder of its child, and two seconds."""


@contextmanager
def undisturbed(gateway: Gateway, bystander: Bystander, seconds: float = SECONDS) -> Iterator[list[Client]]:
    """Around a fault. The sessions of the clients in the list are ended before the look at what is left."""
    clients: list[Client] = []
    fds, children, lines = gateway.fds(), set(gateway.children()), len(gateway.log_lines)
    bystander.begin()
    try:
        yield clients
    finally:
        bounded(_end(clients))
        sight = bystander.end()
    assert eventually(lambda: set(gateway.children()) <= children, seconds), "children were left behind"
    assert eventually(lambda: gateway.fds() <= fds, seconds), f"{gateway.fds() - fds} descriptors were left behind"
    log = gateway.own_log(lines)
    assert "Traceback" not in log, log
    assert CANARY not in log, log
    assert TOKEN not in log, log
    sight.check()


async def _end(clients: list[Client]) -> None:
    for client in clients:
        if client.session is not None:
            reply = await client.delete()
            assert reply.status in (204, 404), reply.status
            await reply.body()
