"""One stateless request, from its POST to its one answer (2026-07-28, basic: "Statelessness").

    RUNNING ──answer, deadline, server lost, client gone──▶ ENDED

Here the child is of the same era: request and answer are passed on, and nothing but ids is changed.
"""

from collections.abc import Callable, Iterator

from msgspec import DecodeError, Raw, Struct
from msgspec.json import Decoder

from app.core.anteroom import size_of
from app.core.deadlines import FOREVER, Deadlines
from app.core.effects import BeginStream, Doubt, Effect, Ended, EndStream, StreamId, ToClient, ToUpstream
from app.protocol import discovery, methods, stateless
from app.protocol.discovery import Filter
from app.protocol.faults import Executed, GatewayFault, InvalidRequest, ShuttingDown, TimedOut
from app.protocol.jsonrpc import Failure, Message, Notification, Reply, Request, RequestId, Result, failure
from app.protocol.progress import under_token
from app.protocol.revisions import SERVED


class Exchange:
    """`mint` gives the ids of requests towards the server; `level` is the log level that the client asked for."""

    def __init__(
        self, request: Request, deadlines: Deadlines, mint: Iterator[int], *, level: str = "", server: str = ""
    ) -> None:
        self.due = FOREVER
        """No later than this, `tick` has something to do."""
        self.is_over = False
        self._request = request
        self._deadlines = deadlines
        self._mint = mint
        self._level = level
        self._server = server
        self._ident = 0
        self._is_running = False
        """Whether the server has the request, and has not answered it."""
        self._token: RequestId | None = None
        """The client's, for progress."""
        self._stream: StreamId | None = None
        self._can_stream = False
        self._begin_at = self._quiet_at = self._max_at = FOREVER

    @property
    def is_owed(self) -> bool:
        """Whether the server may still say something about the request, which nobody else should hear."""
        return self._is_running

    # The client.

    def begin(self, stream: StreamId, now: float, *, can_stream: bool) -> list[Effect]:
        """The client waits on `stream`; its request goes to the server."""
        self._wait_on(stream, now, can_stream=can_stream)
        return self._send()

    def gone(self, stream: StreamId) -> list[Effect]:
        """The client closed the response, which cancels (basic/patterns/cancellation: "Transport-Specific")."""
        if self.is_over or stream != self._stream:
            return []
        self._stream = None
        return [*self._cancel("the client closed the response"), *self._end("cancelled")]

    def close(self) -> list[Effect]:
        """The gateway is stopping; the client gets a last word."""
        if self.is_over:
            return []
        executed: Executed = "unknown" if self._ident else "no"
        fault = ShuttingDown("the gateway is shutting down", executed=executed)
        return [*self._cancel("the gateway is shutting down"), *self._refuse(fault)]

    def settle(self, result: Raw) -> list[Effect]:
        """The answer is known without the server."""
        return [] if self.is_over else self._answer(Result(self._request.id, result))

    # The server.

    def deliver(self, message: Message, now: float) -> list[Effect]:
        """The server said `message`; our request is known by our id."""
        if self.is_over:
            return []
        match message:
            case Result() | Failure():
                if message.id != self._ident:
                    return []
                self._is_running = False
                return self._replied(message)
            case Notification():
                return self._notified(message, now)
            case Request():
                return []  # No server of this era asks; whoever shares it out refuses it.

    def lost(self, fault: GatewayFault) -> list[Effect]:
        """The server is gone, or never came."""
        self._is_running = False
        return [] if self.is_over else self._refuse(fault)

    # Time.

    def tick(self, now: float, withdraw: Callable[[int], bool]) -> list[Effect]:
        """Do what is due. `withdraw` takes back a request of which not one byte was sent, and tells if it could."""
        if self.is_over:
            return []
        if min(self._quiet_at, self._max_at) <= now:
            return self._expired(withdraw)
        effects: list[Effect] = []
        if self._begin_at <= now and self._stream is not None:
            self._begin_at = FOREVER
            effects.append(BeginStream(self._stream))
        self._set_due()
        return effects

    # What the other kinds of exchange do otherwise.

    def _send(self) -> list[Effect]:
        self._ident = ident = next(self._mint)
        self._is_running = True
        return [ToUpstream(Request(ident, self._request.method, self._params(ident)))]

    def _params(self, ident: int) -> Raw | None:
        """As the server gets them, with our token in the place of the client's."""
        if not stateless.may_have_token(self._request):
            return self._request.params
        ours, self._token = under_token(self._request, ident)
        return ours.params

    def _replied(self, reply: Reply) -> list[Effect]:
        match reply:
            case Result():
                return self._answer(Result(self._request.id, reply.result))
            case Failure():
                return self._answer(Failure(self._request.id, reply.error))

    def _notified(self, notification: Notification, now: float) -> list[Effect]:
        match notification.method:
            case methods.PROGRESS:
                return self._progressed(notification, now)
            case methods.LOG_MESSAGE:
                return self._logged(notification)
            case methods.CANCELLED:
                return []  # Servers cancel nothing but subscriptions (basic/patterns/cancellation).
            case _:
                return self._say(notification)

    # Parts.

    def _wait_on(self, stream: StreamId, now: float, *, can_stream: bool) -> None:
        limits = self._deadlines
        self._stream, self._can_stream = stream, can_stream
        self._begin_at = now + limits.stream_after if can_stream else FOREVER
        self._quiet_at, self._max_at = now + limits.request, now + limits.max_request
        self._set_due()

    def _set_due(self) -> None:
        self.due = min(self._begin_at, self._quiet_at, self._max_at)

    def _say(self, notification: Notification) -> list[Effect]:
        if self._stream is None or not self._can_stream:
            return []
        self._begin_at = FOREVER
        return [ToClient(self._stream, notification)]

    def _progressed(self, notification: Notification, now: float) -> list[Effect]:
        """A retry may wait without a token for a call that reports under one."""
        if methods.reported_token(notification) != self._ident:
            return []
        if self._quiet_at < FOREVER:
            self._quiet_at = now + self._deadlines.request
        if self._token is None:
            return []
        return self._say(methods.with_field(notification, "progressToken", self._token))

    def _logged(self, notification: Notification) -> list[Effect]:
        """Never for a request that did not ask (server/utilities/logging: "Per-request log level")."""
        if not self._level or not methods.is_at_least(methods.log_level(notification.params), self._level):
            return []
        return self._say(notification)

    def _answer(self, reply: Reply) -> list[Effect]:
        """Its last word on the stream that waits, if one does."""
        stream, self._stream = self._stream, None
        ended = self._end("answered")
        return ended if stream is None else [ToClient(stream, reply), EndStream(stream), *ended]

    def _refuse(self, fault: GatewayFault) -> list[Effect]:
        if self._server:
            fault.details.setdefault("server", self._server)
        return self._answer(failure(self._request.id, fault))

    def _expired(self, withdraw: Callable[[int], bool]) -> list[Effect]:
        unsent = not self._ident or withdraw(self._ident)
        self._is_running = not unsent
        method = self._request.method
        fault = TimedOut(f"no answer to {method!r} in time", executed="no" if unsent else "unknown")
        told: list[Effect] = [] if unsent else [*self._cancel("timed out at the gateway"), Doubt()]
        return [*told, *self._refuse(fault)]

    def _cancel(self, reason: str) -> list[Effect]:
        return [ToUpstream(methods.cancellation(self._ident, reason))] if self._is_running else []

    def _end(self, reason: str) -> list[Effect]:
        self.is_over = True
        self.due = FOREVER
        return [Ended(reason)]


class Waiting(Exchange):
    """A request that has no child yet: nothing of it was executed, whatever happens to it."""

    def _send(self) -> list[Effect]:
        return []


class Discovery(Exchange):
    """`server/discover` at a child of the same era: here, every revision is served that we know."""

    def _replied(self, reply: Reply) -> list[Effect]:
        if isinstance(reply, Result):
            reply = Result(reply.id, discovery.with_versions(reply.result, SERVED))
        return super()._replied(reply)


class Subscription(Exchange):
    """`subscriptions/listen` at a child of the same era: it has no deadline once it was acknowledged, and nothing is
    said before (basic/patterns/subscriptions: "Acknowledgment")."""

    def __init__(self, request: Request, deadlines: Deadlines, mint: Iterator[int], *, server: str = "") -> None:
        super().__init__(request, deadlines, mint, server=server)
        self._wanted = _wanted(request)
        self._is_open = False
        self._early: list[Notification] = []

    def begin(self, stream: StreamId, now: float, *, can_stream: bool) -> list[Effect]:
        if can_stream:
            return super().begin(stream, now, can_stream=True)
        self._stream = stream
        sentence = "subscriptions/listen is answered in events; accept text/event-stream"
        return self._refuse(InvalidRequest(sentence, reason="no_stream"))

    def close(self) -> list[Effect]:
        if self.is_over or not self._is_open:
            return super().close()
        return [*self._cancel("the gateway is shutting down"), *self._graceful()]

    def lost(self, fault: GatewayFault) -> list[Effect]:
        if self.is_over or not self._is_open:
            return super().lost(fault)
        self._is_running = False
        return self._graceful()

    def _replied(self, reply: Reply) -> list[Effect]:
        match reply:
            case Result():
                return self._graceful(reply.result)
            case Failure():
                return super()._replied(reply)

    def _notified(self, notification: Notification, now: float) -> list[Effect]:
        match notification.method:
            case methods.CANCELLED:
                return self._graceful()  # A result may follow, or not; we say both.
            case stateless.ACKNOWLEDGED:
                return self._acknowledged(notification)
            case methods.LOG_MESSAGE:
                return []  # Never on such a stream (server/utilities/logging: "Per-request log level").
            case methods.PROGRESS:
                return self._progressed(notification, now)
            case _:
                return self._announced(notification)

    def _announced(self, notification: Notification) -> list[Effect]:
        """Only what was asked for; an odd filter is for the server to judge."""
        return self._say(notification) if self._wanted is None or is_among(notification, self._wanted) else []

    def _acknowledged(self, notification: Notification) -> list[Effect]:
        self._is_open = True
        self._quiet_at = self._max_at = FOREVER
        early, self._early = self._early, []
        said = [effect for told in (notification, *early) for effect in self._say(told)]
        self._set_due()
        return said

    def _say(self, notification: Notification) -> list[Effect]:
        """As one of this subscription's ("Receiving Notifications")."""
        if not self._is_open:
            self._early = [*self._early, notification][-_EARLY_MAX:]
            while len(self._early) > 1 and sum(map(size_of, self._early)) > _EARLY_BYTES:
                del self._early[0]
            return []
        params = stateless.with_meta(notification.params, stateless.SUBSCRIPTION_KEY, self._request.id)
        return super()._say(Notification(notification.method, params))

    def _graceful(self, result: Raw | None = None) -> list[Effect]:
        """basic/patterns/subscriptions: "Graceful Closure"; what the client had opened is cancelled first."""
        ident, said = self._request.id, list[Effect]()
        if self._is_open:
            said = self._say(methods.cancellation(ident, "the server ended the subscription"))
        body = _ENDED if result is None or not stateless.is_object(result) else result
        tagged = stateless.with_meta(body, stateless.SUBSCRIPTION_KEY, ident)
        return [*said, *self._answer(Result(ident, tagged))]

    def _end(self, reason: str) -> list[Effect]:
        self._early = []
        return super()._end(reason)


_EARLY_MAX = 100
_EARLY_BYTES = 8 << 20
_ENDED = stateless.completed(Raw(b"{}"), None, {})


class _Listen(Struct):
    notifications: Filter


_listens = Decoder(_Listen)


def _wanted(listen: Request) -> Filter | None:
    """What the client wants to hear of; None where that is not readable."""
    try:
        return _listens.decode(listen.params or b"{}").notifications
    except DecodeError:
        return None


def is_among(notification: Notification, told: Filter) -> bool:
    """Whether it is of a kind that the filter has, or of one that no filter has a word for."""
    match notification.method:
        case methods.TOOLS_CHANGED:
            return told.tools
        case methods.PROMPTS_CHANGED:
            return told.prompts
        case methods.RESOURCES_CHANGED:
            return told.resources
        case methods.RESOURCE_UPDATED:
            return bool(told.uris)  # Of such a resource or of a part of it.
        case _:
            return True
