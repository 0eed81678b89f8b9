"""The requests of one connection: each becomes a task for the application when the one before it is answered."""

import asyncio
from collections.abc import Coroutine
from typing import Any, ClassVar
from urllib.parse import unquote

from httptools import HttpRequestParser
from uvicorn._types import ASGI3Application, ASGIVersions, HTTPScope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from app.edge.wire_cycle import Cycle
from app.edge.wire_refusals import WireLimits, too_many_waiting


class Turns(HttpToolsProtocol):
    limits: ClassVar[WireLimits]

    app: ASGI3Application
    parser: HttpRequestParser
    cycle: Cycle
    _asgi: ASGIVersions
    _overtaken: tuple[Cycle, ...] = ()
    """Requests in flight when a later one was read: uvicorn forgets to tell them of a lost connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._asgi = {"version": self.config.asgi_version, "spec_version": "2.3"}

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for cycle in self._in_flight():
            disconnect(cycle)
        # Requests know their connection: if it knew them still, only the garbage collector could end them all.
        self._overtaken = ()
        self.pipeline.clear()
        self.cycle = None  # type: ignore[assignment]  # as it was at first

    def take(self, version: str, fields: dict[bytes, bytes]) -> None:
        """The head that was just read, as a request: served at once or in its turn."""
        former = self.cycle
        if former is None or former.response_complete:
            self.cycle = self.cycle_of(version, fields)
            self.start(self.cycle)
            return
        if len(self.pipeline) >= self.limits.max_pipelined:
            raise too_many_waiting(self.limits)
        running = (cycle for cycle in self._overtaken if not cycle.response_complete)
        self._overtaken = (*running, former)
        self.cycle = self.cycle_of(version, fields)
        self.pipeline.appendleft((self.cycle, self.app))
        self.flow.pause_reading()

    def start(self, cycle: RequestResponseCycle) -> None:
        self.run(cycle.run_asgi(self.app))

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def state(self) -> dict[str, Any]:
        """Of the newest request, as the application sees it."""
        return self.cycle.scope.setdefault("state", {})

    def is_answering(self) -> bool:
        return any(not cycle.response_complete and not self.is_waiting(cycle) for cycle in self._in_flight())

    def is_waiting(self, cycle: RequestResponseCycle) -> bool:
        return any(cycle is waiting for waiting, _ in self.pipeline)

    def cycle_of(self, version: str, fields: dict[bytes, bytes]) -> Cycle:
        cycle = Cycle(self)
        cycle.body, cycle.message_event = bytearray(), asyncio.Event()
        cycle.version = version
        cycle.keep_alive = version == "1.1" and self.parser.should_keep_alive()
        cycle.waiting_for_100_continue = version == "1.1" and b"expect" in fields
        cycle.scope = self._scope(version)
        cycle.method = cycle.scope["method"]
        return cycle

    def _in_flight(self) -> tuple[Cycle, ...]:
        return (*self._overtaken, self.cycle) if self.cycle is not None else ()

    def _scope(self, version: str) -> HTTPScope:
        path, _, query = self.url.partition(b"?")
        return {
            "type": "http",
            "asgi": self._asgi,
            "http_version": version,
            "method": self.parser.get_method().decode("ascii"),
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme or "http",
            "root_path": self.root_path,
            "path": self.root_path + unquote(path.decode("ascii")),
            "raw_path": self.root_path.encode("ascii") + path,
            "query_string": query,
            "headers": self.headers,
            "state": self.app_state.copy(),
        }


def disconnect(cycle: Cycle) -> None:
    """Its application hears of it: at its next `receive`, or as it asked to be told."""
    if not cycle.response_complete:
        cycle.disconnected = True
        cycle.message_event.set()
        if cycle.gone is not None:
            cycle.gone()
