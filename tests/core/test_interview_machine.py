"""Any order of what can happen to a call whose child may ask: each stream ends once, and so does each question.

The machine keeps its own books. Of every question it knows the child's id, of every stream the client's id; each effect
is checked against that, and time only passes as a timer set to `due` lets it.
"""

from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from app.core.deadlines import FOREVER, Deadlines
from app.core.effects import BeginStream, Doubt, Effect, Ended, EndStream, ToClient, ToUpstream
from app.core.interview import Interview
from app.protocol import stateless
from app.protocol.faults import BadParams, Exited
from app.protocol.jsonrpc import Failure, Message, Notification, Reply, Request, RequestId, Result, payload
from tests.core.exchanges import logged, progress, read, request, withdrawal
from tests.core.interview_books import Books, Question, Stream

LIMITS = Deadlines(request=10, max_request=50, stream_after=1, park=30, ask_after=0.5, ask_within=2)
IDS = st.sampled_from([1, 2, "1", "2", 11])
RARELY = st.sampled_from([False] * 9 + [True])
NAMES = st.sampled_from(["a", "a_2", "b"])
TOKENS = st.none() | IDS
METHODS = st.sampled_from(["elicitation/create", "elicitation/create", "roots/list", "x/ask"])
LEVELS = st.sampled_from(["", "", "debug", "error"])
FORMS: dict[str, object] = {"elicitation": {}}
BOTH: dict[str, object] = {"elicitation": {}, "roots": {}}
CAPABILITIES = st.sampled_from([FORMS, BOTH, BOTH])


class InterviewMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.books = Books()
        self.names = count(1)
        self.nonces = count(1)
        self.is_unsent = False

    # What the client does.

    @initialize(
        can_stream=st.booleans(),
        token=TOKENS,
        level=LEVELS,
        capabilities=CAPABILITIES,
        names=st.lists(NAMES, max_size=3),
    )
    def begins(
        self,
        can_stream: bool,
        token: RequestId | None,
        level: str,
        capabilities: dict[str, object],
        names: list[str],
    ) -> None:
        """Most calls are asked something at once."""
        asked = request(next(self.names), token=token, level=level, capabilities=capabilities)
        carried = stateless.envelope(asked)
        self.core = Interview(asked, carried, LIMITS, count(100), seal=lambda round_: f"s{round_}")
        self.token, self.level, self.capabilities = token, level, capabilities
        self.ours = 101 if level else 100
        self.wait_on(1, can_stream=can_stream)
        self.perform(self.core.begin(1, self.now, can_stream=can_stream))
        for ident, name in enumerate(names, 11):
            self.ask(ident, name, "elicitation/create")
        if names:
            self.wait_until(self.now + LIMITS.ask_after)

    def wait_on(self, ident: RequestId, *, can_stream: bool) -> int:
        name = len(self.books.streams) + 1
        self.books.streams[name] = Stream(ident, can_stream, self.now + LIMITS.stream_after)
        self.books.waits_from = self.books.heard_at = self.now
        self.books.parked_at = FOREVER
        return name

    @precondition(lambda self: self.core.is_parked)
    @rule(data=st.data(), can_stream=st.booleans(), token=TOKENS, level=LEVELS, capabilities=CAPABILITIES)
    def resumes(
        self, data: Any, can_stream: bool, token: RequestId | None, level: str, capabilities: dict[str, object]
    ) -> None:
        """With some of the answers, and with some to what was not asked (any more)."""
        said = data.draw(st.sets(st.sampled_from([*self.books.keys, "zz", "a", "b", "a_2"])))
        answers = {key: {"key": key} for key in said}
        ident = next(self.names)
        asked = request(
            ident, params={"name": "t", "inputResponses": answers}, token=token, level=level, capabilities=capabilities
        )
        expected = [
            (theirs, key)
            for theirs, question in self.books.questions.items()
            if (key := question.key) is not None and key in answers
        ]
        stream = self.wait_on(ident, can_stream=can_stream)
        self.token, self.level, self.capabilities = token, level, capabilities
        effects = self.core.resume(asked, self.books.round, stream, self.now, can_stream=can_stream)
        replies = [told.message for told in effects if isinstance(told, ToUpstream)]
        assert [told for told in replies if isinstance(told, Result)] == [
            Result(theirs, payload({"key": key})) for theirs, key in expected
        ]
        early = self.books.early
        self.perform(effects)
        assert (early is not None) is self.books.streams[stream].is_answered
        for question in self.books.questions.values():
            question.open_at = self.now

    @rule(offset=st.integers(-2, 2))
    def resumes_what_is_not_to_be_resumed(self, offset: int) -> None:
        """Nothing comes of it."""
        if self.core.is_parked and offset == 0:
            return
        before = self.core.due, self.core.is_parked, self.core.is_owed
        with pytest.raises(BadParams):
            self.core.resume(request(9), self.books.round + offset, 99, self.now, can_stream=True)
        assert before == (self.core.due, self.core.is_parked, self.core.is_owed)

    @precondition(lambda self: self.books.streams)
    @rule(back=st.integers(0, 2), is_meant=RARELY)
    def closes(self, back: int, is_meant: bool) -> None:
        """A response, which may be over already."""
        ident = max(1, len(self.books.streams) - back)
        if ident == len(self.books.streams) and not is_meant:
            return
        stream = self.books.streams[ident]
        was_over, stream.is_over = stream.is_over, True
        effects = self.core.gone(ident)
        assert (effects == []) is was_over
        self.perform(effects)

    # What the child does.

    @precondition(lambda self: self.is_heard())
    @rule(ident=IDS, name=NAMES, method=METHODS)
    def asks(self, ident: RequestId, name: str, method: str) -> None:
        if ident not in self.books.questions:
            self.ask(ident, name, method)

    @precondition(lambda self: self.is_heard() and not self.core.is_parked)
    @rule(ident=IDS, name=NAMES)
    def asks_and_pauses(self, ident: RequestId, name: str) -> None:
        self.asks(ident, name, "elicitation/create")
        self.wait_until(self.now + LIMITS.ask_after)

    def ask(self, ident: RequestId, name: str, method: str) -> None:
        nonce = next(self.nonces)
        self.books.questions[ident] = Question(nonce, method, self.now)
        params = payload({"n": nonce, "requestedSchema": {"properties": {name: {}}}})
        is_asked = self.may_ask(method) and not (self.books.has_ended or self.books.is_answered)
        if self.books.is_answered and not self.books.has_ended:
            self.books.is_suspect = True
        effects = self.core.deliver(Request(ident, method, params), self.now)
        assert (effects == []) is (is_asked or self.books.has_ended)
        if self.books.has_ended:
            del self.books.questions[ident]
        self.perform(effects)

    def may_ask(self, method: str) -> bool:
        return method in {"elicitation/create": 0, **({"roots/list": 0} if "roots" in self.capabilities else {})}

    @precondition(lambda self: self.is_heard())
    @rule(ident=IDS)
    def withdraws(self, ident: RequestId) -> None:
        self.books.questions.pop(ident, None)
        assert self.core.deliver(withdrawal(ident), self.now) == []

    @precondition(lambda self: self.is_heard())
    @rule()
    def progresses(self) -> None:
        effects = self.core.deliver(progress(self.ours), self.now)
        assert effects == self.heard(None if self.token is None else progress(self.token))
        if not self.books.is_answered:
            self.books.heard_at = self.now
        self.perform(effects)

    @precondition(lambda self: self.is_heard())
    @rule(level=st.sampled_from(["debug", "info", "error"]))
    def logs(self, level: str) -> None:
        is_wanted = self.level == "debug" or (self.level == "error" == level)
        effects = self.core.deliver(logged(level), self.now)
        assert effects == self.heard(logged(level) if is_wanted else None)
        self.perform(effects)

    def heard(self, said: Notification | None) -> list[Effect]:
        able = [ident for ident in self.books.waiting() if self.books.streams[ident].can_stream]
        return [ToClient(ident, said) for ident in able if said is not None]

    @precondition(lambda self: self.is_heard())
    @rule(kind=st.sampled_from([Result, Failure]), is_ours=RARELY)
    def replies(self, kind: type[Reply], is_ours: bool) -> None:
        nonce = next(self.nonces)
        ident = self.ours if is_ours else str(self.ours)
        if is_ours and not (self.books.is_answered or self.books.has_ended):
            self.books.is_answered = True
            self.books.is_suspect = bool(self.books.questions)
            self.books.early = kind(ident, payload({"nonce": nonce, "code": 7, "message": "no"}))
        elif is_ours:
            return
        effects = self.core.deliver(kind(ident, payload({"nonce": nonce, "code": 7, "message": "no"})), self.now)
        assert is_ours or effects == []
        self.perform(effects)
        assert not is_ours or not self.books.questions

    @precondition(lambda self: self.is_heard())
    @rule(is_meant=RARELY)
    def dies(self, is_meant: bool) -> None:
        if not is_meant:
            return
        self.books.is_lost = True
        self.books.is_suspect = False
        self.books.questions.clear()
        if self.books.early is None:
            self.books.early = Failure(None, payload({"code": -31002}))
        self.perform(self.core.lost(Exited("gone", executed="unknown")))

    def is_heard(self) -> bool:
        return self.books.is_sent and not self.books.is_lost

    # What happens to both.

    @rule(seconds=st.sampled_from([4, 8, 31]), is_meant=RARELY, is_unsent=st.booleans())
    def much_time_passes(self, seconds: float, is_meant: bool, is_unsent: bool) -> None:
        if not is_meant:
            return
        self.is_unsent = is_unsent and not self.books.round and not self.books.questions
        self.wait_until(self.now + seconds)

    @rule(seconds=st.sampled_from([0.25, 0.5, 0.5, 2]))
    def a_moment_passes(self, seconds: float) -> None:
        self.wait_until(self.now + seconds)

    def wait_until(self, then: float) -> None:
        """As a timer would that is set to `due` and to nothing else."""
        for _ in range(1000):
            if self.core.due > then:
                break
            self.now = max(self.now, self.core.due)
            self.perform(self.core.tick(self.now, lambda _ident: self.is_unsent))
        else:
            pytest.fail("due never moves on")
        self.now = then

    @rule(is_meant=RARELY)
    def stops(self, is_meant: bool) -> None:
        if not is_meant:
            return
        effects = self.core.close()
        assert (effects == []) is self.books.has_ended
        self.perform(effects)

    # The books.

    def perform(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            assert not self.books.has_ended, effect
            match effect:
                case ToClient(ident, message):
                    stream = self.books.streams[ident]
                    assert not (stream.is_answered)
                    assert not (stream.is_over)
                    assert stream.can_stream or not isinstance(message, Notification)
                    stream.has_begun = True
                    if not isinstance(message, Notification):
                        stream.is_answered = True
                        self.settle(stream, message)
                case BeginStream(ident):
                    stream = self.books.streams[ident]
                    assert stream.can_stream
                    assert not (stream.has_begun)
                    assert not (stream.is_over)
                    stream.has_begun = True
                case EndStream(ident):
                    stream = self.books.streams[ident]
                    assert stream.is_answered
                    assert not stream.is_over
                    stream.is_over = True
                case ToUpstream(message):
                    assert not self.books.is_lost
                    self.submit(message)
                case Doubt():
                    assert self.books.is_cancelled
                case Ended(reason):
                    self.end(reason)

    def settle(self, stream: Stream, answer: Message) -> None:
        """The stream's one answer: the call's, its questions, or why there is none."""
        assert isinstance(answer, Result | Failure)
        assert (answer.id, type(answer.id)) == (stream.id, type(stream.id))
        body = read(answer.result if isinstance(answer, Result) else answer.error)
        if body.get("resultType") == "input_required":
            self.show(body)
        elif body.get("code") == -31003:
            assert self.books.questions == {}
            assert self.now >= min(self.books.heard_at + LIMITS.request, self.books.waits_from + LIMITS.max_request)
        elif body.get("code") != -31006:
            early = self.books.early
            assert early is not None
            expected = read(early.result if isinstance(early, Result) else early.error)
            assert expected.items() <= body.items()

    def show(self, body: dict[str, Any]) -> None:
        """Everything that is open is asked, each under a key of its own."""
        self.books.round += 1
        self.books.parked_at = self.now
        assert body["requestState"] == f"s{self.books.round}"
        by_nonce = {question.nonce: question for question in self.books.questions.values()}
        shown = {asked["params"]["n"]: key for key, asked in body["inputRequests"].items()}
        assert shown.keys() == by_nonce.keys()
        for nonce, key in shown.items():
            assert self.may_ask(by_nonce[nonce].method)
            assert self.books.keys.setdefault(key, nonce) == nonce
            assert by_nonce[nonce].key in {None, key}
            by_nonce[nonce].key = key

    def submit(self, message: Message) -> None:
        match message:
            case Request(ident, "logging/setLevel"):
                assert ident != self.ours
                assert read(message.params)["level"] == self.level
            case Request(ident):
                assert ident == self.ours
                assert not self.books.is_sent
                self.books.is_sent = True
            case Notification(method, params):
                assert (method, read(params)["requestId"]) == ("notifications/cancelled", self.ours)
                assert not (self.books.is_answered)
                assert not (self.books.is_cancelled)
                self.books.is_cancelled = True
            case Result(ident) | Failure(ident):
                assert ident is not None
                del self.books.questions[ident]

    def end(self, reason: str) -> None:
        self.books.has_ended = True
        assert self.books.waiting() == []
        assert self.books.questions == {}
        assert reason != "abandoned" or self.now >= self.books.parked_at + LIMITS.park
        self.books.parked_at = FOREVER

    @invariant()
    def somebody_waits_or_the_call_is_parked_or_it_is_over(self) -> None:
        assert len(self.books.waiting()) + self.core.is_parked + self.core.is_over == 1
        assert self.core.is_over is self.books.has_ended

    @invariant()
    def nothing_is_left_after_the_end(self) -> None:
        assert (self.core.due == FOREVER) is self.books.has_ended
        if self.books.has_ended:
            assert len(self.core._questions) == 0
            assert self.core._early is None

    @invariant()
    def a_child_is_owed_something_until_it_has_answered_all_of_it(self) -> None:
        is_running = not (self.books.is_answered or self.books.is_lost)
        is_taken_back = self.books.has_ended and is_running and not self.books.is_cancelled
        assert self.core.is_owed is (self.books.is_suspect or (is_running and not is_taken_back))

    @invariant()
    def nothing_is_overdue(self) -> None:
        assert self.books.parked_at + LIMITS.park >= self.now
        for ident in self.books.waiting():
            assert min(self.books.heard_at + LIMITS.request, self.books.waits_from + LIMITS.max_request) >= self.now
            stream = self.books.streams[ident]
            assert stream.has_begun or not stream.can_stream or stream.begins_at >= self.now
            for question in self.books.questions.values():
                assert question.open_at + LIMITS.ask_within >= self.now

    def teardown(self) -> None:
        """However it went, silence alone brings it to its end."""
        if not hasattr(self, "core"):
            return
        self.is_unsent = False
        self.wait_until(self.now + LIMITS.max_request + LIMITS.park + LIMITS.ask_within)
        assert self.books.has_ended
        assert all(stream.is_over for stream in self.books.streams.values())


TestInterviewMachine = InterviewMachine.TestCase
