"""The books that the machine of a session keeps: who is owed what, where, and until when."""

from dataclasses import dataclass, field

from app.protocol.jsonrpc import RequestId


@dataclass
class Owed:
    """An accepted request: where its last word belongs, and until when it must have been said."""

    ours: int
    id: RequestId
    method: str
    stream: int
    token: RequestId | None
    max_at: float
    quiet_at: float
    is_sent: bool = False
    is_cancelled: bool = False
    is_settled: bool = False


@dataclass
class Stream:
    """A POST, or a listener, which ends with the session only."""

    is_post: bool
    can_stream: bool
    begins_at: float = 0.0
    has_begun: bool = False
    has_ended: bool = False


@dataclass
class Asked:
    """A question that the client was given, or will be as soon as it has a stream."""

    id: RequestId
    stream: int | None
    lapses_at: float
    is_over: bool = False


@dataclass
class Books:
    owed: list[Owed] = field(default_factory=list)
    streams: dict[int, Stream] = field(default_factory=dict)
    asked: dict[int, Asked] = field(default_factory=dict)
    unanswered: list[RequestId] = field(default_factory=list)
    """The ids of the server's questions that it has not had an answer to."""
    has_ended: bool = False

    def open(self) -> list[Owed]:
        return [owed for owed in self.owed if not owed.is_settled]

    def open_questions(self) -> list[tuple[int, Asked]]:
        return [(number, asked) for number, asked in self.asked.items() if not asked.is_over]

    def listening(self) -> list[int]:
        return [ident for ident, stream in self.streams.items() if not stream.is_post and stream.can_stream]
