"""One stateless request, from its POST to its one answer (2026-07-28, basic: "Statelessness").

    RUNNING ──answer, deadline, server lost, client gone──▶ ENDED

Here the child is of the same era: request and answer are passed on, and nothing but ids is changed.
"""

from collections.abc import Callable, Iterator

from msgspec import Raw

from app.core.deadlines import FOREVER, Deadlines
from app.core.effects import BeginStream, Doubt, Effect, Ended, EndStream, StreamId, ToClient, ToUpstream
from app.protocol import discovery, methods, stateless
from app.protocol.faults import Executed, GatewayFault, ShuttingDown, TimedOut
from app.protocol.jsonrpc import Failure, Message, Notification, Reply, Request, Result, failure
from app.protocol.revisions import SERVED


class Exchange:
    """`mint` gives the ids of requests towards the server; `level` is the log level that the client asked for."""

    def __init__(
        self, request: Request, deadlines: Deadlines, mint: Iterator[int], *, level: str = "", server: str = ""
    ) -> None:
        self.due = FOREVER
        """No later than this, `tick` has something to do."""
        self.is_over = False
        self.is_owed = False
        """Whether the server has the request, and has not answered it: it may still say something about it."""
        self._request = request
        self._deadlines = deadlines
        self._mint = mint
        self._level = level
        self._server = server
        self._ident = 0
        self._token = methods.progress_token(request)
        self._stream: StreamId | None = None
        self._can_stream = False
        self._begin_at = self._quiet_at = self._max_at = FOREVER

    # The client.

    def begin(self, stream: StreamId, now: float, *, can_stream: bool) -> list[Effect]:
        """The client waits on `stream`; its request goes to the server."""
        self._ident = next(self._mint)
        self.is_owed = True
        self._wait_on(stream, now, can_stream=can_stream)
        ours = Request(self._ident, self._request.method, self._params())
        if self._token is not None:
            ours = methods.with_progress_token(ours, self._ident)
        return [*self._before(), ToUpstream(ours)]

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
                self.is_owed = False
                return self._replied(message)
            case Notification():
                return self._notified(message, now)
            case Request():
                return []  # No server of this era asks; whoever shares it out refuses it.

    def lost(self, fault: GatewayFault) -> list[Effect]:
        """The server is gone, or never came."""
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

    def _params(self) -> Raw | None:
        return self._request.params

    def _before(self) -> list[Effect]:
        """What the server must be told before the request."""
        return []

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
        if self._token is None or methods.reported_token(notification) != self._ident:
            return []
        if self._quiet_at < FOREVER:
            self._quiet_at = now + self._deadlines.request
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
        self.is_owed = self.is_owed and not unsent
        method = self._request.method
        fault = TimedOut(f"no answer to {method!r} in time", executed="no" if unsent else "unknown")
        told: list[Effect] = [] if unsent else [*self._cancel("timed out at the gateway"), Doubt()]
        return [*told, *self._refuse(fault)]

    def _cancel(self, reason: str) -> list[Effect]:
        return [ToUpstream(methods.cancellation(self._ident, reason))] if self._ident else []

    def _end(self, reason: str) -> list[Effect]:
        self.is_over = True
        self.due = FOREVER
        return [Ended(reason)]


class Waiting(Exchange):
    """A request that has no child yet: nothing of it was executed, whatever happens to it."""

    def begin(self, stream: StreamId, now: float, *, can_stream: bool) -> list[Effect]:
        self._wait_on(stream, now, can_stream=can_stream)
        return []


class Discovery(Exchange):
    """`server/discover` at a child of the same era: here, every revision is served that we know."""

    def _replied(self, reply: Reply) -> list[Effect]:
        if isinstance(reply, Result):
            reply = Result(reply.id, discovery.with_versions(reply.result, SERVED))
        return super()._replied(reply)


class Subscription(Exchange):
    """`subscriptions/listen` at a child of the same era: it has no deadline once it was acknowledged."""

    def close(self) -> list[Effect]:
        if self.is_over:
            return []
        told = self._cancel("the gateway is shutting down")
        return [*told, *self._graceful()]

    def lost(self, fault: GatewayFault) -> list[Effect]:
        if self.is_over:
            return []
        return self._graceful() if self._max_at == FOREVER else self._refuse(fault)

    def _replied(self, reply: Reply) -> list[Effect]:
        match reply:
            case Result():
                return self._graceful()
            case Failure():
                return super()._replied(reply)

    def _notified(self, notification: Notification, now: float) -> list[Effect]:
        match notification.method:
            case methods.CANCELLED:
                return self._graceful()  # A result may follow, or not; we say both.
            case stateless.ACKNOWLEDGED:
                self._quiet_at = self._max_at = FOREVER
                self._set_due()
            case methods.PROGRESS | methods.LOG_MESSAGE:
                return super()._notified(notification, now)
            case _:
                pass
        return self._say(tagged(notification, self._request))

    def _graceful(self) -> list[Effect]:
        said = self._say(farewell(self._request)) if self._max_at == FOREVER else []
        return [*said, *self._answer(ended(self._request))]


def tagged(notification: Notification, listen: Request) -> Notification:
    """As one of that subscription's (basic/patterns/subscriptions: "Receiving Notifications")."""
    return Notification(
        notification.method, stateless.with_meta(notification.params, stateless.SUBSCRIPTION_KEY, listen.id)
    )


def farewell(listen: Request) -> Notification:
    """We end the subscription (basic/patterns/cancellation: a server MUST say so)."""
    return tagged(methods.cancellation(listen.id, "the server ended the subscription"), listen)


def ended(listen: Request) -> Result:
    """basic/patterns/subscriptions: "Graceful Closure"."""
    body = stateless.completed(Raw(b"{}"), None, {})
    return Result(listen.id, stateless.with_meta(body, stateless.SUBSCRIPTION_KEY, listen.id))
