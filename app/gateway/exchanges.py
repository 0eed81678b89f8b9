"""All requests of stateless clients: where each begins, and where a retry finds the call that was parked for it."""

import secrets
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from time import monotonic
from typing import Protocol

from msgspec import DecodeError, Raw
from msgspec.json import Decoder, Encoder
from msgspec.structs import replace

from app.auth.sealing import Sealed, Sealer
from app.core.deadlines import FOREVER
from app.core.effects import StreamId
from app.core.joint_names import JointNames
from app.gateway.access import Permit, Verdict
from app.gateway.alarm import Alarm
from app.gateway.asked import Asked, state_unknown
from app.gateway.live_exchange import LiveExchange
from app.gateway.pool import Pool
from app.gateway.settings import PoolSettings, UpstreamSettings
from app.gateway.stream import Outlet
from app.protocol import methods, stateless
from app.protocol.faults import GatewayFault, Overloaded
from app.protocol.jsonrpc import Request
from app.protocol.stateless import Admitted

_values: Decoder[dict[str, object]] = Decoder(dict[str, object])
_sorted = Encoder(order="sorted")
_NOT_SALIENT = ("_meta", "inputResponses", "requestState")


class Joined(Protocol):
    """Several servers as one."""

    @property
    def settings(self) -> PoolSettings: ...

    def resize(self, settings: PoolSettings) -> None: ...

    def names(self, upstream: UpstreamSettings) -> JointNames: ...

    def aimed(self, asked: Asked) -> Asked:
        """At the one server whose it is, where that is known."""

    def lease(self, live: LiveExchange) -> None: ...


class Exchanges:
    """`pool_of` gives the children of a server for a principal; `admit` refuses what is not to be begun, and gives the
    server as it is now."""

    def __init__(
        self,
        pool_of: Callable[[UpstreamSettings, str], Pool],
        admit: Callable[[UpstreamSettings], UpstreamSettings],
    ) -> None:
        self.joined: Joined
        """What serves those to several servers at once."""
        self.on_end: set[Callable[[LiveExchange], object]] = set()
        """Told which is over, whenever one is."""
        self._pool_of = pool_of
        self._admit = admit
        self._sealer = Sealer()
        self._all: dict[LiveExchange, int] = {}
        """Each with the bytes of its request,"""
        self._bytes = 0
        """and what that is in all."""
        self._alarm: Alarm | None = None
        self._parked: dict[str, tuple[LiveExchange, int]] = {}
        """With the round of questions that each waits for the answers to."""

    @property
    def is_busy(self) -> bool:
        return any(live.is_busy for live in self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[LiveExchange]:
        return iter(self._all)

    @property
    def parked(self) -> Iterable[LiveExchange]:
        """Those whose clients were asked something, and have not come back."""
        return (live for live, _ in self._parked.values())

    def ask(
        self,
        upstream: UpstreamSettings,
        owner: str,
        request: Admitted,
        headers: dict[bytes, bytes],
        outlet: Outlet,
        *,
        takes_json: bool,
        takes_stream: bool,
        permit: Permit | None,
    ) -> tuple[LiveExchange, StreamId]:
        """A stateless request that was admitted; its answer goes to `outlet`.

        Raises:
            BadParams, HeaderMismatch: it retries what is not to be retried so; another retry may do better.
            InsufficientScope: it is not permitted, and with other scopes it would be.
            Overloaded: too many of this principal, or of all.
            Unavailable: the server has failed.
        """
        asked, joined = Asked(owner, upstream, request, headers), upstream.joint is not None
        if permit is None:
            asked = self.joined.aimed(asked) if joined else asked
            return self._begin(asked, outlet, None, takes_json=takes_json, takes_stream=takes_stream)
        verdict = permit.admit(request, names=self.joined.names(upstream) if joined else None)
        if isinstance(verdict.request, Admitted):
            asked = replace(asked, request=verdict.request)
        if joined and verdict.fault is None:
            is_same = verdict.request.method != methods.CALL_TOOL or asked.request.target == request.target
            asked = self.joined.aimed(replace(asked, sees=permit.sees, is_mirrored=is_same))
        try:
            begun = self._begin(asked, outlet, verdict, takes_json=takes_json, takes_stream=takes_stream)
        except GatewayFault:
            if verdict.docket is not None:
                verdict.docket.over(None)
            raise
        if not joined:
            begun[0].hears = permit.hears
        return begun

    def begin_own(self, asked: Asked, outlet: Outlet) -> Callable[[], None]:
        """One that no client asked for; what is returned ends it.

        Raises:
            Overloaded, Unavailable: as `ask`.
        """
        live, stream = self._begin(asked, outlet, None, takes_json=False, takes_stream=True)
        return partial(live.detach, stream)

    def lease(self, live: LiveExchange) -> None:
        """A child of its server, which may be another one than when it was begun.

        Raises:
            Overloaded, Unavailable: there is none for it.
        """
        admitted = self._admit(live.asked.upstream)
        live.asked = replace(live.asked, upstream=admitted)
        self._pool_of(admitted, live.asked.owner).lease(live)

    def close(self) -> None:
        for live in list(self._all):
            live.close()
        if self._alarm is not None:
            self._alarm.stop()

    def _begin(
        self, asked: Asked, outlet: Outlet, verdict: Verdict | None, *, takes_json: bool, takes_stream: bool
    ) -> tuple[LiveExchange, StreamId]:
        upstream, request = asked.upstream, asked.request
        if verdict is not None and verdict.fault is not None:
            return self._refuse(asked, outlet, verdict, takes_json=takes_json, takes_stream=takes_stream)
        _answers, state = stateless.answers(request)
        sealed = None if state is None else self._sealer.unseal(state, _bound_to(asked.owner, upstream.key, request))
        if sealed is not None:
            parked = self._found(sealed, upstream.name)
            if parked is not None:
                parked.judge(request, asked.headers)
                ways = {"takes_json": takes_json, "takes_stream": takes_stream}
                stream = parked.resume(request, sealed.round, outlet, verdict, **ways)
                if self._parked.get(sealed.exchange) == (parked, sealed.round):
                    del self._parked[sealed.exchange]
                return parked, stream
        admitted = self._admit(upstream)
        if admitted is not upstream:
            upstream, asked = admitted, replace(asked, upstream=admitted)
        if state is not None and sealed is None:
            asked = replace(asked, has_foreign_state=True)
        pool = self.joined if upstream.joint is not None else self._pool_of(upstream, asked.owner)
        self._check_parked(asked.owner, upstream.name, pool.settings.parked_max)
        self._check_bytes(asked, pool.settings.bytes_max)
        live = self._new(asked)
        is_leased = False
        try:
            stream = live.begin(outlet, verdict, takes_json=takes_json, takes_stream=takes_stream)
            pool.lease(live)
            is_leased = True
            live.current()  # It may fall due before it has a child.
        finally:
            if not is_leased:
                self._forget(live)
                live.abandon()
        return live, stream

    def _refuse(
        self, asked: Asked, outlet: Outlet, verdict: Verdict, *, takes_json: bool, takes_stream: bool
    ) -> tuple[LiveExchange, StreamId]:
        """It is answered as by its server, which never hears of it."""
        live = self._new(asked)
        stream = live.begin(outlet, verdict, takes_json=takes_json, takes_stream=takes_stream)
        if verdict.fault is not None:
            live.lost(verdict.fault)
        return live, stream

    def _new(self, asked: Asked) -> LiveExchange:
        if self._alarm is None:
            self._alarm = Alarm(self._tick)
        live = LiveExchange(asked, self._alarm.now, self._seal, self._alarm.by, self._ended)
        size = self._all[live] = _size(asked)
        self._bytes += size
        return live

    def _forget(self, live: LiveExchange) -> None:
        self._bytes -= self._all.pop(live, 0)

    def _tick(self, now: float) -> float:
        for live in list(self._all):
            if live.due <= now:
                live.tick(now)
        return min((live.due for live in self._all), default=FOREVER)

    def _found(self, sealed: Sealed, server: str) -> LiveExchange | None:
        """None where nothing was parked, and the retry begins anew.

        Raises:
            BadParams: it is too late, or another retry was earlier.
        """
        if sealed.expires_at < monotonic():
            raise state_unknown(server)
        if sealed.round == 0:
            return None
        parked, round_ = self._parked.get(sealed.exchange, (None, 0))
        if parked is None or round_ != sealed.round:
            raise state_unknown(server)
        return parked

    def _check_parked(self, owner: str, server: str, parked_max: int) -> None:
        """Who leaves questions unanswered asks nothing new, as long as there are so many.

        Raises:
            Overloaded: so it is.
        """
        if len(self._parked) < parked_max:
            return
        asked = (live.asked for live in self.parked)
        if sum(other.owner == owner and other.upstream.name == server for other in asked) >= parked_max:
            sentence = "too many calls of this principal wait for answers to questions"
            raise Overloaded(sentence, reason="stateless.maxParked", retry_after=1.0)

    def _check_bytes(self, asked: Asked, bytes_max: int) -> None:
        """A request is kept until it is answered, whether its server reads or not.

        Raises:
            Overloaded: what this principal has in flight there is too large together.
        """
        if self._bytes + _size(asked) <= bytes_max:
            return
        of_one = sum(
            size
            for live, size in self._all.items()
            if live.asked.owner == asked.owner and live.asked.upstream.name == asked.upstream.name
        )
        if of_one and of_one + _size(asked) > bytes_max:
            sentence = "the requests in flight of this principal are too large together"
            raise Overloaded(sentence, reason="stateless.maxBytes", retry_after=1.0)

    def _seal(self, live: LiveExchange, round_: int) -> str:
        asked = live.asked
        if live.ident is None:
            live.ident = secrets.token_urlsafe(16)
        if round_:
            self._parked[live.ident] = live, round_
        expires_at = monotonic() + asked.upstream.deadlines.park
        bound_to = _bound_to(asked.owner, asked.upstream.key, asked.request)
        return self._sealer.seal(Sealed(live.ident, round_, expires_at), bound_to)

    def _ended(self, live: LiveExchange) -> None:
        self._forget(live)
        if live.ident is not None:
            self._parked.pop(live.ident, None)
        for told in list(self.on_end):
            told(live)


def _size(asked: Asked) -> int:
    return 0 if asked.request.params is None else len(asked.request.params)


def _bound_to(owner: str, server: str, request: Request) -> tuple[bytes, ...]:
    """The principal, and the request by all that makes it this one: a retry repeats that (basic/patterns/mrtr)."""
    return owner.encode(), server.encode(), request.method.encode(), _salient(request.params)


def _salient(params: Raw | None) -> bytes:
    try:
        fields = _values.decode(params or b"{}")
    except DecodeError:
        return bytes(params or b"")
    return _sorted.encode({name: value for name, value in fields.items() if name not in _NOT_SALIENT})
