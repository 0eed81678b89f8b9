"""How far a handshake session has come."""

from enum import Enum, auto

from app.protocol import methods


class Phase(Enum):
    NEW = auto()
    GREETING = auto()
    OPEN = auto()
    CLOSING = auto()
    ENDED = auto()


PHASED = frozenset({methods.INITIALIZE, methods.SHUTDOWN})
"""The requests that move it on."""
