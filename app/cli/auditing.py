"""What `viaduct audit verify` prints."""

from collections.abc import Sequence
from pathlib import Path

import click

from app.cli.exits import CONFIGURATION
from app.telemetry.audit_chain import verify


def verified(paths: Sequence[Path]) -> int:
    """1 where something is wrong with the records."""
    try:
        found = verify(paths)
    except OSError as wrong:
        click.echo(f"viaduct: {wrong.filename} cannot be read: {wrong.strerror}", err=True)
        return CONFIGURATION
    for problem in found.problems:
        click.echo(problem)
    if found.problems:
        click.echo(f"FAILED  {found.record_count} records, {len(found.problems)} problems")
        return 1
    if not found.record_count:
        click.echo("FAILED  there are no records")
        return 1
    told = f"{found.first} to {found.last.seq}, the last is {found.last.seq} {found.last.chain.decode()}"
    click.echo(f"ok      {found.record_count} records, {told}")
    return 0
