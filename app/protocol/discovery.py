"""Both eras' introductions, each in the words of the other: `initialize` and `server/discover`."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, field
from msgspec.json import Decoder

from app.protocol import stateless
from app.protocol.faults import UnsupportedRevision
from app.protocol.jsonrpc import Notification, Reply, Request, RequestId, Result, payload
from app.protocol.revisions import MODERN, NEWEST_HANDSHAKE, REVISIONS
from app.protocol.stateless import Envelope

_SERVER_CAPABILITIES = ("tools", "prompts", "resources", "completions", "logging", "extensions", "experimental")
_UNNAMED = {"name": "unknown", "version": "unknown"}


class Filter(Struct, omit_defaults=True, frozen=True):
    """What a client hears of (basic/patterns/subscriptions: "Notification Filter")."""

    tools: bool = field(default=False, name="toolsListChanged")
    prompts: bool = field(default=False, name="promptsListChanged")
    resources: bool = field(default=False, name="resourcesListChanged")
    uris: tuple[str, ...] = field(default=(), name="resourceSubscriptions")

    def __and__(self, other: "Filter") -> "Filter":
        uris = tuple(uri for uri in self.uris if uri in other.uris)
        return Filter(
            self.tools and other.tools, self.prompts and other.prompts, self.resources and other.resources, uris
        )


class Offer(Struct, frozen=True):
    """What a server's capabilities promise to tell of."""

    changes: Filter = Filter()
    subscribes: bool = False
    logs: bool = False


class _Discovered(Struct):
    versions: list[str] = field(name="supportedVersions")


class _Introduction(Struct):
    capabilities: dict[str, Raw] = field(default_factory=dict)
    client_info: Raw | UnsetType = field(default=UNSET, name="clientInfo")


class _Feature(Struct):
    changes: bool = field(default=False, name="listChanged")
    subscribes: bool = field(default=False, name="subscribe")


class _Capabilities(Struct):
    tools: _Feature = field(default_factory=_Feature)
    prompts: _Feature = field(default_factory=_Feature)
    resources: _Feature = field(default_factory=_Feature)
    logging: Raw | UnsetType = UNSET


class _Server(Struct):
    capabilities: _Capabilities = field(default_factory=_Capabilities)


class _Supported(Struct):
    supported: list[str] = field(default_factory=list)


class _Unsupported(Struct):
    code: int = 0
    data: _Supported = field(default_factory=_Supported)


class _Acknowledged(Struct):
    notifications: Filter = Filter()


class _Greeted(Struct):
    capabilities: dict[str, Raw] = field(default_factory=dict)
    server_info: Raw | UnsetType = field(default=UNSET, name="serverInfo")
    instructions: str = ""


_discovered = Decoder(_Discovered)
_greeted = Decoder(_Greeted)
_introductions = Decoder(_Introduction)
_servers = Decoder(_Server)
_unsupported = Decoder(_Unsupported)
_acknowledged = Decoder(_Acknowledged)
_fields: Decoder[dict[str, Raw]] = Decoder(dict[str, Raw])


def introduced(initialize: Request, default: Mapping[str, str]) -> Envelope:
    """What every stateless request says of the client that sent `initialize`; `default` is its name if it had none."""
    try:
        said = _introductions.decode(initialize.params or b"{}")
    except DecodeError:
        said = _Introduction()
    info = payload(default) if said.client_info is UNSET else said.client_info
    return Envelope(MODERN.date, said.capabilities, info)


def discover(ident: RequestId, carried: Envelope) -> Request:
    return Request(ident, stateless.DISCOVER, stateless.with_envelope(None, carried))


def sign_of_life(version: str, ident: RequestId) -> Request:
    """What any stateless server answers, for there `ping` is no method (changelog: "Major changes", 5)."""
    return discover(ident, Envelope(MODERN.date, {}, payload({"name": "viaduct", "version": version})))


def speaks_modern(result: Raw) -> bool:
    """Whether the result is a `DiscoverResult` of a server that speaks the revision we speak."""
    try:
        return MODERN.date in _discovered.decode(result).versions
    except DecodeError:
        return False


def speaks_other_revisions(reply: Reply) -> bool:
    """Whether a server says that it speaks none of ours: then a handshake is in vain too (basic/transports/stdio)."""
    try:
        if isinstance(reply, Result):
            named = _discovered.decode(reply.result).versions
        else:
            said = _unsupported.decode(reply.error)
            named = said.data.supported if said.code == UnsupportedRevision.code else []
    except DecodeError:
        return False
    return bool(named) and REVISIONS.keys().isdisjoint(named)


def greeted(discovered: Raw, wanted: str) -> Raw:
    """A `DiscoverResult` as the answer to `initialize`: in the revision that was wanted, where there is such a one.

    It offers what the server said and nothing else; of what is no longer part of the protocol (`tasks`) nothing.
    """
    fields: dict[str, Any] = dict(_fields.decode(stateless.plain(discovered)))
    row = REVISIONS.get(wanted)
    fields.pop("supportedVersions", None)
    fields["protocolVersion"] = NEWEST_HANDSHAKE.date if row is None or row.modern else row.date
    fields["capabilities"] = _kept(fields.get("capabilities"))
    fields["serverInfo"] = stateless.meta(discovered).get(stateless.SERVER_INFO_KEY) or _UNNAMED
    return payload(fields)


def _kept(capabilities: Raw | None) -> dict[str, Raw]:
    try:
        said = _fields.decode(capabilities or b"{}")
    except DecodeError:
        return {}
    return {name: said[name] for name in _SERVER_CAPABILITIES if name in said}


def offer(result: Raw) -> Offer:
    """What the capabilities in a `DiscoverResult` or an `InitializeResult` promise; unreadable ones promise nothing."""
    try:
        said = _servers.decode(result).capabilities
    except DecodeError:
        return Offer()
    changes = Filter(said.tools.changes, said.prompts.changes, said.resources.changes)
    return Offer(changes, said.resources.subscribes, said.logging is not UNSET)


def listen(ident: RequestId, wanted: Filter, carried: Envelope) -> Request:
    return Request(ident, stateless.LISTEN, stateless.with_envelope(payload({"notifications": wanted}), carried))


def acknowledged(notification: Notification) -> Filter:
    """What the server agreed to tell of; nothing where that is unreadable."""
    try:
        return _acknowledged.decode(notification.params or b"{}").notifications
    except DecodeError:
        return Filter()


def introduced_as(greeted_with: Raw, versions: Sequence[str], hints: Mapping[str, object]) -> Raw:
    """What a server answered `initialize` with, as an answer to `server/discover`."""
    try:
        said = _greeted.decode(greeted_with)
    except DecodeError:
        said = _Greeted()
    capabilities = {name: value for name, value in said.capabilities.items() if name in _SERVER_CAPABILITIES}
    fields: dict[str, object] = {"resultType": stateless.COMPLETE, "supportedVersions": versions}
    fields["capabilities"] = capabilities
    if said.instructions:
        fields["instructions"] = said.instructions
    if said.server_info is not UNSET:
        fields["_meta"] = {stateless.SERVER_INFO_KEY: said.server_info}
    return payload({**fields, **hints})


def server_info(greeted_with: Raw) -> Raw | None:
    """What a server calls itself in its answer to `initialize`."""
    try:
        named = _greeted.decode(greeted_with).server_info
    except DecodeError:
        return None
    return None if named is UNSET else named


def with_versions(discovered: Raw, versions: Sequence[str]) -> Raw:
    """The answer to `server/discover` with other versions; one that is no object stays as it is."""
    try:
        return payload({**_fields.decode(discovered), "supportedVersions": versions})
    except DecodeError:
        return discovered
