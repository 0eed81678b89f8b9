"""A stateless client: every call for itself, questions answered by a retry, and nothing to be resumed."""

import asyncio
import json
from contextlib import suppress
from typing import Any

from tests.chaos.soaking.working import BROKEN, CALL, Call, Worker
from tests.support.http import Reply, request
from tests.support.stateless import StatelessClient, answers


class ModernWorker(Worker):
    era = "modern"

    async def serve_time(self, server: str, token: str, until: float) -> None:
        loop = asyncio.get_running_loop()
        self._client = StatelessClient(self.host.port, server, token, {} if self.chance.random() < 0.5 else None)
        while loop.time() < until and self.chance.random() > 0.05 and self.host.up.is_set():
            await asyncio.gather(*(self.act() for _ in range(self.chance.randint(1, 4))))

    def message(self, call: Call) -> tuple[str, str, dict[str, str], dict[str, Any]]:
        meta = {"logLevel": "error"} if call.tool == "flood" else {}
        body = self._client.message(CALL, call.params, 1, progressToken=call.nonce, **meta)
        return self._client.path, self._client.token, self._client.headers(body), body

    async def resume(self, call: Call) -> Reply | None:
        return None

    async def asked(self, call: Call, message: dict[str, Any]) -> bool:
        """One retry; a second round is left as it is."""
        result = message.get("result") or {}
        if result.get("resultType") != "input_required":
            return False
        more = {"inputResponses": answers(result), "requestState": result["requestState"]}
        body = self._client.message(CALL, {**call.params, **more}, 1)
        data, headers = json.dumps(body).encode(), self._client.headers(body)
        with suppress(*BROKEN, AssertionError):
            reply = await request(self.host.port, "POST", self._client.path, headers, data, self._client.token)
            told = await self._client.settle(reply)
            if "result" in told and told["result"].get("resultType") == "complete":
                said = json.loads(told["result"]["content"][0]["text"])
                if said["nonce"] != call.nonce:
                    self.wrong(f"the retry of {call.nonce} was answered {said}")
        return True
