"""A session with its streams and its server attached: the place where its effects are performed."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count as numbers
from typing import Literal, TypeAlias

from app.auth.principal import Principal
from app.core import judged
from app.core.deadlines import FOREVER
from app.core.effects import BeginStream, Doubt, Effect, Ended, EndStream, StreamId, ToClient, ToUpstream
from app.core.phases import Phase
from app.core.replay import EventLog
from app.core.revival import Told
from app.core.session import Session
from app.gateway.access import Permit
from app.gateway.clocked import Clocked
from app.gateway.journal import Journal, Owed
from app.gateway.left_over import left_over
from app.gateway.patient import PatientTimer
from app.gateway.seat import NOWHERE, Seat
from app.gateway.settings import SessionSettings, UpstreamSettings
from app.gateway.stream import Outlet, Stream, event_of
from app.protocol import methods
from app.protocol.faults import ClientFault, GatewayFault, Overloaded
from app.protocol.jsonrpc import Failure, Message, Notification, Reply, Request, RequestId, Result, encode, failure
from app.protocol.revisions import Revision
from app.stores.port import Saved
from app.telemetry.tally import count

log = logging.getLogger("viaduct.session")

Transport: TypeAlias = Literal["streamable", "sse"]
_FIRST: StreamId = 1
"""The stream of what opened the session: over Streamable HTTP, of its `initialize`."""


class LiveSession:
    """`tag` names the session in its event ids; `on_end` is told once, with this session, when it is over."""

    seat: Seat
    is_confirmed = False
    on_forsaken: Callable[[], object] | None = None
    """Told when its client has gone before it heard the answer to its `initialize`."""

    def __init__(
        self,
        ident: str,
        tag: str,
        owner: str,
        upstream: UpstreamSettings,
        core: Session,
        log: EventLog,
        settings: SessionSettings,
        *,
        transport: Transport = "streamable",
        on_end: Callable[["LiveSession"], None],
        first_stream: StreamId = 1,
    ) -> None:
        self.ident = ident
        self.tag = tag
        self.owner = owner
        self.upstream, self.site, self.servers = upstream.name, upstream.site, upstream.servers
        self.transport: Transport = transport
        """By which it was opened, and by no other it is reached: elsewhere nobody would hear its answers."""
        self.when_quiet: set[Callable[[], object]] = set()
        """Told once, when no call is in flight any more."""
        self.core = core
        self.settings = settings
        self._stream_after = upstream.deadlines.stream_after
        self._tally = upstream.tally
        self._clocked = Clocked(upstream.tally.legacy)
        self.permit: Permit | None = None  # That of the newest request,
        self.principal: Principal | None = None  # and whose it was.
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._log = log
        self._journal: Journal | None = None
        self._through: Callable[[Outlet], Outlet] | None = None
        self._streams: dict[StreamId, Stream] = {}
        self._listeners: dict[StreamId, Stream] = {}
        self._names, self._sole = numbers(first_stream), 0
        self._timer: PatientTimer | None = None
        self._timer_at = FOREVER
        self.used_at = self.opened_at = self._remembered_at = self._loop.time()

    @property
    def is_over(self) -> bool:
        return self.core.phase is Phase.ENDED

    @property
    def is_busy(self) -> bool:
        return self.core.is_busy

    @property
    def is_live(self) -> bool:
        """Whether somebody waits for something here: a call in flight, or a stream with a connection."""
        return self.core.is_busy or any(stream.is_attached for stream in self._streams.values())

    @property
    def call_count(self) -> int:
        return len(self._clocked)

    @property
    def stream_count(self) -> int:
        """Event streams with a connection."""
        return sum(stream.is_streaming for stream in self._streams.values())

    @property
    def waiting_bytes(self) -> int:
        """What waits for the server to be ready."""
        return self.core.anteroom.waiting_bytes + self.seat.waiting_bytes

    @property
    def revision(self) -> Revision:
        return self.core.revision

    # The client speaks.

    def ask(
        self,
        message: Request | Sequence[Message],
        outlet: Outlet,
        *,
        takes_json: bool,
        takes_stream: bool,
        permit: Permit | None,
    ) -> StreamId:
        """A POST with at least one request in it; its answer goes to `outlet`.

        Raises:
            ClientFault, GatewayLimit: refused, and nothing has happened.
        """
        now = self.used_at = self._loop.time()
        if permit is not None:
            self.permit, message = permit, permit.judge_any(message, self.ident, self.seat.names)
        ident, core = next(self._names), self.core
        core.outlets.post(ident, can_stream=takes_stream, begin_at=now + self._stream_after)
        try:
            effects = core.ask_any(message, ident, now)
        except GatewayFault:
            core.outlets.drop(ident)
            judged.void(message)
            raise
        self._streams[ident] = Stream(
            ident,
            outlet,
            self._log,
            self.tag,
            primes=core.revision.primes,
            is_batch=not isinstance(message, Request),
            takes_json=takes_json,
            through=self._through,
        )
        self._clocked.begin_any(ident, message)
        self._perform(effects)
        return ident

    def speak_on(self, outlet: Outlet) -> None:
        """All that is ever said to this client goes to `outlet` (HTTP+SSE)."""
        self._sole = self.listen(outlet, is_logged=False)

    def ask_on_sole(self, message: Request, permit: Permit | None) -> None:
        """A request whose answer, refusals too, goes to the session's one stream: clients give up on a failed POST."""
        now = self.used_at = self._loop.time()
        if permit is not None:
            self.permit, message = permit, permit.judge(message, self.ident, self.seat.names)
        try:
            effects = self.core.ask(message, self._sole, now)
            self._clocked.begin_all(self._sole, [message])
        except GatewayFault as fault:
            judged.void(message)
            if not isinstance(fault, ClientFault):
                raise
            count(self._tally.refusals, fault.reason)
            effects = [ToClient(self._sole, failure(message.id, fault))]
        self._perform(effects)

    def tell(self, message: Notification | Reply, permit: Permit | None) -> None:
        now = self.used_at = self._loop.time()
        if permit is not None:
            permit.tell(message)
        if self._sole and isinstance(message, Notification) and message.method == methods.CANCELLED:
            ident = methods.cancelled_id(message)
            if ident is not None:
                self._clocked.cancelled(self._sole, ident)
        self._perform(self.core.tell(message, now))

    def listen(self, outlet: Outlet, *, is_logged: bool = True) -> StreamId:
        """Open a stream for what answers no request."""
        self._check_room()
        self.used_at = self._loop.time()
        ident = next(self._names)
        event_log = self._log if is_logged else None
        stream = Stream(ident, outlet, event_log, self.tag, primes=self.core.revision.primes, through=self._through)
        self._streams[ident] = self._listeners[ident] = stream
        self.seat.wake()
        stream.begin()
        self._hear(stream)
        return ident

    def resume(self, event_id: str, outlet: Outlet) -> StreamId:
        """Go on with the stream of `event_id`, from the event after it.

        Raises:
            InvalidRequest: no event of this session.
            UnknownSession: an event of another session.
        """
        ident, number = event_of(event_id, self.tag, self._log)
        self.used_at = self._loop.time()
        is_open = ident in self._streams
        stream = self._streams.get(ident) or Stream(ident, None, self._log, self.tag, through=self._through)
        self.seat.wake()
        replay = self._log.after(ident, number)
        self._tally.replayed += len(replay.events)
        self._tally.lost += len(replay.lost)
        stream.attach(outlet, replay, self.upstream)
        if not is_open:
            stream.end()
        elif ident in self._listeners:
            self._hear(stream)
        return ident

    def detach(self, ident: StreamId, outlet: Outlet) -> None:
        """The connection of a stream is gone; the stream is not."""
        stream = self._streams.get(ident)
        if stream is not None and stream.detach(outlet):
            self.used_at = self._loop.time()
            self.core.outlets.unlisten(ident)
            if ident == _FIRST and self.on_forsaken is not None and not self.is_confirmed:
                log.info("client left before its session was open", extra={"server": self.upstream})
                self.on_forsaken()

    def go_by(self, upstream: UpstreamSettings) -> None:
        """Its server is configured so now."""
        self.site, self.servers, self._stream_after = upstream.site, upstream.servers, upstream.deadlines.stream_after
        self.core.deadlines, self.core.bounds = upstream.deadlines, upstream.bounds

    def vacate(self, reason: str) -> None:
        """The session ends, and its seat, with what its server was told, goes on without it."""
        self.seat = NOWHERE
        self.close(reason)

    def leave(self) -> None:
        """The gateway ends, and the session with it, unless another one can take it up."""
        if self._journal is not None and self.core.phase is Phase.OPEN:
            self._journal.leave()
        self.close("shutdown")

    def close(self, reason: str) -> None:
        """End the session: what it owes gets its last word, its streams end, its server is let go."""
        self._perform(self.core.close(reason))

    # The server speaks.

    def deliver(self, message: Message, about: RequestId | None = None) -> None:
        """What the server said, and about which call of ours, where that is known.

        A bug here costs the session, for whoever waited for what was said would wait for ever.
        """
        if self.permit is not None and not self.permit.hears(message, self.seat.names):
            return
        is_done = False
        try:
            self._perform(self.core.deliver(message, self._loop.time(), about))
            is_done = True
        finally:
            if not is_done:
                self.close("internal_error")

    def bereft(self, fault: GatewayFault, withdraw: Callable[[int], bool]) -> None:
        """The server is gone, and will be back."""
        self._perform(self.core.bereft(fault, withdraw))

    def lost(self, fault: GatewayFault, reason: str) -> None:
        """The server is gone for good."""
        self._perform(self.core.lost(fault, reason))

    # Effects.

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case ToUpstream():
                    self.seat.submit(effect.message)
                case ToClient():
                    stream = self._streams.get(effect.stream)
                    if stream is not None:
                        stream.say(effect.message)
                    if isinstance(effect.message, (Result, Failure)):
                        self._clocked.answered(effect.stream, effect.message)
                case EndStream():
                    stream = self._streams.pop(effect.stream, None)
                    if stream is not None:
                        stream.end()
                case BeginStream():
                    stream = self._streams.get(effect.stream)
                    if stream is not None:
                        stream.begin()
                case Doubt():
                    self.seat.doubt()
                case Ended():
                    self._ended(effect.reason)
        if self.core.due < self._timer_at:
            self._arm()
        while self.when_quiet and not self.core.is_busy:
            self.when_quiet.pop()()

    def _ended(self, reason: str) -> None:
        log.info("session ended", extra={"server": self.upstream, "reason": reason})
        count(self._tally.sessions_ended, reason)
        streams, self._streams, self._listeners = self._streams, {}, {}
        for stream in streams.values():
            stream.end()
        self._clocked.close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        seat, self.seat = self.seat, NOWHERE
        seat.leave()
        if self._journal is not None:
            self._journal.end()
        self._on_end(self)

    def _arm(self) -> None:
        """One timer for all that may fall due; it is only ever moved forward, so most calls leave it alone."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = self.core.due
        self._timer = PatientTimer(self._loop, self._timer_at, self._tick) if self._timer_at < FOREVER else None

    def _tick(self) -> None:
        """Nobody waits for a timer: a bug here must not leave a session whose calls never end."""
        self._timer, self._timer_at = None, FOREVER
        is_done = False
        try:
            self._perform(self.core.tick(self._loop.time(), self.seat.withdraw))
            is_done = True
        finally:
            if not is_done:
                self.close("internal_error")

    # What is kept of it.

    def keep(self, journal: Callable[[EventLog, Owed], Journal]) -> None:
        """From now on, what this session is made of outlives the gateway."""
        self._journal = journal(self._log, self._owed)
        self._through = self._journal.outlet

    def remember(self, told: Told) -> None:
        """What the server was told by now, of this client."""
        if self._journal is not None:
            self._journal.remember(told)

    async def committed(self) -> None:
        """When what has happened until now is kept; at once, where nothing is."""
        if self._journal is not None:
            kept: asyncio.Future[None] = self._loop.create_future()
            self._journal.then(partial(kept.set_result, None))
            await asyncio.shield(kept)

    def remember_use(self) -> None:
        if self._journal is not None and self._remembered_at < self.used_at:
            self._remembered_at = self.used_at
            self._journal.used()

    def take_up(self, saved: Saved) -> None:
        """Go on where another gateway has left off: its calls are nobody's now."""
        if self._journal is not None:
            self._journal.take_up(saved.ways)
        primes = self.core.revision.primes
        for way in saved.ways:
            if way.owed is None:
                stream = Stream(way.stream, None, self._log, self.tag, primes=primes, through=self._through)
                self._streams[way.stream] = self._listeners[way.stream] = stream
                self._log.open(way.stream)
        for ident, unanswered in left_over(saved, self.upstream):
            self._log.append(ident, encode(unanswered), unanswered.id)

    def _owed(self, stream: StreamId) -> tuple[RequestId, ...] | None:
        return None if stream in self._listeners else tuple(self.core.owed(stream))

    def _hear(self, stream: Stream) -> None:
        self.core.outlets.unlisten(stream.ident)
        self._perform(self.core.hear(stream.ident, self._loop.time()))

    def _check_room(self) -> None:
        """A stream that nobody reads any more makes room for a new one, the oldest first."""
        attached = [ident for ident, stream in self._streams.items() if stream.is_attached]
        if len(attached) >= self.settings.streams_max:
            raise Overloaded("too many streams open in this session", reason="streams.maxPerSession", retry_after=1.0)
        detached = [ident for ident, stream in self._listeners.items() if not stream.is_attached]
        for ident in detached[: len(self._listeners) - self.settings.streams_max + 1]:
            self._listeners.pop(ident).close()
            self._streams.pop(ident, None)
