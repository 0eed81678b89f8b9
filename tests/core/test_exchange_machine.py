"""Any order of what can happen to a stateless request that is asked nothing: its stream ends once, nothing after it."""

from itertools import count

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from app.core.deadlines import FOREVER, Deadlines
from app.core.effects import BeginStream, Doubt, Effect, Ended, EndStream, ToClient, ToUpstream
from app.core.exchange import Exchange, Subscription
from app.core.listening import Listening
from app.protocol.faults import Exited
from app.protocol.jsonrpc import Failure, Message, Notification, Request, RequestId, Result, payload
from tests.core.exchanges import SUBSCRIPTION, logged, progress, raw, read, request

LIMITS = Deadlines(request=10, max_request=30, stream_after=1)
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
WANTED = {"toolsListChanged": True, "resourceSubscriptions": ["a", "b"]}
OFFERED = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
RARELY = st.sampled_from([False] * 5 + [True])


def tagged(method: str, **params: object) -> Notification:
    return Notification(method, payload({**params, "_meta": {SUBSCRIPTION: 100}}))


SAID: list[Message] = [
    progress(100),
    progress("100"),
    logged("error"),
    tagged(ACKNOWLEDGED, notifications=WANTED),
    tagged("notifications/tools/list_changed"),
    tagged("notifications/prompts/list_changed"),
    tagged("notifications/resources/updated", uri="a"),
    tagged("notifications/resources/updated", uri="b"),
    Request(1, "roots/list"),
    Result("100", raw("{}")),
    Failure(None, raw("{}")),
]
REPLIES: list[Message] = [
    Result(100, raw("{}")),
    Failure(100, raw("{}")),
    Failure(101, raw("{}")),
    tagged("notifications/cancelled", requestId=100),
]


class ExchangeMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.ident: RequestId = 0
        self.is_unsent = self.is_gone = self.has_begun = self.is_answered = self.has_ended = self.is_over = False
        self.is_acknowledged = self.is_sent = self.is_cancelled = False

    @initialize(
        kind=st.sampled_from([Exchange, Subscription, Listening]),
        ident=st.sampled_from([7, "7"]),
        can_stream=st.booleans(),
    )
    def begins(self, kind: type[Exchange], ident: RequestId, can_stream: bool) -> None:
        self.ident, self.can_stream, self.is_subscription = ident, can_stream, kind is not Exchange
        asked = request(ident, "subscriptions/listen", {"notifications": WANTED}, token="p")
        self.core: Exchange = kind(asked, LIMITS, count(100))
        self.perform(self.core.begin(1, self.now, can_stream=can_stream))
        assert self.is_over is (self.is_subscription and not can_stream)

    @rule()
    def gets_ready(self) -> None:
        if isinstance(self.core, Listening) and not self.is_sent:
            self.perform(self.core.ready(payload({"capabilities": OFFERED})))

    @rule(message=st.sampled_from(SAID))
    def hears(self, message: Message) -> None:
        self.perform(self.core.deliver(message, self.now))

    @rule(message=st.sampled_from(REPLIES), is_meant=RARELY)
    def is_replied_to(self, message: Message, is_meant: bool) -> None:
        if is_meant:
            self.perform(self.core.deliver(message, self.now))

    @rule(seconds=st.sampled_from([0.5, 1, 4, 9]), is_unsent=st.booleans())
    def time_passes(self, seconds: float, is_unsent: bool) -> None:
        self.is_unsent = is_unsent
        self.wait_until(self.now + seconds)

    def wait_until(self, then: float) -> None:
        for _ in range(100):
            if self.core.due > then:
                break
            self.now = max(self.now, self.core.due)
            self.perform(self.core.tick(self.now, lambda _ident: self.is_unsent))
        else:
            pytest.fail("due never moves on")
        self.now = then

    @rule(stream=st.sampled_from([1, 2, 2, 2]), is_meant=RARELY)
    def is_closed(self, stream: int, is_meant: bool) -> None:
        if is_meant:
            self.is_gone = self.is_gone or (stream == 1 and not self.is_over)
            self.perform(self.core.gone(stream))

    @rule(is_loss=st.booleans(), is_meant=RARELY)
    def stops(self, is_loss: bool, is_meant: bool) -> None:
        if is_meant:
            was_over = self.is_over
            effects = self.core.lost(Exited("gone")) if is_loss else self.core.close()
            assert (effects == []) is was_over
            assert not (is_loss and any(isinstance(effect, ToUpstream) for effect in effects))
            self.perform(effects)

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            assert not self.is_over, effect
            match effect:
                case ToClient(1, message):
                    assert not (self.is_answered)
                    assert not (self.is_gone)
                    self.has_begun = True
                    self.say(message)
                case BeginStream(1):
                    assert self.can_stream
                    assert not (self.has_begun)
                    assert not (self.is_answered)
                    assert not (self.is_gone)
                    self.has_begun = True
                case EndStream(1):
                    assert self.is_answered
                    assert not self.has_ended
                    self.has_ended = True
                case ToUpstream(Request()):
                    self.is_sent = True
                case ToUpstream(Notification("notifications/cancelled")):
                    assert self.is_sent
                case Doubt():
                    assert self.is_sent
                case Ended():
                    assert self.is_gone or self.has_ended
                    self.is_over = True
                case ToClient() | BeginStream() | EndStream() | ToUpstream():
                    pytest.fail(repr(effect))

    def say(self, message: Message) -> None:
        match message:
            case Result() | Failure():
                assert (message.id, type(message.id)) == (self.ident, type(self.ident))
                self.is_answered = True
                if self.is_subscription and isinstance(message, Result):
                    assert read(message.result)["_meta"][SUBSCRIPTION] == self.ident
                    assert self.is_cancelled is self.is_acknowledged
            case Notification(method, params):
                assert self.can_stream
                assert not self.is_cancelled
                if self.is_subscription:
                    self.is_acknowledged = self.is_acknowledged or method == ACKNOWLEDGED
                    self.is_cancelled = method == "notifications/cancelled"
                    assert self.is_acknowledged
                    assert read(params)["_meta"][SUBSCRIPTION] == self.ident
                    assert method not in {"notifications/prompts/list_changed", "notifications/message"}
            case Request():
                pytest.fail("no stateless client is asked")

    @invariant()
    def it_is_over_once_it_was_answered_or_its_client_is_gone(self) -> None:
        assert self.core.is_over is self.is_over is (self.has_ended or self.is_gone)
        assert self.is_answered is self.has_ended
        if self.is_over:
            assert self.core.due == FOREVER
        if self.is_over and isinstance(self.core, Subscription):
            assert self.core._early == []

    def teardown(self) -> None:
        """Silence ends all but a subscription that was acknowledged; that, we can end."""
        if not hasattr(self, "core"):
            return
        self.wait_until(self.now + LIMITS.max_request)
        assert self.is_over or self.is_acknowledged
        self.perform(self.core.close())
        assert self.is_over


TestExchangeMachine = ExchangeMachine.TestCase
