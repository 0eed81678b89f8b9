"""A handshake client: its session outlives connections and children, and with a store the gateway too."""

import asyncio
from contextlib import suppress
from typing import Any

from tests.chaos.soaking.working import BROKEN, CALL, REFUSED, Call, Worker
from tests.support.client import Client, greeting
from tests.support.http import Reply
from tests.support.stateless import ACCEPTED


class LegacyWorker(Worker):
    era = "legacy"

    async def serve_time(self, server: str, token: str, until: float) -> None:
        loop = asyncio.get_running_loop()
        self._client = Client(self.host.port, server, token)
        if not await self._opened():
            return
        while loop.time() < until and self.chance.random() > 0.05:
            epoch = self.host.epoch
            acts = (self.act() for _ in range(self.chance.randint(1, 4)))
            outcomes = await asyncio.gather(*acts)
            if self._was_struck(epoch):
                await self.host.up.wait()
                if not await self._is_taken_up_again():
                    return
            elif REFUSED in outcomes and await self._client.status() == 404:
                return
        if self.chance.random() < 0.7:
            await (await self._client.delete()).body()

    async def _opened(self) -> bool:
        self._epoch_before = self.host.epoch
        client = self._client
        reply = await client.post(greeting())
        if reply.status not in (200, 429, 503):
            self.wrong(f"initialize was answered {reply.status}")
        client.greeted = await self._greeted(reply) if reply.status == 200 else {}
        self.history.outcomes[f"initialize: {'result' if 'result' in client.greeted else 'no'}"] += 1
        if "result" not in client.greeted:
            return False
        client.session = reply.headers["mcp-session-id"]
        client.version = client.greeted["result"]["protocolVersion"]
        told = await client.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        await told.body()
        return told.status == 202

    async def _greeted(self, reply: Reply) -> Any:
        """A stream that ends without an answer is a connection that broke: who killed the gateway may excuse it."""
        try:
            return await self._client.settle(reply, 0)
        except AssertionError as unanswered:
            raise EOFError("initialize was not answered") from unanswered

    async def _is_taken_up_again(self) -> bool:
        """By the next life of the gateway, where it has a store, and only there."""
        epoch = self.host.epoch
        status = await self._client.status()
        if self.host.epoch != epoch:
            return False
        if (status == 404) == self.host.has_store:
            self.wrong(f"a session of the life before got {status}")
        self.history.outcomes[f"old session: {status}"] += 1
        return status == 200

    def message(self, call: Call) -> tuple[str, str, dict[str, str], dict[str, Any]]:
        params = {**call.params, "_meta": {"progressToken": call.nonce}}
        body = {"jsonrpc": "2.0", "id": 1, "method": CALL, "params": params}
        return self._client.path, self._client.token, self._client.headers(), body

    async def resume(self, call: Call) -> Reply | None:
        """With a store, from the next life of the gateway too, and from the one after that."""
        while call.last is not None:
            if self._was_struck(call.epoch) and not self.host.has_store:
                return None
            await self.host.up.wait()
            call.epoch, call.kills = self.host.epoch, self.host.kills
            try:
                reply = await self._client.listen(call.last)
            except BROKEN:
                reply = None
            if reply is not None and reply.is_stream:
                return reply
            if reply is not None:
                reply.drop()
            if not self._was_struck(call.epoch):
                self.history.outcomes[f"not resumed: {reply.status if reply else 'broken'}"] += 1
                return None
        return None

    async def asked(self, call: Call, message: dict[str, Any]) -> bool:
        if message.get("method") != "elicitation/create":
            return False
        with suppress(*BROKEN):
            reply = await self._client.post({"jsonrpc": "2.0", "id": message["id"], "result": ACCEPTED})
            reply.drop()
        return True
