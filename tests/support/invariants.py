"""What holds whatever strikes: nothing is left of it, nobody else notices, and nothing secret is logged."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.client import Client
from tests.support.gateway import TOKEN, Gateway, eventually
from tests.support.http import bounded
from tests.support.metrics import Shown, at_rest
from tests.support.watching import Bystander

CANARY = "canary-c0ffee-in-a-payload"
"""In payloads that tests send; never in a log."""
SECONDS = 4.0
"""What the end of a session may take: the ladder of its child, and two seconds."""
MEMORY = 24 << 20
"""Bytes that a test may leave the gateway larger by: its largest messages, and what the allocator keeps of them."""
PASSING = (
    "viaduct_tasks",
    "viaduct_sessions",
    "viaduct_calls_in_flight",
    "viaduct_parked_calls",
    "viaduct_streams",
    "viaduct_child_queue_bytes",
    "viaduct_client_queue_bytes",
)
"""What the gateway itself says that it has, and has no more of when a fault is over."""


@contextmanager
def undisturbed(
    gateway: Gateway, bystander: Bystander, seconds: float = SECONDS, memory: int = MEMORY
) -> Iterator[list[Client]]:
    """Around a fault. The sessions of the clients in the list are ended before the look at what is left."""
    clients: list[Client] = []
    fds, children, lines = gateway.fds(), set(gateway.children()), len(gateway.log_lines)
    rss, kept = gateway.rss(), at_rest(gateway)
    bystander.begin()
    try:
        yield clients
    finally:
        bounded(_end(clients))
        sight = bystander.end()
    assert eventually(lambda: set(gateway.children()) <= children, seconds), (
        f"children were left behind: {sorted(set(gateway.children()) - children)}"
    )
    assert eventually(lambda: gateway.fds() <= fds, seconds), f"{gateway.fds() - fds} descriptors were left behind"
    assert eventually(lambda: not grown(kept, at_rest(gateway)), seconds), grown(kept, at_rest(gateway))
    assert gateway.rss() - rss < memory, f"{(gateway.rss() - rss) >> 20} MiB were left behind"
    log = gateway.own_log(lines)
    assert "Traceback" not in log, log
    assert CANARY not in log, log
    assert TOKEN not in log, log
    sight.check()


def grown(before: Shown, now: Shown) -> str:
    """What there is more of than before; empty where there is nothing."""
    more = []
    for name in PASSING:
        rise = sum(now[name].values()) - sum(before[name].values())
        if rise > 0:
            more.append(f"{rise:.0f} {name} were left behind")
    return ", ".join(more)


async def _end(clients: list[Client]) -> None:
    for client in clients:
        if client.session is not None:
            reply = await client.delete()
            assert reply.status in (204, 404), reply.status
            await reply.body()
