"""One stateless request performed: from its lease of a child to its last word."""

from collections.abc import Callable
from copy import copy
from itertools import count
from time import monotonic
from typing import Protocol

from msgspec.structs import replace

from app.core.deadlines import FOREVER, Deadlines
from app.core.effects import BeginStream, Doubt, Effect, Ended, EndStream, StreamId, ToClient, ToUpstream
from app.core.exchange import Discovery, Exchange, Subscription, Waiting
from app.core.interview import Interview
from app.core.listening import Listening
from app.gateway.access import Verdict
from app.gateway.asked import Asked, Host, state_unknown
from app.gateway.common import CommonChild
from app.gateway.schemas import Schemas
from app.gateway.stream import Outlet, Stream
from app.protocol import discovery, methods, stateless
from app.protocol.faults import GatewayFault
from app.protocol.jsonrpc import Failure, Message, Notification, Request, Result
from app.protocol.revisions import SERVED
from app.protocol.stateless import Admitted
from app.telemetry.tally import CANCELLED, PARKED


class Lease(Protocol):
    """A child for a while."""

    def fits(self, child: Host) -> bool:
        """False where the child is of another era than was known, and the request may need one of its own."""

    def renew(self, live: "LiveExchange") -> None:
        """Another child in place of one that does not fit.

        Raises:
            GatewayFault: there is none for it; this lease is over all the same.
        """

    def release(self, *, is_clean: bool) -> None:
        """It is over. A child that is not clean may still say something about it, and nobody else should hear that."""


class LiveExchange:
    """`on_end` is told once."""

    def __init__(
        self,
        asked: Asked,
        now: Callable[[], float],
        seal: Callable[["LiveExchange", int], str],
        watch: Callable[[float], None],
        on_end: Callable[["LiveExchange"], None],
    ) -> None:
        self.asked = asked
        self.ident: str | None = None
        """By which a retry finds it, once it was parked."""
        self.lease: Lease | None = None
        self.schemas: Schemas
        """By which a call of a tool is judged; there as soon as it is granted a child."""
        self.answered: Result | Failure | None = None
        """What the request was answered with."""
        self._verdict: Verdict | None = None
        """Of the request as it came last, until it is answered."""
        self.hears: Callable[[Message], bool] | None = None
        """Whether what its server says may be told."""
        self._seal = seal
        self._watch = watch
        self._on_end = on_end
        self._now = now
        self._sole: StreamId = 0
        self._stream: Stream | None = None
        self._since: float
        """When the newest POST came."""
        self._can_stream = False
        self._child: Host | None = None
        self._party = 0
        self._is_alone = False
        self._core: Exchange | None = None

    @property
    def due(self) -> float:
        """No later than this, `tick` has something to do; `watch` hears of it too."""
        return FOREVER if self._core is None else self._core.due

    @property
    def is_over(self) -> bool:
        return self._core is not None and self._core.is_over

    @property
    def is_busy(self) -> bool:
        """Whether an answer is owed that a stopping gateway should wait for."""
        return self._stream is not None and self.asked.request.method != stateless.LISTEN

    @property
    def is_waiting(self) -> bool:
        """Whether a client waits for its answer."""
        return self._stream is not None and self.answered is None

    @property
    def is_streaming(self) -> bool:
        return self._stream is not None and self._stream.is_streaming

    # The client.

    def begin(self, outlet: Outlet, verdict: Verdict | None, *, takes_json: bool, takes_stream: bool) -> StreamId:
        """From now on the answer is owed to `outlet`."""
        self._verdict = verdict
        self._sole = ident = self._sole + 1
        self._can_stream = takes_stream
        self._stream = Stream(ident, outlet, None, "", takes_json=takes_json)
        self.answered = None
        self._since = monotonic()
        return ident

    def current(self) -> Exchange:
        """The request as it is now: as long as it has no child that is ready, one that waits."""
        core = self._core
        if core is None:
            asked, upstream = self.asked, self.asked.upstream
            core = self._core = Waiting(asked.request, upstream.deadlines, count(1), server=upstream.name)
            self._perform(core.begin(self._sole, self._now(), can_stream=self._can_stream))
        return core

    def judge(self, retry: Admitted, headers: dict[bytes, bytes]) -> None:
        """By what is known of the tool: while its call is parked, that is not looked up anew.

        Raises:
            HeaderMismatch: as for a first request.
        """
        if retry.method == methods.CALL_TOOL and self.asked.is_mirrored:
            self.schemas.judge(retry, headers)

    def resume(
        self,
        retry: Request,
        round_: int,
        outlet: Outlet,
        verdict: Verdict | None,
        *,
        takes_json: bool,
        takes_stream: bool,
    ) -> StreamId:
        """Go on with the call that was parked.

        Raises:
            BadParams: it is not parked, or not in that round any more.
        """
        if not isinstance(self._core, Interview):
            raise state_unknown(self.asked.upstream.name)
        ident = self._sole + 1
        effects = self._core.resume(retry, round_, ident, self._now(), can_stream=takes_stream)
        self.begin(outlet, verdict, takes_json=takes_json, takes_stream=takes_stream)
        self._perform(effects)
        return ident

    def abandon(self) -> None:
        """It was refused before it had a child; nothing of it is left."""
        self._stream, self._since, self._verdict = None, 0.0, None  # Refused is not cancelled.
        self._perform(self.current().gone(self._sole))

    def detach(self, ident: StreamId) -> None:
        """The response is over: where the answer was still owed, its client cancelled."""
        if ident == self._sole:
            self._perform(self.current().gone(ident))

    def close(self) -> None:
        self._perform(self.current().close())

    # The child.

    def granted(self, child: Host, *, is_alone: bool) -> None:
        """The child is ours to use; it may not be ready yet."""
        self._child, self._is_alone = child, is_alone
        self._party = child.join(self)
        if child.is_ready:
            self.ready()

    def ready(self) -> None:
        child, core = self._child, self._core
        if child is None or (core is not None and core.is_over):
            return
        if self.lease is not None and not self.lease.fits(child):
            self._move(child, self.lease)
        elif not isinstance(child, CommonChild) or self._is_checked(self.asked):
            self._go(child)
        else:
            self.schemas.check(child, self.asked.request, self.asked.headers, self._checked)

    def _is_checked(self, asked: Asked) -> bool:
        """Whether no header could say something else than its arguments."""
        if asked.request.method != methods.CALL_TOOL or not asked.is_mirrored:
            return True
        return self.schemas.want_nothing_of(asked.request)

    def _move(self, child: Host, lease: Lease) -> None:
        self._child = self.lease = None
        child.leave(self._party)
        try:
            lease.renew(self)
        except GatewayFault as fault:
            self._perform(self.current().lost(fault))

    def _checked(self, judged: Admitted | GatewayFault) -> None:
        if self.is_over or self._child is None:
            return
        if isinstance(judged, GatewayFault):
            self._perform(self.current().lost(judged))
        else:
            if judged is not self.asked.request:
                self.asked = replace(self.asked, request=judged)
            self._go(self._child)

    def _go(self, child: Host) -> None:
        """Its era is known: the request goes out."""
        asked = self.asked
        if asked.has_foreign_state and not child.is_modern:
            self._perform(self.current().lost(state_unknown(asked.upstream.name)))
            return
        greeted = None if child.is_modern else child.greeted
        if asked.request.method == stateless.DISCOVER and greeted is not None:
            self._perform(self.current().settle(discovery.introduced_as(greeted, SERVED, asked.upstream.hints)))
            return
        self._core = core = self._of_its_kind(child)
        waiting = child.hold(self._party) if self._is_alone else ()
        for question in waiting:
            self.deliver(question)
        self._perform(core.begin(self._sole, self._now(), can_stream=self._can_stream))
        if isinstance(core, Listening) and greeted is not None:
            self._perform(core.ready(greeted))

    def _of_its_kind(self, child: Host) -> Exchange:
        asked, upstream = self.asked, self.asked.upstream
        request, limits, name = asked.request, upstream.deadlines, upstream.name
        if request.method == stateless.LISTEN:
            kind = Subscription if child.is_modern else Listening
            return kind(request, limits, child.mint, server=name)
        if child.is_modern:
            passed = Discovery if request.method == stateless.DISCOVER else Exchange
            return passed(request, limits, child.mint, level=asked.carried.log_level, server=name)
        return Interview(
            request,
            request.meta.carried,
            limits,
            child.mint,
            seal=lambda round_: self._seal(self, round_),
            describe=child.server_info,
            hints=upstream.hints if request.method in stateless.CACHEABLE else {},
            server=name,
        )

    def changed(self, news: Notification) -> None:
        """One of the server's lists is another now, says another child of it."""
        if isinstance(self._core, Listening):
            self.deliver(news)

    def deliver(self, message: Message) -> None:
        if self.hears is not None and not self.hears(message):
            return
        core = self._core or self.current()
        self._perform(core.deliver(message, self._now()))

    def lost(self, fault: GatewayFault) -> None:
        """Others may hear of the same fault; of a request that still waited, nothing was executed."""
        self._child = None
        if isinstance(self._core, Waiting):
            fault = copy(fault)
            fault.executed = "no"
        self._perform(self.current().lost(fault))

    # Effects.

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case ToUpstream():
                    if self._child is not None:
                        self._child.submit(self._party, effect.message)
                case ToClient():
                    self._say(effect.message)
                case EndStream():
                    stream, self._stream = self._stream, None
                    if stream is not None:
                        stream.end()
                case Ended():
                    self._end()
                case BeginStream():
                    if self._stream is not None:
                        self._stream.begin()
                case Doubt():
                    if self._child is not None:
                        self._child.doubt()
        core = self._core
        if core is not None and not core.is_over:
            self._watch(core.due)

    def _say(self, message: Message) -> None:
        if self._stream is None:
            return
        if isinstance(message, Result | Failure):
            self.answered = message = self._judged(message)
            asked, core = self.asked, self._core
            if core is None or core.is_over:
                asked.upstream.tally.modern.add(asked.request.method, message, monotonic() - self._since)
            else:
                asked.upstream.tally.modern.end(asked.request.method, PARKED, monotonic() - self._since)
        self._stream.say(message)

    def _judged(self, reply: Result | Failure) -> Result | Failure:
        """As its client may see it."""
        if self.asked.outward is not None and isinstance(reply, Result):
            reply = Result(reply.id, self.asked.outward(reply.result))
        verdict, self._verdict = self._verdict, None
        if verdict is None:
            return reply
        if verdict.sieve is not None and isinstance(reply, Result):
            reply = Result(reply.id, verdict.sieve(reply.result))
        if verdict.docket is not None:
            verdict.docket.over(reply)
        return reply

    def _end(self) -> None:
        if self._verdict is not None and self._verdict.docket is not None:
            self._verdict.docket.over(None)
        self._verdict = None
        if self.answered is None and self._since:
            self.asked.upstream.tally.modern.end(self.asked.request.method, CANCELLED, monotonic() - self._since)
        child, self._child = self._child, None
        if child is not None:
            child.leave(self._party)
        lease, self.lease = self.lease, None
        if lease is not None:
            lease.release(is_clean=not self.current().is_owed)
        # Some kinds know who performs them: if he knew them still, only the garbage collector could end both.
        self._core = _OVER
        self._on_end(self)

    def tick(self, now: float) -> None:
        """Nobody waits for a timer: a bug here must not leave a request that never ends."""
        is_done = False
        try:
            self._perform(self.current().tick(now, self._withdraw))
            is_done = True
        finally:
            if not is_done:
                self.close()

    def _withdraw(self, ident: int) -> bool:
        return self._child is not None and self._child.withdraw(ident)


def _over() -> Exchange:
    """An exchange that has ended, of which nothing is left to do."""
    over = Waiting(Request(0, ""), Deadlines(), count(1))
    over.close()
    return over


_OVER = _over()
