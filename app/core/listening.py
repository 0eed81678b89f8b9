"""One `subscriptions/listen` served from a child that speaks the handshake (2026-07-28, basic/patterns/subscriptions).

WAITING ──child ready──▶ SUBSCRIBING ──all answered, or in time──▶ OPEN ──client gone, child lost, stop──▶ ENDED
"""

from collections.abc import Callable, Iterator

from msgspec import Raw

from app.core.deadlines import Deadlines
from app.core.effects import Effect, ToUpstream
from app.core.exchange import Subscription, is_among
from app.protocol import discovery, methods, stateless
from app.protocol.discovery import Filter
from app.protocol.faults import BadParams
from app.protocol.jsonrpc import Failure, Message, Notification, Reply, Request, RequestId, Result, payload

_HEARD = frozenset({*methods.LIST_CHANGED, methods.RESOURCE_UPDATED})


class Listening(Subscription):
    def __init__(self, request: Request, deadlines: Deadlines, mint: Iterator[int], *, server: str = "") -> None:
        super().__init__(request, deadlines, mint, server=server)
        self._honoured = Filter()
        self._subscribing: dict[RequestId, str] = {}

    def ready(self, greeted: Raw) -> list[Effect]:
        """The child answered the handshake: what it can do is known now."""
        if self.is_over or self._wanted is None:
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

    def deliver(self, message: Message, now: float) -> list[Effect]:
        if self.is_over:
            return []
        match message:
            case Notification():
                return self._notified(message, now)
            case Result() | Failure():
                return self._subscribed(message)
            case Request():
                return []  # It holds no child, and is not who is asked.

    def tick(self, now: float, withdraw: Callable[[int], bool]) -> list[Effect]:
        """A child that does not answer all that it was asked is heard without the rest."""
        if self.is_over or not self._subscribing or self._quiet_at > now:
            return super().tick(now, withdraw)
        late = [ToUpstream(methods.cancellation(ident, "not answered in time")) for ident in self._subscribing]
        return [*late, *self._open()]

    def _send(self) -> list[Effect]:
        """Nothing goes to a child of the handshake before it is ready."""
        if self._wanted is not None:
            return []
        return self._refuse(BadParams("subscriptions/listen needs params.notifications, an object that says what of"))

    def _subscribed(self, reply: Reply) -> list[Effect]:
        """A resource that the server would not watch is left out of what we acknowledge."""
        uri = None if reply.id is None else self._subscribing.pop(reply.id, None)
        if uri is None:
            return []
        if isinstance(reply, Result):
            told = self._honoured
            self._honoured = Filter(told.tools, told.prompts, told.resources, (*told.uris, uri))
        return [] if self._subscribing else self._open()

    def _open(self) -> list[Effect]:
        self._subscribing.clear()
        self._early = [told for told in self._early if self._hears(told)]
        return self._acknowledged(Notification(stateless.ACKNOWLEDGED, payload({"notifications": self._honoured})))

    def _notified(self, notification: Notification, now: float) -> list[Effect]:  # noqa: ARG002 - as every exchange's
        """Such a child knows nothing of subscriptions, and nothing else that it says is about one."""
        if notification.method not in _HEARD or (self._is_open and not self._hears(notification)):
            return []
        return self._announced(notification)

    def _hears(self, notification: Notification) -> bool:
        """Whether we said so: of what, and of a resource that it is watched, or is not one that we left out."""
        is_left_out = False
        if notification.method == methods.RESOURCE_UPDATED and self._wanted is not None:
            uri = methods.resource_uri(notification.params)
            is_left_out = uri in self._wanted.uris and uri not in self._honoured.uris
        return not is_left_out and is_among(notification, self._honoured)

    def _end(self, reason: str) -> list[Effect]:
        self._subscribing.clear()
        return super()._end(reason)
