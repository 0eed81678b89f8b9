"""All children of all servers: whose turn it is to start, and the one place that knows how each of them is."""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable

from app.core.restarts import RestartPolicy
from app.core.supervision import ChildNumber, Ending, ServerView, Supervision
from app.gateway.settings import SupervisorSettings, UpstreamSettings
from app.gateway.tasks import Tasks
from app.gateway.turns import Turn, Turns
from app.protocol.faults import Unavailable
from app.upstreams import child as children
from app.upstreams.child import Child, Exit, Listener

log = logging.getLogger("viaduct.supervisor")


class Supervisor:
    """`chance` gives a number from 0 up to 1, anew each time."""

    def __init__(self, settings: SupervisorSettings, tasks: Tasks, chance: Callable[[], float] = random.random) -> None:
        self.settings = settings
        self.tasks = tasks
        self.turns = Turns(settings.starts_max)
        self.chance = chance
        self._servers: dict[str, _Server] = {}

    def admit(self, upstream: UpstreamSettings) -> None:
        """
        Raises:
            Unavailable: the server has failed, and it is too early to try again.
        """
        self._server(upstream).admit()

    def ward(self, upstream: UpstreamSettings) -> "Ward":
        """A child that somebody wants."""
        return Ward(self._server(upstream), self)

    def restarts(self, upstream: UpstreamSettings) -> None:
        """The next child of it is in place of one that died."""
        self._server(upstream).supervision.wanted_in_place()

    def is_failed(self, upstream: UpstreamSettings) -> bool:
        return self._server(upstream).supervision.restarts.is_failed

    def views(self, upstreams: Iterable[UpstreamSettings]) -> list[ServerView]:
        """How each of these servers is now, and each child of it."""
        return [self._server(upstream).view() for upstream in upstreams]

    def _server(self, upstream: UpstreamSettings) -> "_Server":
        server = self._servers.get(upstream.name)
        if server is None:
            server = self._servers[upstream.name] = _Server(upstream, self.settings.restarts)
        return server


class _Server:
    def __init__(self, upstream: UpstreamSettings, policy: RestartPolicy) -> None:
        self.upstream = upstream
        self.supervision = Supervision(upstream.name, policy, is_shared=upstream.isolation == "shared")
        self.wards: dict[ChildNumber, Ward] = {}
        self._loop = asyncio.get_running_loop()

    @property
    def now(self) -> float:
        return self._loop.time()

    def admit(self) -> None:
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

    def view(self) -> ServerView:
        return self.supervision.view(self.now, {number for number, ward in self.wards.items() if ward.is_busy()})


class Ward:
    """One child, from the wish for it to its last signal."""

    def __init__(self, server: _Server, supervisor: Supervisor) -> None:
        self.child: Child | None = None
        self.is_busy: Callable[[], bool] = _is_not
        """Whether the child owes an answer."""
        self._server = server
        self._supervisor = supervisor
        self._supervision = server.supervision
        self._number = server.supervision.wanted(server.now)
        self._turn: Turn | None = None
        self._is_unwanted = asyncio.Event()
        server.wards[self._number] = self

    def tried(self, *, counts: bool) -> None:
        """Whether the server is to blame if the child ends before it is ready."""
        self._supervision.tried(self._number, counts=counts)

    async def start(self, listener: Listener) -> Child | None:
        """The child, when it is its turn; None where nobody wants it any more by then.

        Raises:
            Unavailable: it could not be started, or the server has failed meanwhile.
        """
        await self._wait_out()
        self._turn = self._supervisor.turns.ask()
        if self._is_unwanted.is_set():
            self._turn.give_back()
        if not await self._turn.came or self._is_unwanted.is_set():
            return None
        upstream = self._server.upstream
        child = await children.start(upstream.name, upstream.command, upstream.limits, listener)
        self.child = child
        self._supervision.started(self._number, child.pid, self._server.now)
        log.info("child started", extra={"server": upstream.name, "pid": child.pid})
        return child

    def ready(self) -> None:
        """Its handshake was answered."""
        seconds = self._supervision.ready(self._number, self._server.now)
        self._give_back()
        pid = None if self.child is None else self.child.pid
        log.info("child ready", extra={"server": self._server.upstream.name, "pid": pid, "seconds": round(seconds, 3)})

    def died(self, reason: str, exit: Exit | None) -> None:  # noqa: A002 - the field's word
        """It ended, or must be ended, and nobody wanted that."""
        restarts, name = self._supervision.restarts, self._server.upstream.name
        stderr = () if self.child is None else tuple(self.child.stderr.tail())
        code, signal = (None, None) if exit is None else (exit.code, exit.signal)
        now = self._server.now
        counts = self._supervision.died(
            self._number, Ending(reason, code, signal, stderr), now, self._supervisor.chance()
        )
        self._give_back()
        if counts and restarts.is_failed:
            log.error("server failed", extra={"server": name, "reason": reason, "again_in": restarts.refused_for(now)})
        elif counts:
            extra = {"server": name, "attempt": restarts.attempt, "next_in": round(restarts.pause(now), 3)}
            log.warning("server backs off", extra=extra)

    def unwanted(self) -> None:
        """Nobody needs it any more."""
        self._is_unwanted.set()
        self._supervision.stopping(self._number)
        self._give_back()
        if self.child is None:
            self.gone()

    def gone(self) -> None:
        """Nothing of it is left."""
        self._supervision.gone(self._number)
        self._server.wards.pop(self._number, None)

    def _give_back(self) -> None:
        if self._turn is not None:
            self._turn.give_back()

    async def _wait_out(self) -> None:
        """While its server backs off; who waited comes too late where it has failed by then."""
        restarts, server = self._supervision.restarts, self._server
        while not self._is_unwanted.is_set() and (pause := restarts.pause(server.now)):
            try:
                async with asyncio.timeout(pause):
                    await self._is_unwanted.wait()
            except TimeoutError:
                continue
        if not self._supervision.is_trial(self._number):
            server.admit()


def _is_not() -> bool:
    return False
