"""One child that several parties use at once, whichever era it speaks.

PROBING ──it knows 2026-07-28──▶ READY (Relay)
   │  └──an error──▶ GREETING ──its answer──▶ READY (Sharing)
   └──silence, exit, garbage: a fresh child──▶ GREETING ──an error──▶ PROBING, once, with all the time to start
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from typing import Protocol

from msgspec import Raw

from app.core.eras import Era, Eras
from app.core.parties import Changed, Outcome, Party, Refused, ToChild, ToLog, ToParty
from app.core.relay import Relay
from app.core.sharing import Sharing
from app.gateway.inorder import InOrder
from app.gateway.link import Link
from app.gateway.patient import PatientTimer
from app.gateway.settings import UpstreamSettings
from app.gateway.supervisor import Supervisor
from app.protocol import discovery, methods
from app.protocol.faults import GatewayFault, Unavailable
from app.protocol.jsonrpc import Message, Notification, Reply, Request, Result

log = logging.getLogger("viaduct.child")

_UNANSWERED = "probe_unanswered"
WRONG_ERA = frozenset({_UNANSWERED, "exited_before_ready", "spoke_nonsense"})
"""Ways for a child to fail that may come from being spoken to in the wrong era."""


class Member(Protocol):
    """Whoever uses the child: a session, or a stateless request. Until it is `ready`, nothing is submitted."""

    def ready(self) -> None:
        """The child can be used now, and its era is known."""

    def deliver(self, message: Message) -> None: ...

    def lost(self, fault: GatewayFault) -> None: ...


class CommonChild:
    """`on_lost` is told once, when it is gone; whoever comes then needs a new one. `again` is whether this is it."""

    machine: Sharing | Relay | None = None
    is_ready = False
    is_modern = False
    _server_info: Raw | None = None
    _probe: int | None = None
    _probe_timer: PatientTimer | None = None
    _is_over = False

    def __init__(
        self,
        upstream: UpstreamSettings,
        supervisor: Supervisor,
        version: str,
        eras: Eras,
        *,
        modern_client: bool,
        capabilities: Mapping[str, Raw] | None = None,
        client_info: Raw | None = None,
        mint: Iterator[int] | None = None,
        owner: str | None = None,
        again: bool = False,
        on_lost: Callable[[], object],
        on_changed: Callable[[Notification], None] | None = None,
    ) -> None:
        self.mint: Iterator[int] = count(1) if mint is None else mint
        if again:
            supervisor.restarts(upstream)
        self._upstream = upstream
        self._supervisor = supervisor
        self._version = version
        self._eras = eras
        self.capabilities = dict(capabilities or {})
        self._client_info = client_info
        self._owner = owner
        self._on_lost = on_lost
        self._on_changed = on_changed or _unheard
        self._in_order: InOrder[Outcome] = InOrder(self._do)
        self._perform = self._in_order.perform
        self._members: dict[Party, Member] = {}
        self._names = count(1)
        self._tried: set[Era] = set()
        self._start(eras.first_for(modern_client=modern_client))

    @property
    def is_over(self) -> bool:
        """Nobody hears from it any more."""
        return self._is_over

    @property
    def greeted(self) -> Raw | None:
        """What the child said of itself: to `initialize`, or to `server/discover`."""
        machine = self.machine
        if machine is None:
            return None
        return machine.discovered if isinstance(machine, Relay) else machine.greeted

    def server_info(self) -> Raw | None:
        """What a child of the handshake calls itself."""
        if self._server_info is None and self.greeted is not None:
            self._server_info = discovery.server_info(self.greeted)
        return self._server_info

    def join(self, member: Member) -> Party:
        party = next(self._names)
        self._members[party] = member
        return party

    def submit(self, party: Party, message: Message) -> None:
        """Not before the child is ready."""
        if self.machine is not None:
            self._perform(self.machine.submit(party, message))

    def hold(self, party: Party) -> list[Message]:
        """Until it leaves, what the child says that names no call is the party's; first of all, what is returned.

        That is not delivered in its turn: the party must have heard it before it says anything itself.
        """
        if self.machine is None:
            return []
        waiting: list[Message] = []
        for outcome in self.machine.hold(party):
            if isinstance(outcome, ToParty) and outcome.party == party:
                waiting.append(outcome.message)
            else:
                self._perform([outcome])
        return waiting

    def withdraw(self, ident: int) -> bool:
        return self.machine is not None and self.machine.withdraw(ident, self._link.withdraw)

    def doubt(self) -> None:
        if isinstance(self.machine, Sharing):
            self._perform(self.machine.doubt())
        self._link.doubt()

    def leave(self, party: Party) -> None:
        if self._members.pop(party, None) is None or self.machine is None:
            return
        outcomes = self.machine.leave(party)
        if outcomes:
            self._perform(outcomes)

    def stderr_tail(self) -> list[str]:
        """The last lines of its stderr."""
        return self._link.stderr_tail()

    def close(self) -> None:
        self._is_over = True
        self._in_order.end()
        self._disarm()
        self._link.close()

    def dismiss(self) -> None:
        """Who still uses the child that was closed hears that it is gone."""
        self._lose(Unavailable("the server was stopped", reason="stopped", executed="unknown"))

    def _is_busy(self) -> bool:
        return self.machine is not None and self.machine.is_busy

    # Which era it speaks.

    def _start(self, era: Era) -> None:
        """A fresh process, spoken to in that era first."""
        self._link = Link(self._upstream, self.mint, self._supervisor, self._receive, self._lost, self._owner)
        self._link.watch(self._is_busy)
        self._link.open()
        if era == "modern":
            self._ask_era()
        else:
            self._greet()

    def _ask_era(self) -> None:
        self._tried.add("modern")
        self._probe = next(self.mint)
        self._link.write(discovery.sign_of_life(self._version, self._probe))
        if self._may_try("legacy"):
            self._link.tried(counts=False)
            self._link.on_start = self._arm_probe

    def _greet(self) -> None:
        self._tried.add("legacy")
        self.machine = Sharing(self.mint, self._version, self.capabilities, self._client_info, self._upstream.bounds)
        self._link.tried(counts=True)
        self._perform(self.machine.greet())

    def _arm_probe(self) -> None:
        loop = asyncio.get_running_loop()
        self._probe_timer = PatientTimer(loop, loop.time() + self._upstream.deadlines.probe, self._probe_overdue)

    def _may_try(self, era: Era) -> bool:
        return era not in self._tried and self._eras.may_try_other()

    def _probe_overdue(self) -> None:
        """Some servers hang on a request before the handshake (2026-07-28, basic/transports/stdio)."""
        self._probe = None
        self._link.fail(Unavailable("the server did not answer server/discover in time", reason=_UNANSWERED))

    def _probed(self, reply: Reply) -> None:
        self._disarm()
        self._probe = None
        if isinstance(reply, Result) and discovery.speaks_modern(reply.result):
            self._eras.learn("modern", speaks=True)
            self.machine, self.is_modern = Relay(reply.result), True
            self._link.life = partial(discovery.sign_of_life, self._version)
            self._now_ready()
        elif self._may_try("legacy") and not discovery.speaks_other_revisions(reply):
            self._eras.learn("modern", speaks=False)
            self._greet()
        else:
            self._eras.learn("modern", speaks=False)
            self._link.fail(Unavailable("the server speaks no revision that we do", reason="unsupported_revision"))

    def _refused(self) -> None:
        """The child did not take our greeting: it may speak the other era."""
        self._disarm()
        self._eras.learn("legacy", speaks=False)
        if self._may_try("modern"):
            self.machine = None
            self._ask_era()
        else:
            self._link.fail(Unavailable("the server refused to initialize", reason="initialize_refused"))

    def _now_ready(self) -> None:
        self.is_ready = True
        self._link.ready()
        for member in list(self._members.values()):
            member.ready()

    # The child speaks.

    def _receive(self, message: Message) -> None:
        if self.machine is None:
            if not isinstance(message, Request | Notification) and message.id == self._probe:
                self._probed(message)
            return
        if isinstance(message, Notification) and message.method in methods.LIST_CHANGED:
            self._on_changed(message)
        self._perform(self.machine.receive(message))
        if not self.is_ready and isinstance(self.machine, Sharing) and self.machine.greeted is not None:
            self._disarm()
            self._eras.learn("legacy", speaks=True)
            self._now_ready()

    def _do(self, outcome: Outcome) -> None:
        match outcome:
            case ToParty():
                member = self._members.get(outcome.party)
                if member is not None:
                    member.deliver(outcome.message)
            case ToChild():
                self._link.write(outcome.message)
            case ToLog():
                log.info("log message of a shared server", extra={"server": self._upstream.name})
            case Changed():
                pass  # Told already, with those that a subscription of its own carries.
            case Refused():
                self._refused()

    def _lost(self, fault: GatewayFault) -> None:
        self._disarm()
        if self.machine is None and self._probe_failed(fault):
            return
        self._on_lost()
        self._lose(fault)

    def _lose(self, fault: GatewayFault) -> None:
        self._is_over = True
        self._in_order.end()
        members, self._members = self._members, {}
        for member in members.values():
            member.lost(fault)

    def _probe_failed(self, fault: GatewayFault) -> bool:
        """It hung, ended or answered garbage: it is started again and greeted the other way."""
        self._probe = None
        if self._is_over or fault.reason not in WRONG_ERA or not self._may_try("legacy"):
            return False
        self._eras.learn("modern", speaks=False)
        self._tried.discard("modern")  # It may just have started slowly.
        self._upstream.tally.child_restarts += 1
        self._start("legacy")
        return True

    def _disarm(self) -> None:
        if self._probe_timer is not None:
            self._probe_timer.cancel()
            self._probe_timer = None


def _unheard(_notification: Notification) -> None:
    """Nobody cares."""
