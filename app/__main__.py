"""The entry point. What a signal does, and a stream that is closed, is settled first: to import all else takes time."""

from app.cli import parent as _parent  # noqa: F401 - notes early who started us
from app.cli import signals, streams


def main() -> None:
    signals.heed()
    streams.complete()
    from app.cli.commands import cli

    cli(prog_name="viaduct")


if __name__ == "__main__":
    main()
