"""What a child is given of its client's: values of headers and claims, in variables of its environment.

Only a child that is nobody else's gets them. A client's bearer token is none of these: it is for us, and not for what
is behind us (2025-11-25, basic/authorization: "Access Token Privilege Restriction").
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from app.auth.principal import Principal
from app.protocol.faults import Denied, InvalidRequest, Overloaded
from app.upstreams.command import SecretFile

if TYPE_CHECKING:
    from app.gateway.pool import Pool
    from app.gateway.settings import PoolSettings, UpstreamSettings


@dataclass(frozen=True, slots=True)
class Reference:
    """To a header, whose name is in lower case, or to a claim; without a default it must be there."""

    kind: Literal["header", "claim"]
    name: str
    default: str | None = None


Template: TypeAlias = tuple[str | SecretFile | Reference, ...]
"""The parts of a variable's value."""


def headers_in(templates: Mapping[str, Template]) -> frozenset[str]:
    """The headers that are asked for."""
    return _names_in(templates, "header")


def claims_in(templates: Mapping[str, Template]) -> frozenset[str]:
    """The claims."""
    return _names_in(templates, "claim")


def _names_in(templates: Mapping[str, Template], kind: Literal["header", "claim"]) -> frozenset[str]:
    references = (part for template in templates.values() for part in template if isinstance(part, Reference))
    return frozenset(reference.name for reference in references if reference.kind == kind)


def late_parts(templates: Mapping[str, Template]) -> dict[str, tuple[str | SecretFile, ...]]:
    """Those variables that nothing of a client's is in."""
    found: dict[str, tuple[str | SecretFile, ...]] = {}
    for name, template in templates.items():
        parts = tuple(part for part in template if not isinstance(part, Reference))
        if len(parts) == len(template):
            found[name] = parts
    return found


def bound(upstream: "UpstreamSettings", said: Mapping[str, str], principal: Principal) -> "UpstreamSettings":
    """The server as this client's children are started.

    Raises:
        InvalidRequest: a header is missing.
        Denied: a claim is missing.
    """
    if not upstream.templates:
        return upstream
    filled: dict[str, tuple[str | SecretFile, ...]] = {}
    digest, hidden = hashlib.sha256(), set(upstream.command.hidden)
    for name, template in upstream.templates.items():
        parts: list[str | SecretFile] = []
        for part in template:
            if isinstance(part, Reference):
                value = _value(part, said, principal)
                digest.update(f"{part.kind} {part.name} {len(value)} {value}".encode())
                if part.kind == "header":
                    hidden.add(value)
                parts.append(value)
            else:
                parts.append(part)
        filled[name] = tuple(parts)
    late = {**upstream.command.late, **filled}
    command = replace(upstream.command, late=late, hidden=tuple(hidden))
    return replace(upstream, command=command, bound=digest.hexdigest())


def unbound(upstream: "UpstreamSettings") -> "UpstreamSettings":
    """The server as nobody's: what a client would say is empty."""
    said = dict.fromkeys(headers_in(upstream.templates), "")
    claims = dict.fromkeys(claims_in(upstream.templates), "")
    return bound(upstream, said, Principal("nobody", frozenset(), claims=claims))


def _value(reference: Reference, said: Mapping[str, str], principal: Principal) -> str:
    is_header = reference.kind == "header"
    value = said.get(reference.name) if is_header else _claim(principal, reference.name)
    if value is not None:
        return value
    if reference.default is not None:
        return reference.default
    if is_header:
        raise InvalidRequest(f"this server needs the header {reference.name}", reason="header_missing")
    raise Denied(f"this server needs a token with the claim {reference.name!r}", reason="claim_missing")


def _claim(principal: Principal, name: str) -> str | None:
    """Who has no issuer is its own subject. What no environment can carry is not there."""
    value = principal.claims.get(name)
    if value is None and name == "sub" and not principal.claims:
        return principal.name
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) and not _UNFIT.search(str(value)) else None


_UNFIT = re.compile("[\0\ud800-\udfff]")
_IDLE_MAX = 1000


class BoundPools:
    """Pools of children that are one principal's, and have got the same of it; `owned_max` for each and server."""

    def __init__(self, make: Callable[["UpstreamSettings"], "Pool"], owned_max: int) -> None:
        self._make = make
        self._owned_max = owned_max
        self._pools: dict[tuple[str, str], dict[str, Pool]] = {}

    def of(self, upstream: "UpstreamSettings", owner: str) -> "Pool":
        """
        Raises:
            Overloaded: too many that are all in use.
        """
        owned = self._pools.setdefault((owner, upstream.name), {})
        pool = owned.get(upstream.bound)
        if pool is None:
            self._make_room(owned)
            pool = owned[upstream.bound] = self._make(upstream)
            if len(self._pools) > _IDLE_MAX:
                self._forget_idle()
        return pool

    def resize(self, settings: "PoolSettings") -> None:
        """From now on these numbers hold."""
        self._owned_max = settings.groups_max
        for owned in self._pools.values():
            for pool in owned.values():
                pool.resize(settings)

    def close(self) -> None:
        for owned in self._pools.values():
            for pool in owned.values():
                pool.close()

    def _make_room(self, owned: "dict[str, Pool]") -> None:
        if len(owned) < self._owned_max:
            return
        for bound_to, pool in owned.items():
            if pool.give_up():
                del owned[bound_to]
                return
        sentence = "too many requests at once with other credentials than one another"
        raise Overloaded(sentence, reason="pool.credentials", retry_after=1.0)

    def _forget_idle(self) -> None:
        for owned in self._pools.values():
            for bound_to in [bound_to for bound_to, pool in owned.items() if pool.is_idle]:
                del owned[bound_to]
        self._pools = {key: owned for key, owned in self._pools.items() if owned}
