"""How much may be open, or wait, in one session or at one shared server."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    calls: int = 1000
    questions: int = 100
    """Of the server, to its client."""
    waiting: int = 100
    """What the server tells while its client can hear nothing,"""
    waiting_bytes: int = 8 << 20
    """and its bytes, and those of the questions that are open where they are kept; any one alone is."""
    early_count: int = 256
    """Messages for a server that is not ready,"""
    early_bytes: int = 8 << 20
    """and their bytes."""
    subscriptions: int = 1000
    """To resources, of one session: all are kept for the next child,"""
    subscription_bytes: int = 256 << 10
    """and what they say, together."""
    batch: int = 1000
    """Messages in one line of the server: they are all dealt with in one go, and meanwhile nobody else is."""


BOUNDS = Bounds()
