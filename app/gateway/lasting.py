"""A session's seat at its server, which outlives the child that sits behind it."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Protocol

from app.core.parties import ToChild
from app.core.probing import ToSession
from app.core.restarts import Restarts
from app.core.revival import RECORDED, Outcome, Phase, Revival, Told, Unlike
from app.gateway.inorder import InOrder
from app.gateway.settings import UpstreamSettings
from app.gateway.supervisor import Supervisor
from app.protocol import methods
from app.protocol.faults import GatewayFault, Unavailable
from app.protocol.jsonrpc import Message, Notification, Request, RequestId

log = logging.getLogger("viaduct.session")

_STARTED_AGAIN = frozenset({"exited_before_ready", "start_timed_out"})
"""Ways for a start to fail after which another is tried."""
_TELLING = RECORDED | {methods.INITIALIZE, methods.INITIALIZED}


class Place(Protocol):
    """A child of the session's own, or a share in one."""

    def submit(self, message: Message) -> None: ...

    def withdraw(self, ident: int) -> bool: ...

    def doubt(self) -> None: ...

    def awaited(self, *, is_awaited: bool) -> None: ...

    def leave(self) -> None: ...

    @property
    def is_started(self) -> bool:
        """Whether there is a process."""


class Holder(Protocol):
    """Who has the seat: a session."""

    @property
    def is_busy(self) -> bool: ...

    def deliver(self, message: Message, about: RequestId | None = None) -> None: ...

    def remember(self, told: Told, /) -> None: ...

    def bereft(self, fault: GatewayFault, withdraw: Callable[[int], bool], /) -> None: ...

    def lost(self, fault: GatewayFault, reason: str, /) -> None: ...


class TakePlace(Protocol):
    def __call__(self, seat: "LastingSeat", *, again: bool) -> Place: ...


class LastingSeat:
    """`take_place` gives a place at a fresh child, whose messages come to the seat.

    With `told`, of a child that is gone, there is no other one before somebody wants it.
    """

    def __init__(
        self,
        upstream: UpstreamSettings,
        mint: Iterator[int],
        supervisor: Supervisor,
        take_place: "TakePlace",
        live: Holder,
        told: Told | None = None,
    ) -> None:
        self._upstream = upstream
        self._supervisor = supervisor
        self._take_place = take_place
        self._live = live
        self.mint = mint
        self._revival = Revival(mint, upstream.bounds, told)
        self._remembered = self._revival.told
        self._restarts = Restarts(supervisor.settings.restarts)
        self._loop = asyncio.get_running_loop()
        self._in_order = InOrder(self._do)
        self._ready_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_asleep = told is not None
        self._place: Place | None = None if self._is_asleep else take_place(self, again=False)

    # The session.

    @property
    def is_worth_keeping(self) -> bool:
        """Whether it would be a pity to begin this start anew."""
        is_on_its_way = self._revival.phase is Phase.GREETING and self._place is not None and self._place.is_started
        return is_on_its_way and self._upstream.isolation == "session"

    def move(self, holder: Holder) -> None:
        """It is somebody else's now."""
        self._live = holder
        if self._revival.may_revive:
            holder.remember(self._revival.told)

    def awaited(self, *, is_awaited: bool) -> None:
        """Whether anybody waits for the server to start; until it is said, somebody does."""
        if self._place is not None:
            self._place.awaited(is_awaited=is_awaited)

    def wake(self) -> None:
        if self._is_asleep:
            self._is_asleep = False
            self._return()

    def submit(self, message: Message) -> None:
        place = self._place
        if self._revival.phase is Phase.LIVE and place is not None and not _is_telling(message):
            place.submit(message)
        else:
            self._perform(self._revival.submit(message))
            self.wake()

    def withdraw(self, ident: int) -> bool:
        return self._revival.withdraw(ident) or (self._place is not None and self._place.withdraw(ident))

    def doubt(self) -> None:
        if self._place is not None:
            self._place.doubt()

    def leave(self) -> None:
        self._is_asleep = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        place, self._place = self._place, None
        if place is not None:
            place.leave()
        self._in_order.end()

    # The place.

    @property
    def is_busy(self) -> bool:
        return self._live.is_busy

    def deliver(self, message: Message, about: RequestId | None = None) -> None:
        if self._revival.is_passing:
            self._live.deliver(message, about)
        else:
            self._perform(self._revival.receive(message, about))

    def lost(self, fault: GatewayFault, reason: str) -> None:
        place, self._place = self._place, None
        may_return = self._may_return(fault)
        if may_return and self._revival.phase is Phase.LIVE and place is not None:
            self._live.bereft(fault, place.withdraw)
        if place is not None:
            place.leave()
        if not may_return:
            self._live.lost(fault, reason)
            return
        self._revival.lost()
        self._count_death(self._loop.time())
        if self._restarts.is_failed:
            details = fault.details | {"cause": fault.reason}
            too_often = Unavailable("the server ended too often in this session", reason="failed", details=details)
            self._live.lost(too_often, "failed")
        else:
            self._wait()

    def _count_death(self, now: float) -> None:
        ready_at, self._ready_at = self._ready_at, None
        if ready_at is not None:
            self._restarts.lived(now - ready_at)
        self._restarts.died(now, self._supervisor.chance())

    def _wait(self) -> None:
        pause = self._restarts.pause(self._loop.time())
        extra = {"server": self._upstream.name, "attempt": self._restarts.attempt, "next_in": round(pause, 3)}
        log.info("session waits for another child", extra=extra)
        self._timer = self._loop.call_later(pause, self._return)

    def _may_return(self, fault: GatewayFault) -> bool:
        if self._upstream.on_exit == "end" or not self._revival.may_revive:
            return False
        return not isinstance(fault, Unavailable) or fault.reason in _STARTED_AGAIN

    def _return(self) -> None:
        self._timer = None
        try:
            self._supervisor.admit(self._upstream)
        except Unavailable as fault:
            self._live.lost(fault, fault.reason)
            return
        self._place = self._take_place(self, again=True)
        self._perform(self._revival.revive())

    # Outcomes.

    def _perform(self, outcomes: list[Outcome]) -> None:
        if self._revival.told is not self._remembered and self._revival.may_revive:
            self._remembered = self._revival.told
            self._live.remember(self._remembered)
        if self._revival.phase is Phase.LIVE and self._ready_at is None:
            self._ready_at = self._loop.time()
        self._in_order.perform(outcomes)

    def _do(self, outcome: Outcome) -> None:
        match outcome:
            case ToChild():
                if self._place is not None:
                    self._place.submit(outcome.message)
            case ToSession():
                self._live.deliver(outcome.message, outcome.about)
            case Unlike():
                place, self._place = self._place, None
                if place is not None:
                    place.leave()
                self._live.lost(outcome.fault, outcome.fault.reason)


def _is_telling(message: Message) -> bool:
    """Whether the next child will have to hear of it."""
    return isinstance(message, Request | Notification) and message.method in _TELLING
