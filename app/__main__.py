"""The command line."""

import sys
from pathlib import Path

import click

from app.cli import launch
from app.cli.options import serving_options
from app.config.errors import ConfigError

USAGE, CONFIGURATION = 2, 78
"""Exit codes: bad usage is click's own, bad configuration or environment is EX_CONFIG of sysexits.h."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mcp-viaduct", prog_name="viaduct")
def cli() -> None:
    """Make a local stdio MCP server reachable by URL, with a bearer token."""


@cli.command(context_settings={"ignore_unknown_options": False})
@click.option("--name", help="the server's name in its URL; derived from the command where it is left out")
@click.option("--isolation", type=click.Choice(["session", "shared"]), default="session", show_default=True)
@serving_options
@click.argument("command", nargs=-1, required=True, metavar="-- COMMAND [ARGS]...")
def run(command: tuple[str, ...], name: str | None, isolation: str, options: launch.Options) -> None:
    """Serve one stdio server."""
    launch.run(command, name, {"isolation": isolation}, options)


@cli.command()
@serving_options
@click.argument("config", type=click.Path(path_type=Path), envvar="VIADUCT_CONFIG")
def serve(config: Path, options: launch.Options) -> None:
    """Serve every server of a config file."""
    launch.serve(config, options)


@cli.command()
@serving_options
def demo(options: launch.Options) -> None:
    """Serve the bundled weather server."""
    launch.run((sys.executable, "-m", "app.demo.weather"), "weather", {}, options)


@cli.command()
@click.argument("config", type=click.Path(path_type=Path), envvar="VIADUCT_CONFIG")
@click.option("--json", "as_json", is_flag=True, help="print JSON")
def check(config: Path, as_json: bool) -> None:
    """Start each server of a config file, ask what it offers, and stop it."""
    from app.cli.checking import check as check_all

    sys.exit(check_all(launch.loaded(config), as_json=as_json))


@cli.command()
@click.option("--name", default="token", show_default=True, help="whom the token is for")
@click.option("--scope", "scopes", multiple=True, help="what it may do; everything where it is left out")
@click.option("--expires", help="until when it is good: 90d, or a time as in 2027-01-01T00:00:00Z")
def token(name: str, scopes: tuple[str, ...], expires: str | None) -> None:
    """Print a fresh token once, and the config entry that admits it."""
    from app.cli.minting import entry_text

    click.echo(entry_text(name, scopes, expires))


def main() -> None:
    try:
        cli(prog_name="viaduct")
    except ConfigError as wrong:
        click.echo(f"viaduct: {wrong}", err=True)
        sys.exit(CONFIGURATION)


if __name__ == "__main__":
    main()
