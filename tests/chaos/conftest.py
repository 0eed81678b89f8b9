"""The invariants, checked around every test that asks for `connect` or `undisturbed`."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from tests.support import invariants
from tests.support.client import Client
from tests.support.gateway import TOKEN, Gateway
from tests.support.watching import Bystander, standing_by

Connect = Callable[..., Awaitable[Client]]


@pytest.fixture(scope="module")
def bystander(gateway: Gateway) -> Iterator[Bystander]:
    with standing_by(gateway) as bystander:
        yield bystander


@pytest.fixture
def undisturbed(gateway: Gateway, bystander: Bystander) -> Iterator[list[Client]]:
    """The sessions that are to be ended after the test."""
    with invariants.undisturbed(gateway, bystander) as clients:
        yield clients


@pytest.fixture
def connect(gateway: Gateway, undisturbed: list[Client]) -> Connect:
    """Opens a session that is ended after the test, whatever became of it."""

    async def opened(server: str = "calm", **options: Any) -> Client:
        token = options.pop("token", TOKEN)
        client = Client(gateway, server, token)
        undisturbed.append(client)
        return await client.open(**options)

    return opened
