"""Every bound: what is over it is refused at once and by its name, others are served, and it heals."""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.bounded import BRISK, Act, Attempt, answered, echoing, opening
from tests.chaos.planting import program
from tests.support import invariants
from tests.support.client import Client, KeptAlive, called, greeting
from tests.support.gateway import OTHER_TOKEN, Gateway, config, entry, serving
from tests.support.http import Reply, connection, on_loop, soon
from tests.support.metrics import number
from tests.support.stateless import CALL, StatelessClient, answers
from tests.support.watching import standing_by

AT_ONCE = 1.0


@dataclass
class Reached:
    """A bound that is used up: `attempt` is over it, `serves` still works, and after `heal` the attempt does, too."""

    attempt: Attempt
    serves: Act
    heal: Act


Reach = Callable[[Gateway], Awaitable[Reached]]


async def nothing() -> None: ...


async def sessions(gateway: Gateway) -> Reached:
    """Until one of them is ended."""
    first, second = [await Client(gateway).open() for _ in range(2)]
    return Reached(opening(gateway), echoing(first), second.delete)


async def sessions_of_one(gateway: Gateway) -> Reached:
    clients = [await Client(gateway).open() for _ in range(2)]
    return Reached(opening(gateway), Client(gateway, token=OTHER_TOKEN).open, clients[0].delete)


async def openings(gateway: Gateway) -> Reached:
    """Until time has passed; that they were ended does not count."""
    clients = [await Client(gateway).open() for _ in range(2)]
    assert (await clients[0].delete()).status == 204
    return Reached(opening(gateway), echoing(clients[1]), nothing)


async def openings_of_one(gateway: Gateway) -> Reached:
    reached = await openings(gateway)
    return Reached(reached.attempt, Client(gateway, token=OTHER_TOKEN).open, nothing)


async def children(gateway: Gateway) -> Reached:
    first, second = [await Client(gateway).open() for _ in range(2)]
    return Reached(opening(gateway, OTHER_TOKEN), echoing(first), second.delete)


async def children_and_a_stateless_request(gateway: Gateway) -> Reached:
    """Who has a child already is served."""
    client, has_one = await Client(gateway).open(), StatelessClient(gateway, capabilities={})
    await has_one.ask(CALL, called("swallow"))  # A child that nobody uses would be given up.
    other = StatelessClient(gateway, token=OTHER_TOKEN, capabilities={})
    return Reached(lambda: other.ask(CALL, called("echo")), lambda: has_one.tool("echo"), client.delete)


async def connections(gateway: Gateway) -> Reached:
    held = [await connection(gateway.port) for _ in range(2)]
    client = Client(gateway, token=OTHER_TOKEN)

    async def leave() -> None:
        for _, writer in held:
            writer.close()

    third, writer = await connection(gateway.port)
    served = Reply(0, {}, third, writer)
    return Reached(lambda: client.post(greeting()), lambda: answered(served, gateway), leave)


async def calls_of_a_session(gateway: Gateway) -> Reached:
    client, other = await Client(gateway).open(), await Client(gateway).open()
    for ident in ("a", "b"):
        await client.ask(CALL, called("sleep", seconds=1.5), ident=ident)
    return Reached(lambda: client.ask(CALL, called("echo")), echoing(other), nothing)


async def stateless_requests(gateway: Gateway) -> Reached:
    client, other = StatelessClient(gateway), StatelessClient(gateway, token=OTHER_TOKEN)
    waiting = [await client.ask(CALL, called("swallow")) for _ in range(2)]

    async def leave() -> None:
        waiting[0].drop()

    return Reached(lambda: client.ask(CALL, called("echo")), lambda: other.tool("echo"), leave)


async def stateless_children(gateway: Gateway) -> Reached:
    """All in use; one that is not makes room."""
    client, other = StatelessClient(gateway), StatelessClient(gateway, token=OTHER_TOKEN)
    waiting = [await client.ask(CALL, called("swallow")) for _ in range(2)]

    async def leave() -> None:
        waiting[0].drop()

    return Reached(lambda: client.ask(CALL, called("echo")), lambda: other.tool("echo"), leave)


async def parked_calls(gateway: Gateway) -> Reached:
    client, other = StatelessClient(gateway), StatelessClient(gateway, token=OTHER_TOKEN)
    asked = [await client.asked("interview", rounds=[["form"]]) for _ in range(2)]
    return Reached(
        lambda: client.ask(CALL, called("echo")),
        lambda: other.asked("interview", rounds=[["form"]]),
        lambda: client.retry(asked[0], answers(asked[0]), "interview", rounds=[["form"]]),
    )


async def capability_sets(gateway: Gateway) -> Reached:
    clients = [StatelessClient(gateway, capabilities={"sampling": {}, "experimental": {"n": n}}) for n in range(3)]
    asked = [await client.asked("interview", rounds=[["sample"]]) for client in clients[:2]]
    return Reached(
        lambda: clients[2].ask(CALL, called("echo")),
        lambda: clients[0].tool("echo"),
        lambda: clients[1].retry(asked[1], answers(asked[1]), "interview", rounds=[["sample"]]),
    )


async def streams(gateway: Gateway) -> Reached:
    client, other = await Client(gateway).open(), await Client(gateway).open()
    open_ones = [await client.listen(), await client.ask(CALL, called("swallow"), ident="s")]

    async def leave() -> None:
        open_ones[0].drop()

    return Reached(client.listen, echoing(other), leave)


async def hoard(gateway: Gateway) -> Reached:
    """The gateway itself has got too big."""
    client = await Client(gateway).open()
    os.kill(gateway.pid, signal.SIGUSR1)
    assert await soon(lambda: is_refused(opening(gateway)), 5)

    async def shrink() -> None:
        os.kill(gateway.pid, signal.SIGUSR2)

    return Reached(opening(gateway), echoing(client), shrink)


async def hoard_and_a_stateless_request(gateway: Gateway) -> Reached:
    reached, other = await hoard(gateway), StatelessClient(gateway, token=OTHER_TOKEN)
    return Reached(lambda: other.ask(CALL, called("echo")), reached.serves, reached.heal)


async def is_refused(attempt: Attempt) -> bool:
    """Or served, and then ended again."""
    reply = await attempt()
    reply.close()
    return reply.status == 503


async def descriptors(gateway: Gateway) -> Reached:
    """Until some of the sessions that have them are ended."""
    clients = []
    while True:
        client = Client(gateway)
        reply = await client.post(greeting())
        if reply.status == 503:
            reply.close()
            break
        client.session = reply.headers["mcp-session-id"]
        await reply.body()
        clients.append(client)
    assert len(clients) > 3

    async def end_some() -> None:
        for client in clients[1:]:
            assert (await client.delete()).status == 204

    return Reached(opening(gateway), echoing(clients[0]), end_some)


HOARDING = """
    import signal
    hoarded = []
    signal.signal(signal.SIGUSR1, lambda *_: hoarded.append(bytearray(b"x") * (400 << 20)))
    signal.signal(signal.SIGUSR2, lambda *_: hoarded.clear())
"""
THRIFTY = f"""{HOARDING}
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (680 << 20, 680 << 20))
"""
FEW_DESCRIPTORS = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80))"
SOME_DESCRIPTORS = FEW_DESCRIPTORS.replace("80", "4000")


@dataclass
class Bound:
    reason: str
    status: int
    reach: Reach
    settings: dict[str, Any] = field(default_factory=dict)
    plant: str = ""


TWO_AT_ONCE = {"rate": 1, "burst": 2}
TWO_OF_ONE_AT_ONCE = {"ratePerPrincipal": 1, "burstPerPrincipal": 2}

BOUNDS = [
    Bound("sessions.max", 503, sessions, {"sessions": {"max": 2}}),
    Bound("sessions.maxPerPrincipal", 429, sessions_of_one, {"sessions": {"maxPerPrincipal": 2}}),
    Bound("sessions.rate", 503, openings, {"sessions": TWO_AT_ONCE}),
    Bound("sessions.ratePerPrincipal", 429, openings_of_one, {"sessions": TWO_OF_ONE_AT_ONCE}),
    Bound("limits.children", 503, children, {"limits": {"children": 2}}),
    Bound("limits.children", 503, children_and_a_stateless_request, {"limits": {"children": 2}}),
    Bound("limits.openFilesPercent", 503, descriptors, plant=FEW_DESCRIPTORS),
    Bound("limits.openFilesPercent", 503, descriptors, {"limits": {"openFilesPercent": 1}}, SOME_DESCRIPTORS),
    Bound("limits.memory", 503, hoard, {"limits": {"memory": 300 << 20}}, HOARDING),
    Bound("limits.memory", 503, hoard_and_a_stateless_request, {"limits": {"memory": 300 << 20}}, HOARDING),
    Bound("limits.connections", 503, connections, {"limits": {"connections": 3}}),
    Bound("limits.inFlight", 429, calls_of_a_session, {"limits": {"inFlight": 2}}),
    Bound("stateless.maxChildrenPerPrincipal", 429, stateless_children, {"stateless": {"maxChildrenPerPrincipal": 2}}),
    Bound("stateless.maxRequests", 429, stateless_requests, {"stateless": {"maxRequests": 2}}),
    Bound("stateless.maxBytes", 429, stateless_requests, {"stateless": {"maxBytes": 500}}),
    Bound("stateless.maxParked", 429, parked_calls, {"stateless": {"maxParked": 2}}),
    Bound("stateless.maxCapabilitySets", 503, capability_sets, {"stateless": {"maxCapabilitySets": 2}}),
    Bound("streams.maxPerSession", 429, streams, {"streams": {"maxPerSession": 2}}),
]  # fmt: skip


@contextmanager
def bounded_by(bound: Bound, folder: Path) -> Iterator[Gateway]:
    content = config({"stage": entry(**BRISK)}, **bound.settings)
    content["viaduct"].setdefault("streams", {})["streamAfter"] = 0.05
    content["viaduct"]["drain"] = 0.2
    running = {"program": program(bound.plant)} if bound.plant else {}
    with serving(content, folder, **running) as gateway:
        yield gateway


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: f"{bound.reason}-{bound.reach.__name__}")
def test_what_is_over_a_bound_is_refused_at_once_by_its_name_and_others_are_served_and_it_heals(
    bound: Bound, tmp_path: Path
) -> None:
    @on_loop
    async def check() -> None:
        reached = await bound.reach(gateway)
        began = time.monotonic()
        reply = await reached.attempt()
        error = (await reply.json())["error"]
        assert (reply.status, error["code"], error["data"]["reason"]) == (bound.status, -31005, bound.reason)
        assert error["data"]["executed"] == "no"
        assert int(reply.headers["retry-after"]) >= 1
        assert time.monotonic() - began < AT_ONCE
        await reached.serves()
        await reached.heal()
        assert await soon(lambda: is_let_in(reached.attempt))
        assert await number(gateway, "viaduct_refusals_total", reason=bound.reason) >= 1

    with bounded_by(bound, tmp_path) as gateway:
        check()


async def is_let_in(attempt: Attempt) -> bool:
    reply = await attempt()
    reply.close()
    return reply.status == 200


def test_where_the_machine_gives_little_memory_most_of_it_is_the_bound(tmp_path: Path) -> None:
    @on_loop
    async def check() -> None:
        reached = await hoard(gateway)
        error = (await (await reached.attempt()).json())["error"]
        assert error["data"]["reason"] == "limits.memory"
        await reached.serves()

    with serving(config({"stage": entry(**BRISK)}), tmp_path, program=program(THRIFTY)) as gateway:
        check()


# A flood.


@on_loop
async def flooded(gateway: Gateway, undisturbed: list[Client]) -> None:
    kept = [KeptAlive(gateway) for _ in range(40)]
    outcomes: list[tuple[int, str]] = []

    async def flood(line: KeptAlive) -> None:
        for _ in range(50):
            client = Client(gateway, "calm")
            reply, answer = await line.post(client, greeting())
            reason = answer["error"]["data"]["reason"] if "error" in answer else ""
            outcomes.append((reply.status, reason))
            if reply.status == 200:
                client.session = reply.headers["mcp-session-id"]
                undisturbed.append(client)
            else:
                assert int(reply.headers["retry-after"]) >= 1

    before = gateway.rss()
    await asyncio.gather(*map(flood, kept))
    assert {(200, ""), (429, "sessions.ratePerPrincipal")} <= set(outcomes)
    assert {status for status, _ in outcomes} == {200, 429}
    assert sum(status == 200 for status, _ in outcomes) <= 5
    assert gateway.rss() < before + (32 << 20)


def test_a_principal_that_opens_sessions_without_end_gets_few_and_nobody_else_notices(tmp_path: Path) -> None:
    limits = {"maxPerPrincipal": 5, "ratePerPrincipal": 0.5, "burstPerPrincipal": 3}
    with (
        serving(config({"calm": entry(**BRISK)}, sessions=limits), tmp_path) as gateway,
        standing_by(gateway) as bystander,
        invariants.undisturbed(gateway, bystander) as clients,
    ):
        flooded(gateway, clients)
