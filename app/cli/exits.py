"""The exit codes. Bad usage is 2, click's own."""

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec

import click

CONFIGURATION = 78
"""Bad configuration or environment: EX_CONFIG of sysexits.h."""

P = ParamSpec("P")


def in_one_sentence(command: Callable[P, None]) -> Callable[P, None]:
    """What is wrong with the configuration is told in one sentence, and never as a traceback."""

    @functools.wraps(command)
    def told(*args: P.args, **kwargs: P.kwargs) -> None:
        from app.config.errors import ConfigError

        try:
            command(*args, **kwargs)
        except ConfigError as wrong:
            click.echo(f"viaduct: {wrong}", err=True)
            sys.exit(CONFIGURATION)

    return told
