"""One child as its supervisor sees it, from the wish for it to its last signal."""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from app.core.fairness import Rank, Wish
from app.core.restarts import RestartPolicy
from app.core.supervision import ChildNumber, Ending, ServerView, Supervision
from app.gateway.room import Room
from app.gateway.settings import UpstreamSettings
from app.gateway.tasks import Tasks
from app.gateway.turns import Turn, Turns
from app.protocol.faults import Unavailable
from app.upstreams import child as children
from app.upstreams.child import Child, Exit, Listener

log = logging.getLogger("viaduct.supervisor")

_START_SECONDS = 1.0
"""What a start is taken to last, before one was seen."""
_AGAIN_SECONDS = 1.0


class Store(Protocol):
    """What is kept warm of a server."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is there to be taken."""

    def take(self) -> "Ward | None": ...

    def fill(self) -> None: ...


class Post:
    """Where the children of one server are watched. `start_seconds` is what its last start took."""

    def __init__(
        self,
        upstream: UpstreamSettings,
        policy: RestartPolicy,
        tasks: Tasks,
        turns: Turns,
        room: Room,
        chance: Callable[[], float],
    ) -> None:
        self.upstream = upstream
        self.supervision = Supervision(upstream.name, policy, is_shared=upstream.isolation == "shared")
        self.tasks = tasks
        self.turns = turns
        self.room = room
        self.chance = chance
        self.wards: dict[ChildNumber, Ward] = {}
        self.start_seconds = _START_SECONDS
        self.store: Store | None = None
        self.replaces = False
        """Whether the next child is in place of one that died."""
        self.loop = asyncio.get_running_loop()

    @property
    def now(self) -> float:
        return self.loop.time()

    def admit(self) -> None:
        """
        Raises:
            Unavailable: the server has failed, and it is too early to try again.
        """
        left = self.supervision.restarts.refused_for(self.now)
        if left is None:
            return
        last = self.supervision.view(self.now).last
        details: dict[str, object] = {"server": self.upstream.name}
        if last is not None:
            details |= {"cause": last.reason, "exitCode": last.code, "signal": last.signal}
            details["stderr"] = list(last.stderr)
        sentence = "the server failed too often; it is tried again later"
        raise Unavailable(sentence, reason="failed", retry_after=left, details=details)

    def wanted_in_place(self) -> None:
        """The next child is in place of one that died."""
        self.replaces = True
        self.supervision.wanted_in_place()

    def view(self) -> ServerView:
        return self.supervision.view(self.now, {number for number, ward in self.wards.items() if ward.is_busy()})


class Ward:
    """`upstream` is the server as it is for this child, which may be bound to one client; `owner` is the principal.

    With `is_for_later` nobody waits for it, yet or any more.
    """

    def __init__(
        self, post: Post, upstream: UpstreamSettings, owner: str | None, *, is_for_later: bool = False
    ) -> None:
        self.child: Child | None = None
        self.is_busy: Callable[[], bool] = _is_not
        """Whether the child owes an answer."""
        self.said: list[bytes] = []
        """Lines that came before there was somebody to hear them; it is not read for longer than that takes."""
        self._post = post
        self._command = upstream.command
        self._is_bound = bool(upstream.bound)
        self._supervision = post.supervision
        self._number = post.supervision.wanted(post.now)
        self._was_warm = False
        self._is_spawning = False
        self._owner = owner
        self._is_for_later = is_for_later
        self._replaces, post.replaces = post.replaces, False
        self._place = post.room.place(self._wish)
        self._turn: Turn | None = None
        self._is_unwanted = asyncio.Event()
        post.wards[self._number] = self
        self.tried(counts=True)

    def tried(self, *, counts: bool) -> None:
        """Whether the server is to blame if the child ends before it is ready."""
        # A client whose credentials are no good must not shut a server for all.
        self._counts = counts and not self._is_bound
        self._supervision.tried(self._number, counts=self._counts)

    def awaited(self, *, is_awaited: bool) -> None:
        """Whether anybody waits for its start."""
        self._is_for_later = not is_awaited
        rank = self._wish.rank
        self._place.rank(rank)
        if self._turn is not None:
            self._turn.rank(rank)

    async def start(self, listener: Listener) -> Child | None:
        """The child, when it is its turn; None where nobody wants it any more by then.

        Raises:
            Unavailable: it could not be started, or the server has failed meanwhile.
        """
        is_wanted, store = not self._is_unwanted.is_set(), self._post.store
        kept = store.take() if is_wanted and store is not None else None
        if kept is not None:
            return self._take_over(kept, listener)
        self._post.upstream.tally.child_starts += 1
        if not is_wanted:
            return None
        if not await self._place.came:
            return None
        return await self._start_here(listener)

    async def start_for_later(self, listener: Listener) -> Child | None:
        """As `start`, for whoever comes next. It cannot say when it has started, so that is guessed.

        Raises:
            Unavailable: it could not be started.
        """
        self._post.upstream.tally.child_starts += 1
        child = await self._spawn(listener)
        if child is not None and not self._is_unwanted.is_set():
            self._supervision.warmed(self._number)
            self._post.loop.call_later(self._post.start_seconds, self._give_back)
        return child

    def ready(self) -> None:
        """Its handshake was answered."""
        seconds, post = self._supervision.ready(self._number, self._post.now), self._post
        self._give_back()
        if not self._was_warm:
            post.start_seconds = seconds
        pid = None if self.child is None else self.child.pid
        log.info("child ready", extra={"server": post.upstream.name, "pid": pid, "seconds": round(seconds, 3)})
        if post.store is not None:
            post.store.fill()

    def died(self, reason: str, exit: Exit | None) -> None:  # noqa: A002 - the field's word
        """It ended, or must be ended, and nobody wanted that."""
        restarts, now, name = self._supervision.restarts, self._post.now, self._post.upstream.name
        stderr = () if self.child is None else tuple(self.child.stderr.tail())
        code, signal = (None, None) if exit is None else (exit.code, exit.signal)
        ending = Ending(reason, code, signal, stderr)
        had_failed = restarts.is_failed
        counts = self._supervision.died(self._number, ending, now, self._post.chance())
        self._give_back()
        if restarts.is_failed and not had_failed:
            log.error("server failed", extra={"server": name, "reason": reason, "again_in": restarts.refused_for(now)})
        elif counts and not had_failed:
            extra = {"server": name, "attempt": restarts.attempt, "next_in": round(restarts.pause(now), 3)}
            log.warning("server backs off", extra=extra)

    def unwanted(self) -> None:
        """Nobody needs it any more; where it runs, it is to be stopped."""
        self._is_unwanted.set()
        self.is_busy = _is_not
        self._supervision.stopping(self._number)
        self._give_back()
        if self.child is None and not self._is_spawning:
            self._gone()

    async def stop(self, child: Child) -> None:
        tasks = self._post.tasks
        tasks.stopping.add(child)
        try:
            if tasks.is_hurried:
                child.kill()
            await child.stop()
        finally:
            tasks.stopping.discard(child)
            self._gone()

    async def _start_here(self, listener: Listener) -> Child | None:
        """What is in place of a child that died waits where the machine has nothing left; who is new hears of that."""
        while True:
            await self._wait_out()
            try:
                return await self._spawn(listener)
            except Unavailable as fault:
                if not self._replaces or fault.reason != "no_resources":
                    raise
            log.warning("no room to start another child", extra={"server": self._post.upstream.name})
            self._give_back()
            await self._pause(_AGAIN_SECONDS)

    @property
    def _wish(self) -> Wish:
        wanted = Rank.IN_PLACE if self._replaces else Rank.NEW
        rank = Rank.FOR_LATER if self._is_for_later else wanted
        return Wish(self._post.upstream.name, self._owner, rank)

    def _gone(self) -> None:
        self._place.give_back()
        self._supervision.gone(self._number)
        self._post.wards.pop(self._number, None)

    def _take_over(self, kept: "Ward", listener: Listener) -> Child | None:
        is_busy = self.is_busy
        self.unwanted()
        self._is_unwanted.clear()
        self.is_busy = is_busy
        self.child, self._number, self._turn, self._was_warm = kept.child, kept._number, kept._turn, True
        self._place = kept._place
        self._post.wards[self._number] = self
        self._supervision.taken(self._number)
        self.tried(counts=self._counts)
        if self.child is not None:
            self.child.listen(listener)
        for text in kept.said:
            listener.on_line(text)
        return self.child

    async def _spawn(self, listener: Listener) -> Child | None:
        self._turn = self._post.turns.ask(self._wish)
        if self._is_unwanted.is_set():
            self._turn.give_back()
        if not await self._turn.came or self._is_unwanted.is_set():
            return None
        upstream = self._post.upstream
        self._is_spawning = True
        try:
            child = self.child = await children.start(upstream.name, self._command, upstream.limits, listener)
        finally:
            self._is_spawning = False
            if self.child is None and self._is_unwanted.is_set():
                self._gone()
        self._place.fill()
        self._supervision.started(self._number, child.pid, self._post.now)
        log.info("child started", extra={"server": upstream.name, "pid": child.pid})
        return child

    def _give_back(self) -> None:
        if self._turn is not None:
            self._turn.give_back()

    async def _wait_out(self) -> None:
        """While its server backs off; who waited comes too late where it has failed by then."""
        restarts, post = self._supervision.restarts, self._post
        while not self._is_unwanted.is_set() and (pause := restarts.pause(post.now)):
            await self._pause(pause)
        if not self._supervision.is_trial(self._number):
            post.admit()

    async def _pause(self, seconds: float) -> None:
        """Unless nobody wants it any more."""
        try:
            async with asyncio.timeout(seconds):
                await self._is_unwanted.wait()
        except TimeoutError:
            return


def _is_not() -> bool:
    return False
