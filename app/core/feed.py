"""What one handshake client wants to hear of, as one `subscriptions/listen` at a stateless child.

    CLOSED ──initialized──▶ OPEN: at most one stream that is listened to, and one that is being opened

When what is wanted changes, a new stream is opened, and the old one is heard until the new one is acknowledged: from
then on only the new one is, so nothing is missed and nothing is heard twice. Further changes wait for that. A stream
that the child ends is opened again, after a pause that grows as long as streams do not last.
"""

from collections.abc import Iterator

from msgspec import Raw, Struct

from app.core.deadlines import FOREVER
from app.core.parties import ToChild
from app.core.patience import Patience, Pause
from app.core.probing import Outcome, ToSession
from app.protocol import discovery, methods, stateless
from app.protocol.discovery import Filter, Offer
from app.protocol.faults import BadParams, Unavailable, UnknownMethod
from app.protocol.jsonrpc import Failure, Notification, Request, RequestId, failure, result
from app.protocol.stateless import Envelope


class _Stream(Struct):
    id: RequestId
    filter: Filter
    since: float = FOREVER


class Feed:
    def __init__(self, mint: Iterator[int], offer: Offer, carried: Envelope, patience: Patience) -> None:
        self.due = FOREVER
        self._mint = mint
        self._changes = offer.changes
        self._subscribes = offer.subscribes
        self._carried = carried
        self._pause = Pause(patience.listen_first, patience.listen_most)
        self._is_open = False
        self._uris: dict[str, bool] = {}
        """What is subscribed to, and whether the client was told so."""
        self._waiting: dict[RequestId, str] = {}
        self._heard: _Stream | None = None
        self._opening: _Stream | None = None

    # The client.

    def open(self) -> list[Outcome]:
        self._is_open = True
        return self._renew()

    def subscribe(self, request: Request) -> list[Outcome]:
        """It is answered when the child has agreed."""
        uri = methods.resource_uri(request.params)
        if not self._subscribes or not uri:
            return [self._refused(request)]
        if self._is_heard(uri):
            self._uris[uri] = True
            return [ToSession(result(request.id, {})), *self._renew()]
        self._uris.setdefault(uri, False)
        self._waiting[request.id] = uri
        return self._renew()

    def unsubscribe(self, request: Request) -> list[Outcome]:
        """Whoever still waits to be subscribed to the resource was, for an instant."""
        uri = methods.resource_uri(request.params)
        if not self._subscribes or not uri:
            return [self._refused(request)]
        self._uris.pop(uri, None)
        waited = [ident for ident, wanted in self._waiting.items() if wanted == uri]
        for ident in waited:
            del self._waiting[ident]
        return [*(ToSession(result(ident, {})) for ident in (*waited, request.id)), *self._renew()]

    def cancel(self, ident: RequestId) -> None:
        """The client does not want to be subscribed after all, if that is what it wanted.

        The stream that it waits for is being opened, or is not yet; what follows it will be without the resource.
        """
        if self._waiting.pop(ident, None) is not None:
            self._drop_unwanted()

    # The child.

    def acknowledged(self, notification: Notification, now: float) -> list[Outcome]:
        """What the child leaves out it will not tell of, and is not asked again."""
        opened = self._opening
        if opened is None or stateless.subscription_id(notification) != opened.id:
            return []
        agreed = opened.filter & discovery.acknowledged(notification)
        old, self._heard, self._opening = self._heard, _Stream(opened.id, agreed, now), None
        told: list[Outcome] = [] if old is None else [_cancelled(old)]
        self._changes = self._changes & agreed
        for uri in opened.filter.uris:
            if uri not in agreed.uris:
                self._uris.pop(uri, None)
            elif uri in self._uris:
                self._uris[uri] = True
        for ident in self._waiting_on(opened):
            agrees = self._waiting.pop(ident) in agreed.uris
            told.append(ToSession(result(ident, {}) if agrees else failure(ident, _unheard())))
        return [*told, *self._renew()]

    def ended(self, ident: RequestId | None, error: Raw | None, now: float) -> list[Outcome]:
        """The child will not open that stream, or keeps it open no longer."""
        if self._opening is not None and ident == self._opening.id:
            refused, self._opening = self._opening, None
            self.due = now + self._pause.next()
            return self._not_opened(refused, error)
        if self._heard is not None and ident == self._heard.id:
            self._pause.reset_after(now - self._heard.since)
            self._heard = None
            if self._opening is None:
                self.due = now + self._pause.next()
        return []

    def is_of(self, ident: RequestId | None) -> bool:
        return any(stream is not None and stream.id == ident for stream in (self._heard, self._opening))

    def tell(self, notification: Notification) -> list[Outcome]:
        """What belongs to the stream that is listened to is for the client, but for what it unsubscribed from."""
        heard = self._heard
        if heard is None or stateless.subscription_id(notification) != heard.id:
            return []
        uri = methods.resource_uri(notification.params)
        if uri in heard.filter.uris and uri not in self._uris:
            return []
        params = stateless.with_meta(notification.params, stateless.SUBSCRIPTION_KEY, None)
        return [ToSession(Notification(notification.method, params))]

    def tick(self, now: float) -> list[Outcome]:
        return self._renew() if now >= self.due else []

    # Parts.

    def _renew(self) -> list[Outcome]:
        """Listen to what is wanted now, if that is not what is being done."""
        self.due = FOREVER
        if not self._is_open or self._opening is not None:
            return []
        wanted = Filter(self._changes.tools, self._changes.prompts, self._changes.resources, tuple(sorted(self._uris)))
        if wanted == Filter():
            old, self._heard = self._heard, None
            return [] if old is None else [_cancelled(old)]
        if self._heard is not None and self._heard.filter == wanted:
            return []
        self._opening = _Stream(next(self._mint), wanted)
        return [ToChild(discovery.listen(self._opening.id, wanted, self._carried))]

    def _is_heard(self, uri: str) -> bool:
        """Whether updates of the resource arrive, and will go on to."""
        if self._heard is None or uri not in self._heard.filter.uris:
            return False
        return self._opening is None or uri in self._opening.filter.uris

    def _waiting_on(self, stream: _Stream) -> list[RequestId]:
        return [ident for ident, uri in self._waiting.items() if uri in stream.filter.uris]

    def _not_opened(self, refused: _Stream, error: Raw | None) -> list[Outcome]:
        told: list[Outcome] = []
        for ident in self._waiting_on(refused):
            del self._waiting[ident]
            told.append(ToSession(failure(ident, _ended()) if error is None else Failure(ident, error)))
        self._drop_unwanted()
        return [*told, *self._renew()] if self._waiting else told

    def _drop_unwanted(self) -> None:
        awaited = set(self._waiting.values())
        self._uris = {uri: told for uri, told in self._uris.items() if told or uri in awaited}

    def _refused(self, request: Request) -> Outcome:
        if self._subscribes:
            return ToSession(failure(request.id, BadParams("uri is missing, empty or not a string")))
        return ToSession(failure(request.id, UnknownMethod("the server does not offer subscriptions")))


def _cancelled(stream: _Stream) -> ToChild:
    return ToChild(methods.cancellation(stream.id, "the subscription is no longer needed"))


def _unheard() -> BadParams:
    return BadParams("the server does not tell of changes of this resource", reason="not_subscribed")


def _ended() -> Unavailable:
    return Unavailable("the server ended the subscription before it began", executed="unknown")
