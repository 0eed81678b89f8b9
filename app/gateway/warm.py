"""Children of a server that are started for whoever comes next, and that nobody has greeted yet."""

import asyncio
import logging

from app.core.restarts import RestartPolicy, Restarts
from app.gateway.ward import Post, Ward
from app.protocol.faults import Unavailable
from app.telemetry.tally import count
from app.upstreams.child import Exit

log = logging.getLogger("viaduct.supervisor")

_AGAIN_SECONDS = 1.0
"""When to look again, where there was no room."""


class Warm:
    """So many as its server wants, or on the way. One that ends or grows stale makes room for another.

    What these children do before they are greeted is their own affair, so their deaths delay their successors only,
    unless they come so soon that the server seems not to start at all.
    """

    def __init__(self, post: Post, policy: RestartPolicy) -> None:
        self._post = post
        self._deaths_max = policy.deaths
        self._restarts = Restarts(policy)
        self._kept: list[_Keeper] = []
        self._coming: set[Ward] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._counted_at = 0.0
        post.store = self
        self._number = post.room.spares.add(self)

    owner = ""
    child_count = 0
    """They are no principal's."""

    def idle(self) -> list[float]:
        return [keeper.since for keeper in self._kept]

    def give_up_idle(self) -> None:
        """Its place is somebody's; there is another one when there is room."""
        self._stop(self._kept.pop(0), "released")
        if not self._is_closed and self._timer is None:
            self._timer = self._post.loop.call_later(_AGAIN_SECONDS, self._fill_now)

    @property
    def is_empty(self) -> bool:
        return not self._kept

    def take(self) -> Ward | None:
        """The one that has had the most time to start; it is the taker's from now on."""
        while self._kept:
            keeper = self._kept.pop(0)
            keeper.timer.cancel()
            child = keeper.ward.child
            if child is not None and not child.is_ending:
                self.fill()
                return keeper.ward
            self._stop(keeper, "exited_before_ready")
        return None

    def fill(self) -> None:
        """As soon as may be."""
        if self._is_closed or self._timer is not None or self._post.supervision.restarts.is_failed:
            return
        now = self._post.now
        pause = max(self._restarts.pause(now), self._restarts.refused_for(now) or 0.0)
        pause = max(pause, self._post.supervision.restarts.pause(now))
        if pause:
            self._timer = self._post.loop.call_later(pause, self._fill_now)
            return
        for _ in range(self._post.upstream.warm - len(self._kept) - len(self._coming)):
            if not self._post.room.has_some_for_later:
                self._timer = self._post.loop.call_later(_AGAIN_SECONDS, self._fill_now)
                return
            ward = Ward(self._post, self._post.upstream, "", is_for_later=True)
            self._coming.add(ward)
            self._post.tasks.spawn(self._start(ward), f"warm {self._post.upstream.name}")

    def close(self) -> None:
        self._is_closed = True
        self._post.store = None
        self._post.room.spares.remove(self._number)
        if self._timer is not None:
            self._timer.cancel()
        for ward in self._coming:
            ward.unwanted()
        while self._kept:
            self._stop(self._kept.pop(), "released")

    def lost(self, keeper: "_Keeper", exit: Exit) -> None:  # noqa: A002 - the field's word
        """It ended before anybody came for it."""
        now = self._post.now
        keeper.ward.tried(counts=now - keeper.since <= self._post.start_seconds)
        keeper.ward.died("exited_before_ready", exit)
        if keeper.since >= self._counted_at:  # As the server's deaths: of those that started together, the first.
            self._restarts.lived(now - keeper.since)
            self._restarts.died(now, self._post.chance())
            self._counted_at = now
        if self._restarts.attempt == self._deaths_max:
            extra = {"server": self._post.upstream.name, "exit": exit.describe(), "attempt": self._restarts.attempt}
            log.warning("warm children end again and again before anybody comes", extra=extra)
        if keeper in self._kept:
            self._kept.remove(keeper)
            self._stop(keeper, "exited_before_ready")
        self.fill()

    def _fill_now(self) -> None:
        self._timer = None
        self.fill()

    async def _start(self, ward: Ward) -> None:
        keeper = _Keeper(self, ward)
        try:
            child = await ward.start_for_later(keeper)
        except Unavailable as fault:  # Who wants one now will hear why, and have it filled up again.
            ward.unwanted()
            child = None
            count(self._post.upstream.tally.child_ends, fault.reason)
        finally:
            self._coming.discard(ward)
        if child is None:
            return
        if self._is_closed:
            await self._end(keeper, "released")
            return
        child.pause_reading()
        keeper.since = self._post.now
        keeper.timer = self._post.loop.call_later(self._post.upstream.warm_seconds, self._renew, keeper)
        self._kept.append(keeper)

    def _renew(self, keeper: "_Keeper") -> None:
        """It has waited for too long: who knows what it still remembers rightly."""
        self._kept.remove(keeper)
        self._stop(keeper, "renewed")
        self.fill()

    def _stop(self, keeper: "_Keeper", reason: str) -> None:
        keeper.timer.cancel()
        self._post.tasks.spawn(self._end(keeper, reason), f"stop {self._post.upstream.name}")

    async def _end(self, keeper: "_Keeper", reason: str) -> None:
        keeper.is_over = True
        count(self._post.upstream.tally.child_ends, reason)
        keeper.ward.unwanted()
        if keeper.ward.child is not None:
            await keeper.ward.stop(keeper.ward.child)


class _Keeper:
    """Listens to a child until somebody takes it, and keeps for them what it says meanwhile."""

    timer: asyncio.TimerHandle

    def __init__(self, warm: Warm, ward: Ward) -> None:
        self.ward = ward
        self.is_over = False
        self.since = 0.0
        self._warm = warm

    def on_line(self, text: bytes) -> None:
        self.ward.said.append(text)

    def on_oversize(self) -> None:
        """Nobody waited for it."""

    def on_exit(self, exit: Exit) -> None:  # noqa: A002 - the field's word
        if not self.is_over:
            self._warm.lost(self, exit)
