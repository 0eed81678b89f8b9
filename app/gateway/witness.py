"""What the audit is told: sessions, calls before their servers hear of them, what came of them, and refusals.

No token and no payload is in it. Arguments are there as a hash, and themselves only where a server's settings say so.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import NamedTuple

from msgspec import DecodeError, Raw, Struct, field
from msgspec.json import Decoder

from app.core.judged import Docket
from app.protocol import methods
from app.protocol.aims import Aim
from app.protocol.faults import Denied, GatewayFault
from app.protocol.jsonrpc import Reply, Request, Result
from app.protocol.stateless import Admitted
from app.telemetry import logs
from app.telemetry.audit import Audit, AuditFailed
from app.telemetry.tally import Tally, outcome_of

UNHEARD = "unanswered"
"""The outcome of what was cancelled, or refused after all, before there was an answer."""

_TARGET_CHARACTERS = 256
_TARGETS_MAX = 16
"""What is left out shows in a digest: else a long name, or many, would hide what was asked for."""
_SHOWN_BYTES = 8192
_HIDDEN = "***"
_TAG_CHARACTERS = 16
_NOBODYS_PER_SECOND = 100
_UNRECORDED = frozenset({methods.PING})


class Showing(NamedTuple):
    """Whether a server's arguments are recorded, but for members of these names in lower case."""

    arguments: bool = False
    mask: frozenset[str] = frozenset()


class Speaker(NamedTuple):
    """Who says something, where, and in which session, if in any."""

    principal: str
    server: str
    session: str = ""


class _Named(Struct):
    name: str = ""
    version: str = ""


class _Introduced(Struct):
    client: _Named = field(default_factory=_Named, name="clientInfo")


_named = Decoder(_Named)
_introduced = Decoder(_Introduced)
_fields: Decoder[dict[str, Raw]] = Decoder(dict[str, Raw])
_values: Decoder[object] = Decoder(object)


class Witness:
    """`shown` is by server. Where the audit is not strict, what cannot be written is counted."""

    def __init__(
        self, audit: Audit, shown: Mapping[str, Showing], tally: Tally, clock: Callable[[], float] = monotonic
    ) -> None:
        self._audit = audit
        self.shown = shown
        self._tally = tally
        self._clock = clock
        self._second = 0
        self._nobodys = self._omitted = 0

    def session(self, speaker: Speaker, state: str) -> None:
        """
        Raises:
            Denied: it is one that begins, and cannot be recorded.
        """
        self._write("session", {"state": state, **_said(speaker)}, may_refuse=state != "ended")

    def call(self, speaker: Speaker, request: Request, aims: Sequence[Aim], slot: Docket | None) -> Docket | None:
        """A request that is about to be passed on, and holds that slot.

        Raises:
            Denied: it cannot be recorded.
        """
        if request.method in _UNRECORDED:
            return slot
        fields = {**_said(speaker), **about(request, aims), "decision": "allow", **self._arguments(speaker, request)}
        number = self._write("call", fields, may_refuse=True)
        return _Recorded(self, number, self._clock(), slot)

    def denied(self, speaker: Speaker, request: Request, aims: Sequence[Aim], fault: GatewayFault) -> None:
        """A request that is answered in its server's place.

        Raises:
            Denied: it cannot be recorded.
        """
        fields = {**_said(speaker), **about(request, aims), "decision": "deny", "reason": fault.reason}
        self._write("refusal", fields, may_refuse=True)

    def refused(self, principal: str | None, server: str | None, reason: str, known: Mapping[str, object]) -> None:
        """A request that came to nothing. Of those of nobody some are only counted: anybody can send very many."""
        if principal is None and self._is_spared():
            return
        omitted = {"omitted": self._omitted} if self._omitted and principal is None else {}
        if omitted:
            self._omitted = 0
        fields = {"principal": principal, "server": server, **known, "decision": "deny", "reason": reason, **omitted}
        self._write("refusal", fields, may_refuse=False)

    def over(self, number: int, since: float, reply: Reply | None) -> None:
        """What came of the call with that number."""
        fields: dict[str, object] = {"call": number, "outcome": UNHEARD if reply is None else outcome_of(reply)}
        fields["ms"] = round((self._clock() - since) * 1000, 3)
        if reply is not None:
            fields["bytes"] = len(reply.result if isinstance(reply, Result) else reply.error)
        self._write("outcome", fields, may_refuse=False)

    def _write(self, event: str, fields: Mapping[str, object], *, may_refuse: bool) -> int:
        try:
            return self._audit.write(event, fields)
        except AuditFailed as wrong:
            self._tally.audit_lost += 1
            if may_refuse and self._audit.is_strict:
                sentence = "this cannot be recorded, and so it is not done; try again later"
                raise Denied(sentence, reason="audit_failed", retry_after=5.0) from wrong
            return 0

    def _is_spared(self) -> bool:
        second = int(self._clock())
        if second != self._second:
            self._second, self._nobodys = second, 0
        self._nobodys += 1
        if self._nobodys <= _NOBODYS_PER_SECOND:
            return False
        self._omitted += 1
        return True

    def _arguments(self, speaker: Speaker, request: Request) -> dict[str, object]:
        size = len(request.params or b"")
        given = _member(request, "arguments")
        if given is None:
            return {"bytes": size}
        said: dict[str, object] = {"bytes": size, "digest": hashlib.sha256(given).hexdigest()}
        showing = self.shown.get(speaker.server, _NOTHING)
        if showing.arguments:
            said["arguments"] = _masked(given, showing.mask)
        return said


_NOTHING = Showing()


class _Recorded:
    """A recorded call, on its way to its outcome."""

    __slots__ = ("_number", "_since", "_slot", "_witness")

    def __init__(self, witness: Witness, number: int, since: float, slot: Docket | None) -> None:
        self._witness = witness
        self._number = number
        self._since = since
        self._slot = slot

    def over(self, reply: Reply | None) -> None:
        if self._slot is not None:
            self._slot.over(reply)
        self._witness.over(self._number, self._since, reply)


def tag(session: str) -> str:
    """By which records of one session are known: its id would be a key to it."""
    return hashlib.sha256(session.encode()).hexdigest()[:_TAG_CHARACTERS] if session else ""


def _said(speaker: Speaker) -> dict[str, object]:
    said: dict[str, object] = {"principal": speaker.principal, "server": speaker.server}
    if speaker.session:
        said["session"] = tag(speaker.session)
    return said


def about(request: Request, aims: Sequence[Aim]) -> dict[str, object]:
    """What a request is for, as a record has it."""
    said: dict[str, object] = {"method": request.method[:_TARGET_CHARACTERS]}
    client = _client(request)
    if client:
        said["client"] = client
    if not aims:
        return said
    shown = [_target(aim) for aim in aims[:_TARGETS_MAX]]
    if len(aims) == 1:
        said["target"] = shown[0]
    else:
        said["targets"] = shown
    if shown != [_named_whole(kind, name) for kind, name in aims]:
        said["target_digest"] = hashlib.sha256("\n".join(name for _, name in aims).encode()).hexdigest()
    return said


def _target(aim: Aim) -> str:
    """As a policy names it. Of a URI without what may hold a secret: who asks, and for what in particular."""
    kind, name = aim
    if kind == "resources":
        name = name.partition("?")[0].partition("#")[0]
        scheme, separator, rest = name.partition("://")
        host, slash, path = rest.partition("/")
        name = scheme + separator + host.rpartition("@")[2] + slash + path
    return logs.without_secrets(_named_whole(kind, name))[:_TARGET_CHARACTERS]


def _named_whole(kind: str, name: str) -> str:
    return name if kind == "tools" else f"{kind}/{name}"


def _client(request: Request) -> str:
    """What the client calls itself, where a request says so."""
    try:
        if isinstance(request, Admitted):
            named = _named.decode(request.meta.carried.client_info or b"{}")
        elif request.method == methods.INITIALIZE:
            named = _introduced.decode(request.params or b"{}").client
        else:
            return ""
    except DecodeError:
        return ""
    return logs.without_secrets(f"{named.name} {named.version}".strip())[:_TARGET_CHARACTERS]


def _member(request: Request, name: str) -> Raw | None:
    try:
        fields = request.fields if isinstance(request, Admitted) else _fields.decode(request.params or b"{}")
    except DecodeError:
        return None
    return fields.get(name)


def _masked(given: Raw, mask: frozenset[str]) -> object:
    """Too long ones are left out."""
    if len(given) > _SHOWN_BYTES:
        return None
    try:
        return _hide(_values.decode(given), mask)
    except DecodeError:
        return None


def _hide(value: object, mask: frozenset[str]) -> object:
    match value:
        case dict():
            return {
                logs.without_secrets(key): _HIDDEN if key.lower() in mask else _hide(item, mask)
                for key, item in value.items()
            }
        case list():
            return [_hide(item, mask) for item in value]
        case str():
            return logs.without_secrets(value)
        case _:
            return value
