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
    probe: float = 5.0
    """How long a child may think about `server/discover` before it is taken for one of the handshake."""
    park: float = 300.0
    """How long a stateless client has to come back with the answers to a server's questions."""
    ask_after: float = 0.02
    """A server's questions go out when no further one came for so long,"""
    ask_within: float = 0.2
    """and at the latest so long after the first."""
