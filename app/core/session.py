"""One handshake-era client's conversation, from `initialize` to its last stream.

    NEW ──initialize──▶ GREETING ──its answer──▶ OPEN ──shutdown──▶ CLOSING
                            │                      │                   │
                            └──refused, lost───────┴──lost, close──────┴──exit, grace──▶ ENDED

A session knows who asked what and where each answer goes:

    calls   the client's requests in flight     our id   → where to answer, and under which id
    asks    the server's questions in flight    our id   → the id that the server knows it by

Every request towards the server gets a fresh id of ours, for clients use one id many times at once. It does no
I/O and reads no clock: each method takes one thing that happened and returns what should be done about it.
"""

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from app.core import judged, ledger
from app.core.anteroom import Anteroom
from app.core.bounds import BOUNDS, Bounds
from app.core.deadlines import FOREVER, Deadlines
from app.core.effects import BeginStream, Doubt, Effect, Ended, EndStream, StreamId, ToClient, ToUpstream
from app.core.ledger import Ask, Call, cancelled, expires_at, failed, no_room, unanswered, unexecuted
from app.core.outlets import Outlets
from app.core.phases import PHASED, Phase
from app.protocol import methods
from app.protocol.faults import GatewayFault, InvalidRequest, ShuttingDown, TimedOut, Unavailable, UnknownMethod
from app.protocol.jsonrpc import Failure, Message, Notification, Reply, Request, RequestId, Result, failure, result
from app.protocol.progress import under_token
from app.protocol.revisions import ASSUMED, Revision, negotiated


class Session:
    """`mint` gives the ids of requests towards the server."""

    whose: Callable[[RequestId], str | None] = staticmethod(lambda _ident: None)
    """Which of several servers has a request, where there are several."""

    def __init__(self, deadlines: Deadlines, mint: Iterator[int], bounds: Bounds = BOUNDS, server: str = "") -> None:
        self.phase = Phase.NEW
        self.revision: Revision = ASSUMED
        self.due = FOREVER
        """No later than this, `tick` has something to do."""
        self.outlets = Outlets(bounds.waiting, bounds.waiting_bytes)
        self.anteroom = Anteroom(bounds.early_count, bounds.early_bytes)
        self.deadlines = deadlines
        self._mint = mint
        self.bounds = bounds
        self._server = server
        self._capabilities: frozenset[str] = frozenset()
        self._calls: dict[int, Call] = {}
        self._asks: dict[RequestId, Ask] = {}
        self.asked_count = 0
        """What the next question's id is one more than: a late answer must not meet another question."""
        self._grace_at = FOREVER

    @property
    def is_busy(self) -> bool:
        """Whether a call is in flight."""
        return bool(self._calls)

    def owed(self, stream: StreamId) -> list[RequestId]:
        """The requests that are still to be answered on `stream`, as the client knows them."""
        return [call.id for call in self._calls.values() if call.stream == stream]

    # The client speaks.

    def ask(self, request: Request, stream: StreamId, now: float) -> list[Effect]:
        """The client wants an answer on `stream`.

        Raises:
            InvalidRequest: not in this phase; nothing has happened.
            Overloaded: too many calls are in flight.
        """
        if len(self._calls) >= self.bounds.calls:
            raise ledger.too_many()
        if self.phase is not Phase.OPEN or request.method in PHASED:
            self._step(request, now)
        return self._forward(request, stream, now)

    def ask_any(self, message: Request | Sequence[Message], stream: StreamId, now: float) -> list[Effect]:
        """As `ask` or `ask_all`."""
        return self.ask(message, stream, now) if isinstance(message, Request) else self.ask_all(message, stream, now)

    def ask_all(self, batch: Sequence[Message], stream: StreamId, now: float) -> list[Effect]:
        """The members of a batch, in their order: all of them or, as `ask` raises, none."""
        requests = [message for message in batch if isinstance(message, Request)]
        if any(request.method in PHASED for request in requests):
            raise InvalidRequest("initialize and shutdown must not be part of a batch")
        if len(self._calls) + len(requests) > self.bounds.calls:
            raise ledger.too_many()
        if requests and self.phase is not Phase.OPEN:
            self._step(requests[0], now)
        self.outlets.owe(stream)  # A last word that is settled last, for one member may cancel another.
        effects: list[Effect] = []
        for message in batch:
            match message:
                case Request():
                    effects += self._forward(message, stream, now)
                case Notification() | Result() | Failure():
                    effects += self.tell(message, now)
        return [*effects, *self._settle(stream)]

    def tell(self, message: Notification | Reply, now: float) -> list[Effect]:
        """The client says something that needs no answer."""
        if self.phase is Phase.ENDED:
            return []
        return self._told(message) if isinstance(message, Notification) else self._answered(message, now)

    def hear(self, stream: StreamId, now: float) -> list[Effect]:
        """The client can hear on `stream`; what has been waiting for that is said there now."""
        if self.phase is Phase.ENDED:
            return []
        said = self.outlets.listen(stream)
        for message in said:
            if isinstance(message, Request):
                ask = self._asks[message.id]
                ask.stream, ask.max_at = stream, now + self.deadlines.max_request
        return [ToClient(stream, message) for message in said]

    def limit(self, ident: RequestId, limits: Deadlines, now: float) -> None:
        """Who has that request is waited for as long as this says."""
        call = self._calls.get(ident) if isinstance(ident, int) else None
        if call is not None:
            call.patience = limits.request
            call.quiet_at, call.max_at = now + limits.request, now + limits.max_request
            self.due = min(self.due, call.quiet_at, call.max_at)

    def close(self, reason: str) -> list[Effect]:
        """The session ends: what it still owed gets its last word."""
        return self.lost(ShuttingDown("the session was ended", reason=reason, executed="unknown"), reason)

    # The server speaks.

    def deliver(self, message: Message, now: float, about: RequestId | None = None) -> list[Effect]:
        """The server said `message`, `about` that call if it could say so; requests of ours are known by our ids."""
        if self.phase is Phase.ENDED:
            return []
        match message:
            case Result() | Failure():
                return self._replied(message, now)
            case Notification():
                return self._notified(message, now)
            case Request():
                return self._asked(message, now, about)

    def lost(self, fault: GatewayFault, reason: str) -> list[Effect]:
        """The server is gone: every answer that it owed fails now, and its questions lapse."""
        if self.phase is Phase.ENDED:
            return []
        self.phase = Phase.ENDED
        self._asks.clear()
        self.anteroom.empty()
        effects = self.bereft(fault)
        self.due = FOREVER
        return [*effects, Ended(reason)]

    def bereft(self, fault: GatewayFault, withdraw: Callable[[int], bool] | None = None) -> list[Effect]:
        """The server is gone and will be back: every answer that it owed fails now, and its questions lapse."""
        effects: list[Effect] = []
        asks, self._asks = self._asks, {}
        for ident, ask in asks.items():
            self.outlets.release(ident)
            effects += self._taken_back(ask, methods.cancellation(ident, "the server that asked is gone"))
        calls, self._calls = self._calls, {}
        for ident, call in calls.items():
            unsent = withdraw is not None and withdraw(ident)
            effects += self._fail(call, unexecuted(fault) if unsent else fault)
        return effects

    # Time passes.

    def tick(self, now: float, withdraw: Callable[[int], bool]) -> list[Effect]:
        """Do what is due. `withdraw` takes back a request of which not one byte was sent, and tells if it could."""
        effects: list[Effect] = [BeginStream(stream) for stream in self.outlets.begin_due(now)]
        if now >= self._grace_at:
            return [*effects, *self.close("shutdown")]
        for question, ask in list(self._asks.items()):
            if ask.max_at <= now:
                self._close_question(question, ask, now)
                effects.append(ToUpstream(unanswered(ask)))
        for ident, call in list(self._calls.items()):
            if expires_at(call, self._asks.values()) <= now:
                effects += self._expired(ident, call, withdraw)
        expiries = [expires_at(call, self._asks.values()) for call in self._calls.values()]
        lapses = [ask.max_at for ask in self._asks.values()]
        self.due = min((self.outlets.due, self._grace_at, *expiries, *lapses))
        return effects

    # The client's side, in detail.

    def _step(self, request: Request, now: float) -> None:
        match (self.phase, request.method):
            case (Phase.NEW, methods.INITIALIZE):
                said = methods.greeting(request)
                self.phase = Phase.GREETING
                self.revision = negotiated(said.version)
                self._capabilities = frozenset(said.capabilities)
            case (_, methods.INITIALIZE):
                raise InvalidRequest("this session is initialized already; leave out the session id to open another")
            case (Phase.NEW, _):
                raise InvalidRequest("the first request of a session is initialize")
            case (Phase.CLOSING | Phase.ENDED, _):
                raise InvalidRequest("this session is shutting down; open a new one")
            case (Phase.GREETING, methods.SHUTDOWN):
                raise InvalidRequest("the server has not answered initialize yet; end the session without a shutdown")
            case (_, methods.SHUTDOWN):
                self.phase = Phase.CLOSING
                self._end_at(now + self.deadlines.request + self.deadlines.shutdown_grace)
            case _:
                pass

    def _forward(self, request: Request, stream: StreamId, now: float) -> list[Effect]:
        begin_at = self.outlets.owe(stream)
        if (refused := judged.refusal(request, self._server)) is not None:
            return [ToClient(stream, refused), *self._settle(stream)]
        ident, sieve = next(self._mint), judged.sieve_of(request)
        limits, is_greeting = self.deadlines, request.method == methods.INITIALIZE
        ours, token = under_token(Request(ident, request.method, request.params), ident)
        begun = FOREVER if is_greeting else now  # The time of a handshake is that of the child's start.
        quiet_at, max_at = begun + limits.request, begun + limits.max_request
        self._calls[ident] = Call(request.id, request.method, stream, token, max_at, quiet_at, limits.request, sieve)
        if begin_at < self.due or quiet_at < self.due:
            self.due = min(begin_at, quiet_at)
        return [ToUpstream(ours)] if is_greeting else self._upstream(ours)

    def _upstream(self, message: Message) -> list[Effect]:
        if self.phase is Phase.GREETING or self.phase is Phase.NEW:
            return [] if self.anteroom.take(message) else self._shut_out(message)
        return [ToUpstream(message)]

    def _shut_out(self, message: Message) -> list[Effect]:
        """A request is answered so; nobody waits for anything else."""
        if not isinstance(message, Request) or type(message.id) is not int:
            return []
        return self._fail(self._calls.pop(message.id), no_room())

    def _told(self, notification: Notification) -> list[Effect]:
        method = methods.ALIASES.get(notification.method, notification.method)
        match method:
            case methods.CANCELLED:
                return self._cancelled(notification)
            case methods.EXIT if self.phase is Phase.CLOSING:
                return [ToUpstream(notification), *self.close("exit")]
            case _:
                return self._upstream(Notification(method, notification.params))

    def _cancelled(self, notification: Notification) -> list[Effect]:
        """The newest of several with one id; `initialize` cannot be cancelled (2025-11-25, basic/utilities)."""
        theirs = methods.cancelled_id(notification)
        for ident, call in reversed(self._calls.items()):
            if call.id == theirs and type(call.id) is type(theirs) and call.method != methods.INITIALIZE:
                del self._calls[ident]
                if self.anteroom.withdraw(ident):
                    return self._unanswer(call)
                told = self._upstream(methods.with_field(notification, "requestId", ident))
                return [*told, *self._unanswer(call)]
        return []

    def _unanswer(self, call: Call) -> list[Effect]:
        """A cancelled request gets no answer, but the response to its POST needs a last word: without one, clients
        that resume broken streams come back for it again and again."""
        return self._answer(call, cancelled(call, self._server)) if self.outlets.is_post(call.stream) else []

    def _answered(self, reply: Reply, now: float) -> list[Effect]:
        if reply.id is None or (ask := self._asks.get(reply.id)) is None or ask.stream is None:
            return []
        self._close_question(reply.id, ask, now)
        return [ToUpstream(replace(reply, id=ask.id))]

    # The server's side, in detail.

    def _replied(self, reply: Reply, now: float) -> list[Effect]:
        call = self._calls.pop(reply.id, None) if type(reply.id) is int else None
        if call is None:
            return []
        ours = judged.replied(reply, call.id, call.sieve)
        if call.method in PHASED:
            return self._stepped(call, ours, now)
        return self._answer(call, ours)

    def _stepped(self, call: Call, reply: Reply, now: float) -> list[Effect]:
        if call.method == methods.SHUTDOWN:
            self._end_at(now + self.deadlines.shutdown_grace)
            if isinstance(reply, Failure) and methods.error_code(reply.error) == UnknownMethod.code:
                reply = result(call.id, {})
            return self._answer(call, reply)
        match reply:
            case Result():
                self.phase = Phase.OPEN
                self.revision = negotiated(methods.greeted_version(reply.result))
                early = [ToUpstream(message) for _, message in self.anteroom.empty()]
                return [*self._answer(call, reply), *early]
            case Failure():
                refused = Unavailable("the server refused to initialize", reason="initialize_refused")
                return [*self._answer(call, reply), *self.lost(refused, "refused")]

    def _notified(self, notification: Notification, now: float) -> list[Effect]:
        match notification.method:
            case methods.PROGRESS:
                return self._progressed(notification, now)
            case methods.CANCELLED:
                return self._withdrawn(notification, now)
            case _:
                return self._announced(notification)

    def _announced(self, notification: Notification) -> list[Effect]:
        stream = self._stream_for_unattributed()
        if stream is None:
            self.outlets.wait(notification)
            return []
        return [ToClient(stream, notification)]

    def _progressed(self, notification: Notification, now: float) -> list[Effect]:
        token = methods.reported_token(notification)
        call = self._calls.get(token) if isinstance(token, int) else None
        if call is None or call.token is None:
            return []
        call.quiet_at = now + call.patience
        if not self.outlets.can_stream(call.stream):
            return []
        return [ToClient(call.stream, methods.with_field(notification, "progressToken", call.token))]

    def _withdrawn(self, notification: Notification, now: float) -> list[Effect]:
        """The server takes a question back; the stream that carried it may have ended since."""
        theirs = methods.cancelled_id(notification)
        for ident, ask in self._asks.items():
            if ask.id == theirs and type(ask.id) is type(theirs):
                self._close_question(ident, ask, now)
                return self._taken_back(ask, methods.with_field(notification, "requestId", ident))
        return []

    def _taken_back(self, ask: Ask, told: Notification) -> list[Effect]:
        if ask.stream is None:
            return []
        return [ToClient(ask.stream, told)] if self.outlets.can_stream(ask.stream) else self._announced(told)

    def _asked(self, question: Request, now: float, about: RequestId | None) -> list[Effect]:
        needed = methods.NEEDED_CAPABILITY.get(question.method)
        if needed is not None and needed not in self._capabilities:
            refusal = UnknownMethod(f"the client did not declare {needed!r}", reason="capability_not_declared")
            return [ToUpstream(failure(question.id, refusal))]
        stream = self._stream_of(about) or self._stream_for_unattributed()
        if stream is None and question.method == methods.PING:
            return [ToUpstream(result(question.id, {}))]
        if stream is None and self._calls:
            return [ToUpstream(unanswered(Ask(question.id, None, now)))]
        if len(self._asks) >= self.bounds.questions or (stream is None and not self.outlets.can_hold(question)):
            return [ToUpstream(failure(question.id, ledger.too_many_questions()))]
        self.asked_count += 1
        max_at = now + (self.deadlines.unheard if stream is None else self.deadlines.max_request)
        self._asks[self.asked_count] = Ask(question.id, stream, max_at)
        self.due = min(self.due, max_at)
        asked = Request(self.asked_count, question.method, question.params)
        if stream is None:
            self.outlets.hold(asked)
            return []
        return [ToClient(stream, asked)]

    def _stream_of(self, about: RequestId | None) -> StreamId | None:
        call = self._calls.get(about) if isinstance(about, int) else None
        return call.stream if call is not None and self.outlets.can_stream(call.stream) else None

    def _stream_for_unattributed(self) -> StreamId | None:
        return self.outlets.unattributed([call.stream for call in self._calls.values()])

    # Calls.

    def _close_question(self, ident: RequestId, ask: Ask, now: float) -> None:
        """Every call has the time of a fresh one again, for any of them may have waited for the answer."""
        del self._asks[ident]
        if ask.stream is None:
            self.outlets.release(ident)
        for call in self._calls.values():
            call.quiet_at = max(call.quiet_at, now + call.patience)
            self.due = min(self.due, call.quiet_at)

    def _expired(self, ident: int, call: Call, withdraw: Callable[[int], bool]) -> list[Effect]:
        del self._calls[ident]
        call.server = self.whose(ident) or ""
        unsent = self.anteroom.withdraw(ident) or withdraw(ident)
        fault = TimedOut(f"no answer to {call.method!r} in time", executed="no" if unsent else "unknown")
        gone = methods.cancellation(ident, "timed out at the gateway")
        told: list[Effect] = [] if unsent else [*self._upstream(gone), Doubt()]
        return [*told, *self._fail(call, fault)]

    def _fail(self, call: Call, fault: GatewayFault) -> list[Effect]:
        return self._answer(call, failed(call, fault, self._server))

    def _answer(self, call: Call, reply: Reply) -> list[Effect]:
        return [ToClient(call.stream, reply), *self._settle(call.stream)]

    def _settle(self, stream: StreamId) -> list[Effect]:
        return [EndStream(stream)] if self.outlets.settle(stream) else []

    def _end_at(self, then: float) -> None:
        self._grace_at = then
        self.due = min(self.due, then)
