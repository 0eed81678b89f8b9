"""From a command line to a running gateway: settings above settings, and what must be right before anything starts."""

import dataclasses
import ipaddress
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.auth.tokens import WEAK_LENGTH, hash_of, mint
from app.config import Config, ConfigError, load, single
from app.config.tree import Auth, Server, Token, allowed_host, allowed_origin, public_url
from app.telemetry import logs

log = logging.getLogger("viaduct")


@dataclass(frozen=True, slots=True)
class Options:
    """What the serving commands were told; None where they were not."""

    host: str | None = None
    port: int | None = None
    tokens: tuple[str, ...] = ()
    no_auth: bool = False
    is_open: bool = False
    public_url: str | None = None
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    log_level: str | None = None
    log_format: str | None = None
    exit_with_parent: bool = False


@dataclass(frozen=True, slots=True)
class Launch:
    """All that serving needs. `secret` is a token that a client may be shown with; `is_fresh`, one of this run only."""

    config: Config
    host: str
    port: int
    secret: str | None
    is_fresh: bool
    exit_with_parent: bool


def loaded(path: Path) -> Config:
    return load(path, os.environ)


def run(command: Sequence[str], name: str | None, settings: Mapping[str, object], options: Options) -> None:
    """Serve one command; one that cannot even be started is an error of the environment."""
    config = single(command, name, os.environ, settings)
    _check_commands(config.servers)
    _start(config, options)


def serve(path: Path, options: Options) -> None:
    _start(loaded(path), options)


def _start(config: Config, options: Options) -> None:
    from app.cli.serving import serve_until_stopped

    launch = prepared(config, options)
    settings = launch.config.viaduct
    logs.configure(settings.log_level, settings.log_format)
    for note in launch.config.notes:
        log.log(logging.WARNING if note.is_warning else logging.INFO, note.event, extra=dict(note.fields))
    sys.exit(serve_until_stopped(launch))


def prepared(config: Config, options: Options) -> Launch:
    """Command line above environment above file.

    Raises:
        ConfigError: what was asked for is not safe, or not possible.
    """
    host, port = _address(config, options)
    settings = config.viaduct
    tokens = options.tokens
    is_fresh = not options.no_auth and not tokens and not settings.auth.tokens
    if is_fresh:
        tokens = (mint(),)
    if options.no_auth and not _is_loopback(host) and not options.is_open:
        raise ConfigError(f"--no-auth on {host} lets everybody in; listen on 127.0.0.1, or add --i-know-this-is-open")
    for token in tokens:
        logs.redact(token)
        if len(token) < WEAK_LENGTH:
            log.warning("a token is short enough to be guessed", extra={"characters": len(token)})
    changes = _changes(options) | {
        "auth": Auth(tokens=(*settings.auth.tokens, *_admitted(tokens))),
        "allowed_hosts": (*settings.allowed_hosts, *map(_host, options.hosts), *_own_name(host)),
        "allowed_origins": (*settings.allowed_origins, *map(_origin, options.origins)),
    }
    changed = dataclasses.replace(config, viaduct=settings.model_copy(update=changes), no_auth=options.no_auth)
    return Launch(changed, host, port, tokens[0] if tokens else None, is_fresh, options.exit_with_parent)


def _changes(options: Options) -> dict[str, object]:
    changes: dict[str, object] = {}
    if options.public_url is not None:
        changes["public_url"] = _checked("--public-url", public_url, options.public_url)
    if options.log_level is not None:
        changes["log_level"] = options.log_level
    if options.log_format is not None:
        changes["log_format"] = options.log_format
    return changes


def _address(config: Config, options: Options) -> tuple[str, int]:
    host, _, port = config.viaduct.listen.rpartition(":")
    host = (options.host or os.environ.get("VIADUCT_HOST") or host).strip("[]")
    text = str(options.port) if options.port is not None else os.environ.get("VIADUCT_PORT") or port
    if not host or not text.isdigit() or int(text) > 65535:
        raise ConfigError(f"cannot listen on {host}:{text}; give an address and a port as in 127.0.0.1:8080")
    return host, int(text)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _own_name(host: str) -> list[str]:
    """The address itself may be used as a name: no foreign name resolves to a literal address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return [host.lower()]
    if address.is_unspecified:
        return []
    return [f"[{host}]" if address.version == 6 else host]


def _admitted(tokens: Sequence[str]) -> list[Token]:
    return [Token(name=f"cli-{n}", hash=hash_of(token)) for n, token in enumerate(tokens, 1)]


def _host(value: str) -> str:
    return _checked("--allowed-host", allowed_host, value)


def _origin(value: str) -> str:
    return _checked("--allowed-origin", allowed_origin, value)


def _checked(option: str, judge: Callable[[str], str], value: str) -> str:
    try:
        return judge(value)
    except ValueError as wrong:
        raise ConfigError(f"{option} {value!r} {wrong}") from wrong


def _check_commands(servers: Mapping[str, Server]) -> None:
    from app.protocol.faults import Unavailable
    from app.upstreams.command import Command, resolve

    for server in servers.values():
        try:
            resolve(Command(server.argv, server.env, server.cwd))
        except Unavailable as fault:
            raise ConfigError(str(fault)) from fault
