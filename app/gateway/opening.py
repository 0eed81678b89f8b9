"""Sessions being made: new ones, and those that another gateway has left."""

import secrets
import time
from collections.abc import Callable, Iterator
from functools import partial

from msgspec import UNSET

from app.core.effects import ToUpstream
from app.core.replay import EventLog
from app.core.revival import Told
from app.core.session import Session
from app.gateway.journal import Journal
from app.gateway.live import LiveSession, Transport
from app.gateway.settings import SessionSettings, UpstreamSettings
from app.protocol import methods
from app.protocol.jsonrpc import Request, Result
from app.stores.port import Opened, Saved, Store
from app.stores.sealed import Key

_QUESTIONS_MAX = 1 << 20
"""As many as no session asks: the ids of questions of one gateway are so far from those of the next."""


class Opening:
    """`store` is None where no session outlives the gateway; `on_end` is told of each that is over."""

    def __init__(self, settings: SessionSettings, store: Store | None, on_end: Callable[[LiveSession], None]) -> None:
        self.settings = settings
        self._store = store
        self._on_end = on_end

    def fresh(
        self,
        ident: str,
        upstream: UpstreamSettings,
        owner: str,
        transport: Transport,
        mint: Iterator[int],
        *,
        lasts: bool,
    ) -> LiveSession:
        """A new session; `lasts` where its client can come back to it."""
        tag = secrets.token_hex(4)
        log = EventLog(self.settings.log_bytes, self.settings.log_count)
        core = Session(upstream.deadlines, mint, upstream.bounds, upstream.name)
        live = self._live(ident, tag, upstream, owner, core, log, transport=transport)
        if lasts and self._store is not None:
            self._keep(live, self._store, is_kept=False)
        return live

    def again(
        self, ident: str, upstream: UpstreamSettings, owner: str, mint: Iterator[int], store: Store, saved: Saved
    ) -> LiveSession:
        """A session goes on: it hears once more what it and its server said of themselves, and is where it was."""
        log = EventLog(self.settings.log_bytes, self.settings.log_count, saved.history, saved.number)
        core = Session(upstream.deadlines, mint, upstream.bounds, upstream.name)
        _greet(core, saved.told)
        core.asked_count = saved.times * _QUESTIONS_MAX
        first_stream = max((way.stream for way in saved.ways), default=0) + 1
        live = self._live(ident, saved.tag, upstream, owner, core, log, first_stream=first_stream)
        self._keep(live, store, is_kept=True)
        live.take_up(saved)
        return live

    def _keep(self, live: LiveSession, store: Store, *, is_kept: bool) -> None:
        opened = Opened(live.owner, live.upstream, live.tag, time.time())
        limits = self.settings.queue_bytes, self.settings.commit_seconds
        live.keep(partial(Journal, store, Key(live.ident), opened, *limits, is_kept=is_kept))

    def _live(
        self,
        ident: str,
        tag: str,
        upstream: UpstreamSettings,
        owner: str,
        core: Session,
        log: EventLog,
        *,
        transport: Transport = "streamable",
        first_stream: int = 1,
    ) -> LiveSession:
        return LiveSession(
            ident,
            tag,
            owner,
            upstream,
            core,
            log,
            self.settings,
            transport=transport,
            first_stream=first_stream,
            on_end=self._on_end,
        )


def _greet(core: Session, told: Told) -> None:
    params = None if told.initialize is UNSET else told.initialize
    for effect in core.ask(Request(0, methods.INITIALIZE, params), 0, 0.0):
        if isinstance(effect, ToUpstream) and isinstance(effect.message, Request):
            core.deliver(Result(effect.message.id, told.greeted), 0.0)
