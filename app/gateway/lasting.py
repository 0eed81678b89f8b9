"""A session's seat at its server, which outlives the child that sits behind it."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Protocol

from app.core.ledger import unexecuted
from app.core.parties import ToChild
from app.core.probing import ToSession
from app.core.restarts import Restarts
from app.core.revival import RECORDED, NotTaken, Outcome, Phase, Revival, Told, Unlike
from app.gateway.inorder import InOrder
from app.gateway.settings import SiteName, UpstreamSettings
from app.gateway.supervisor import Supervisor
from app.protocol import methods
from app.protocol.faults import GatewayFault, Unavailable
from app.protocol.jsonrpc import Message, Notification, Request, RequestId

log = logging.getLogger("viaduct.session")

_STARTED_AGAIN = frozenset({"exited_before_ready", "start_timed_out"})
"""Ways for a start to fail after which what the session has said waits for the next."""
_ENDING = frozenset({"initialize_refused", "unsupported_revision"})
"""Ways in which a server says that it will not do, now or later."""
_AGAIN_SECONDS = 1.0
"""So long after a start was in vain, whoever wants something has it tried again."""
_TELLING = RECORDED | {methods.INITIALIZE, methods.INITIALIZED, methods.CANCELLED}


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

    names = None

    def __init__(
        self,
        upstream: UpstreamSettings,
        mint: Iterator[int],
        supervisor: Supervisor,
        take_place: TakePlace,
        live: Holder,
        told: Told | None = None,
    ) -> None:
        self._upstream = upstream
        self._supervisor = supervisor
        self._take_place = take_place
        self._live = live
        self.mint = mint
        self.on_return: Callable[[], object] = _unheard
        """Told when another child is there in place of one that died, and has heard what that had."""
        self._returns = False
        self._revival = Revival(mint, upstream.bounds, told)
        self._remembered = self._revival.told
        self._restarts = Restarts(supervisor.settings.restarts)
        """Of children that were ready: too many of their deaths end the session."""
        self._starts = Restarts(supervisor.settings.restarts)
        """Of starts in a row that were in vain: the session waits for as long as that lasts."""
        self._again_at = 0.0
        self._has_told = False
        self._loop = asyncio.get_running_loop()
        self._in_order = InOrder(self._do)
        self._ready_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_asleep = told is not None
        self._place: Place | None = None if self._is_asleep else take_place(self, again=False)

    @property
    def site(self) -> SiteName:
        """Whose it is."""
        return self._upstream.site

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

    @property
    def waiting_bytes(self) -> int:
        return self._revival.waiting_bytes

    def submit(self, message: Message) -> None:
        place, is_live = self._place, self._revival.phase is Phase.LIVE and not self._in_order.is_busy
        if is_live and place is not None and not _is_telling(message):
            place.submit(message)
        else:
            if self._revival.is_refusing and self._loop.time() >= self._again_at and isinstance(message, Request):
                self._return()
            self._perform(self._revival.submit(message))
            self.wake()

    def withdraw(self, ident: int) -> bool:
        return self._revival.withdraw(ident) or (self._place is not None and self._place.withdraw(ident))

    def doubt(self) -> None:
        if self._place is not None:
            self._place.doubt()

    def reseat(self, upstream: UpstreamSettings, take_place: TakePlace, fault: GatewayFault) -> bool:
        """From now on at that server; what is in flight ends with the fault. There is no child there before somebody
        wants it. False where the session cannot outlive its child now."""
        is_new = self._revival.phase is Phase.NEW
        if not is_new and not self._revival.may_revive:
            return False
        self._disarm()
        self._upstream, self._take_place = upstream, take_place
        place, self._place = self._place, None
        if place is not None:
            if self._revival.phase is Phase.LIVE:
                self._live.bereft(fault, place.withdraw)
            place.leave()
        policy = self._supervisor.settings.restarts
        self._restarts, self._starts, self._ready_at = Restarts(policy), Restarts(policy), None
        if is_new:
            self._place = take_place(self, again=False)
        else:
            self._revival.lost()
            self._is_asleep = True
        return True

    def leave(self) -> None:
        self._is_asleep = False
        self._disarm()
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
        may_return, was_live = self._may_return(fault), self._revival.phase is Phase.LIVE
        if may_return and was_live and place is not None:
            self._live.bereft(fault, place.withdraw)
        if place is not None:
            place.leave()
        if not may_return:
            self._live.lost(fault, reason)
            return
        self._revival.lost()
        if was_live:
            self._died(fault, self._loop.time())
        else:
            self._started_in_vain(fault)

    def _may_return(self, fault: GatewayFault) -> bool:
        """A server that cannot be started for now is no reason to end a session: that would end all at once."""
        if not self._revival.may_revive or fault.reason in _ENDING:
            return False
        if self._upstream.on_exit == "restart":
            return True
        was_refused = isinstance(fault, Unavailable) and fault.reason not in _STARTED_AGAIN
        return was_refused and self._revival.phase is not Phase.LIVE

    def _died(self, fault: GatewayFault, now: float) -> None:
        ready_at, self._ready_at = self._ready_at, None
        if ready_at is not None:
            self._restarts.lived(now - ready_at)
        self._restarts.died(now, self._supervisor.chance())
        if self._restarts.is_failed:
            details = fault.details | {"cause": fault.reason}
            sentence = "the server ended too often in this session"
            self._live.lost(Unavailable(sentence, reason="failed", retryable=False, details=details), "failed")
        else:
            self._wait(self._tell(self._restarts.pause(now)))

    def _started_in_vain(self, fault: GatewayFault) -> None:
        """What waits goes on waiting where the next start may be better, and hears why where that is not likely."""
        now, chance, pause = self._loop.time(), self._supervisor.chance(), fault.retry_after
        if pause is None:
            self._starts.died(now, chance)
            pause = self._tell(self._starts.pause(now))
        else:  # Nothing was tried, and not all come back at the same moment.
            pause += chance * _AGAIN_SECONDS
        is_hopeless = isinstance(fault, Unavailable) and fault.reason not in _STARTED_AGAIN
        if is_hopeless or self._starts.is_failed:
            self._again_at = now + min(pause, _AGAIN_SECONDS)
            self._revival.refuse(unexecuted(fault))
            self._live.bereft(fault, self._revival.withdraw)
        self._wait(pause)

    def _tell(self, pause: float) -> float:
        attempt = self._restarts.attempt + self._starts.attempt
        extra = {"server": self._upstream.name, "attempt": attempt, "next_in": round(pause, 3)}
        log.info("session waits for another child", extra=extra)
        return pause

    def _wait(self, pause: float) -> None:
        self._disarm()
        self._timer = self._loop.call_later(pause, self._return)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _return(self) -> None:
        self._disarm()
        try:
            self._supervisor.admit(self._upstream)
        except Unavailable as fault:
            self._started_in_vain(fault)
            return
        self._has_told, self._returns = False, True
        self._place = self._take_place(self, again=True)
        self._perform(self._revival.revive())

    # Outcomes.

    def _perform(self, outcomes: list[Outcome]) -> None:
        if self._revival.told is not self._remembered and self._revival.may_revive:
            self._remembered = self._revival.told
            self._live.remember(self._remembered)
        if self._revival.phase is Phase.LIVE and self._ready_at is None:
            self._ready_at = self._loop.time()
            self._starts = Restarts(self._supervisor.settings.restarts)
        self._in_order.perform(outcomes)
        if self._returns and self._revival.phase is Phase.LIVE:
            self._returns = False
            self.on_return()

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
            case NotTaken() if not self._has_told:
                self._has_told = True
                extra = {"server": self._upstream.name, "method": outcome.method, "code": outcome.code}
                log.warning("the next child did not take what the one before it had", extra=extra)
            case NotTaken():
                pass  # One line for each child is enough.


def _is_telling(message: Message) -> bool:
    """Whether it says what the next child will have to hear."""
    return isinstance(message, Request | Notification) and message.method in _TELLING


def _unheard() -> None:
    """Nobody cares."""
