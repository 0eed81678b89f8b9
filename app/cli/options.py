"""The options that the serving commands share."""

import functools
import os
from collections.abc import Callable
from typing import Any

import click

from app.cli.launch import Options

_OPTIONS = [
    click.option("--host", help="address to listen on  [default: 127.0.0.1]"),
    click.option("--port", type=click.IntRange(0, 65535), help="port to listen on, 0 picks one  [default: 8080]"),
    click.option("--token", "tokens", multiple=True, help="a bearer token that is let in; repeatable  [VIADUCT_TOKEN]"),
    click.option("--no-auth", is_flag=True, envvar="VIADUCT_NO_AUTH", help="let everybody in; on loopback only"),
    click.option("--i-know-this-is-open", "is_open", is_flag=True, help="allow --no-auth on other addresses too"),
    click.option("--public-url", help="the URL that clients use, where a proxy stands in front"),
    click.option("--allowed-host", "hosts", multiple=True, help="a further Host to serve; repeatable"),
    click.option("--allowed-origin", "origins", multiple=True, help="a further Origin to allow; repeatable"),
    click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"])),
    click.option("--log-format", type=click.Choice(["text", "json"])),
    click.option("--exit-with-parent", is_flag=True, help="stop when the process that started this one ends"),
]


def serving_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the shared options, gathered in one value."""

    @functools.wraps(command)
    def gathered(**given: Any) -> None:  # noqa: ANN401 - click hands over what it parsed
        names = [name for name in Options.__dataclass_fields__ if name in given]
        chosen = {name: given.pop(name) for name in names}
        chosen["tokens"] = (*chosen["tokens"], *_from_environment())
        command(options=Options(**chosen), **given)

    for option in reversed(_OPTIONS):
        gathered = option(gathered)
    return gathered


def _from_environment() -> list[str]:
    return [token.strip() for token in os.environ.get("VIADUCT_TOKEN", "").split(",") if token.strip()]
