"""The settings tree: every field of the config file, with its range and its default."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr

from app.config.fields import (
    Algorithm,
    AllowedHosts,
    AllowedOrigins,
    Audience,
    Block,
    Budget,
    Bytes,
    Count,
    Memory,
    Patterns,
    PerSecond,
    PublicUrl,
    Scopes,
    Seconds,
    Tags,
    Text,
    Words,
    absolute_path,
    expiry,
    network,
    scope,
    store_url,
    token_hash,
    url,
)
from app.config.joining import Catalog, Group, Tools
from app.gateway.credentials import Template

SECRET_NAMES = re.compile(r"TOKEN|SECRET|PASSW|KEY|CREDENTIAL|AUTH|PAT\b", re.IGNORECASE)
_SECRET_LENGTH = 8


class ServerLimits(Block):
    """What the kernel lets each process of a server have."""

    memory: Memory | None = None
    """Bytes that it writes to and shares with nobody."""
    processes: Count | None = None
    """Of all processes of its user."""
    cpu_time: Count | None = None
    open_files: Annotated[int, Field(ge=8, le=1_000_000)] | None = None


class Server(Block):
    """How one stdio server is started and how patient we are with it."""

    command: Annotated[Text, Field(min_length=1)]
    args: Words = ()
    env: dict[str, Text] = Field(default={})
    client_headers: Words = ()
    """Those that `env` may name, for children that are one client's alone."""
    cwd: Text | None = None
    isolation: Literal["session", "shared"] = "session"
    warm: Annotated[int, Field(ge=0, le=1000)] = 0
    warm_age: Seconds = 1800
    on_exit: Literal["restart", "end"] = "restart"
    """What becomes of a session whose child ends of itself."""
    start_timeout: Seconds = 60
    request_timeout: Seconds = 60
    max_request_timeout: Seconds = 600
    stop_timeout: Seconds = 2
    kill_timeout: Seconds = 2
    give_up_timeout: Seconds = 5
    """What it has to die of SIGKILL; then it is counted as gone, and its death is not waited for."""
    ping_timeout: Seconds = 30
    era: Literal["auto", "legacy", "modern"] = "auto"
    era_timeout: Seconds = 5
    """How long a child may think about `server/discover`, which servers of the handshake do not know."""
    cache_ttl: Budget = 0
    cache_scope: Literal["private", "public"] = "private"
    """What stateless clients are told of results that a server of the handshake says nothing about."""
    limits: ServerLimits = ServerLimits()
    tags: Tags = ()
    tools: Tools = Tools()
    """What is shown of it; patterns and names are its own."""

    audit_arguments: bool = False
    audit_mask: Words = ("password", "passphrase", "secret", "token", "authorization", "apikey", "api_key")
    """Names of arguments, and of members in them, that are not shown even then."""

    _templates: Mapping[str, Template] = PrivateAttr(default_factory=dict)
    _env_file: Path | None = PrivateAttr(default=None)

    @property
    def templates(self) -> Mapping[str, Template]:
        """Variables that are put together when a child starts."""
        return self._templates

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values of variables whose name tells of one."""
        return tuple(
            value for name, value in self.env.items() if SECRET_NAMES.search(name) and len(value) >= _SECRET_LENGTH
        )

    @property
    def env_file(self) -> Path | None:
        """Where some of `env` is from."""
        return self._env_file

    def with_env(
        self, env: Mapping[str, str], templates: Mapping[str, Template], env_file: Path | None = None
    ) -> "Server":
        other = self.model_copy(update={"env": dict(env)})
        other._templates = templates
        other._env_file = env_file
        return other

    @property
    def argv(self) -> tuple[str, ...]:
        return (self.command, *self.args)


class Token(Block):
    name: Annotated[str, Field(pattern=r"^[\x20-\x7e]{1,64}$")]
    hash: Annotated[str, AfterValidator(token_hash)]
    scopes: Scopes = ("*",)
    expires_at: Annotated[float | None, BeforeValidator(expiry)] = Field(default=None, alias="expires")


class TokenList(Block):
    """The whole of a `tokensFile`."""

    tokens: Annotated[tuple[Token, ...], Field(strict=False)]


class Jwt(Block):
    """An issuer whose signed access tokens are taken."""

    issuer: Annotated[str, AfterValidator(url)]
    audience: Audience = ()
    jwks_uri: Annotated[str, AfterValidator(url)] | None = None
    algorithms: Annotated[tuple[Algorithm, ...], Field(strict=False, min_length=1)] = ("RS256",)
    types: Annotated[tuple[Text, ...], Field(strict=False, min_length=1)] = ("at+jwt",)
    scope_claim: Text = "scope"
    leeway: Annotated[float, Field(ge=0, le=60)] = 30
    max_lifetime: Seconds = 86_400


class Introspection(Block):
    """An issuer that is asked about each token."""

    endpoint: Annotated[str, AfterValidator(url)]
    client_id: Annotated[Text, Field(min_length=1)]
    client_secret: Annotated[Text, Field(min_length=1)]
    issuer: Annotated[str, AfterValidator(url)] | None = None
    audience: Audience = ()
    scope_claim: Text = "scope"
    leeway: Annotated[float, Field(ge=0, le=60)] = 30
    max_lifetime: Seconds = 86_400
    max_at_once: Count = 16
    max_waiting: Count = 256
    failures: Count = 3
    pause: Seconds = 5


class Jwks(Block):
    """For how long the keys of issuers are kept, and how often they are asked for."""

    ttl: Seconds = 600
    cooldown: Seconds = 30
    max_stale: Seconds = 86_400


class Keep(Block):
    """For how long it is kept what was found out about a token."""

    signed: Seconds = 300
    introspected: Seconds = 60
    refused: Seconds = 10
    max: Count = 4096


class Auth(Block):
    tokens: Annotated[tuple[Token, ...], Field(strict=False)] = ()
    tokens_file: Text | None = None
    jwt: Annotated[tuple[Jwt, ...], Field(strict=False)] = ()
    introspection: Introspection | None = None
    scopes: Annotated[tuple[Annotated[str, AfterValidator(scope)], ...], Field(strict=False)] = ()
    """What OAuth clients are told to ask for."""
    jwks: Jwks = Jwks()
    keep: Keep = Keep()
    check_interval: Seconds = 0.5

    @property
    def has_issuers(self) -> bool:
        return bool(self.jwt) or self.introspection is not None

    @property
    def has_any(self) -> bool:
        return bool(self.tokens) or self.tokens_file is not None or self.has_issuers


class Outbound(Block):
    """What we fetch from issuers. `allow` are networks beyond the public ones."""

    allow: Annotated[tuple[Annotated[str, AfterValidator(network)], ...], Field(strict=False)] = ()
    timeout: Seconds = 5
    body: Bytes = 65_536


class PolicyRule(Block):
    """What those may do who have all of these scopes, and are one of these subjects, with these claims."""

    scopes: Scopes = ()
    subjects: Words = ()
    claims: dict[str, Text] = Field(default={})
    allow: Patterns = ()
    deny: Patterns = ()
    read_only: bool = False
    destructive: bool = True
    """Whether tools count, for this rule, that do not say of themselves that they only read, or destroy nothing."""
    per_minute: Count | None = None
    concurrent: Count | None = None


class Audit(Block):
    path: Annotated[str, AfterValidator(absolute_path)]
    on_failure: Literal["refuse", "allow"] = "refuse"
    """What becomes of a call that cannot be recorded."""


class Sessions(Block):
    idle_timeout: Seconds = 1800
    max: Count = 1000
    max_per_principal: Count = 100
    rate: PerSecond = 200
    """How many are opened in a second,"""
    burst: Count = 2000
    """after so many at once."""
    rate_per_principal: PerSecond = 50
    burst_per_principal: Count = 500
    without_id: Literal["implicit", "reject"] = "implicit"
    confirm_timeout: Seconds = 120
    """A session whose id no later request carried for so long ends."""
    shutdown_grace: Budget = 5
    """What a client has between `shutdown` and the end of its session."""


class Stateless(Block):
    """The requests of clients of 2026-07-28, and the children that serve them."""

    park_timeout: Seconds = 300
    expired_timeout: Budget = 60
    """What a call that is in flight has left when its token expires."""
    ask_after: Seconds = 0.02
    ask_within: Seconds = 0.2
    idle_timeout: Seconds = 300
    max_children: Count = 16
    max_children_per_principal: Count = 64
    max_capability_sets: Count = 8
    max_requests: Count = 1000
    max_parked: Count = 100
    max_bytes: Bytes = 67_108_864
    tools_pages: Count = 100
    """How much is read of a list of tools, by which the headers of calls are judged."""
    tools_fresh: Budget = 1
    tools_timeout: Seconds = 5
    tools_retry: Seconds = 60


class Streams(Block):
    stream_after: Seconds = 0.25
    close_stream_after: Seconds | None = None
    keep_alive: Seconds = 15
    retry: Seconds = 1.0
    question_wait: Seconds = 5
    """What a client has to open a stream that can carry a server's question."""
    max_per_session: Count = 16
    log_bytes: Bytes = 1_048_576
    log_count: Count = 1024
    queue_bytes: Bytes = 8_388_608


class Limits(Block):
    body: Bytes = 4_194_304
    line: Bytes = 16_777_216
    header_bytes: Annotated[int, Field(ge=1024, le=1 << 24)] = 32_768
    header_count: Annotated[int, Field(ge=10, le=10_000)] = 100
    url_bytes: Annotated[int, Field(ge=128, le=1 << 20)] = 8192
    header_timeout: Seconds = 10
    body_timeout: Seconds = 15
    send_timeout: Seconds = 30
    keep_alive_timeout: Seconds = 75
    """Longer than proxies keep idle connections to us: a request must not meet a connection that is being closed."""
    answer_timeout: Seconds = 5
    linger_timeout: Seconds = 2
    linger_bytes: Bytes = 16_777_216
    pipelined: Count = 32
    batch: Count = 1000
    queue_bytes: Bytes = 8_388_608
    queue_count: Count = 256
    connections: Count = 2000
    children: Count = 1000
    """Of all servers, starting and stopping ones included."""
    open_files_percent: Annotated[int, Field(ge=1, le=100)] = 80
    """Of the descriptors that the gateway may have: beyond that, nothing new is begun."""
    memory: Memory | None = None
    """Of the gateway: beyond that, nothing new is begun."""
    in_flight: Count = 1000
    bad_lines: Count = 100
    long_lines: Annotated[int, Field(ge=0, le=1_000_000)] = 3
    recover_timeout: Seconds = 5
    stderr_bytes: Bytes = 65_536
    stderr_rate: Count = 50
    log_rate: Count = 200
    questions: Count = 100
    waiting: Count = 100
    subscriptions: Count = 1000
    subscription_bytes: Bytes = 262_144
    greeting: Bytes = 262_144
    """Bytes of what a client says of itself in `initialize`."""


class Restarts(Block):
    """What is done about children that end of themselves."""

    backoff: Seconds = 0.2
    max_backoff: Seconds = 30
    deaths: Count = 5
    window: Seconds = 60
    cool_down: Seconds = 300
    uptime: Seconds = 60


class Viaduct(Block):
    listen: str = "127.0.0.1:8080"
    public_url: PublicUrl | None = None
    allowed_hosts: AllowedHosts = ()
    allowed_origins: AllowedOrigins = ()
    auth: Auth = Auth()
    policy: Annotated[tuple[PolicyRule, ...], Field(strict=False, min_length=1)] = ()
    """Without one, whoever is let in may do everything."""
    audit: Audit | None = None
    sessions: Sessions = Sessions()
    stateless: Stateless = Stateless()
    streams: Streams = Streams()
    limits: Limits = Limits()
    drain: Budget = 20
    drain_overtime: Budget = 15
    """What stopping the children may take beyond that before we go without them."""
    close_timeout: Seconds = 3
    """What connections have to close once every stream has had its last word."""
    starts: Count = 4
    """Children that are between their start and their handshake at once."""
    restarts: Restarts = Restarts()
    store: Annotated[str, AfterValidator(store_url)] = "memory"
    """Where sessions are kept, so that they outlive the gateway,"""
    store_timeout: Seconds = 5
    """and how long its disk is waited for."""
    watch_interval: Seconds | None = 0.5
    """How often the config file is looked at; None is never, and then only SIGHUP has it read again."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["text", "json"] = "text"
    debug_payloads: bool = False
    outbound: Outbound = Outbound()
    naming: Literal["prefix", "onConflict", "none"] = "prefix"
    """What tools and prompts are called where several servers are one."""
    mode: Literal["list", "search"] = "list"
    """What clients of `/mcp` see, unless their URL says otherwise: every tool, or what finds and calls them."""
    groups: dict[str, Group] = Field(default={})
    catalog: Catalog = Catalog()
    metrics: Literal["token", "open", "off"] = "token"
    """Who may read them: they name servers, and tell how much these are used."""
