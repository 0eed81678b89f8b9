"""The command line. What a command does is imported when it is called: help and tokens are there at once."""

import sys
from pathlib import Path

import click

from app.cli import signals
from app.cli.exits import in_one_sentence
from app.cli.options import CommandLast, Options, serving_options

_CONFIG = click.argument("config", type=click.Path(path_type=Path), envvar="VIADUCT_CONFIG")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mcp-viaduct", prog_name="viaduct")
def cli() -> None:
    """Make a local stdio MCP server reachable by URL, with a bearer token."""


@cli.command(cls=CommandLast)
@click.option("--name", help="The server's name in its URL; left out, it is derived from the command.")
@click.option(
    "--isolation",
    type=click.Choice(["session", "shared"]),
    default="session",
    show_default=True,
    help="A child for each session, or one for all.",
)
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="A variable for the server, of this environment where no value is given; repeatable.",
)
@serving_options
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND [ARGS]...")
@in_one_sentence
def run(
    command: tuple[str, ...], name: str | None, isolation: str, variables: tuple[str, ...], options: Options
) -> None:
    """Serve one stdio server."""
    from app.cli import launch

    launch.run(command, name, {"isolation": isolation, "env": launch.variables(variables)}, options)


@cli.command()
@serving_options
@_CONFIG
@in_one_sentence
def serve(config: Path, options: Options) -> None:
    """Serve every server of a config file."""
    from app.cli import launch

    launch.serve(config, options)


@cli.command()
@serving_options
@in_one_sentence
def demo(options: Options) -> None:
    """Serve the bundled weather server."""
    from app.cli import launch

    # -P: a package called app in the folder we are started in is not ours.
    launch.run((sys.executable, "-P", "-m", "app.demo.weather"), "weather", {}, options)


@cli.command()
@_CONFIG
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@in_one_sentence
def check(config: Path, as_json: bool) -> None:
    """Start each server of a config file, ask what it offers, and stop it."""
    signals.heed_not()
    from app.cli import launch

    launch.check(config, as_json=as_json)


@cli.command()
@click.option("--name", default="token", show_default=True, help="Whom the token is for.")
@click.option("--scope", "scopes", multiple=True, help="What it may do, repeatable; left out, everything.")
@click.option("--expires", help="Until when it is good: 90d, or a time as in 2027-01-01T00:00:00Z.")
def token(name: str, scopes: tuple[str, ...], expires: str | None) -> None:
    """Print a fresh token once, and the config entry that admits it."""
    signals.heed_not()
    from app.cli.minting import entry_text

    click.echo(entry_text(name, scopes, expires))


@cli.group()
def audit() -> None:
    """Look after audit files."""


@audit.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
def verify(paths: tuple[Path, ...]) -> None:
    """See whether records were changed or are missing; name rotated files too, the oldest first."""
    signals.heed_not()
    from app.cli.auditing import verified

    sys.exit(verified(paths))
