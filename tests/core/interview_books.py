"""The books that the machine of an interview keeps: who waits for what, and what the child has asked."""

from dataclasses import dataclass, field

from app.core.deadlines import FOREVER
from app.protocol.jsonrpc import Reply, RequestId


@dataclass
class Stream:
    id: RequestId
    can_stream: bool
    begins_at: float
    has_begun: bool = False
    is_answered: bool = False
    is_over: bool = False


@dataclass
class Question:
    nonce: int
    method: str
    open_at: float
    key: str | None = None
    """Under which the client was asked."""


@dataclass
class Books:
    streams: dict[int, Stream] = field(default_factory=dict)
    questions: dict[RequestId, Question] = field(default_factory=dict)
    """Those that the child has neither an answer to nor withdrawn."""
    keys: dict[str, int] = field(default_factory=dict)
    """Of every key the question that it was shown for."""
    round: int = 0
    parked_at: float = FOREVER
    heard_at: float = 0.0
    waits_from: float = 0.0
    early: Reply | None = None
    is_sent: bool = False
    is_answered: bool = False
    is_cancelled: bool = False
    is_lost: bool = False
    is_suspect: bool = False
    has_ended: bool = False

    def waiting(self) -> list[int]:
        return [ident for ident, stream in self.streams.items() if not stream.is_over]
