"""All requests of stateless clients: where each begins, and where a retry finds the call that was parked for it."""

import secrets
from collections.abc import Callable, Iterable, Iterator
from time import monotonic

from msgspec import DecodeError, Raw
from msgspec.json import Decoder, Encoder

from app.auth.sealing import Sealed, Sealer
from app.core.deadlines import FOREVER
from app.core.effects import StreamId
from app.gateway.alarm import Alarm
from app.gateway.live_exchange import Asked, LiveExchange, state_unknown
from app.gateway.pool import Pool
from app.gateway.settings import UpstreamSettings
from app.gateway.stream import Outlet
from app.protocol import stateless
from app.protocol.faults import Overloaded
from app.protocol.jsonrpc import Request
from app.protocol.stateless import Admitted

_values: Decoder[dict[str, object]] = Decoder(dict[str, object])
_sorted = Encoder(order="sorted")
_NOT_SALIENT = ("_meta", "inputResponses", "requestState")


class Exchanges:
    """`pool_of` gives the children of a server by its name; `admit` refuses what is not to be begun."""

    def __init__(self, pool_of: Callable[[str], Pool], admit: Callable[[UpstreamSettings], None]) -> None:
        self.on_quiet: Callable[[], object] | None = None
        """Told whenever none is busy any more."""
        self._pool_of = pool_of
        self._admit = admit
        self._sealer = Sealer()
        self._all: set[LiveExchange] = set()
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
    ) -> tuple[LiveExchange, StreamId]:
        """A stateless request that was admitted; its answer goes to `outlet`.

        Raises:
            BadParams, HeaderMismatch: it retries what is not to be retried so; another retry may do better.
            Overloaded: too many of this principal, or of all.
            Unavailable: the server has failed.
        """
        _answers, state = stateless.answers(request)
        sealed = None if state is None else self._sealer.unseal(state, _bound_to(owner, upstream.name, request))
        if sealed is not None:
            parked = self._found(sealed, upstream.name)
            if parked is not None:
                parked.judge(request, headers)
                stream = parked.resume(request, sealed.round, outlet, takes_json=takes_json, takes_stream=takes_stream)
                if self._parked.get(sealed.exchange) == (parked, sealed.round):
                    del self._parked[sealed.exchange]
                return parked, stream
        self._admit(upstream)
        is_foreign = state is not None and sealed is None
        asked = Asked(owner, upstream, request, headers, is_foreign)
        pool = self._pool_of(upstream.name)
        self._check_parked(owner, upstream.name, pool.settings.parked_max)
        if self._alarm is None:
            self._alarm = Alarm(self._tick)
        live = LiveExchange(asked, self._alarm.now, self._seal, self._alarm.by, self._ended)
        self._all.add(live)
        is_leased = False
        try:
            stream = live.begin(outlet, takes_json=takes_json, takes_stream=takes_stream)
            pool.lease(live)
            is_leased = True
            live.current()  # It may fall due before it has a child.
        finally:
            if not is_leased:
                self._all.discard(live)
                live.abandon()
        return live, stream

    def close(self) -> None:
        for live in list(self._all):
            live.close()
        if self._alarm is not None:
            self._alarm.stop()

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

    def _seal(self, live: LiveExchange, round_: int) -> str:
        asked = live.asked
        if live.ident is None:
            live.ident = secrets.token_urlsafe(16)
        if round_:
            self._parked[live.ident] = live, round_
        expires_at = monotonic() + asked.upstream.deadlines.park
        bound_to = _bound_to(asked.owner, asked.upstream.name, asked.request)
        return self._sealer.seal(Sealed(live.ident, round_, expires_at), bound_to)

    def _ended(self, live: LiveExchange) -> None:
        self._all.discard(live)
        if live.ident is not None:
            self._parked.pop(live.ident, None)
        if self.on_quiet is not None and not self.is_busy:
            self.on_quiet()


def _bound_to(owner: str, server: str, request: Request) -> tuple[bytes, ...]:
    """The principal, and the request by all that makes it this one: a retry repeats that (basic/patterns/mrtr)."""
    return owner.encode(), server.encode(), request.method.encode(), _salient(request.params)


def _salient(params: Raw | None) -> bytes:
    try:
        fields = _values.decode(params or b"{}")
    except DecodeError:
        return bytes(params or b"")
    return _sorted.encode({name: value for name, value in fields.items() if name not in _NOT_SALIENT})
