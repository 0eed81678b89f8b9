"""One stateless request to a child that speaks the handshake: its questions become `input_required`, and retries
go on with the very call that was parked (2026-07-28, basic/patterns/mrtr).

    RUNNING ──questions, and a moment's silence──▶ PARKED ──retry──▶ RUNNING ──answer──▶ ENDED
                                                      └────deadline────────────────────────┘
"""

from collections.abc import Callable, Iterator, Mapping

from msgspec import DecodeError, Raw

from app.core.deadlines import FOREVER, Deadlines
from app.core.effects import Effect, EndStream, StreamId, ToClient, ToUpstream
from app.core.exchange import Exchange
from app.core.questions import Questions, asked, elicits, key_of, undeclared
from app.protocol import errors, methods, stateless
from app.protocol.faults import BadParams, GatewayFault, MissingCapability, SpokeNonsense, Unavailable
from app.protocol.jsonrpc import Failure, Message, Notification, Reply, Request, RequestId, Result, failure, payload
from app.protocol.stateless import Envelope, Question

Seal = Callable[[int], str]
"""The `requestState` for a round of questions; for round 0 nothing is parked, and a retry begins anew."""

_NO_HINTS: Mapping[str, object] = {}
_NOT_FOUND, _URL_NEEDED, _INTERNAL = -32002, -32042, -32603


class Interview(Exchange):
    """`describe` gives the server's own name, once it is known; `hints` are those of a result that may be cached."""

    def __init__(
        self,
        request: Request,
        carried: Envelope,
        deadlines: Deadlines,
        mint: Iterator[int],
        *,
        seal: Seal,
        describe: Callable[[], Raw | None] = lambda: None,
        hints: Mapping[str, object] | None = None,
        server: str = "",
    ) -> None:
        super().__init__(request, deadlines, mint, level=carried.log_level, server=server)
        self._capabilities = carried.capabilities
        self._seal = seal
        self._describe = describe
        self._hints = hints if hints and request.method in stateless.CACHEABLE else _NO_HINTS
        self._questions = Questions()
        self._round = 0
        self._first_at = self._ask_at = self._send_at = self._park_until = FOREVER
        self._early: Reply | None = None
        """What the call was answered with while it was parked."""
        self._is_talkative = False
        """Whether the server asked something that it did not need for its answer."""

    @property
    def is_parked(self) -> bool:
        return self._park_until < FOREVER

    @property
    def _is_sent(self) -> bool:
        """Whether the server got the request; not while it waits for an answer that it asked for before."""
        return self._ident != 0

    @property
    def is_owed(self) -> bool:
        return self._is_talkative or self._is_running

    # The client.

    def begin(self, stream: StreamId, now: float, *, can_stream: bool) -> list[Effect]:
        """What the server has been waiting to ask goes first: the client's roots may decide what the call does."""
        if not self._questions:
            return super().begin(stream, now, can_stream=can_stream)
        self._wait_on(stream, now, can_stream=can_stream)
        self._ask_soon(now)
        return []

    def resume(self, retry: Request, round_: int, stream: StreamId, now: float, *, can_stream: bool) -> list[Effect]:
        """A retry of the request that `round_` of questions was sent to. It is a request of its own: of what it
        declares, of its log level and of its progress token, not of those before.

        Raises:
            BadParams: that round is over, or its answers are not readable; nothing has happened.
        """
        answers, _ = stateless.answers(retry)
        carried = stateless.envelope(retry)
        if not self.is_parked or round_ != self._round:
            raise BadParams("requestState was used already; send the request again without it", reason="state_used")
        replies = self._questions.answer(answers)
        self._request, self._capabilities = retry, carried.capabilities
        self._token = methods.progress_token(retry)
        self._park_until = FOREVER
        self._wait_on(stream, now, can_stream=can_stream)
        if self._early is not None:
            return self._settled(self._early)
        refused = self._questions.refuse(retry.method, carried.capabilities)
        told: list[Effect] = [*map(ToUpstream, replies), *map(ToUpstream, refused)]
        if self._questions:
            self._ask_soon(now)
        if self._is_sent:
            return [*self._leveled(carried.log_level), *told]
        self._level = carried.log_level
        if not self._questions:
            self._send_soon(now)
        return told

    def gone(self, stream: StreamId) -> list[Effect]:
        if self.is_over or stream != self._stream:
            return []
        return [*self._lapse("the client is gone"), *super().gone(stream)]

    def close(self) -> list[Effect]:
        return [*self._lapse("the gateway is shutting down"), *super().close()]

    # The server.

    def deliver(self, message: Message, now: float) -> list[Effect]:
        if isinstance(message, Request):
            return [] if self.is_over else self._asked(message, now)
        return super().deliver(message, now)

    def lost(self, fault: GatewayFault) -> list[Effect]:
        """Of a parked call the retry hears it."""
        self._questions, self._is_talkative = Questions(), False
        if self.is_over or not self.is_parked:
            return super().lost(fault)
        self._is_running = False
        if self._server:
            fault.details.setdefault("server", self._server)
        self._early = self._early or failure(0, fault)
        return []

    def _send(self) -> list[Effect]:
        level, self._level = self._level, ""
        return [*self._leveled(level), *super()._send()] if level else super()._send()

    def _leveled(self, level: str) -> list[Effect]:
        """The server is told of another level; of none it need not be, for nothing of it is passed on then."""
        is_news, self._level = level not in ("", self._level), level
        if not is_news:
            return []
        return [ToUpstream(Request(next(self._mint), methods.SET_LEVEL, payload({"level": level})))]

    def _params(self, ident: int) -> Raw | None:
        params, self._token = stateless.without_envelope(self._request, ident)
        return params

    def _asked(self, question: Request, now: float) -> list[Effect]:
        refusal = undeclared(question, self._request.method, self._capabilities)
        if self._is_sent and not self._is_running:
            self._is_talkative = True
            refusal = Unavailable("the call is over", reason="client_unreachable")
        if refusal is not None:
            return [ToUpstream(failure(question.id, refusal))]
        self._questions.take(question)
        if not self.is_parked:
            self._ask_soon(now)
        return []

    def _notified(self, notification: Notification, now: float) -> list[Effect]:
        match notification.method:
            case methods.PROGRESS:
                return self._progressed(notification, now)
            case methods.LOG_MESSAGE:
                return self._logged(notification)
            case methods.CANCELLED:
                return self._withdrawn(methods.cancelled_id(notification))
            case _:
                return []

    def _withdrawn(self, theirs: RequestId | None) -> list[Effect]:
        self._questions.withdraw(theirs)
        if self._questions:
            return []
        self._first_at = self._ask_at = FOREVER
        self._set_due()
        return [] if self._is_sent or self.is_parked or self.is_over else self._send()

    def _replied(self, reply: Reply) -> list[Effect]:
        self._is_talkative = is_talkative = bool(self._questions)
        if not is_talkative and self._park_until == FOREVER:
            return self._settled(reply)
        lapsed = self._lapse("the call is over")
        if self.is_parked:
            self._early = reply
            return lapsed
        return [*lapsed, *self._settled(reply)]

    def _settled(self, reply: Reply) -> list[Effect]:
        match reply:
            case Result():
                return self._completed(reply.result)
            case Failure() if errors.is_error(reply.error):
                return self._failed(reply.error)
            case Failure():
                return self._refuse(SpokeNonsense("the server's error is none", executed="unknown"))

    def _completed(self, result: Raw) -> list[Effect]:
        try:
            body = stateless.completed(result, self._describe(), self._hints)
        except DecodeError:
            return self._refuse(SpokeNonsense("the server's result is no object", executed="unknown"))
        return self._answer(Result(self._request.id, body))

    def _failed(self, error: Raw) -> list[Effect]:
        """Codes that this revision does not know any more (basic: "Error Codes")."""
        match methods.error_code(error):
            case code if code == _NOT_FOUND:
                error = errors.with_code(error, BadParams.code)
            case code if code == _URL_NEEDED:
                return self._url_needed(error)
            case BadParams.code if self._request.method not in methods.OF_HANDSHAKE:
                error = errors.as_unknown_method(error)
            case _:
                pass
        return self._answer(Failure(self._request.id, error))

    def _url_needed(self, error: Raw) -> list[Effect]:
        """The call is over; the client visits the pages and sends it again (2025-11-25, client/elicitation)."""
        pages = [params for params in errors.elicitations(error) if methods.elicitation_mode(params) == "url"]
        if not pages or self._request.method not in stateless.ASKING:
            return self._answer(Failure(self._request.id, errors.with_code(error, _INTERNAL)))
        if not elicits("url", self._capabilities):
            fault = MissingCapability("the server needs an elicitation by URL", {"elicitation": {"url": {}}})
            fault.executed = "unknown"
            return self._refuse(fault)
        keyed: dict[str, Question] = {}
        for params in pages:
            keyed[key_of(methods.ELICIT, params, keyed)] = asked(methods.ELICIT, params)
        return self._answer(Result(self._request.id, stateless.input_required(keyed, self._seal(0))))

    # Time.

    def tick(self, now: float, withdraw: Callable[[int], bool]) -> list[Effect]:
        if self._park_until <= now and not self.is_over:
            told = [*self._lapse("the client did not answer in time"), *self._cancel("the client did not return")]
            return [*told, *self._end("abandoned")]
        if self._ask_at <= now and not self.is_over:
            return self._park(now)
        if self._send_at <= now and not self.is_over:
            self._send_at = FOREVER
            self._set_due()
            return self._send()
        return super().tick(now, withdraw)

    def _park(self, now: float) -> list[Effect]:
        stream, self._stream = self._stream, None
        self._round += 1
        self._first_at = self._ask_at = self._begin_at = self._quiet_at = self._max_at = FOREVER
        self._park_until = now + self._deadlines.park
        self._set_due()
        body = stateless.input_required(self._questions.show(), self._seal(self._round))
        return [] if stream is None else [ToClient(stream, Result(self._request.id, body)), EndStream(stream)]

    def _send_soon(self, now: float) -> None:
        """The server has a moment to take in what it asked for, and to ask more, before it gets the call."""
        self._send_at = now + self._deadlines.ask_after
        self._set_due()

    def _ask_soon(self, now: float) -> None:
        """When no further question has come for a moment, and not later than a few moments after the first, nor than
        the call would time out: a server that asks is at work."""
        limits = self._deadlines
        self._send_at = FOREVER
        self._first_at = min(self._first_at, now)
        last_at = min(self._first_at + limits.ask_within, self._quiet_at, self._max_at)
        self._ask_at = min(now + limits.ask_after, last_at)
        self._set_due()

    def _set_due(self) -> None:
        self.due = min(self._begin_at, self._quiet_at, self._max_at, self._ask_at, self._send_at, self._park_until)

    def _lapse(self, why: str) -> list[Effect]:
        if not self._questions:
            return []
        fault = Unavailable(why, reason="client_unreachable")
        return [ToUpstream(lapsed) for lapsed in self._questions.lapse(fault)]

    def _end(self, reason: str) -> list[Effect]:
        self._first_at = self._ask_at = self._send_at = self._park_until = FOREVER
        self._early = None
        return super()._end(reason)
