"""Mistakes of ours: whatever is logged with a traceback, by us or by the event loop, is one."""

import logging

from app.telemetry.tally import Tally


class BugCount(logging.Handler):
    """Counts them while it is started."""

    def __init__(self, tally: Tally) -> None:
        super().__init__()
        self._tally = tally

    def start(self) -> None:
        logging.getLogger().addHandler(self)

    def stop(self) -> None:
        logging.getLogger().removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[0] is not None:
            self._tally.bugs += 1
