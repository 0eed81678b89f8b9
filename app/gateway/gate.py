"""Whether a session may be opened, and a stateless request be begun: every bound that either meets at the gate."""

from collections.abc import Callable
from time import monotonic

from app.core.rates import Bucket, Buckets
from app.gateway.settings import SessionSettings, UpstreamSettings
from app.gateway.supervisor import Supervisor
from app.protocol.faults import Overloaded


class Gate:
    """`has_common` says whether a child that all share is there already."""

    def __init__(
        self,
        settings: SessionSettings,
        supervisor: Callable[[], Supervisor],
        has_common: Callable[[str], bool],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._settings = settings
        self._supervisor = supervisor
        self._has_common = has_common
        self._clock = clock
        self._opened = Bucket(settings.rate, clock())
        self._opened_by: Buckets[str] = Buckets(settings.rate_per_principal)

    def admit(self, upstream: UpstreamSettings, owner: str, sessions: int, owned: int, *, is_new: bool) -> None:
        """Another session, beside so many, of which so many are the owner's; one that is taken up is not new.

        Raises:
            Overloaded, Unavailable: and nothing has happened.
        """
        limits = self._settings
        if sessions >= limits.count_max:
            raise Overloaded("too many sessions", reason="sessions.max", retry_after=5.0)
        if owned >= limits.per_principal_max:
            raise Overloaded("too many sessions of this principal", reason="sessions.maxPerPrincipal", retry_after=5.0)
        if upstream.joint is None:
            self.admit_member(upstream)
        if is_new:
            self._take(owner)

    def admit_member(self, upstream: UpstreamSettings) -> None:
        """A child for a session that is let in.

        Raises:
            Overloaded, Unavailable: and nothing has happened.
        """
        self._supervisor().admit(upstream)
        self._supervisor().admit_child(upstream, is_there=self._is_there(upstream))

    def admit_exchange(self, upstream: UpstreamSettings) -> None:
        """A stateless request. Whether it needs a child of its own turns out later, but where all share one.

        Raises:
            Overloaded, Unavailable: and nothing has happened.
        """
        self._supervisor().admit(upstream)
        if upstream.isolation == "shared" and not self._is_there(upstream):
            self._supervisor().admit_child(upstream)

    def resize(self, settings: SessionSettings) -> None:
        """From now on these numbers hold; who came too fast for former ones has another try."""
        former, self._settings = self._settings, settings
        if former.rate != settings.rate:
            self._opened = Bucket(settings.rate, self._clock())
        if former.rate_per_principal != settings.rate_per_principal:
            self._opened_by = Buckets(settings.rate_per_principal)

    def _is_there(self, upstream: UpstreamSettings) -> bool:
        return upstream.isolation == "shared" and self._has_common(upstream.name)

    def _take(self, owner: str) -> None:
        """Only who is let in is counted, or who is refused and tries again would never be let in."""
        now = self._clock()
        wait = self._opened_by.wait(owner, now)
        if wait:
            sentence = "this principal opens sessions too fast"
            raise Overloaded(sentence, reason="sessions.ratePerPrincipal", retry_after=wait)
        wait = self._opened.wait(now)
        if wait:
            raise Overloaded("sessions are opened too fast", reason="sessions.rate", retry_after=wait)
        self._opened.take(now)
        self._opened_by.take(owner, now)
