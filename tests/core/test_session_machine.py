"""Any order of what can happen to a session: every accepted request gets one last word, in the right place.

The machine keeps its own books. Of every request that the session accepted it knows the client's id, the stream and
the id towards the server; every effect is checked against that, and time only passes as a timer set to `due` lets it.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import count

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from app.core.bounds import Bounds
from app.core.deadlines import FOREVER, Deadlines
from app.core.effects import BeginStream, Doubt, Effect, Ended, EndStream, ToClient, ToUpstream
from app.core.phases import Phase
from app.core.session import Session
from app.protocol import methods
from app.protocol.faults import Exited, GatewayFault, Unavailable
from app.protocol.jsonrpc import Failure, Message, Notification, Reply, Request, RequestId, Result, payload
from tests.core.books import Asked, Books, Owed, Stream, same
from tests.core.exchanges import read, withdrawal

LIMITS = Deadlines(start=20, request=10, max_request=50, stream_after=1, shutdown_grace=5, unheard=6)
CALLS_MAX = 6
FIRST_ID = 100
GREETING = payload({"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}})
IDS = st.sampled_from([1, 2, "1", "2"])
SERVER_IDS = st.sampled_from([1, "1", 2])
CALL_METHODS = st.sampled_from(["tools/call", "ping", "x/future"])
QUESTIONS = st.sampled_from(["roots/list", "ping", "x/future", "sampling/createMessage"])
NEWS = st.sampled_from(["notifications/message", "notifications/tools/list_changed", "notifications/x"])
MEMBERS = st.one_of(
    st.builds(Request, IDS, CALL_METHODS),
    st.builds(Request, IDS, st.sampled_from(["tools/call", "shutdown", "initialize"])),
    st.builds(Notification, st.sampled_from(["notifications/x", "notifications/exit"])),
    st.builds(withdrawal, IDS),
)


class SessionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.session = Session(LIMITS, count(FIRST_ID), Bounds(calls=CALLS_MAX))
        self.books = Books()
        self.names = count(1)
        self.minted = FIRST_ID
        self.is_unsent = False

    # What the client does.

    @initialize(can_stream=st.booleans())
    def greets(self, can_stream: bool) -> None:
        self.offer([Request(0, "initialize", GREETING)], can_stream=can_stream)

    @rule(ident=IDS, method=CALL_METHODS, can_stream=st.booleans(), token=st.none() | IDS)
    def asks(self, ident: RequestId, method: str, can_stream: bool, token: RequestId | None) -> None:
        params = None if token is None else payload({"_meta": {"progressToken": token}})
        self.offer([Request(ident, method, params)], can_stream=can_stream)

    @precondition(lambda self: self.books.listening())
    @rule(ident=IDS, method=CALL_METHODS)
    def asks_on_a_listener(self, ident: RequestId, method: str) -> None:
        self.offer([Request(ident, method)], stream=self.books.listening()[0])

    @rule(method=st.sampled_from(["initialize", "shutdown"]), can_stream=st.booleans())
    def asks_out_of_the_ordinary(self, method: str, can_stream: bool) -> None:
        self.offer([Request(9, method)], can_stream=can_stream)

    @rule(members=st.lists(MEMBERS, min_size=1, max_size=4), can_stream=st.booleans())
    def asks_several_at_once(self, members: list[Message], can_stream: bool) -> None:
        if any(isinstance(member, Request) for member in members):
            self.offer(members, can_stream=can_stream, is_batch=True)

    def offer(
        self, members: Sequence[Message], *, can_stream: bool = True, stream: int | None = None, is_batch: bool = False
    ) -> None:
        """What is refused must have changed nothing."""
        ident = next(self.names) if stream is None else stream
        phase = self.session.phase
        if stream is None:
            self.session.outlets.post(ident, can_stream=can_stream, begin_at=self.now + LIMITS.stream_after)
        try:
            if is_batch or not isinstance(members[0], Request):
                effects = self.session.ask_all(members, ident, self.now)
            else:
                effects = self.session.ask(members[0], ident, self.now)
        except GatewayFault:
            self.session.outlets.drop(ident)
            assert self.session.phase is phase
            return
        assert not self.books.has_ended
        if stream is None:
            self.books.streams[ident] = Stream(True, can_stream, self.now + LIMITS.stream_after)
        for member in members:
            self.account_for(member, ident)
        self.perform(effects)

    def account_for(self, member: Message, stream: int) -> None:
        match member:
            case Request():
                quiet, last = LIMITS.request, LIMITS.max_request
                if member.method == "initialize":
                    quiet = last = FOREVER
                token = read(member.params).get("_meta", {}).get("progressToken")
                deadlines = (self.now + last, self.now + quiet)
                self.books.owed.append(Owed(self.minted, member.id, member.method, stream, token, *deadlines))
                self.minted += 1
            case Notification(methods.CANCELLED):
                self.books.cancel(read(member.params)["requestId"])

    @rule(method=st.sampled_from(["notifications/x", "initialized", "notifications/exit"]))
    def tells(self, method: str) -> None:
        self.perform(self.session.tell(Notification(method), self.now))

    @rule(ident=IDS)
    def cancels(self, ident: RequestId) -> None:
        is_known = self.books.cancel(ident)
        effects = self.session.tell(withdrawal(ident), self.now)
        assert is_known or effects == []
        self.perform(effects)

    @rule(number=st.integers(0, 4), kind=st.sampled_from([Result, Failure]))
    def answers(self, number: int, kind: type[Reply]) -> None:
        asked = self.books.asked.get(number)
        effects = self.session.tell(kind(number, payload(number)), self.now)
        if asked is None or asked.is_over or asked.stream is None:
            assert effects == []
            return
        assert effects == [ToUpstream(kind(asked.id, payload(number)))]
        self.close_question(asked)
        self.perform(effects)

    @precondition(lambda self: not self.books.has_ended)
    @rule()
    def listens(self) -> None:
        ident = next(self.names)
        self.books.streams[ident] = Stream(is_post=False, can_stream=True)
        effects = self.session.hear(ident, self.now)
        for effect in effects:
            match effect:
                case ToClient(stream, Request(int(number))):
                    asked = self.books.asked[number]
                    assert (asked.stream, stream) == (None, ident)
                    asked.stream, asked.lapses_at = ident, self.now + LIMITS.max_request
                case ToClient(stream, Notification(method)):
                    assert stream == ident
                    assert method != methods.LOG_MESSAGE
                case _:
                    pytest.fail(repr(effect))
        assert all(asked.stream is not None for _, asked in self.books.open_questions())
        self.perform(effects)

    @precondition(lambda self: self.books.listening())
    @rule()
    def goes_away(self) -> None:
        ident = self.books.listening()[-1]
        self.books.streams[ident].can_stream = False
        self.session.outlets.unlisten(ident)

    # What the server does.

    @precondition(lambda self: self.session.phase is Phase.GREETING)
    @rule()
    def greets_back(self) -> None:
        self.perform(self.session.deliver(Result(FIRST_ID, payload({"n": FIRST_ID})), self.now))

    @rule(offset=st.integers(0, 9), kind=st.sampled_from([Result, Result, Failure]))
    def replies(self, offset: int, kind: type[Reply]) -> None:
        """To one of the newest requests, which may have been answered, cancelled or never sent."""
        ours = self.minted - 1 - offset
        owed = next((owed for owed in self.books.open() if owed.ours == ours), None)
        effects = self.session.deliver(kind(ours, payload({"n": ours})), self.now)
        if owed is None:
            assert effects == []
            return
        assert effects[0] == ToClient(owed.stream, kind(owed.id, payload({"n": ours})))
        self.perform(effects)

    @rule(ident=st.none() | st.sampled_from(["100", "101", 1, 0]))
    def replies_to_nothing(self, ident: RequestId | None) -> None:
        assert self.session.deliver(Failure(ident, payload({})), self.now) == []

    @rule(offset=st.integers(0, 6))
    def progresses(self, offset: int) -> None:
        ours = self.minted - 1 - offset
        said = Notification(methods.PROGRESS, payload({"progressToken": ours, "progress": 1}))
        owed = next((owed for owed in self.books.open() if owed.ours == ours and owed.token is not None), None)
        effects = self.session.deliver(said, self.now)
        if owed is None:
            assert effects == []
            return
        owed.quiet_at = self.now + LIMITS.request
        told = Notification(methods.PROGRESS, payload({"progressToken": owed.token, "progress": 1}))
        assert effects == ([ToClient(owed.stream, told)] if self.books.streams[owed.stream].can_stream else [])

    @rule(ident=SERVER_IDS, method=QUESTIONS)
    def asks_the_client(self, ident: RequestId, method: str) -> None:
        effects = self.session.deliver(Request(ident, method), self.now)
        if self.books.has_ended:
            assert effects == []
            return
        self.books.unanswered.append(ident)
        number = len(self.books.asked) + 1
        match effects:
            case [ToClient(stream, question)]:
                assert question == Request(number, method)
                assert method != "sampling/createMessage"
                assert self.books.streams[stream].can_stream
                self.books.asked[number] = Asked(ident, stream, self.now + LIMITS.max_request)
            case []:
                assert method in {"roots/list", "x/future"}
                assert not self.books.open()
                assert not self.books.listening()
                self.books.asked[number] = Asked(ident, None, self.now + LIMITS.unheard)
            case _:
                assert len(effects) == 1
        self.perform(effects)

    @rule(ident=SERVER_IDS)
    def takes_a_question_back(self, ident: RequestId) -> None:
        numbers = [number for number, asked in self.books.open_questions() if same(asked.id, ident)]
        effects = self.session.deliver(withdrawal(ident), self.now)
        if not numbers:
            assert effects == []
            return
        self.books.unanswered.remove(ident)
        asked = self.books.asked[numbers[0]]
        self.close_question(asked)
        assert asked.stream is not None or effects == []
        for effect in effects:
            assert isinstance(effect, ToClient)
            assert effect.message == withdrawal(numbers[0])
        self.perform(effects)

    @rule(method=NEWS)
    def announces(self, method: str) -> None:
        effects = self.session.deliver(Notification(method), self.now)
        assert len(effects) <= 1
        self.perform(effects)

    # What happens to both.

    @rule(seconds=st.sampled_from([0.5, 1, 4, 10, 20]), is_unsent=st.booleans())
    def time_passes(self, seconds: float, is_unsent: bool) -> None:
        self.is_unsent = is_unsent
        self.wait_until(self.now + seconds)

    def wait_until(self, then: float) -> None:
        """As a timer would that is set to `due` and to nothing else."""
        for _ in range(1000):
            if self.session.due > then:
                break
            self.now = max(self.now, self.session.due)
            for _, asked in self.books.open_questions():
                if asked.lapses_at <= self.now:
                    self.close_question(asked)
            self.perform(self.session.tick(self.now, lambda ours: self.is_unsent))
        else:
            pytest.fail("due never moves on")
        self.now = then
        self.books.check_deadlines(self.now)

    @precondition(lambda self: self.session.phase is Phase.OPEN)
    @rule(is_unsent=st.booleans())
    def its_child_is_another(self, is_unsent: bool) -> None:
        owed = [owed.ours for owed in self.books.open()]
        asked: list[int] = []

        def withdraw(ours: int) -> bool:
            asked.append(ours)
            return is_unsent

        effects = self.session.bereft(Exited("gone", executed="unknown"), withdraw)
        assert asked == owed
        for _, question in self.books.open_questions():
            question.is_over = True
        self.books.unanswered.clear()
        self.perform(effects)
        assert self.books.open() == []

    @precondition(lambda self: len(self.books.owed) > 3)
    @rule(is_lost=st.booleans())
    def is_over(self, is_lost: bool) -> None:
        fault = Exited("gone", executed="unknown")
        effects = self.session.lost(fault, "exited") if is_lost else self.session.close("deleted")
        assert bool(effects) is not self.books.has_ended
        self.perform(effects)

    # The books.

    def close_question(self, asked: Asked) -> None:
        """Every call has the time of a fresh one again."""
        asked.is_over = True
        for owed in self.books.open():
            owed.quiet_at = max(owed.quiet_at, self.now + LIMITS.request)

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            assert not self.books.has_ended, effect
            match effect:
                case ToClient(stream, message):
                    assert not self.books.streams[stream].has_ended
                    if isinstance(message, Result | Failure):
                        self.books.settle(message, stream)
                case BeginStream(stream):
                    post = self.books.streams[stream]
                    assert post.is_post
                    assert post.can_stream
                    assert not post.has_ended
                    assert not post.has_begun
                    post.has_begun = True
                case EndStream(stream):
                    post = self.books.streams[stream]
                    assert post.is_post
                    assert not post.has_ended
                    assert not [owed for owed in self.books.open() if owed.stream == stream]
                    post.has_ended = True
                case ToUpstream(message):
                    self.submit(message)
                case Doubt():
                    assert self.session.phase is not Phase.GREETING
                case Ended():
                    self.books.has_ended = True
                    for _, asked in self.books.open_questions():
                        asked.is_over = True
                    self.books.unanswered.clear()

    def submit(self, message: Message) -> None:
        match message:
            case Request(ident):
                owed = next(owed for owed in self.books.owed if owed.ours == ident)
                assert not owed.is_sent
                assert owed.method == message.method
                assert owed.token is None or read(message.params)["_meta"]["progressToken"] == ident
                assert owed.ours == FIRST_ID or self.books.owed[0].is_settled
                owed.is_sent = True
            case Notification(methods.CANCELLED):
                ours = read(message.params)["requestId"]
                owed = next(owed for owed in self.books.owed if owed.ours == ours)
                assert owed.is_sent
                assert owed.method != "initialize"
            case Notification():
                assert self.books.owed[0].is_settled
                assert message.method != "initialized"
            case Result(ident) | Failure(ident):
                assert ident is not None
                self.books.unanswered.remove(ident)

    @invariant()
    def the_server_is_owed_an_answer_to_what_the_client_was_asked_and_to_nothing_else(self) -> None:
        assert Counter(map(repr, self.books.unanswered)) == Counter(
            repr(asked.id) for _, asked in self.books.open_questions()
        )

    @invariant()
    def a_post_is_open_as_long_as_it_owes_something(self) -> None:
        owing = {owed.stream for owed in self.books.open()}
        for ident, stream in self.books.streams.items():
            assert not stream.is_post or stream.has_ended is (ident not in owing)
        assert self.session.is_busy is bool(owing)

    def teardown(self) -> None:
        """However it went, silence alone gives everybody a last word."""
        self.is_unsent = False
        self.wait_until(self.now + 2 * LIMITS.max_request)
        if self.session.phase is Phase.GREETING:  # A start has its own time.
            self.perform(self.session.lost(Unavailable("late"), "late"))
        assert self.books.open() == []


TestSessionMachine = SessionMachine.TestCase
