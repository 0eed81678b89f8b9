"""A session's place at a server: a child of its own, or a share in one."""

import logging
from collections.abc import Callable, Iterator
from itertools import count

from app.core.parties import Outcome, Party, Refused, ToChild, ToLog, ToParty
from app.core.sharing import Sharing
from app.gateway.link import Link
from app.gateway.live import LiveSession
from app.gateway.settings import UpstreamSettings
from app.gateway.tasks import Tasks
from app.protocol.faults import GatewayFault, Unavailable
from app.protocol.jsonrpc import Message

log = logging.getLogger("viaduct.child")


class OwnChild:
    """A child that is started with its session and stopped with it."""

    def __init__(self, upstream: UpstreamSettings, mint: Iterator[int], tasks: Tasks, live: LiveSession) -> None:
        self._live = live
        self._link = Link(upstream, mint, tasks, live.deliver, self._lost)
        self.submit = self._link.write
        self.withdraw = self._link.withdraw
        self.doubt = self._link.doubt
        self.overdue = self._link.overdue
        self.leave = self._link.close
        self._link.open()

    def _lost(self, fault: GatewayFault) -> None:
        self._live.lost(fault, fault.reason)


class SharedChild:
    """One child for all sessions of a server. It is started by the first, and no session's end stops it.

    `on_lost` is told once, when it is gone; whoever comes then needs a new one.
    """

    def __init__(
        self, upstream: UpstreamSettings, tasks: Tasks, version: str, on_lost: Callable[["SharedChild"], None]
    ) -> None:
        self.mint = count(1)
        self._upstream = upstream
        self._sharing = Sharing(self.mint, version)
        self._parties: dict[Party, LiveSession] = {}
        self._names = count(1)
        self._on_lost = on_lost
        self._link = Link(upstream, self.mint, tasks, self._receive, self._lost)
        self._link.open()
        self._perform(self._sharing.greet())

    def join(self, live: LiveSession) -> "Share":
        party = next(self._names)
        self._parties[party] = live
        return Share(self, party)

    def submit(self, party: Party, message: Message) -> None:
        self._perform(self._sharing.submit(party, message))

    def withdraw(self, ident: int) -> bool:
        return self._sharing.withdraw(ident, self._link.withdraw)

    def doubt(self) -> None:
        self._link.doubt()

    def overdue(self) -> None:
        self._link.overdue()

    def leave(self, party: Party) -> None:
        if self._parties.pop(party, None) is not None:
            self._perform(self._sharing.leave(party))

    def close(self) -> None:
        self._link.close()

    def _receive(self, message: Message) -> None:
        self._perform(self._sharing.receive(message))

    def _perform(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            match outcome:
                case ToParty():
                    live = self._parties.get(outcome.party)
                    if live is not None:
                        live.deliver(outcome.message)
                case ToChild():
                    self._link.write(outcome.message)
                case ToLog():
                    log.info("log message of a shared server", extra={"server": self._upstream.name})
                case Refused():
                    refusal = Unavailable("the server refused to initialize", reason="initialize_refused")
                    self._link.fail(refusal)

    def _lost(self, fault: GatewayFault) -> None:
        self._on_lost(self)
        parties, self._parties = self._parties, {}
        for live in parties.values():
            live.lost(fault, fault.reason)


class Share:
    """One session's share in a child."""

    def __init__(self, child: SharedChild, party: Party) -> None:
        self._child = child
        self._party = party
        self.withdraw = child.withdraw
        self.doubt = child.doubt
        self.overdue = child.overdue

    def submit(self, message: Message) -> None:
        self._child.submit(self._party, message)

    def leave(self) -> None:
        self._child.leave(self._party)
