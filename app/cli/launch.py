"""From a command line to a running gateway, or to one sentence that says why not."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from app.auth.tokens import mint
from app.cli.banner import banner
from app.cli.hardening import close_memory, withdraw
from app.cli.options import Options
from app.cli.serving import serve_until_stopped
from app.config import Config, ConfigError, Overrides, load, open_logs, single
from app.config.overrides import listed
from app.protocol.faults import Unavailable
from app.telemetry import logs
from app.upstreams.command import Command, resolve


def run(command: Sequence[str], name: str | None, settings: Mapping[str, object], options: Options) -> None:
    """Serve one command; one that cannot even be started is an error of the environment."""
    config = single(command, name, withdraw(os.environ), settings, _overrides(options))
    _check_commands(config)
    _start(config, options)


def serve(path: Path, options: Options) -> None:
    read = partial(load, path, withdraw(os.environ), _overrides(options))
    _start(read(), options, read if path.is_file() else None)


def check(path: Path, *, as_json: bool) -> None:
    """Start every server once and tell; the exit code says whether all are well."""
    from app.cli.checking import check as check_all

    config = load(path, withdraw(os.environ), Overrides(log_level="warning"))
    open_logs(config)
    close_memory()
    sys.exit(check_all(config, as_json=as_json))


def variables(given: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE`, or `NAME` for what it is here."""
    chosen: dict[str, str] = {}
    for text in given:
        name, has_value, value = text.partition("=")
        if not has_value and name not in os.environ:
            raise ConfigError(f"--env {name}: the variable {name} is not set; set it or write --env {name}=VALUE")
        chosen[name] = value if has_value else os.environ[name]
    return chosen


def _start(config: Config, options: Options, read: Callable[[], Config] | None = None) -> None:
    """Where nobody could be let in, a token is made for this run. `read` reads the configuration's file again."""
    fresh_token = None if config.has_credentials else mint()
    if fresh_token is not None:
        logs.redact(fresh_token)
        config = config.admitting(fresh_token)
    open_logs(config)
    close_memory()
    show = partial(banner, config, fresh_token=fresh_token)
    again = None if read is None else partial(_read_again, read, fresh_token)
    sys.exit(serve_until_stopped(config, show, exit_with_parent=options.exit_with_parent, read=again))


def _read_again(read: Callable[[], Config], fresh_token: str | None) -> Config:
    """A token that was made for this run stays good for all of it.

    Raises:
        ConfigError: as when it was read first, or nobody could be let in.
    """
    config = read()
    if fresh_token is not None:
        return config.admitting(fresh_token)
    if not config.has_credentials:
        raise ConfigError("nobody could be let in any more; add a token, or restart, and one is made for that run")
    return config


def _overrides(options: Options) -> Overrides:
    return Overrides(
        host=options.host,
        port=None if options.port is None else str(options.port),
        public_url=options.public_url,
        store=options.store,
        log_level=options.log_level,
        log_format=options.log_format,
        allowed_hosts=listed(options.allowed_hosts),
        allowed_origins=listed(options.allowed_origins),
        tokens=listed(options.tokens),
        no_auth=options.no_auth,
        open_is_known=options.open_is_known,
        root_is_allowed=options.allow_root,
    )


def _check_commands(config: Config) -> None:
    for server in config.servers.values():
        try:
            resolve(Command(server.argv, server.env, server.cwd))
        except Unavailable as fault:
            raise ConfigError(fault.message) from fault
