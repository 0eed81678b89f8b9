"""The talk with one child performed: bytes to messages and back, and an end to a child that misbehaves."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from time import monotonic

from app.core.anteroom import Anteroom
from app.core.conversation import Conversation
from app.core.deadlines import FOREVER
from app.core.ledger import no_room
from app.gateway.patient import PatientTimer
from app.gateway.settings import UpstreamSettings
from app.gateway.supervisor import Supervisor
from app.protocol.faults import ClientFault, Exited, GatewayFault, Overloaded, SpokeNonsense, Unavailable
from app.protocol.jsonrpc import Message, Request, RequestId, failure, line, read_all
from app.protocol.salvage import answered_id
from app.telemetry.tally import count
from app.upstreams.child import Child, Exit

log = logging.getLogger("viaduct.child")
whole = logging.getLogger("viaduct.payload")

_TELL_SECONDS = 10.0


class Link:
    """`receive` gets every message that the child writes, `lost` the fault with which the child is gone, once.

    `owner` is the principal that wants it, where it is one.
    """

    def __init__(
        self,
        upstream: UpstreamSettings,
        mint: Iterator[int],
        supervisor: Supervisor,
        receive: Callable[[Message], None],
        lost: Callable[[GatewayFault], None],
        owner: str | None = None,
    ) -> None:
        self._upstream = upstream
        self._tally = upstream.tally
        self._conversation = Conversation(upstream.tolerance, mint)
        self._tasks = supervisor.tasks
        self._ward = supervisor.ward(upstream, owner)
        self.receive = receive
        self.on_start: Callable[[], object] | None = None
        """Told when the child runs, which may take its time."""
        self.life: Callable[[RequestId], Request] | None = None
        """Asks for a sign of life, where a `ping` is not what the child knows."""
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._anteroom = Anteroom(upstream.limits.queue_count, upstream.limits.queue_bytes)
        self._child: Child | None = None
        self._is_ready = False
        self._is_over = False
        self._opened_at = 0.0
        self._timer: PatientTimer | None = None
        self._dropped_count = 0
        self._dropped_at = -_TELL_SECONDS
        self._start_timer: PatientTimer | None = None
        self._unsent: set[int] = set()
        """Requests that came when the child had ended already, which nobody had heard of yet."""

    @property
    def is_started(self) -> bool:
        return self._child is not None

    @property
    def waiting_bytes(self) -> int:
        return self._anteroom.waiting_bytes + (0 if self._child is None else self._child.waiting_bytes)

    def open(self) -> None:
        """Start the child; until it runs, what is written waits."""
        self._opened_at = monotonic()
        self._tally.children.add(self)
        self._tasks.spawn(self._start(), f"start {self._upstream.name}")

    def write(self, message: Message) -> None:
        """At once if the pipe takes it. A request that finds the queue full is answered so, and was not executed."""
        if self._is_over:
            return
        if self._upstream.logs_payloads:
            self._log_line("line to child", line(message))
        child = self._child
        if child is None:
            if not self._anteroom.take(message) and isinstance(message, Request):
                self._refuse(message, no_room())
        elif isinstance(message, Request):
            ident = message.id if isinstance(message.id, int) else None
            if child.write(line(message), ident):
                return
            if not child.is_ending:
                full = Overloaded("the server does not read its input; its queue is full", reason="queue")
                self._refuse(message, full)
            elif ident is not None:  # An ending child's exit answers all that it owes.
                self._unsent.add(ident)
        elif not child.write(line(message)):
            self._dropped()

    def withdraw(self, ident: int) -> bool:
        """Take back a request of which not one byte was handed to the pipe; False where that is too late."""
        if self._child is None:
            return self._anteroom.withdraw(ident)
        return ident in self._unsent or self._child.withdraw(ident)

    def tried(self, *, counts: bool) -> None:
        """Whether the server is to blame if this child ends before it is ready."""
        self._ward.tried(counts=counts)

    def awaited(self, *, is_awaited: bool) -> None:
        """Whether anybody waits for the start of the child."""
        self._ward.awaited(is_awaited=is_awaited)

    def watch(self, is_busy: Callable[[], bool]) -> None:
        """Whether the child owes an answer."""
        self._ward.is_busy = is_busy

    def ready(self) -> None:
        """The child's handshake was answered."""
        if self._is_ready or self._is_over:
            return
        self._is_ready = True
        self._tally.child_start_seconds.add(monotonic() - self._opened_at)
        self._disarm_start()
        self._ward.ready()

    def doubt(self) -> None:
        ping = self._conversation.doubt(self._loop.time())
        if ping is not None:
            self.write(ping if self.life is None else self.life(ping.id))
            self._arm()

    def stderr_tail(self) -> list[str]:
        return [] if self._child is None else self._child.stderr.tail()

    def fail(self, fault: GatewayFault, exit: Exit | None = None) -> None:  # noqa: A002 - the field's word
        """The child is of no use any more: whoever waits for it hears why, and it is stopped."""
        if self._is_over:
            return
        fault.details.setdefault("server", self._upstream.name)
        log.warning("child given up", extra={"server": self._upstream.name, "reason": fault.reason})
        lost = self._lost
        if self._child is not None:
            self._ward.died(fault.reason, exit)
        self._end(fault.reason)
        lost(fault)

    def close(self) -> None:
        """Nobody needs the child any more, or is kept because it still runs."""
        if not self._is_over:
            self._end("released")

    def _end(self, reason: str) -> None:
        self._is_over = True
        count(self._tally.child_ends, reason)
        self.receive = self._lost = _unheard
        self.on_start = None
        self._disarm()
        self._disarm_start()
        self._ward.unwanted()
        if self._child is not None:
            self._tasks.spawn(self._stop(self._child), f"stop {self._upstream.name}")

    # The child's side.

    def on_line(self, text: bytes) -> None:
        if self._is_over:
            return
        if self._upstream.logs_payloads:
            self._log_line("line from child", text)
        try:
            messages = read_all(text, self._upstream.bounds.batch)
        except ClientFault as fault:
            self._nonsense(fault, text)
            return
        if self._timer is not None:
            self._conversation.heard()
            self._disarm()
        if isinstance(messages, list):
            for message in messages:
                self._heard(message)
        else:
            self._heard(messages)

    def on_oversize(self) -> None:
        log.warning("line too long, dropped", extra={"server": self._upstream.name})
        self._tally.bad_lines += 1
        fault = self._conversation.oversized(self._loop.time())
        if fault is not None:
            self.fail(fault)
        else:
            self._arm()

    def on_exit(self, exit: Exit) -> None:  # noqa: A002 - the field's word
        extra = {"server": self._upstream.name, "code": exit.code, "signal": exit.signal}
        if self._is_over:
            log.info("child stopped", extra=extra)
            return
        log.warning("child exited", extra=extra)
        if not self._is_ready:
            sentence = f"the server ended before it was ready: {exit.describe()}"
            self.fail(self._not_ready(sentence, "exited_before_ready", exit), exit)
            return
        details: dict[str, object] = {"exitCode": exit.code, "signal": exit.signal}
        self.fail(Exited(f"the server ended: {exit.describe()}", executed="unknown", details=details), exit)

    def _dropped(self) -> None:
        """Of a server that asks without end, and reads no answer, not every answer is told of."""
        self._tally.undelivered += 1
        self._dropped_count += 1
        if self._dropped_at + _TELL_SECONDS > self._loop.time():
            return
        extra = {"server": self._upstream.name, "count": self._dropped_count}
        log.warning("messages dropped: the server does not read", extra=extra)
        self._dropped_at, self._dropped_count = self._loop.time(), 0

    def _refuse(self, request: Request, fault: Overloaded) -> None:
        self._tally.undelivered += 1
        fault.details["server"] = self._upstream.name
        self.receive(failure(request.id, fault))

    def _heard(self, message: Message) -> None:
        if not self._is_over:
            self.receive(message)

    def _nonsense(self, fault: ClientFault, text: bytes) -> None:
        """The line is lost; where it was an answer, its call need not wait for another."""
        self._tally.bad_lines += 1
        log.info("line on stdout is no message, dropped", extra={"server": self._upstream.name, "reason": fault.reason})
        ident = answered_id(text)
        if ident is not None:
            sentence = f"the server's answer cannot be passed on: {fault.message}"
            unreadable = SpokeNonsense(sentence, reason="unreadable_answer", executed="unknown")
            unreadable.details["server"] = self._upstream.name
            self._heard(failure(ident, unreadable))
        end = self._conversation.nonsense(self._loop.time())
        if end is not None:
            self.fail(end)

    def _log_line(self, event: str, text: bytes) -> None:
        whole.info(event, extra={"server": self._upstream.name, "line": text.decode("utf-8", "replace")})

    # Life and time.

    async def _start(self) -> None:
        upstream = self._upstream
        child, is_told = None, False
        try:
            child = await self._ward.start(self)
            is_told = True
        except Unavailable as fault:
            self.fail(fault)
            is_told = True
        finally:
            if not is_told:  # Nobody waits for this task: a bug here must not leave a handshake that never ends.
                self.fail(self._not_ready("the server could not be started", "cannot_start"))
        if child is None:
            self._tally.children.discard(self)
            return
        if self._is_over:
            await self._stop(child)
            return
        self._child = child
        self._start_timer = PatientTimer(self._loop, self._loop.time() + upstream.deadlines.start, self._overdue)
        if self.on_start is not None:
            self.on_start()
        for _, message in self._anteroom.empty():
            self.write(message)

    def _overdue(self) -> None:
        self.fail(self._not_ready("the server did not answer initialize in time", "start_timed_out"))

    async def _stop(self, child: Child) -> None:
        try:
            await self._ward.stop(child)
        finally:
            self._tally.children.discard(self)

    def _not_ready(self, sentence: str, reason: str, exit: Exit | None = None) -> Unavailable:  # noqa: A002
        """With the exit and the last lines of stderr, for without them nobody can mend it."""
        details: dict[str, object] = {}
        if exit is not None:
            details |= {"exitCode": exit.code, "signal": exit.signal}
        if self._child is not None:
            details["stderr"] = self._child.stderr.tail()
        return Unavailable(sentence, reason=reason, details=details)

    def _disarm_start(self) -> None:
        if self._start_timer is not None:
            self._start_timer.cancel()
            self._start_timer = None

    def _arm(self) -> None:
        self._disarm()
        if self._conversation.due < FOREVER:
            self._timer = PatientTimer(self._loop, self._conversation.due, self._tick)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self._timer = None
        fault = self._conversation.tick(self._loop.time())
        if fault is not None:
            self.fail(fault)


def _unheard(_said: Message | GatewayFault) -> None:
    """Nobody listens any more."""
