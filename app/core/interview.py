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
from app.protocol import methods, stateless
from app.protocol.faults import (
    BadParams,
    GatewayFault,
    MissingCapability,
    SpokeNonsense,
    Unavailable,
    UnknownMethod,
)
from app.protocol.jsonrpc import Failure, Message, Notification, Reply, Request, RequestId, Result, failure, payload
from app.protocol.stateless import Envelope, Question

Seal = Callable[[int], str]
"""The `requestState` for a round of questions; for round 0 nothing is parked, and a retry begins anew."""

_NOT_FOUND, _URL_NEEDED = -32002, -32042


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
        self._hints = dict(hints or {}) if request.method in stateless.CACHEABLE else {}
        self._open: dict[str, tuple[RequestId, Question]] = {}
        self._keys: set[str] = set()
        self._round = 0
        self._first_at = FOREVER
        self._ask_at = FOREVER
        self._park_until = FOREVER
        self._early: Reply | None = None

    @property
    def is_parked(self) -> bool:
        return self._park_until < FOREVER

    def resume(self, retry: Request, round_: int, stream: StreamId, now: float, *, can_stream: bool) -> list[Effect]:
        """A retry of the request that `round_` of questions was sent to.

        Raises:
            BadParams: that round is over, or its answers are not readable.
        """
        answers, _ = stateless.answers(retry)
        if not self.is_parked or round_ != self._round or self.is_over:
            raise BadParams("requestState was used already; send the request again without it", reason="state_used")
        self._request = retry
        self._token = methods.progress_token(retry)
        self._park_until = FOREVER
        self._wait_on(stream, now, can_stream=can_stream)
        told: list[Effect] = []
        for key in [key for key in self._open if key in answers]:
            ident, _question = self._open.pop(key)
            told.append(ToUpstream(Result(ident, answers[key])))
        if self._early is not None:
            return [*told, *self._settled(self._early)]
        if self._open:
            self._ask_soon(now)
        return told

    # The server.

    def _params(self) -> Raw | None:
        return stateless.without_envelope(self._request.params)

    def _before(self) -> list[Effect]:
        if not self._level:
            return []
        return [ToUpstream(Request(next(self._mint), methods.SET_LEVEL, payload({"level": self._level})))]

    def deliver(self, message: Message, now: float) -> list[Effect]:
        if isinstance(message, Request):
            return [] if self.is_over else self._asked(message, now)
        return super().deliver(message, now)

    def _asked(self, question: Request, now: float) -> list[Effect]:
        refusal = self._refusal(question)
        if refusal is not None:
            return [ToUpstream(failure(question.id, refusal))]
        params = question.params
        if question.method == methods.ELICIT and params is not None:
            params = methods.without(params, "elicitationId")
        self._open[self._key(question)] = (question.id, Question(question.method, params))
        if not self.is_parked:
            self._ask_soon(now)
        return []

    def _key(self, question: Request) -> str:
        """A name that tells people what is asked: a form's first field, else the method, and a number if need be."""
        name = methods.first_field(question.params) or question.method.partition("/")[0]
        key = name if name not in self._keys else f"{name}_{len(self._keys) + 1}"
        self._keys.add(key)
        return key

    def _refusal(self, question: Request) -> GatewayFault | None:
        """What the client did not declare is never asked (mrtr: "Server Requirements")."""
        needed = methods.NEEDED_CAPABILITY.get(question.method)
        if needed is None or self._request.method not in stateless.ASKING:
            return UnknownMethod(f"{question.method!r} cannot be asked of this client", reason="cannot_ask")
        if needed not in self._capabilities:
            return UnknownMethod(f"the client did not declare {needed!r}", reason="capability_not_declared")
        if question.method == methods.ELICIT and not self._elicits(methods.elicitation_mode(question.params)):
            return BadParams("the client did not declare this mode of elicitation", reason="capability_not_declared")
        return None

    def _elicits(self, mode: str) -> bool:
        """An empty object means forms (client/elicitation: "Capabilities")."""
        modes = methods.members(self._capabilities.get("elicitation"))
        return mode in modes or (mode == "form" and not modes)

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
        for key, (ident, _question) in list(self._open.items()):
            if ident == theirs and type(ident) is type(theirs):
                del self._open[key]
        if not self._open:
            self._ask_at = self._first_at = FOREVER
            self._set_due()
        return []

    def _replied(self, reply: Reply) -> list[Effect]:
        self._open.clear()
        self._ask_at = FOREVER
        if self.is_parked:
            self._early = reply
            return []
        return self._settled(reply)

    def _settled(self, reply: Reply) -> list[Effect]:
        match reply:
            case Result():
                return self._completed(reply.result)
            case Failure():
                return self._failed(reply.error)

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
                return self._answer(Failure(self._request.id, methods.with_code(error, BadParams.code)))
            case code if code == _URL_NEEDED:
                return self._url_needed(error)
            case BadParams.code if self._request.method not in methods.OF_HANDSHAKE:
                return self._answer(Failure(self._request.id, methods.as_unknown_method(error)))
            case _:
                return self._answer(Failure(self._request.id, error))

    def _url_needed(self, error: Raw) -> list[Effect]:
        """The call is over; the client visits the pages and sends it again (2025-11-25, client/elicitation)."""
        if not self._elicits("url"):
            fault = MissingCapability("the server needs an elicitation by URL", {"elicitation": {"url": {}}})
            return self._refuse(fault)
        asked = {f"q{n}": Question(methods.ELICIT, params) for n, params in enumerate(methods.elicitations(error), 1)}
        body = stateless.input_required(asked, self._seal(0))
        return self._answer(Result(self._request.id, body))

    # Time.

    def lost(self, fault: GatewayFault) -> list[Effect]:
        if self.is_parked and not self.is_over:
            self._early = self._early or failure(0, fault)
            return []
        return super().lost(fault)

    def close(self) -> list[Effect]:
        return [*self._unanswered("the gateway is shutting down"), *super().close()]

    def gone(self, stream: StreamId) -> list[Effect]:
        if stream != self._stream:
            return []
        return [*self._unanswered("the client is gone"), *super().gone(stream)]

    def tick(self, now: float, withdraw: Callable[[int], bool]) -> list[Effect]:
        if self._park_until <= now and not self.is_over:
            told = [*self._unanswered("the client did not answer in time"), *self._cancel("the client did not return")]
            return [*told, *self._end("abandoned")]
        if self._ask_at <= now and not self.is_over:
            return self._park(now)
        return super().tick(now, withdraw)

    def _expired(self, withdraw: Callable[[int], bool]) -> list[Effect]:
        return [*self._unanswered("the call timed out"), *super()._expired(withdraw)]

    def _park(self, now: float) -> list[Effect]:
        stream, self._stream = self._stream, None
        self._round += 1
        self._first_at = self._ask_at = self._begin_at = self._quiet_at = self._max_at = FOREVER
        self._park_until = now + self._deadlines.park
        self._set_due()
        asked = {key: question for key, (_ident, question) in self._open.items()}
        body = stateless.input_required(asked, self._seal(self._round))
        return [] if stream is None else [ToClient(stream, Result(self._request.id, body)), EndStream(stream)]

    def _ask_soon(self, now: float) -> None:
        """When no further question has come for a moment, and not later than a few moments after the first."""
        limits = self._deadlines
        self._first_at = min(self._first_at, now)
        self._ask_at = min(now + limits.ask_after, self._first_at + limits.ask_within)
        self._set_due()

    def _set_due(self) -> None:
        super()._set_due()
        self.due = min(self.due, self._ask_at, self._park_until)

    def _unanswered(self, why: str) -> list[Effect]:
        if self.is_over:
            return []
        lapsed, self._open = self._open, {}
        fault = Unavailable(why, reason="client_unreachable")
        return [ToUpstream(failure(ident, fault)) for ident, _question in lapsed.values()]
