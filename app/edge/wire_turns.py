"""The requests of one connection: each becomes a task for the application when the one before it is answered."""

import asyncio
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
    _asgi: ASGIVersions
    _overtaken: tuple[RequestResponseCycle, ...] = ()
    """Requests in flight when a later one was read: uvicorn forgets to tell them of a lost connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._asgi = {"version": self.config.asgi_version, "spec_version": "2.3"}

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for cycle in self._overtaken:
            disconnect(cycle)

    def take(self, version: str, *, expects_continue: bool) -> None:
        """The head that was just read, as a request: served at once or in its turn."""
        former = self.cycle
        if former is None or former.response_complete:
            self.cycle = self._cycle(version, expects_continue=expects_continue)
            self.start(self.cycle)
            return
        if len(self.pipeline) >= self.limits.max_pipelined:
            raise too_many_waiting(self.limits)
        running = (cycle for cycle in self._overtaken if not cycle.response_complete)
        self._overtaken = (*running, former)
        self.cycle = self._cycle(version, expects_continue=expects_continue)
        self.pipeline.appendleft((self.cycle, self.app))
        self.flow.pause_reading()

    def start(self, cycle: RequestResponseCycle) -> None:
        task = self.loop.create_task(cycle.run_asgi(self.app))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def state(self) -> dict[str, Any]:
        """Of the newest request, as the application sees it."""
        return self.cycle.scope.setdefault("state", {})

    def is_answering(self) -> bool:
        cycles = (*self._overtaken, self.cycle) if self.cycle is not None else ()
        return any(not cycle.response_complete and not self.is_waiting(cycle) for cycle in cycles)

    def is_waiting(self, cycle: RequestResponseCycle) -> bool:
        return any(cycle is waiting for waiting, _ in self.pipeline)

    def _cycle(self, version: str, *, expects_continue: bool) -> Cycle:
        return Cycle(
            scope=self._scope(version),
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=expects_continue,
            keep_alive=version == "1.1" and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )

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


def disconnect(cycle: RequestResponseCycle) -> None:
    """Its application hears of it at its next `receive`."""
    if not cycle.response_complete:
        cycle.disconnected = True
        cycle.message_event.set()
