"""The settings tree: every field of the config file, with its range and its default. Durations are seconds."""

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from app.auth.expiry import unix_seconds

_YEAR = 31_536_000

Seconds = Annotated[float, Field(gt=0, le=_YEAR)]
Budget = Annotated[float, Field(ge=0, le=_YEAR)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Bytes = Annotated[int, Field(ge=1, le=1 << 34)]
Memory = Annotated[int, Field(ge=1 << 20, le=1 << 50)]
PerSecond = Annotated[float, Field(gt=0, le=1_000_000)]

_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9]([a-z0-9._-]*[a-z0-9])?)(:\d{1,5})?")
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@,]+")


def public_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme.lower() not in ("http", "https") or not _HOST.fullmatch(parts.netloc.lower()):
        raise ValueError("must be like https://mcp.example.com, a path prefix allowed")
    if "?" in value or "#" in value or re.search(r"\s|//|\.\.", parts.path):
        raise ValueError("must have no query, no fragment and a plain path, like https://example.com/mcp-gateway")
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}{parts.path.rstrip('/')}"


def allowed_host(value: str) -> str:
    host = value.lower()
    if not _HOST.fullmatch(host):
        raise ValueError("must be a host or host:port as in mcp.example.com, without scheme and path")
    return host


def allowed_origin(value: str) -> str:
    origin = value.lower().rstrip("/")
    if not _ORIGIN.fullmatch(origin):
        raise ValueError("must be an origin as in https://app.example.com, without path")
    return origin


def token_hash(value: str) -> str:
    lowered = value.lower()
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", lowered):
        raise ValueError("must be sha256: and 64 hexadecimal digits; `viaduct token` prints one")
    return lowered


def scope(value: str) -> str:
    if not _SCOPE.fullmatch(value):
        raise ValueError("must be one word of visible ASCII without quotes and backslashes")
    return value


def expiry(value: object) -> object:
    """RFC 3339 with an offset, as unix seconds."""
    if not isinstance(value, str):
        raise ValueError("must be a time with an offset as in 2027-01-01T00:00:00Z")  # noqa: TRY004 - pydantic's way
    return unix_seconds(value)


def plain_text(value: str) -> str:
    if "\0" in value:
        raise ValueError("must not hold a NUL character")
    return value


def store_url(value: str) -> str:
    if value != "memory" and not re.fullmatch(r"sqlite:///[^?#]*[^/?#]", value):
        raise ValueError("must be memory, or a file as in sqlite:///var/lib/viaduct/sessions.db")
    return value


Text = Annotated[str, AfterValidator(plain_text)]
PublicUrl = Annotated[str, AfterValidator(public_url)]
AllowedHosts = Annotated[tuple[Annotated[str, AfterValidator(allowed_host)], ...], Field(strict=False)]
AllowedOrigins = Annotated[tuple[Annotated[str, AfterValidator(allowed_origin)], ...], Field(strict=False)]
Words = Annotated[tuple[Text, ...], Field(strict=False)]


class _Block(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        populate_by_name=False,
        hide_input_in_errors=True,
    )


class ServerLimits(_Block):
    """What the kernel lets each process of a server have."""

    memory: Memory | None = None
    """Bytes that it writes to and shares with nobody."""
    processes: Count | None = None
    """Of all processes of its user."""
    cpu_time: Count | None = None
    open_files: Annotated[int, Field(ge=8, le=1_000_000)] | None = None


class Server(_Block):
    """How one stdio server is started and how patient we are with it."""

    command: Annotated[Text, Field(min_length=1)]
    args: Words = ()
    env: dict[str, Text] = {}
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

    @property
    def argv(self) -> tuple[str, ...]:
        return (self.command, *self.args)


class Token(_Block):
    name: Annotated[str, Field(pattern=r"^[\x20-\x7e]{1,64}$")]
    hash: Annotated[str, AfterValidator(token_hash)]
    scopes: Annotated[tuple[Annotated[str, AfterValidator(scope)], ...], Field(strict=False)] = ("*",)
    expires_at: Annotated[float | None, BeforeValidator(expiry)] = Field(default=None, alias="expires")


class Auth(_Block):
    tokens: Annotated[tuple[Token, ...], Field(strict=False)] = ()


class Sessions(_Block):
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


class Stateless(_Block):
    """The requests of clients of 2026-07-28, and the children that serve them."""

    park_timeout: Seconds = 300
    ask_after: Seconds = 0.02
    ask_within: Seconds = 0.2
    idle_timeout: Seconds = 300
    max_children: Count = 16
    max_capability_sets: Count = 8
    max_requests: Count = 1000
    max_parked: Count = 100
    tools_pages: Count = 100
    """How much is read of a list of tools, by which the headers of calls are judged."""
    tools_fresh: Budget = 1
    tools_timeout: Seconds = 5
    tools_retry: Seconds = 60


class Streams(_Block):
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


class Limits(_Block):
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


class Restarts(_Block):
    """What is done about children that end of themselves."""

    backoff: Seconds = 0.2
    max_backoff: Seconds = 30
    deaths: Count = 5
    window: Seconds = 60
    cool_down: Seconds = 300
    uptime: Seconds = 60


class Viaduct(_Block):
    listen: str = "127.0.0.1:8080"
    public_url: PublicUrl | None = None
    allowed_hosts: AllowedHosts = ()
    allowed_origins: AllowedOrigins = ()
    auth: Auth = Auth()
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
    """Where sessions are kept, so that they outlive the gateway."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["text", "json"] = "text"
    debug_payloads: bool = False
    metrics: Literal["token", "open", "off"] = "token"
    """Who may read them: they name servers, and tell how much these are used."""
