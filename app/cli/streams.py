"""The standard streams: those that whoever started us had closed, and one that nobody may read."""

import atexit
import contextlib
import logging
import os
import sys

from app.telemetry.writer import Writer

log = logging.getLogger("viaduct")


def complete() -> None:
    """Open those that are closed on nothing. Otherwise the next socket takes the place, and is written to as a log."""
    for fd, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            with contextlib.suppress(OSError):
                os.open(os.devnull, os.O_RDWR)  # The lowest that is free, so this one.
                setattr(sys, name, os.fdopen(fd, mode, closefd=False))


def show(text: str) -> None:
    """Print it, however long that takes, and go on; a stopping gateway waits only a moment for it."""
    writer = Writer(sys.stdout, failed=_unshown)
    atexit.register(writer.flush)
    writer.put(text)


def _unshown(wrong: OSError) -> None:
    log.warning("the banner could not be printed", extra={"cause": wrong.strerror})
