"""The look at the invariants sees what it is there to see: bugs are planted, and it must notice them."""

from collections.abc import Iterator

import pytest

from tests.chaos.planting import program
from tests.support.client import Client, called
from tests.support.gateway import Gateway, config, entry, serving
from tests.support.http import bounded
from tests.support.invariants import CANARY, undisturbed
from tests.support.watching import Bystander

PLANT = """
    import asyncio, logging, os, time
    from app.core.session import Session
    ask = Session.ask
    kept = []
    def bug(self, request, stream, now):
        match request.method:
            case "freeze":
                time.sleep(0.6)
            case "toil":
                until = time.process_time() + 0.6
                while time.process_time() < until:
                    pass
            case "leak":
                os.pipe()
            case "forget":
                kept.append(asyncio.create_task(asyncio.Event().wait()))
            case "hoard":
                kept.append(b"x" * (40 << 20))
            case "tell":
                logging.getLogger("viaduct").warning("told", extra={"params": bytes(request.params)})
        return ask(self, request, stream, now)
    Session.ask = bug
"""
NOTICED = {
    "freeze": "were late",
    "toil": "were late",
    "leak": "2 descriptors were left behind",
    "forget": "1 viaduct_tasks were left behind",
    "hoard": "MiB were left behind",
    "tell": CANARY,
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("planted")
    servers = {"calm": entry(stopTimeout=0.5, onExit="end"), "shared": entry(isolation="shared", onExit="end")}
    with serving(config(servers), folder, program=program(PLANT)) as gateway:
        yield gateway


@pytest.mark.parametrize("bug", NOTICED)
def test_a_planted_bug_is_noticed(gateway: Gateway, bystander: Bystander, bug: str) -> None:
    async def strike() -> None:
        client = Client(gateway, "calm")
        clients.append(client)
        await client.open()
        await client.call(bug, {"x": CANARY})
        await client.tool("sleep", seconds=0.5)

    with pytest.raises(AssertionError, match=NOTICED[bug]), undisturbed(gateway, bystander, 1) as clients:
        bounded(strike())


def test_a_child_that_is_left_is_noticed(gateway: Gateway, bystander: Bystander) -> None:
    async def strike() -> None:
        client = await Client(gateway, "calm").open()
        kept.append(client)

    kept: list[Client] = []
    with pytest.raises(AssertionError, match="children were left behind"), undisturbed(gateway, bystander, 1):
        bounded(strike())
    bounded(end(kept[0]))


async def end(client: Client) -> None:
    await client.call("tools/call", called("die"))


def test_what_the_gateway_says_that_it_has_is_noticed(gateway: Gateway, bystander: Bystander) -> None:
    async def strike() -> None:
        client = await Client(gateway, "shared").open()
        kept.append(client)
        (await client.ask("tools/call", called("swallow"))).drop()

    kept: list[Client] = []
    bounded(strike())
    left = "1 viaduct_sessions were left behind, 1 viaduct_calls_in_flight were left behind"
    with pytest.raises(AssertionError, match=left), undisturbed(gateway, bystander, 1):
        bounded(strike())
    bounded(end(kept[0]))


def test_where_nothing_strikes_nothing_is_noticed(gateway: Gateway, bystander: Bystander) -> None:
    async def work() -> None:
        client = Client(gateway, "calm")
        clients.append(client)
        await client.open()
        await client.tool("sleep", seconds=0.5)

    with undisturbed(gateway, bystander) as clients:
        bounded(work())
