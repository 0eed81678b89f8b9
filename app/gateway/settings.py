"""What the gateway must be told: plain values, durations in seconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from app.core.bounds import Bounds
from app.core.conversation import Tolerance
from app.core.deadlines import Deadlines
from app.core.public_names import Naming
from app.core.rates import Rate
from app.core.restarts import RestartPolicy
from app.core.shaping import WHOLE, Shaping
from app.gateway.credentials import Template
from app.telemetry.tally import ServerTally
from app.upstreams.child import ChildLimits
from app.upstreams.command import Command

Isolation = Literal["session", "shared"]
OnExit = Literal["restart", "end"]
EraSetting = Literal["auto", "legacy", "modern"]
CacheScope = Literal["private", "public"]
SiteName: TypeAlias = tuple[str, int]
Mode = Literal["list", "search"]


WHOLE_NAME = "/mcp"
"""Of all servers as one; every other joint is named by the path that its endpoints begin with."""


@dataclass(frozen=True, slots=True)
class JointSettings:
    """Several servers as one."""

    servers: tuple[str, ...]
    """By their names, in the order of their lists."""
    naming: Naming = "prefix"
    shaping: Shaping = WHOLE
    mode: Mode = "list"
    """Whether a client sees everything, or what finds and calls it."""
    page: int = 500
    """How much of a list is on one page."""
    patience_seconds: float = 2.0
    """How long a list waits for servers of which nothing is known yet."""
    found: int = 8
    """How many tools are found, where a client does not say."""
    asked: tuple[frozenset[str], Mode | None] = field(default=(frozenset(), None), compare=False)
    """The tags and the mode that a client asks for."""
    bound: Mapping[str, "UpstreamSettings"] = field(default_factory=dict, compare=False, repr=False)
    """Of the servers whose children are given something of their client's, those that this client may have."""

    @property
    def view(self) -> str:
        """What tells it from the same servers, seen otherwise."""
        return "&".join((self.mode, *(",".join(sorted(tags)) for tags in self.shaping.wanted)))


@dataclass(frozen=True, slots=True)
class UpstreamSettings:
    """One configured server, or several that are one."""

    name: str
    command: Command
    isolation: Isolation = "session"
    deadlines: Deadlines = field(default_factory=Deadlines)
    tolerance: Tolerance = field(default_factory=Tolerance)
    limits: ChildLimits = field(default_factory=ChildLimits)
    bounds: Bounds = field(default_factory=Bounds)
    logs_payloads: bool = False
    """Whether every line to and from its children is logged, whole: for hunting a bug, and never left on."""
    era: EraSetting = "auto"
    ttl_ms: int = 0
    """How long a stateless client may keep what a server of the handshake listed, which says nothing of it itself."""
    cache_scope: CacheScope = "private"
    warm: int = 0
    """How many of its children wait for whoever comes next,"""
    warm_seconds: float = 1800.0
    """and for how long each."""
    on_exit: OnExit = "restart"
    """Whether a session goes on with another child, when its child ends of itself."""
    tally: ServerTally = field(default_factory=ServerTally, compare=False, repr=False)
    """Where is counted what happens at it."""
    templates: Mapping[str, Template] = field(default_factory=dict, repr=False)
    """Variables of its children that are to be filled with what is known of their client,"""
    bound: str = ""
    """and the hash of that, where they are filled."""
    joint: JointSettings | None = None
    """Where it is several as one: then it has no command, and no child of its own."""
    edition: int = field(default=0, compare=False, repr=False)
    """The how manieth server of this name it is, since the gateway runs."""

    @property
    def key(self) -> str:
        """What children, sessions and requests must have in common to go together, of one principal's."""
        if self.joint is not None:
            return f"{self.name} {self.joint.view} {self.bound}"
        return f"{self.name} {self.bound}" if self.bound else self.name

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of those that it is."""
        return (self.name,) if self.joint is None else self.joint.servers

    @property
    def site(self) -> SiteName:
        """Of which server it is, whoever's children are meant."""
        return self.name, self.edition

    @property
    def hints(self) -> dict[str, object]:
        """server/utilities/caching (2026-07-28)."""
        return {"ttlMs": self.ttl_ms, "cacheScope": self.cache_scope}


def viewed(upstream: UpstreamSettings, tags: frozenset[str], mode: Mode | None) -> UpstreamSettings:
    """The same servers as one, of which only that is seen which has one of these tags, if there are any, and as
    `mode` says, if it does."""
    joint = upstream.joint
    if joint is None:
        return upstream
    shaping = joint.shaping.among(tags) if tags else joint.shaping
    view = replace(joint, shaping=shaping, mode=mode or joint.mode, asked=(tags, mode))
    return replace(upstream, joint=view)


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """How many sessions there may be, and how long one lives without being used."""

    idle_seconds: float = 1800.0
    confirm_seconds: float = 120.0
    """A session whose id no later request carried ends after this."""
    count_max: int = 1000
    per_principal_max: int = 100
    rate: Rate = field(default_factory=lambda: Rate(200.0, 2000))
    """How fast sessions are opened,"""
    rate_per_principal: Rate = field(default_factory=lambda: Rate(50.0, 500))
    """and those of one principal."""
    streams_max: int = 16
    log_bytes: int = 1 << 20
    log_count: int = 1024
    queue_bytes: int = 8 << 20
    """What may wait to be committed for one stream of a session that is kept,"""
    commit_seconds: float = 5.0
    """and for how long."""


@dataclass(frozen=True, slots=True)
class Listing:
    """How a server's tools are read, by which the headers of calls are judged."""

    pages_max: int = 100
    fresh_seconds: float = 1.0
    """What was read so lately is not read again for the sake of a mismatch."""
    patience_seconds: float = 5.0
    unread_seconds: float = 60.0
    """When to look again, where a server did not say what its tools are."""


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """Of the children that serve the stateless requests of one principal at one server."""

    idle_seconds: float = 300.0
    children_max: int = 16
    """For each set of capabilities that clients declare;"""
    groups_max: int = 8
    """and so many such sets."""
    owned_max: int = 64
    """For one principal at all servers together."""
    requests_max: int = 1000
    """Requests in flight and calls parked, of one principal at one server;"""
    parked_max: int = 100
    bytes_max: int = 64 << 20
    """Of the requests in flight of one principal at one server; any one alone is let in."""
    """and so many calls parked."""
    listing: Listing = field(default_factory=Listing)


@dataclass(frozen=True, slots=True)
class RoomSettings:
    """Of all servers together; beyond this, nothing new is begun."""

    children_max: int = 1000
    """Starting and stopping ones included."""
    files_percent: int = 80
    """Of the file descriptors that the gateway may have."""
    memory_bytes: int | None = None
    """What the gateway may have in RAM; None is most of what the machine lets it have."""


@dataclass(frozen=True, slots=True)
class SupervisorSettings:
    """`starts_max` is how many children may be between their start and their handshake at once."""

    starts_max: int = 4
    restarts: RestartPolicy = field(default_factory=RestartPolicy)
    room: RoomSettings = field(default_factory=RoomSettings)


@dataclass(frozen=True, slots=True)
class CatalogSettings:
    """How the lists of servers that are served as one are known before anybody has a child of theirs."""

    begins: Literal["start", "use"] = "start"
    """Whether they are read when the gateway starts, or when somebody first wants them."""
    retry_seconds: float = 5.0
    """When a server whose lists could not be read is tried again, at first; then after twice as long each time,"""
    retry_max_seconds: float = 300.0
    """up to this."""
    fresh_seconds: float = 10.0
    """What was read so lately is not read again, for all that a child says that it changed."""
    pages_max: int = 100
    patience_seconds: float = 30.0
    """How long a server that has started has for each of its lists."""


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    upstreams: tuple[UpstreamSettings, ...]
    sessions: SessionSettings = field(default_factory=SessionSettings)
    version: str = "0"
    pool: PoolSettings = field(default_factory=PoolSettings)
    supervisor: SupervisorSettings = field(default_factory=SupervisorSettings)
    joints: tuple[UpstreamSettings, ...] = ()
    """Several of the upstreams as one, or one of which not everything is shown: each by its path."""
    catalog: CatalogSettings = field(default_factory=CatalogSettings)
