"""The talk with a child that does not run yet."""

import asyncio
from itertools import count

from app.gateway.link import Link
from app.gateway.settings import SupervisorSettings, UpstreamSettings
from app.gateway.supervisor import Supervisor
from app.gateway.tasks import Tasks
from app.protocol import methods
from app.protocol.faults import GatewayFault
from app.protocol.jsonrpc import Failure, Message, Notification, Request
from app.upstreams.child import ChildLimits
from app.upstreams.command import Command


def test_what_waits_for_a_child_that_does_not_run_yet_is_bounded_and_can_be_withdrawn() -> None:
    heard: list[Message] = []
    lost: list[GatewayFault] = []

    async def talk() -> None:
        upstream = UpstreamSettings("x", Command(("true",)), limits=ChildLimits(queue_count=2))
        link = Link(upstream, count(1), Supervisor(SupervisorSettings(), Tasks()), heard.append, lost.append)
        for ident in (1, 2, 3):
            link.write(Request(ident, "tools/list"))
            link.write(Notification("notifications/x"))
        assert (link.withdraw(1), link.withdraw(1), link.withdraw(3)) == (True, False, False)

    asyncio.run(talk())
    match heard:
        case [Failure(2, one), Failure(3, other)]:
            assert {methods.error_code(one), methods.error_code(other)} == {-31005}
            assert b'"server":"x"' in bytes(one)
        case _:
            raise AssertionError(heard)
    assert lost == []
