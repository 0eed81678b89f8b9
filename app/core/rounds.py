"""A handshake client's calls at a stateless child, whose questions come as results that ask (basic/patterns/mrtr).

    IN FLIGHT ──input_required──▶ ASKING ──last answer──▶ IN FLIGHT, under a new id, any number of times
        │    └──a state only──▶ PAUSING ──pause is over──▶ IN FLIGHT
        └──anything else──▶ over

The first round goes out under the id that the session gave the call, and each round under an id that is its progress
token too, where the session wants to hear of progress.
"""

from collections.abc import Callable, Iterator

from msgspec import DecodeError, Raw, Struct, field

from app.core.deadlines import FOREVER
from app.core.parties import ToChild
from app.core.patience import Patience, Pause
from app.core.probing import Outcome, ToSession
from app.core.questions import undeclared
from app.protocol import handshake, methods, stateless
from app.protocol.faults import BadParams, SpokeNonsense
from app.protocol.jsonrpc import Failure, Notification, Reply, Request, RequestId, Result, failure, payload
from app.protocol.stateless import Envelope, Question

_DISMISSED = payload({"action": "cancel"})
"""What stands for an elicitation that its client did not, or could not, answer."""


class _Call(Struct):
    request: Request
    pause: Pause
    round: RequestId | None
    """The id under which the child works on it; None while it does not."""
    open: dict[RequestId, str] = field(default_factory=dict)
    """Our ids of the questions that the client has not answered, and the child's keys of them."""
    answers: dict[str, Raw] = field(default_factory=dict)
    state: str | None = None
    is_retried: bool = False
    """Whether it was, with a state and without an answer, since its client was last asked."""


class Rounds:
    """`elicitation_id` names an elicitation in url mode, which has no name in this era."""

    def __init__(self, mint: Iterator[int], patience: Patience, elicitation_id: Callable[[], str]) -> None:
        self._mint = mint
        self._patience = patience
        self._elicitation_id = elicitation_id
        self._calls: dict[RequestId, _Call] = {}
        self._rounds: dict[RequestId, _Call] = {}
        self._questions: dict[RequestId, tuple[_Call, str]] = {}
        self._paused: dict[RequestId, float] = {}

    @property
    def due(self) -> float:
        return min(self._paused.values(), default=FOREVER)

    def begin(self, request: Request, carried: Envelope) -> list[Outcome]:
        pause = Pause(self._patience.retry_first, self._patience.retry_most)
        self._calls[request.id] = self._rounds[request.id] = _Call(request, pause, request.id)
        return [ToChild(Request(request.id, request.method, stateless.with_envelope(request.params, carried)))]

    def cancel(self, ident: RequestId, notification: Notification) -> list[Outcome]:
        """The child hears of it where it is working on the call, and the client is asked no more."""
        call = self._calls.get(ident)
        if call is None:
            return []
        told = [] if call.round is None else [ToChild(methods.with_field(notification, "requestId", call.round))]
        return [*told, *self._close(call)]

    def withdraw(self, ident: RequestId, take_back: Callable[[int], bool]) -> bool:
        """A call that is in its first round is taken back by `take_back` if it can be."""
        call = self._calls.get(ident)
        if call is None or call.round != ident or not isinstance(ident, int) or not take_back(ident):
            return False
        self._close(call)
        return True

    # The child.

    def replied(self, reply: Reply, carried: Envelope, now: float) -> list[Outcome]:
        call = None if reply.id is None else self._rounds.pop(reply.id, None)
        if call is None:
            return []
        call.round = None
        match reply:
            case Failure():
                return self._end(call, Failure(call.request.id, handshake.known_error(call.request, reply.error)))
            case Result():
                return self._told(call, reply.result, carried, now)

    def progressed(self, notification: Notification) -> list[Outcome]:
        """Under the session's token, as long as the child works on the call."""
        token = methods.reported_token(notification)
        call = None if token is None else self._rounds.get(token)
        if call is None:
            return []
        ident = call.request.id
        told = notification if token == ident else methods.with_field(notification, "progressToken", ident)
        return [ToSession(told, ident)]

    # The client.

    def answered(self, reply: Reply, carried: Envelope) -> list[Outcome]:
        """A question was; with the last one's answer the call goes on.

        An elicitation that failed is one that the client dismissed; nothing stands for a failed sampling or roots.
        """
        asked = None if reply.id is None else self._questions.pop(reply.id, None)
        if reply.id is None or asked is None:
            return []
        call, method = asked
        key = call.open.pop(reply.id)
        match reply:
            case Result() if stateless.is_object(reply.result):
                call.answers[key] = reply.result
            case _ if method == methods.ELICIT:
                call.answers[key] = _DISMISSED
            case Result():
                return self._end(call, failure(call.request.id, BadParams("the client's answer is no object")))
            case Failure():
                return self._end(call, Failure(call.request.id, reply.error))
        return [] if call.open else self._go_on(call, carried)

    def tick(self, carried: Envelope, now: float) -> list[Outcome]:
        told: list[Outcome] = []
        for ident in [ident for ident, then in self._paused.items() if then <= now]:
            del self._paused[ident]
            told += self._go_on(self._calls[ident], carried)
        return told

    # Parts.

    def _told(self, call: _Call, body: Raw, carried: Envelope, now: float) -> list[Outcome]:
        """A result of a kind that an extension has is its client's to understand."""
        match stateless.result_kind(body):
            case stateless.COMPLETE:
                return self._end(call, Result(call.request.id, handshake.known_result(call.request, body)))
            case stateless.INPUT_REQUIRED:
                return self._interrupted(call, body, carried, now)
            case _:
                return self._end(call, Result(call.request.id, body))

    def _interrupted(self, call: _Call, body: Raw, carried: Envelope, now: float) -> list[Outcome]:
        try:
            questions, call.state = stateless.questions(body)
        except DecodeError:
            return self._nonsense(call, "the server asked something that cannot be read")
        if call.request.method not in stateless.ASKING:
            return self._nonsense(call, f"the server asked something where {call.request.method!r} was to be answered")
        call.answers = {}
        if questions:
            return self._ask(call, questions, carried, now)
        if call.state is None:
            return self._nonsense(call, "the server asked for a retry and gave no state")
        return self._try_again(call, carried, now)

    def _ask(self, call: _Call, questions: dict[str, Question], carried: Envelope, now: float) -> list[Outcome]:
        strange = [asked.method for asked in questions.values() if asked.method not in methods.NEEDED_CAPABILITY]
        if strange:
            return self._nonsense(call, f"the server asked {strange[0]!r}, which is no question")
        told: list[Outcome] = []
        for key, asked in questions.items():
            fault = undeclared(Request(0, asked.method, asked.params), call.request.method, carried.capabilities)
            if fault is not None and asked.method != methods.ELICIT:
                return self._end(call, failure(call.request.id, fault))
            if fault is not None:
                call.answers[key] = _DISMISSED
                continue
            ident = next(self._mint)
            call.open[ident] = key
            self._questions[ident] = (call, asked.method)
            told.append(ToSession(Request(ident, asked.method, self._params(asked)), call.request.id))
        if not call.open:
            return self._try_again(call, carried, now)
        call.pause.reset()
        call.is_retried = False
        return told

    def _params(self, asked: Question) -> Raw | None:
        """An elicitation in url mode has a name in 2025-11-25, the one handshake revision that has this mode."""
        if asked.method != methods.ELICIT or methods.elicitation_mode(asked.params) != "url":
            return asked.params
        return stateless.with_field(asked.params, "elicitationId", self._elicitation_id())

    def _try_again(self, call: _Call, carried: Envelope, now: float) -> list[Outcome]:
        """At once for the first time (basic/patterns/mrtr: "Client Requirements"), later on with growing pauses."""
        if not call.is_retried:
            call.is_retried = True
            return self._go_on(call, carried)
        self._paused[call.request.id] = now + call.pause.next()
        return []

    def _go_on(self, call: _Call, carried: Envelope) -> list[Outcome]:
        call.round = next(self._mint)
        self._rounds[call.round] = call
        request = Request(call.round, call.request.method, call.request.params)
        if methods.progress_token(request) is not None:
            request = methods.with_progress_token(request, call.round)
        params = stateless.with_answers(stateless.with_envelope(request.params, carried), call.answers, call.state)
        return [ToChild(Request(call.round, request.method, params))]

    def _nonsense(self, call: _Call, sentence: str) -> list[Outcome]:
        return self._end(call, failure(call.request.id, SpokeNonsense(sentence, executed="unknown")))

    def _end(self, call: _Call, reply: Reply) -> list[Outcome]:
        return [ToSession(reply), *self._close(call)]

    def _close(self, call: _Call) -> list[Outcome]:
        """The call is over; what its client is still being asked for it, it need not answer."""
        ident = call.request.id
        del self._calls[ident]
        self._paused.pop(ident, None)
        if call.round is not None:
            del self._rounds[call.round]
        for question in call.open:
            del self._questions[question]
        gone = "the call that needed the answer is over"
        return [ToSession(methods.cancellation(question, gone), ident) for question in call.open]
