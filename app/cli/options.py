"""The options that the serving commands share."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import click


@dataclass(frozen=True, slots=True)
class Options:
    """What a serving command was told; None and empty where it was not."""

    host: str | None = None
    port: int | None = None
    tokens: tuple[str, ...] = ()
    no_auth: bool | None = None
    open_is_known: bool = False
    public_url: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    store: str | None = None
    log_level: str | None = None
    log_format: str | None = None
    exit_with_parent: bool = False
    allow_root: bool = False


_OPTIONS = [
    click.option("--host", help="Address to listen on.  [VIADUCT_HOST; default: 127.0.0.1]"),
    click.option(
        "--port", type=click.IntRange(0, 65535), help="Port to listen on, 0 picks one.  [VIADUCT_PORT; default: 8080]"
    ),
    click.option(
        "--token",
        "tokens",
        multiple=True,
        metavar="TOKEN",
        help="A bearer token that is let in; repeatable. Safer in VIADUCT_TOKEN: others see command lines.",
    ),
    click.option("--no-auth", is_flag=True, default=None, help="Ask nobody for a token; on loopback only."),
    click.option("--i-know-this-is-open", "open_is_known", is_flag=True, help="Allow --no-auth on any address."),
    click.option("--allow-root", is_flag=True, help="Run as root on any address."),
    click.option("--public-url", metavar="URL", help="What clients use, where a proxy stands in front."),
    click.option(
        "--allowed-host", "allowed_hosts", multiple=True, metavar="HOST", help="A further Host to serve; repeatable."
    ),
    click.option(
        "--allowed-origin",
        "allowed_origins",
        multiple=True,
        metavar="ORIGIN",
        help="A further web page to serve, as in https://app.example.com; repeatable.",
    ),
    click.option(
        "--store", metavar="STORE", help="Where sessions outlive the gateway, as in sqlite:///srv/sessions.db."
    ),
    click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"])),
    click.option("--log-format", type=click.Choice(["text", "json"])),
    click.option("--exit-with-parent", is_flag=True, help="Stop when the process that started this one ends."),
]


def serving_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the shared options, gathered in one value."""

    @functools.wraps(command)
    def gathered(**given: Any) -> None:  # noqa: ANN401 - click hands over what it parsed
        chosen = {field.name: given.pop(field.name) for field in fields(Options)}
        command(options=Options(**chosen), **given)

    for option in reversed(_OPTIONS):
        gathered = option(gathered)
    return gathered


class CommandLast(click.Command):
    """From the first word that is no option on, everything is the command to serve, with or without `--` before it."""

    allow_interspersed_args = False

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        left = super().parse_args(ctx, args)
        command = ctx.params.get("command") or ()
        is_separated = len(given) > len(command) and given[-len(command) - 1] == "--"
        if not is_separated:
            self._refuse_ambiguity(ctx, command)
        return left

    def _refuse_ambiguity(self, ctx: click.Context, command: tuple[str, ...]) -> None:
        """Without `--` nobody can say whose an option is that both sides could have."""
        ours = {name for parameter in self.params for name in parameter.opts if name.startswith("-")}
        for word in command:
            option = word.split("=")[0]
            if option in ours:
                raise click.UsageError(
                    f"{option} could be meant for viaduct or for the server; put -- before the command", ctx
                )
