"""One `subscriptions/listen` served from a child that speaks the handshake (2026-07-28, basic/patterns/subscriptions).

WAITING ──child ready──▶ SUBSCRIBING ──all answered, or in time──▶ OPEN ──client gone, child lost, stop──▶ ENDED
"""

from collections.abc import Callable, Iterator

from msgspec import DecodeError, Raw, Struct
from msgspec.json import Decoder

from app.core.deadlines import FOREVER, Deadlines
from app.core.effects import Effect, StreamId, ToUpstream
from app.core.exchange import Exchange, ended, farewell, tagged
from app.protocol import discovery, methods, stateless
from app.protocol.discovery import Filter
from app.protocol.faults import BadParams, GatewayFault
from app.protocol.jsonrpc import Message, Notification, Reply, Request, RequestId, Result, payload


class _Asked(Struct):
    notifications: Filter


_asked = Decoder(_Asked)


def wanted(listen: Request) -> Filter:
    """The filter of the request.

    Raises:
        BadParams: it has none.
    """
    try:
        return _asked.decode(listen.params or b"{}").notifications
    except DecodeError as wrong:
        raise BadParams(f"subscriptions/listen needs a notifications filter: {wrong}") from wrong


class Listening(Exchange):
    def __init__(self, request: Request, deadlines: Deadlines, mint: Iterator[int], *, server: str = "") -> None:
        super().__init__(request, deadlines, mint, server=server)
        self._wanted = wanted(request)
        self._honoured = Filter()
        self._subscribing: dict[RequestId, str] = {}
        self._is_open = False
        self._early: list[Notification] = []

    def begin(self, stream: StreamId, now: float, *, can_stream: bool) -> list[Effect]:
        self._wait_on(stream, now, can_stream=can_stream)
        return []

    def ready(self, greeted: Raw) -> list[Effect]:
        """The child answered the handshake: what it can do is known now."""
        if self.is_over:
            return []
        offered = discovery.offer(greeted)
        self._honoured = self._wanted & offered.changes
        uris = dict.fromkeys(self._wanted.uris) if offered.subscribes else {}
        self._subscribing = {next(self._mint): uri for uri in uris}
        if not uris:
            return self._open()
        return [
            ToUpstream(Request(ident, methods.SUBSCRIBE, payload({"uri": uri})))
            for ident, uri in self._subscribing.items()
        ]

    def deliver(self, message: Message, now: float) -> list[Effect]:  # noqa: ARG002 - as every exchange's
        if self.is_over:
            return []
        if isinstance(message, Notification):
            return self._announced(message)
        if isinstance(message, Reply) and message.id in self._subscribing:
            return self._replied(message)
        return []

    def gone(self, stream: StreamId) -> list[Effect]:
        if self.is_over or stream != self._stream:
            return []
        self._stream = None
        return self._end("cancelled")

    def lost(self, fault: GatewayFault) -> list[Effect]:
        if self.is_over:
            return []
        return self._graceful() if self._is_open else self._refuse(fault)

    def close(self) -> list[Effect]:
        return [] if self.is_over else self._graceful()

    def tick(self, now: float, withdraw: Callable[[int], bool]) -> list[Effect]:
        """A child that does not answer all that it was asked is heard without the rest."""
        if not self.is_over and self._subscribing and self._quiet_at <= now:
            return self._open()
        return super().tick(now, withdraw)

    def _replied(self, reply: Reply) -> list[Effect]:
        """A resource that the server would not watch is left out of what we acknowledge."""
        uri = self._subscribing.pop(reply.id or 0)
        if isinstance(reply, Result):
            told = self._honoured
            self._honoured = Filter(told.tools, told.prompts, told.resources, (*told.uris, uri))
        return [] if self._subscribing else self._open()

    def _open(self) -> list[Effect]:
        self._is_open = True
        self._subscribing.clear()
        self._quiet_at = self._max_at = FOREVER
        self._set_due()
        said = Notification(stateless.ACKNOWLEDGED, payload({"notifications": self._honoured}))
        early, self._early = self._early, []
        return [effect for told in (said, *early) for effect in self._say(tagged(told, self._request))]

    def _announced(self, notification: Notification) -> list[Effect]:
        if not self._is_open:
            if self._may_pass(notification, self._wanted):
                self._early.append(notification)
                del self._early[:-_EARLY_MAX]
            return []
        if not self._may_pass(notification, self._honoured):
            return []
        return self._say(tagged(notification, self._request))

    def _may_pass(self, notification: Notification, told: Filter) -> bool:
        match notification.method:
            case methods.TOOLS_CHANGED:
                return told.tools
            case methods.PROMPTS_CHANGED:
                return told.prompts
            case methods.RESOURCES_CHANGED:
                return told.resources
            case methods.RESOURCE_UPDATED:
                return bool(told.uris)  # Of a subscribed resource or a part of it: only those come here.
            case _:
                return False

    def _graceful(self) -> list[Effect]:
        said = self._say(farewell(self._request)) if self._is_open else []
        return [*said, *self._answer(ended(self._request))]


_EARLY_MAX = 100
