"""A session in front of a stateless child that asks, pauses, ends streams and answers late, in any order."""

from collections import deque
from itertools import count
from typing import Literal

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from app.core.deadlines import FOREVER, Deadlines
from app.core.effects import Doubt, Effect, EndStream, ToClient, ToUpstream
from app.core.parties import ToChild
from app.core.probing import Outcome, ToSession
from app.core.session import Session
from app.core.translation import Translation
from app.protocol import methods, stateless
from app.protocol.faults import Cancelled
from app.protocol.jsonrpc import Failure, Message, Notification, Request, RequestId, Result, payload
from tests.core.translation_books import Child, Owed, Posed, Round
from tests.core.translations import DISCOVERED, PATIENCE, REFUSED, acknowledged, failed, read, tagged

IDS = st.sampled_from([1, "1", 2])
URIS = st.sampled_from(["a", "b", "c"])
PICKS = st.integers(0, 20)
ASKED = st.lists(st.sampled_from(sorted(methods.NEEDED_CAPABILITY)), max_size=3)
CAPABILITIES: dict[str, object] = {"elicitation": {}, "roots": {}}


class TranslationMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.mint = count(1000)
        self.names, self.streams, self.nonces, self.states = count(1), count(1), count(1), count(1)
        self.session = Session(Deadlines(), self.mint)
        self.child = Child()
        self.now = 0.0
        self.owed: dict[int, Owed] = {}
        self.first_ids: dict[int, int] = {}
        """Of each nonce, the session's own id of the call."""
        self.posed: dict[int, Posed] = {}
        self.rounds: dict[int, Round] = {}
        """Of each nonce, what the child asked for last."""
        self.queue: deque[Outcome] = deque()
        self.is_carrying = False
        self.heard: list[Message] = []

    # Carrying, in the order in which things were said.

    def carry(self, outcomes: list[Outcome]) -> None:
        self.queue.extend(outcomes)
        if self.is_carrying:
            return
        self.is_carrying = True
        while self.queue:
            outcome = self.queue.popleft()
            if isinstance(outcome, ToChild):
                self.child_hears(outcome.message)
            else:
                self.session_hears(outcome)
        self.is_carrying = False

    def session_hears(self, told: ToSession) -> None:
        if isinstance(told.message, Request):
            assert told.about == self.first_ids[read(told.message.params)["nonce"]]
        self.perform(self.session.deliver(told.message, self.now))

    def child_hears(self, message: Message) -> None:
        if isinstance(message, Request) and message.method == methods.INITIALIZE:
            self.carry(self.translation.receive(Failure(message.id, REFUSED), self.now))
            return
        if isinstance(message, Request) and message.method == stateless.DISCOVER:
            self.carry(self.translation.receive(Result(message.id, payload(DISCOVERED)), self.now))
            return
        self.child.hear(message)
        if not isinstance(message, Request) or "nonce" not in read(message.params):
            return
        said = read(message.params)
        nonce, wanted = said["nonce"], self.rounds.pop(said["nonce"], None)
        assert said["_meta"].get("progressToken", message.id) == message.id
        if wanted is None:
            assert nonce not in self.first_ids
            assert isinstance(message.id, int)
            self.first_ids[nonce] = message.id
            wanted = Round({}, None)
        answers = {key: self.posed[number].answer for key, number in wanted.keys.items()}
        assert said.get("inputResponses", {}) == answers
        assert said.get("requestState") == wanted.state

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case ToUpstream(message):
                    self.carry(self.translation.submit(message, self.now))
                case ToClient(stream, message):
                    self.client_hears(stream, message)
                case EndStream(stream):
                    assert all(owed.is_over for owed in self.owed.values() if owed.stream == stream)
                case Doubt():
                    pass
                case _:
                    pytest.fail(repr(effect))

    def client_hears(self, stream: int, message: Message) -> None:
        self.heard.append(message)
        match message:
            case Request():
                posed = self.posed[read(message.params)["number"]]
                assert posed.client_id is None
                assert not self.owed[posed.nonce].is_over
                posed.client_id = message.id
            case Notification() if message.method == methods.CANCELLED:
                taken = methods.cancelled_id(message)
                (posed,) = [posed for posed in self.posed.values() if posed.client_id == taken]
                assert not posed.is_over
                posed.is_over = True
            case Result() | Failure():
                self.client_is_answered(stream, message)
            case Notification():
                pass

    def client_is_answered(self, stream: int, reply: Result | Failure) -> None:
        nonce, owed = next((nonce, owed) for nonce, owed in self.owed.items() if owed.stream == stream)
        if owed.is_cancelled:
            assert failed(reply) == (owed.id, Cancelled.code)
            owed.is_cancelled = False
            return
        assert not owed.is_over
        assert (owed.id, type(owed.id)) == (reply.id, type(reply.id))
        if isinstance(reply, Result):
            body = read(reply.result)
            assert body.get("nonce", nonce) == nonce
            assert "resultType" not in body
        owed.is_over = True

    def pick(self, among: list[int], number: int) -> int:
        return among[number % len(among)]

    # What the client does.

    @initialize(begins=st.sampled_from(["legacy", "modern"]))
    def greets(self, begins: Literal["legacy", "modern"]) -> None:
        self.translation = Translation(
            self.mint, "1", begins=begins, elicitation_id=lambda: f"e{next(self.names)}", patience=PATIENCE
        )
        self.perform(self.session.hear(next(self.streams), 0))
        self.ask(1, "initialize", protocolVersion="2025-06-18", capabilities=CAPABILITIES)
        assert self.owed[1].is_over
        self.perform(self.session.tell(Notification(methods.INITIALIZED), 0))

    def ask(self, ident: RequestId, method: str, **params: object) -> None:
        stream, nonce = next(self.streams), next(self.nonces)
        self.session.outlets.post(stream, can_stream=True, begin_at=FOREVER)
        self.owed[nonce] = Owed(stream, ident, method)
        self.perform(self.session.ask(Request(ident, method, payload({**params, "nonce": nonce})), stream, self.now))

    @rule(ident=IDS, method=st.sampled_from(["tools/call", "prompts/get", "tools/list"]), progresses=st.booleans())
    def calls(self, ident: RequestId, method: str, progresses: bool) -> None:
        meta: dict[str, object] = {"_meta": {"progressToken": ident}} if progresses else {}
        self.ask(ident, method, **meta)

    @rule(ident=IDS, method=st.sampled_from([methods.PING, methods.SET_LEVEL]), level=st.sampled_from(["info", "loud"]))
    def asks_us(self, ident: RequestId, method: str, level: str) -> None:
        self.ask(ident, method, level=level)
        assert list(self.owed.values())[-1].is_over

    @rule(ident=IDS, uri=URIS, method=st.sampled_from([methods.SUBSCRIBE, methods.UNSUBSCRIBE]))
    def subscribes(self, ident: RequestId, uri: str, method: str) -> None:
        self.ask(ident, method, uri=uri)

    @rule(ident=IDS)
    def cancels(self, ident: RequestId) -> None:
        """It gets a last word, as every call does."""
        self.perform(self.session.tell(Notification(methods.CANCELLED, payload({"requestId": ident})), self.now))

    @property
    def open_questions(self) -> list[int]:
        return [number for number, posed in self.posed.items() if posed.client_id is not None and not posed.is_over]

    @precondition(lambda self: self.open_questions)
    @rule(number=PICKS, is_error=st.booleans(), repeats=st.booleans())
    def answers(self, number: int, is_error: bool, repeats: bool) -> None:
        self.answer(self.pick(self.open_questions, number), is_error=is_error)
        if repeats:
            self.answer(number % len(self.posed) + 1, is_error=False)

    def answer(self, number: int, *, is_error: bool) -> None:
        """Once; what comes after that must change nothing."""
        posed = self.posed[number]
        if posed.client_id is None:
            return
        if not posed.is_over:
            posed.is_over = True
            posed.answer = {"action": "cancel"} if is_error else {"number": number}
        reply = Failure(posed.client_id, REFUSED) if is_error else Result(posed.client_id, payload({"number": number}))
        self.perform(self.session.tell(reply, self.now))

    @precondition(lambda self: self.session.is_busy)
    @rule(is_unsent=st.booleans())
    def loses_patience(self, is_unsent: bool) -> None:
        """All questions and all calls time out; some of the calls may be taken back."""
        self.now += 10_000
        for number in self.open_questions:
            self.posed[number].is_over = True

        def take_back(ident: int) -> bool:
            return is_unsent and self.child.open.pop(ident, None) is not None

        def withdraw(ident: int) -> bool:
            return self.translation.withdraw(ident, take_back)

        self.perform(self.session.tick(self.now, withdraw))
        assert all(owed.is_over for owed in self.owed.values())

    # What the child does.

    @precondition(lambda self: self.child.open)
    @rule(number=PICKS, is_result=st.booleans())
    def replies(self, number: int, is_result: bool) -> None:
        self.reply(self.pick(list(self.child.open), number), is_result=is_result)

    def reply(self, ident: int, *, is_result: bool = True) -> None:
        nonce = read(self.child.open.pop(ident).params)["nonce"]
        body = payload({"resultType": "complete", "nonce": nonce})
        self.carry(self.translation.receive(Result(ident, body) if is_result else Failure(ident, REFUSED), self.now))
        assert self.owed[nonce].is_over

    @precondition(lambda self: self.child.open)
    @rule(number=PICKS, asked=ASKED, has_state=st.booleans())
    def asks(self, number: int, asked: list[str], has_state: bool) -> None:
        ident = self.pick(list(self.child.open), number)
        request = self.child.open.pop(ident)
        nonce = read(request.params)["nonce"]
        state = f"s{next(self.states)}" if has_state else None
        questions, wanted = {}, Round({}, state)
        for method in asked:
            number = len(self.posed) + 1
            self.posed[number] = Posed(nonce, method, answer={"action": "cancel"})
            wanted.keys[f"k{number}"] = number
            questions[f"k{number}"] = {"method": method, "params": {"number": number, "nonce": nonce}}
        self.rounds[nonce] = wanted
        said: dict[str, object] = {"resultType": "input_required", "inputRequests": questions}
        if state is not None:
            said["requestState"] = state
        self.carry(self.translation.receive(Result(ident, payload(said)), self.now))
        may_ask = request.method != "tools/list" and (asked or has_state)
        if not may_ask or "sampling/createMessage" in asked:  # The client did not declare that.
            assert self.owed[nonce].is_over

    @precondition(lambda self: self.child.cancelled)
    @rule(number=PICKS)
    def replies_too_late(self, number: int) -> None:
        ident = self.pick(self.child.cancelled, number)
        before = len(self.heard)
        self.carry(self.translation.receive(Result(ident, payload({"nonce": 0})), self.now))
        assert self.heard[before:] == []

    @precondition(lambda self: self.child.seen)
    @rule(number=PICKS)
    def progresses(self, number: int) -> None:
        ident = self.pick(sorted(self.child.seen), -1 - number)
        before = len(self.heard)
        note = Notification(methods.PROGRESS, payload({"progressToken": ident, "progress": 1}))
        self.carry(self.translation.receive(note, self.now))
        request = self.child.open.get(ident)
        said = {} if request is None else read(request.params)
        told = []
        if "progressToken" in said.get("_meta", {}):
            told = [methods.with_field(note, "progressToken", self.owed[said["nonce"]].id)]
        assert self.heard[before:] == told

    @precondition(lambda self: self.child.opening)
    @rule(leaves_out=st.none() | URIS)
    def acknowledges(self, leaves_out: str | None) -> None:
        (ident,) = self.child.opening
        stream = self.child.streams[ident]
        uris = [uri for uri in stream.wanted.get("resourceSubscriptions", []) if uri != leaves_out]
        stream.agreed = {**stream.wanted, "resourceSubscriptions": uris}
        self.carry(self.translation.receive(acknowledged(ident, stream.agreed), self.now))
        assert self.child.listened == [ident]

    @precondition(lambda self: self.child.streams)
    @rule(number=PICKS, how=st.sampled_from(["result", "failure", "cancelled"]))
    def ends_a_stream(self, number: int, how: str) -> None:
        ident = self.pick(list(self.child.streams), number)
        del self.child.streams[ident]
        ends: dict[str, Message] = {
            "result": Result(ident, payload({"resultType": "complete"})),
            "failure": Failure(ident, REFUSED),
            "cancelled": methods.cancellation(ident, "bye"),
        }
        self.carry(self.translation.receive(ends[how], self.now))

    @rule()
    def changes(self) -> None:
        """Told on every stream that the client opened, heard by it once."""
        before = len(self.heard)
        listened = self.child.listened
        for ident in self.child.streams:
            note = tagged("notifications/tools/list_changed", ident)
            self.carry(self.translation.receive(note, self.now))
        assert len(self.heard) - before == len(listened)

    @precondition(lambda self: self.child.cancelled)
    @rule(number=PICKS)
    def changes_on_an_old_stream(self, number: int) -> None:
        before = len(self.heard)
        note = tagged("notifications/tools/list_changed", self.pick(self.child.cancelled, number))
        self.carry(self.translation.receive(note, self.now))
        assert self.heard[before:] == []

    @precondition(lambda self: self.translation.due < FOREVER)
    @rule()
    def time_passes(self) -> None:
        self.now = max(self.now, self.translation.due)
        self.carry(self.translation.tick(self.now))
        assert self.translation.due > self.now

    # Always.

    @invariant()
    def at_most_one_stream_is_listened_to_and_one_is_being_opened(self) -> None:
        assert len(self.child.listened) <= 1
        assert len(self.child.opening) <= 1

    @invariant()
    def a_session_is_busy_as_long_as_it_is_owed_something(self) -> None:
        assert self.session.is_busy == any(not owed.is_over for owed in self.owed.values())

    @invariant()
    def a_question_of_a_call_that_is_over_is_over(self) -> None:
        for posed in self.posed.values():
            if self.owed[posed.nonce].is_over and posed.client_id is not None:
                assert posed.is_over

    def teardown(self) -> None:
        """When the child has answered everything, so has the session, and nothing of it is left."""
        if not hasattr(self, "translation"):
            return
        for _ in range(100):
            for ident in list(self.child.open):
                self.reply(ident)
            for number in self.open_questions:
                self.answer(number, is_error=False)
            if self.child.opening:
                self.acknowledges(None)
            if self.translation.due < FOREVER:
                self.time_passes()
        assert all(owed.is_over for owed in self.owed.values())
        assert self.translation.due == FOREVER
        rounds, feed = self.translation._rounds, self.translation._feed
        kept = [name for name, held in vars(rounds).items() if isinstance(held, dict) and held]
        assert (kept, feed._waiting, feed._opening) == ([], {}, None)


TestTranslationMachine = TranslationMachine.TestCase
