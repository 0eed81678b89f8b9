"""One look at what a server offers."""

import asyncio
from collections.abc import Callable

from msgspec import Raw

from app.core.inventory import Inventory, introduced, wanted
from app.core.reading import Reading
from app.gateway.common import CommonChild
from app.gateway.patient import PatientTimer
from app.gateway.settings import CatalogSettings, UpstreamSettings
from app.protocol import methods, stateless
from app.protocol.faults import GatewayFault, TimedOut, Unavailable, UnknownMethod
from app.protocol.jsonrpc import Message, Reply, Request, failure, result
from app.protocol.revisions import MODERN
from app.protocol.stateless import Envelope

CAPABILITIES: dict[str, Raw] = {
    "roots": Raw(b'{"listChanged":true}'),
    "sampling": Raw(b"{}"),
    "elicitation": Raw(b'{"form":{},"url":{}}'),
}
"""What the child is told that its client can do: some servers list more for who can do more."""


class Survey:
    """As a member of the child. Either of `done` and `failed` is told, once; that with what is known all the same."""

    def __init__(
        self,
        upstream: UpstreamSettings,
        settings: CatalogSettings,
        done: Callable[[Inventory], None],
        failed: Callable[[GatewayFault, Inventory | None], None],
    ) -> None:
        self._upstream = upstream
        self._settings = settings
        self._done = done
        self._failed = failed
        self._child: CommonChild | None = None
        self._party = 0
        self._reading: Reading | None = None
        self._timer: PatientTimer | None = None

    def begin(self, start: Callable[[UpstreamSettings], CommonChild]) -> None:
        try:
            child = self._child = start(self._upstream)
        except GatewayFault as fault:
            self._failed(fault, None)
            return
        self._party = child.join(self)
        if child.is_ready:
            self.ready()

    def close(self) -> None:
        """Nobody wants to know any more."""
        child, self._child = self._child, None
        if self._timer is not None:
            self._timer.cancel()
        if child is not None:
            child.leave(self._party)
            if self._upstream.isolation != "shared":
                child.close()

    # As a member of the child.

    def ready(self) -> None:
        child = self._child
        if child is None or child.greeted is None:
            return
        loop = asyncio.get_running_loop()
        self._timer = PatientTimer(loop, loop.time() + self._settings.patience_seconds, self._overdue)
        for question in child.hold(self._party) if self._upstream.isolation != "shared" else ():
            self.deliver(question)
        if self._child is None:  # It did not survive our answers.
            return
        before = introduced(child.greeted)
        self._reading = Reading(child.mint, before, wanted(before), self._settings.pages_max)
        self._ask(child, self._reading.begin())

    def deliver(self, message: Message) -> None:
        child, reading = self._child, self._reading
        if child is None:
            return
        if isinstance(message, Request):
            child.submit(self._party, _answer(message))
        elif isinstance(message, Reply) and reading is not None and reading.expects(message.id):
            self._ask(child, reading.receive(message))

    def lost(self, fault: GatewayFault) -> None:
        self._child = None
        if self._timer is not None:
            self._timer.cancel()
        self._failed(fault, None)

    def _ask(self, child: CommonChild, requests: list[Request]) -> None:
        for request in requests:
            params = request.params
            if child.is_modern:
                params = stateless.with_envelope(params, Envelope(MODERN.date, CAPABILITIES))
            child.submit(self._party, Request(request.id, request.method, params))
        if self._reading is not None and self._reading.is_over:
            inventory, self._reading = self._reading.inventory, None
            self.close()
            self._done(inventory)

    def _overdue(self) -> None:
        reading, self._reading = self._reading, None
        self.close()
        known = reading.inventory if reading is not None and reading.has_read else None
        self._failed(TimedOut("the server did not list all that it offers in time"), known)


def _answer(question: Request) -> Reply:
    """Nobody is there who could be asked."""
    match question.method:
        case methods.PING:
            return result(question.id, {})
        case methods.LIST_ROOTS:
            return result(question.id, {"roots": []})
        case method if method in methods.NEEDED_CAPABILITY:
            return failure(question.id, Unavailable("nobody is here to be asked", reason="client_unreachable"))
        case method:
            return failure(question.id, UnknownMethod(f"unknown method {method[:100]!r}"))
