"""A session's place at a server: a child of its own, or a share in one."""

import asyncio
import secrets
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

from app.core.deadlines import FOREVER
from app.core.eras import Era, Eras
from app.core.parties import ToChild
from app.core.patience import Patience
from app.core.probing import Outcome
from app.core.translation import Translation
from app.gateway.common import WRONG_ERA, CommonChild
from app.gateway.inorder import InOrder
from app.gateway.link import Link
from app.gateway.patient import PatientTimer
from app.gateway.settings import UpstreamSettings
from app.gateway.supervisor import Supervisor
from app.protocol import discovery, methods
from app.protocol.faults import GatewayFault
from app.protocol.jsonrpc import Message, Request, RequestId, Result


class Sitter(Protocol):
    """Who has the place at the server."""

    @property
    def is_busy(self) -> bool:
        """Whether an answer is owed to it."""

    def deliver(self, message: Message, about: RequestId | None = None) -> None: ...

    def lost(self, fault: GatewayFault, reason: str) -> None:
        """The child is gone, and the place with it."""


class OwnChild:
    """A child that is nobody else's."""

    def __init__(
        self,
        upstream: UpstreamSettings,
        mint: Iterator[int],
        supervisor: Supervisor,
        version: str,
        eras: Eras,
        sitter: Sitter,
        *,
        owner: str,
        again: bool,
    ) -> None:
        if again:
            supervisor.restarts(upstream)
        self._upstream = upstream
        self._mint = mint
        self._supervisor = supervisor
        self._version = version
        self._eras = eras
        self._sitter = sitter
        self._owner = owner
        self._is_awaited = True
        self._talk: _Talk | None = None
        self._early: list[Message] = []
        self._greeting_id: RequestId | None = None
        self._start(eras.first_for(modern_client=False), falls_back=eras.may_try_other())

    def submit(self, message: Message) -> None:
        """Replaced by the pipe's own, once the child is greeted and nothing needs to be translated."""
        if isinstance(message, Request) and message.method == methods.INITIALIZE:
            self._greeting_id = message.id
        if not self._link.is_started:
            self._early.append(message)
        elif self._talk is not None:
            self._talk.submit(message)
        else:
            self._link.write(message)

    @property
    def is_started(self) -> bool:
        return self._link.is_started

    def awaited(self, *, is_awaited: bool) -> None:
        self._is_awaited = is_awaited
        self._link.awaited(is_awaited=is_awaited)

    def withdraw(self, ident: int) -> bool:
        return self._link.withdraw(ident) if self._talk is None else self._talk.withdraw(ident, self._link.withdraw)

    def doubt(self) -> None:
        self._link.life = None if self._talk is None else partial(discovery.sign_of_life, self._version)
        self._link.doubt()

    def leave(self) -> None:
        talk, self._talk = self._talk, None
        if talk is not None:
            talk.close()
        self._link.close()

    def _start(self, begins: Era, *, falls_back: bool) -> None:
        self._link = link = Link(self._upstream, self._mint, self._supervisor, self._hear, self._lost, self._owner)
        link.awaited(is_awaited=self._is_awaited)
        self._falls_back = falls_back and begins == "modern"
        self._talk = None
        if begins == "modern" or falls_back:
            translation = _translation(self._mint, self._version, self._upstream, begins, falls_back=falls_back)
            self._talk = _Talk(translation, link.write, self._hear, self._eras, self._now_plain)
            link.receive = self._talk.receive
        link.watch(lambda: self._sitter.is_busy)
        link.tried(counts=not self._falls_back)
        link.on_start = self._started
        link.open()

    def _started(self) -> None:
        """What the child has to think about the first question begins now."""
        early, self._early = self._early, []
        for message in early:
            self.submit(message)

    def _hear(self, message: Message, about: RequestId | None = None) -> None:
        if isinstance(message, Result) and message.id == self._greeting_id:
            self._greeting_id = None
            self._link.ready()
            if self._talk is None:
                self._now_plain()
        self._sitter.deliver(message, about)

    def _now_plain(self) -> None:
        """The child speaks as its client does: from now on nobody stands between the sitter and the pipe."""
        talk, self._talk = self._talk, None
        if talk is not None:
            talk.close()
        self.submit = self._link.write  # type: ignore[method-assign]  # the fast path has one call less
        self._link.receive = self._sitter.deliver

    def _lost(self, fault: GatewayFault) -> None:
        greeting = None if self._talk is None else self._talk.greeting
        if self._talk is not None:
            self._talk.close()
        if greeting is not None and self._falls_back and fault.reason in WRONG_ERA:
            self._eras.learn("modern", speaks=False)
            self._upstream.tally.child_restarts += 1
            self._start("legacy", falls_back=False)
            self.submit(greeting)
            return
        if greeting is not None and self._eras.modern:  # As others found out; the next one begins with that.
            self._eras.learn("legacy", speaks=False)
        self._sitter.lost(fault, fault.reason)


class Share:
    """One session's share in a child."""

    def __init__(
        self, child: CommonChild, upstream: UpstreamSettings, version: str, eras: Eras, sitter: Sitter
    ) -> None:
        self._child = child
        self._version = version
        self._upstream = upstream
        self._eras = eras
        self._sitter = sitter
        self._early: list[Message] = []
        self._talk: _Talk | None = None
        self.doubt = child.doubt
        self._party = child.join(self)
        if child.is_ready:
            self.ready()

    def submit(self, message: Message) -> None:
        if not self._child.is_ready:
            self._early.append(message)
        elif self._talk is None:
            self._child.submit(self._party, message)
        else:
            self._talk.submit(message)

    @property
    def is_started(self) -> bool:
        return self._child.is_ready

    def awaited(self, *, is_awaited: bool) -> None:
        """Others wait, too."""

    def withdraw(self, ident: int) -> bool:
        if self._talk is not None:
            return self._talk.withdraw(ident, self._child.withdraw)
        kept = [message for message in self._early if not (isinstance(message, Request) and message.id == ident)]
        was_early, self._early = len(kept) < len(self._early), kept
        return was_early or self._child.withdraw(ident)

    def leave(self) -> None:
        talk, self._talk = self._talk, None
        if talk is not None:
            talk.close()
        self._child.leave(self._party)

    # As a member of the child's.

    def ready(self) -> None:
        if self._child.is_modern:
            child, party = self._child, self._party
            translation = _translation(child.mint, self._version, self._upstream, "modern", falls_back=False)
            self._talk = _Talk(translation, partial(child.submit, party), self._sitter.deliver, self._eras, _never)
        early, self._early = self._early, []
        for message in early:
            self.submit(message)

    def deliver(self, message: Message) -> None:
        if self._talk is None:
            self._sitter.deliver(message)
        else:
            self._talk.receive(message)

    def lost(self, fault: GatewayFault) -> None:
        if self._talk is not None:
            self._talk.close()
        self._sitter.lost(fault, fault.reason)


class _Talk:
    """A translated talk performed: messages both ways, time, and what is learnt of the server."""

    def __init__(
        self,
        translation: Translation,
        write: Callable[[Message], None],
        deliver: Callable[[Message, RequestId | None], None],
        eras: Eras,
        on_plain: Callable[[], None],
    ) -> None:
        self._translation = translation
        self._write = write
        self._deliver = deliver
        self._eras = eras
        self._on_plain = on_plain
        self._found = translation.found
        self._loop = asyncio.get_running_loop()
        self._timer: PatientTimer | None = None
        self._in_order = InOrder(self._do)
        self._is_over = False

    @property
    def greeting(self) -> Request | None:
        """The client's `initialize`, while nothing came of it."""
        return self._translation.greeting

    def submit(self, message: Message) -> None:
        self._perform(self._translation.submit(message, self._loop.time()))

    def receive(self, message: Message) -> None:
        self._perform(self._translation.receive(message, self._loop.time()))

    def withdraw(self, ident: int, take_back: Callable[[int], bool]) -> bool:
        return self._translation.withdraw(ident, take_back)

    def close(self) -> None:
        self._is_over = True
        self._in_order.end()
        self._disarm()

    def _perform(self, outcomes: list[Outcome]) -> None:
        if not self._in_order.perform(outcomes):
            return
        if self._translation.found != self._found:
            self._learn()
        if self._is_over:
            return
        self._disarm()
        if self._translation.is_plain:
            self._on_plain()
        elif self._translation.due < FOREVER:
            self._timer = PatientTimer(self._loop, self._translation.due, self._tick)

    def _do(self, outcome: Outcome) -> None:
        if isinstance(outcome, ToChild):
            self._write(outcome.message)
        else:
            self._deliver(outcome.message, outcome.about)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _learn(self) -> None:
        self._found = found = self._translation.found
        if found.legacy is not None:
            self._eras.learn("legacy", speaks=found.legacy)
        if found.modern is not None:
            self._eras.learn("modern", speaks=found.modern)

    def _tick(self) -> None:
        self._timer = None
        self._perform(self._translation.tick(self._loop.time()))


def _translation(
    mint: Iterator[int], version: str, upstream: UpstreamSettings, begins: Era, *, falls_back: bool
) -> Translation:
    patience = Patience(discover=upstream.deadlines.probe)
    return Translation(
        mint, version, begins=begins, elicitation_id=_fresh_name, falls_back=falls_back, patience=patience
    )


def _fresh_name() -> str:
    return secrets.token_urlsafe(16)


def _never() -> None:
    """A child that is shared says what it speaks before any session is told of it."""
