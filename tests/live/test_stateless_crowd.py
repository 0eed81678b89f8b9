"""Many clients of both eras and of two principals at once against one server: no message crosses."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.client import Client, called
from tests.support.gateway import OTHER_TOKEN, TOKEN, Gateway, config, entry, eventually, serving, stateless_entry
from tests.support.http import Reply, on_loop
from tests.support.stateless import ACCEPTED, CALL, StatelessClient, answers, said

CLIENTS = 20
CALLS = 5


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    servers = {
        "stage": entry(stopTimeout=0.5),
        "stateless": stateless_entry(stopTimeout=0.5),
        "dual": stateless_entry("--mode", "dual", stopTimeout=0.5),
        "shared-stage": entry(stopTimeout=0.5, isolation="shared"),
        "shared-stateless": stateless_entry(stopTimeout=0.5, isolation="shared"),
        "shared-dual": stateless_entry("--mode", "dual", stopTimeout=0.5, isolation="shared"),
    }
    content = config(servers, stateless={"idleTimeout": 1, "maxChildren": 4})
    with serving(content, tmp_path_factory.mktemp("crowd")) as gateway:
        yield gateway


OWN = ["stage", "stateless", "dual"]
SHARED = ["shared-stage", "shared-stateless", "shared-dual"]


class Modern:
    def __init__(self, gateway: Gateway, server: str, token: str, name: str) -> None:
        self._client = StatelessClient(gateway, server, token)
        self._name = name

    async def run(self, *, asks: bool) -> None:
        for n in range(CALLS):
            await self._progress(f"{self._name}.{n}")
            if asks:
                await self._interview(f"{self._name}.{n}")

    async def _progress(self, nonce: str) -> None:
        params = called("progress", n=3, interval=0.005, nonce=nonce)
        reply = await self._client.ask(CALL, params, ident=1, progressToken=nonce)
        *notes, answer = [message async for message in reply.messages()]
        assert [note["params"]["progressToken"] for note in notes] == [nonce] * 3
        assert (answer["id"], said(answer)) == (1, nonce)

    async def _interview(self, nonce: str) -> None:
        rounds = {"rounds": [["form"], ["form"]], "nonce": nonce}
        asks = await self._client.asked("interview", **rounds)
        told: list[Any] = []
        for n in range(2):
            mine = {"action": "accept", "content": {"nonce": f"{nonce}.{n}"}}
            answer = await self._client.retry(asks, dict.fromkeys(answers(asks), mine), "interview", **rounds)
            told.append(mine)
            asks = answer["result"]
        assert json.loads(said(answer)) == {"nonce": nonce, "said": [{"form": each} for each in told]}


class Legacy:
    def __init__(self, gateway: Gateway, server: str, token: str, name: str) -> None:
        self._client = Client(gateway, server, token)
        self._name = name

    async def run(self, *, asks: bool) -> None:
        await self._client.open()
        for n in range(CALLS):
            await self._progress(f"{self._name}.{n}")
            if asks:
                await self._interview(f"{self._name}.{n}")
        await (await self._client.delete()).body()

    async def _progress(self, nonce: str) -> None:
        params = {**called("progress", n=3, interval=0.005, nonce=nonce), "_meta": {"progressToken": nonce}}
        reply = await self._client.ask(CALL, params, ident=1)
        *notes, answer = [message async for message in reply.messages()]
        assert [note["params"]["progressToken"] for note in notes] == [nonce] * 3
        assert (answer["id"], answer["result"]["content"][0]["text"]) == (1, nonce)

    async def _interview(self, nonce: str) -> None:
        reply = await self._client.ask(CALL, called("interview", rounds=[["form"], ["form"]], nonce=nonce), ident=2)
        told = [await self._answered(reply, f"{nonce}.{n}") for n in range(2)]
        last = await reply.next_message()
        assert json.loads(last["result"]["content"][0]["text"]) == {
            "nonce": nonce,
            "said": [{"form": each} for each in told],
        }

    async def _answered(self, reply: Reply, nonce: str) -> Any:
        question = await reply.next_message()
        assert question["method"] == "elicitation/create"
        mine = ACCEPTED | {"content": {"nonce": nonce}}
        await self._client.answer(question["id"], mine)
        return mine


def crowd(gateway: Gateway, server: str) -> list[Modern | Legacy]:
    kinds, tokens = (Modern, Legacy), (TOKEN, OTHER_TOKEN)
    return [kinds[n % 2](gateway, server, tokens[n // 2 % 2], f"c{n}") for n in range(CLIENTS)]


@pytest.mark.parametrize("server", OWN)
@on_loop
async def test_twenty_clients_of_both_eras_hear_nothing_but_their_own(gateway: Gateway, server: str) -> None:
    await asyncio.gather(*(client.run(asks=True) for client in crowd(gateway, server)))
    assert eventually(lambda: not gateway.children(), 8)


@pytest.mark.parametrize("server", SHARED)
@on_loop
async def test_twenty_clients_of_both_eras_share_one_child(gateway: Gateway, server: str) -> None:
    before = set(gateway.children())
    asks = server == "shared-stateless"
    await asyncio.gather(*(client.run(asks=asks) for client in crowd(gateway, server)))
    assert len(set(gateway.children()) - before) == 1


@pytest.mark.parametrize("server", OWN)
@on_loop
async def test_log_messages_of_many_calls_at_once_find_their_own(gateway: Gateway, server: str) -> None:
    async def logging(number: int, token: str) -> None:
        client = StatelessClient(gateway, server, token)
        params = called("log", level="error", tag=f"t{number}", n=1)
        reply = await client.ask(CALL, params, ident=number, logLevel="error")
        *notes, answer = [message async for message in reply.messages()]
        data = [note["params"]["data"] for note in notes]
        assert [each["tag"] if isinstance(each, dict) else each for each in data] == [f"t{number}"]
        assert answer["id"] == number

    async def silent(number: int, token: str) -> None:
        client = StatelessClient(gateway, server, token)
        reply = await client.ask(CALL, called("log", level="error", tag="unheard"), ident=number)
        heard = [message async for message in reply.messages()] if reply.is_stream else [await reply.json()]
        assert [message.get("id") for message in heard] == [number]

    tokens = (TOKEN, OTHER_TOKEN)
    work = [(logging, silent)[n % 3 == 2](n, tokens[n % 2]) for n in range(24)]
    await asyncio.gather(*work)
