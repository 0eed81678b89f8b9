"""`subscriptions/listen`, whatever the server behind it speaks: what was asked for is heard, once, and nothing else."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.client import Client, called
from tests.support.gateway import OTHER_TOKEN, Gateway, config, entry, serving, stateless_entry
from tests.support.http import Reply, on_loop, soon
from tests.support.stateless import CALL, LISTEN, PREFIX, StatelessClient


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    servers = {
        "stage": entry(stopTimeout=0.5),
        "stateless": stateless_entry(stopTimeout=0.5),
        "shared-stage": entry(stopTimeout=0.5, isolation="shared"),
        "shared-stateless": stateless_entry(stopTimeout=0.5, isolation="shared"),
    }
    content = config(servers, streams={"keepAlive": 0.2}, stateless={"idleTimeout": 2})
    with serving(content, tmp_path_factory.mktemp("subscriptions")) as gateway:
        yield gateway


ALL = pytest.mark.parametrize("server", ["stage", "stateless", "shared-stage", "shared-stateless"])
CHANGED = {"tools": "toolsListChanged", "prompts": "promptsListChanged", "resources": "resourcesListChanged"}


async def heard(stream: Reply) -> tuple[str, Any]:
    """Of the next notification, its name and its uri; it says whose it is."""
    message = await stream.next_message(5)
    assert message["params"]["_meta"][PREFIX + "subscriptionId"] == "listen"
    return message["method"], message["params"].get("uri")


@ALL
@on_loop
async def test_only_what_was_asked_for_is_heard(gateway: Gateway, server: str) -> None:
    client = StatelessClient(gateway, server, capabilities={})
    stream = await client.listen(promptsListChanged=True, resourceSubscriptions=["test://1"])
    await client.tool("changed", what="tools")
    await client.tool("updated", uri="test://2")
    await client.tool("changed", what="resources")
    await client.tool("updated", uri="test://1")
    assert await heard(stream) == ("notifications/resources/updated", "test://1")
    await client.tool("changed", what="prompts")
    assert await heard(stream) == ("notifications/prompts/list_changed", None)
    stream.drop()


@pytest.mark.parametrize("what", CHANGED)
@ALL
@on_loop
async def test_each_list_is_told_of(gateway: Gateway, server: str, what: str) -> None:
    client = StatelessClient(gateway, server, capabilities={})
    stream = await client.listen(**{CHANGED[what]: True})
    await client.tool("changed", what=what)
    assert await heard(stream) == (f"notifications/{what}/list_changed", None)
    stream.drop()


@ALL
@on_loop
async def test_a_subscription_that_wants_nothing_is_acknowledged_and_kept_alive(gateway: Gateway, server: str) -> None:
    stream = await StatelessClient(gateway, server, capabilities={}).listen()
    assert (await stream.anything(3)).comment is not None
    stream.drop()


@ALL
@on_loop
async def test_subscriptions_of_one_principal_hear_each_their_own(gateway: Gateway, server: str) -> None:
    client = StatelessClient(gateway, server, capabilities={})
    one, two = (
        await client.listen(resourceSubscriptions=["test://1"]),
        await client.listen(resourceSubscriptions=["test://1", "test://2"]),
    )
    await client.tool("updated", uri="test://2")
    assert await heard(two) == ("notifications/resources/updated", "test://2")
    one.drop()
    await client.tool("updated", uri="test://1")
    assert await heard(two) == ("notifications/resources/updated", "test://1")
    two.drop()


@pytest.mark.parametrize("server", ["stage", "shared-stage"])
@on_loop
async def test_a_resource_is_subscribed_to_once_and_given_up_after_the_last(gateway: Gateway, server: str) -> None:
    client = StatelessClient(gateway, server, capabilities={})
    began = (await client.tool("received")).count("resources/subscribe")
    streams = [await client.listen(resourceSubscriptions=["test://3"]) for _ in range(2)]
    assert (await client.tool("received")).count("resources/subscribe") == began + 1
    streams[0].drop()
    streams[1].drop()

    async def is_given_up() -> bool:
        return 'unsubscribe\\",\\"params\\":{\\"uri\\":\\"test://3' in await client.tool("received")

    assert await soon(is_given_up, 3)


@pytest.mark.parametrize("server", ["stage", "stateless"])
@on_loop
async def test_a_change_at_one_child_is_told_to_who_listens_to_another(gateway: Gateway, server: str) -> None:
    client = StatelessClient(gateway, server)
    asks = await client.asked("interview", rounds=[["form"]])
    stream = await client.listen(toolsListChanged=True)
    await client.tool("changed", what="tools")
    assert await heard(stream) == ("notifications/tools/list_changed", None)
    stream.drop()
    assert "requestState" in asks


@pytest.mark.parametrize("server", ["stage", "stateless"])
@on_loop
async def test_nobody_hears_of_another_principals_children(gateway: Gateway, server: str) -> None:
    client, other = StatelessClient(gateway, server), StatelessClient(gateway, server, OTHER_TOKEN)
    stream = await other.listen(toolsListChanged=True, promptsListChanged=True)
    await client.tool("changed", what="tools")
    await other.tool("changed", what="prompts")
    assert await heard(stream) == ("notifications/prompts/list_changed", None)
    stream.drop()


@pytest.mark.parametrize("server", ["shared-stage", "shared-stateless"])
@on_loop
async def test_clients_of_both_eras_hear_of_a_change_at_the_child_they_share(gateway: Gateway, server: str) -> None:
    modern, legacy = StatelessClient(gateway, server), await Client(gateway, server, OTHER_TOKEN).open()
    stream = await modern.listen(toolsListChanged=True, resourceSubscriptions=["test://1"])
    get = await legacy.listen()
    assert "result" in await legacy.call("resources/subscribe", {"uri": "test://1"})
    await modern.tool("changed", what="tools")
    assert await heard(stream) == ("notifications/tools/list_changed", None)
    assert (await get.next_message())["method"] == "notifications/tools/list_changed"
    await legacy.tool("updated", uri="test://1")
    assert await heard(stream) == ("notifications/resources/updated", "test://1")
    assert (await get.next_message())["params"]["uri"] == "test://1"
    stream.drop()
    get.drop()


@pytest.mark.parametrize("server", ["stage", "shared-stage"])
@pytest.mark.parametrize("params", [{}, {"notifications": 5}, {"notifications": {"toolsListChanged": "yes"}}])
@on_loop
async def test_a_subscription_without_a_filter_is_none(gateway: Gateway, server: str, params: dict[str, Any]) -> None:
    wrong = await StatelessClient(gateway, server).call(LISTEN, params)
    assert wrong["error"]["code"] == -32602


@on_loop
async def test_a_subscription_that_its_server_ends_is_ended_in_good_order(gateway: Gateway) -> None:
    client = StatelessClient(gateway, "stateless")
    stream = await client.listen(toolsListChanged=True)
    assert (await client.call(CALL, called("end_subscriptions")))["result"]
    ends = [message async for message in stream.messages()]
    assert [message.get("method", "result") for message in ends] == ["notifications/cancelled", "result"]
    assert ends[0]["params"]["requestId"] == ends[1]["id"] == "listen"
