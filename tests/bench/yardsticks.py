"""What we measure ourselves against: bare uvicorn, and the least that a bridge on it can be.

    python yardsticks.py bare PORT
    python yardsticks.py bridge PORT -- COMMAND...

The bridge has no tokens, no sessions, no guards and no deadlines: it gives each request an id of its own, writes it
to the one child, and puts the client's id back into the answer.
"""

import asyncio
import json
import sys
from itertools import count

import uvicorn

JSON = (b"content-type", b"application/json")
ANSWER = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "x" * 220}]}}).encode()


async def respond(send, body):
    headers = [JSON, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def whole(receive):
    body, more = b"", True
    while more:
        event = await receive()
        body += event.get("body", b"")
        more = event.get("more_body", False)
    return body


async def live(receive, send, start=None):
    await receive()
    if start is not None:
        await start()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await send({"type": "lifespan.shutdown.complete"})


async def bare(scope, receive, send):
    if scope["type"] == "lifespan":
        await live(receive, send)
        return
    await whole(receive)
    await respond(send, ANSWER)


class Bridge(asyncio.SubprocessProtocol):
    def __init__(self, command):
        self.command = command
        self.waiting = {}
        self.ids = count(1)
        self.rest = b""

    async def start(self):
        transport, _ = await asyncio.get_running_loop().subprocess_exec(lambda: self, *self.command, stderr=None)
        self.stdin = transport.get_pipe_transport(0)
        await self.ask({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}})

    def pipe_data_received(self, fd, data):
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            waiter, ident = self.waiting.pop(message.get("id"), (None, None))
            if waiter is not None and not waiter.done():
                waiter.set_result(json.dumps({**message, "id": ident}).encode())

    async def ask(self, message):
        ours = next(self.ids)
        waiter = asyncio.get_running_loop().create_future()
        self.waiting[ours] = waiter, message["id"]
        self.stdin.write(json.dumps({**message, "id": ours}).encode() + b"\n")
        return await waiter

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            await live(receive, send, self.start)
            return
        message = json.loads(await whole(receive))
        await respond(send, await self.ask(message) if "id" in message else b"{}")


if __name__ == "__main__":
    app = bare if sys.argv[1] == "bare" else Bridge(sys.argv[sys.argv.index("--") + 1 :])
    options = {"host": "127.0.0.1", "port": int(sys.argv[2]), "log_level": "warning", "access_log": False}
    uvicorn.run(app, loop="uvloop", http="httptools", **options)
