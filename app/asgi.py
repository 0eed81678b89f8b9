"""The composition root: settings become plain values, and plain values an application.

`uvicorn --factory app.asgi:create_app` works too, with the config file named by VIADUCT_CONFIG. Uvicorn then waits
for open connections before it tells us to stop, so give it `--timeout-graceful-shutdown`.
"""

import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

from app import admitting, joining
from app.auth.authentication import Authentication
from app.auth.policy import Policy, Rule
from app.config import Config, ConfigError, named_by, open_logs
from app.config.tree import Limits, PolicyRule, Restarts, Server, ServerLimits
from app.config.tree import Viaduct as Settings
from app.core.bounds import Bounds
from app.core.conversation import Tolerance
from app.core.deadlines import Deadlines
from app.core.rates import Rate
from app.core.restarts import RestartPolicy
from app.edge.app import Viaduct
from app.edge.guards import Guards
from app.edge.incoming import EdgeSettings, StreamSettings
from app.edge.oauth import ResourceServer
from app.gateway.access import Access
from app.gateway.credentials import late_parts
from app.gateway.gateway import Gateway
from app.gateway.settings import (
    GatewaySettings,
    Listing,
    PoolSettings,
    RoomSettings,
    SessionSettings,
    SupervisorSettings,
    UpstreamSettings,
)
from app.gateway.witness import Showing, Witness
from app.stores.port import Store
from app.stores.sqlite import SqliteStore, StoreUnusable
from app.telemetry.audit import Audit, AuditFailed
from app.telemetry.metrics import Metrics
from app.telemetry.tally import Tally
from app.upstreams.child import ChildLimits
from app.upstreams.command import Allowance, Command


def create_app(config: Config | None = None) -> Viaduct:
    """The ASGI application of a configuration; without one, of the file that VIADUCT_CONFIG names."""
    if config is None:
        config = named_by(os.environ)
        open_logs(config)
    tally = Tally()
    access = Access(policy(config), _witness(config, tally))
    gateway = Gateway(gateway_settings(config), _store(config.viaduct), access)
    return Viaduct(
        gateway,
        edge_settings(config, tally),
        guards(config),
        None if config.no_auth else authentication(config),
        prefix(config),
        metrics(gateway, tally, config),
        oauth(config),
    )


def authentication(config: Config, former: Authentication | None = None, left: Sequence[str] = ()) -> Authentication:
    """`left` are servers that are not configured any more, and still used."""
    places = [*joining.places(config), *(f"/servers/{name}" for name in left)]
    return admitting.authentication(config, places, former)


def oauth(config: Config) -> ResourceServer | None:
    return None if config.no_auth else admitting.resource_server(config.viaduct)


def prefix(config: Config) -> str:
    return urlsplit(config.viaduct.public_url or "").path.rstrip("/")


def edge_settings(config: Config, tally: Tally) -> EdgeSettings:
    settings = config.viaduct
    return EdgeSettings(
        _streams(config, tally),
        settings.limits.body,
        settings.sessions.without_id == "implicit",
        settings.limits.batch,
        settings.limits.greeting,
    )


def _store(settings: Settings) -> Store | None:
    """The path in the URL is absolute, as in any URL of a file.

    Raises:
        ConfigError: the file is not one of ours, or is damaged or in use.
    """
    if settings.store == "memory":
        return None
    path = Path("/" + settings.store.removeprefix("sqlite://").lstrip("/"))
    try:
        return SqliteStore(path, settings.store_timeout)
    except StoreUnusable as wrong:
        raise ConfigError(f"viaduct.store: {wrong}") from wrong


def gateway_settings(config: Config) -> GatewaySettings:
    settings = config.viaduct
    upstreams = {name: _upstream(name, server, config) for name, server in config.servers.items()}
    return GatewaySettings(
        tuple(upstreams.values()),
        SessionSettings(
            idle_seconds=settings.sessions.idle_timeout,
            confirm_seconds=settings.sessions.confirm_timeout,
            count_max=settings.sessions.max,
            per_principal_max=settings.sessions.max_per_principal,
            rate=Rate(settings.sessions.rate, settings.sessions.burst),
            rate_per_principal=Rate(settings.sessions.rate_per_principal, settings.sessions.burst_per_principal),
            streams_max=settings.streams.max_per_session,
            log_bytes=settings.streams.log_bytes,
            log_count=settings.streams.log_count,
            queue_bytes=settings.streams.queue_bytes,
            commit_seconds=settings.store_timeout,
        ),
        version("mcp-viaduct"),
        PoolSettings(
            idle_seconds=settings.stateless.idle_timeout,
            children_max=settings.stateless.max_children,
            groups_max=settings.stateless.max_capability_sets,
            owned_max=settings.stateless.max_children_per_principal,
            requests_max=settings.stateless.max_requests,
            parked_max=settings.stateless.max_parked,
            bytes_max=settings.stateless.max_bytes,
            listing=Listing(
                pages_max=settings.stateless.tools_pages,
                fresh_seconds=settings.stateless.tools_fresh,
                patience_seconds=settings.stateless.tools_timeout,
                unread_seconds=settings.stateless.tools_retry,
            ),
        ),
        SupervisorSettings(settings.starts, _restarts(settings.restarts), _room(settings.limits)),
        joining.joints(config, upstreams),
        joining.catalog(settings.catalog),
    )


def _room(limits: Limits) -> RoomSettings:
    return RoomSettings(limits.children, limits.open_files_percent, limits.memory)


def _restarts(settings: Restarts) -> RestartPolicy:
    return RestartPolicy(
        first=settings.backoff,
        longest=settings.max_backoff,
        deaths=settings.deaths,
        window=settings.window,
        cool_down=settings.cool_down,
        uptime=settings.uptime,
    )


def _command(server: Server) -> Command:
    late = late_parts(server.templates)
    return Command(server.argv, server.env, server.cwd, _allowance(server.limits), late, server.secrets)


def _upstream(name: str, server: Server, config: Config) -> UpstreamSettings:
    settings = config.viaduct
    return UpstreamSettings(
        name,
        _command(server),
        server.isolation,
        _deadlines(server, settings),
        Tolerance(
            bad_lines=settings.limits.bad_lines,
            oversized=settings.limits.long_lines,
            ping=server.ping_timeout,
            recover=settings.limits.recover_timeout,
        ),
        _child_limits(server, settings.limits),
        _bounds(settings),
        logs_payloads=settings.debug_payloads,
        era=server.era,
        ttl_ms=round(server.cache_ttl * 1000),
        cache_scope=server.cache_scope,
        warm=server.warm,
        warm_seconds=server.warm_age,
        on_exit=server.on_exit,
        templates={name: parts for name, parts in server.templates.items() if name not in late_parts(server.templates)},
    )


def _deadlines(server: Server, settings: Settings) -> Deadlines:
    return Deadlines(
        start=server.start_timeout,
        request=server.request_timeout,
        max_request=server.max_request_timeout,
        stream_after=settings.streams.stream_after,
        shutdown_grace=settings.sessions.shutdown_grace,
        unheard=settings.streams.question_wait,
        probe=server.era_timeout,
        park=settings.stateless.park_timeout,
        ask_after=settings.stateless.ask_after,
        ask_within=settings.stateless.ask_within,
    )


def _bounds(settings: Settings) -> Bounds:
    return Bounds(
        calls=settings.limits.in_flight,
        questions=settings.limits.questions,
        waiting=settings.limits.waiting,
        waiting_bytes=settings.streams.queue_bytes,
        early_count=settings.limits.queue_count,
        early_bytes=settings.limits.queue_bytes,
        subscriptions=settings.limits.subscriptions,
        subscription_bytes=settings.limits.subscription_bytes,
        batch=settings.limits.batch,
    )


def _child_limits(server: Server, limits: Limits) -> ChildLimits:
    return ChildLimits(
        line_bytes=limits.line,
        queue_bytes=limits.queue_bytes,
        queue_count=limits.queue_count,
        close_seconds=server.stop_timeout,
        term_seconds=server.kill_timeout,
        kill_seconds=server.give_up_timeout,
        stderr_bytes=limits.stderr_bytes,
        stderr_rate=limits.stderr_rate,
    )


def _allowance(limits: ServerLimits) -> Allowance:
    return Allowance(limits.memory, limits.processes, limits.cpu_time, limits.open_files)


def metrics(gateway: Gateway, tally: Tally, config: Config) -> Metrics | None:
    who = config.viaduct.metrics
    if who == "off":
        return None
    servers = {upstream.name: upstream.tally for upstream in (*gateway.upstreams.values(), *gateway.joints)}
    return Metrics(
        tally,
        servers,
        gateway.census,
        gateway.settings.version,
        needs_token=who == "token",
        is_store_failing=lambda: gateway.is_store_failing,
    )


def _streams(config: Config, tally: Tally) -> StreamSettings:
    streams = config.viaduct.streams
    retry_ms = round(streams.retry * 1000)
    expired = config.viaduct.stateless.expired_timeout
    return StreamSettings(streams.keep_alive, streams.close_stream_after, retry_ms, streams.queue_bytes, expired, tally)


def guards(config: Config) -> Guards:
    settings = config.viaduct
    public = urlsplit(settings.public_url) if settings.public_url else None
    hosts = [*settings.allowed_hosts, *([public.netloc] if public else [])]
    origins = [*settings.allowed_origins, *([f"{public.scheme}://{public.netloc}"] if public else [])]
    return Guards(hosts, origins)


def policy(config: Config) -> Policy | None:
    """Who may do what; None where everybody may do everything."""
    rules = config.viaduct.policy
    return Policy(map(_rule, rules)) if rules else None


def _witness(config: Config, tally: Tally) -> Witness | None:
    """
    Raises:
        ConfigError: the audit cannot be written, and nothing is to be done without.
    """
    settings = config.viaduct.audit
    if settings is None:
        return None
    try:
        audit = Audit(Path(settings.path), is_strict=settings.on_failure == "refuse")
    except AuditFailed as wrong:
        raise ConfigError(f"viaduct.audit.path: {wrong}") from wrong
    return Witness(audit, showing(config), tally)


def showing(config: Config) -> dict[str, Showing]:
    """What of each server's arguments is recorded."""
    return {
        name: Showing(server.audit_arguments, frozenset(word.lower() for word in server.audit_mask))
        for name, server in config.servers.items()
    }


def _rule(rule: PolicyRule) -> Rule:
    return Rule(
        scopes=frozenset(rule.scopes),
        subjects=rule.subjects,
        claims=rule.claims,
        allow=rule.allow,
        deny=rule.deny,
        read_only=rule.read_only,
        destructive=rule.destructive,
        per_minute=rule.per_minute,
        concurrent=rule.concurrent,
    )
