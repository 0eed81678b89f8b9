"""How long a session waits for whom."""

from dataclasses import dataclass

FOREVER = float("inf")
"""When that falls due which never does."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """In seconds. `request` starts anew with every sign of progress, `max_request` does not."""

    start: float = 60.0
    request: float = 60.0
    max_request: float = 600.0
    stream_after: float = 0.25
    shutdown_grace: float = 5.0
    unheard: float = 5.0
    """What a client has to open a stream that can carry a question."""
