"""From a command line to a running gateway, or to one sentence that says why not."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.auth.tokens import mint
from app.cli.options import Options
from app.cli.serving import serve_until_stopped
from app.config import Config, ConfigError, Overrides, load, open_logs, single
from app.config.overrides import listed
from app.config.tree import Server
from app.protocol.faults import Unavailable
from app.telemetry import logs
from app.upstreams.command import Command, resolve


@dataclass(frozen=True, slots=True)
class Launch:
    """All that serving needs. `fresh_token` is one that was made for this run."""

    config: Config
    fresh_token: str | None = None
    exit_with_parent: bool = False


def run(command: Sequence[str], name: str | None, settings: Mapping[str, object], options: Options) -> None:
    """Serve one command; one that cannot even be started is an error of the environment."""
    config = single(command, name, os.environ, settings, given=overrides(options))
    _check_commands(config.servers)
    _start(config, options)


def serve(path: Path, options: Options) -> None:
    _start(load(path, os.environ, overrides(options)), options)


def overrides(options: Options) -> Overrides:
    return Overrides(
        host=options.host,
        port=None if options.port is None else str(options.port),
        public_url=options.public_url,
        log_level=options.log_level,
        log_format=options.log_format,
        allowed_hosts=listed(list(options.allowed_hosts)),
        allowed_origins=listed(list(options.allowed_origins)),
        tokens=listed(list(options.tokens)),
        no_auth=options.no_auth,
        open_is_known=options.open_is_known,
    )


def prepared(config: Config, options: Options) -> Launch:
    """Where nobody could be let in, a token is made for this run."""
    if config.has_credentials:
        return Launch(config, exit_with_parent=options.exit_with_parent)
    token = mint()
    logs.redact(token)
    return Launch(config.admitting(token), token, options.exit_with_parent)


def _start(config: Config, options: Options) -> None:
    launch = prepared(config, options)
    open_logs(launch.config)
    sys.exit(serve_until_stopped(launch))


def _check_commands(servers: Mapping[str, Server]) -> None:
    for server in servers.values():
        try:
            resolve(Command(server.argv, server.env, server.cwd))
        except Unavailable as fault:
            raise ConfigError(str(fault)) from fault
