"""The books that the machine of a session keeps: who is owed what, where, and until when."""

from dataclasses import dataclass, field

from app.protocol.faults import Cancelled
from app.protocol.jsonrpc import Reply, RequestId, Result
from tests.core.exchanges import read


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

    def cancel(self, ident: RequestId) -> bool:
        """Whether there is one: the newest of that id gets its last word, unless its stream outlives it."""
        for owed in reversed(self.open()):
            if same(owed.id, ident) and owed.method != "initialize" and not owed.is_cancelled:
                owed.is_cancelled = True
                owed.is_settled = not self.streams[owed.stream].is_post
                return True
        return False

    def settle(self, reply: Reply, stream: int) -> None:
        """One last word, for a request that is owed one, on its own stream and under its own id."""
        body = read(reply.result if isinstance(reply, Result) else reply.error)
        nonce, is_cancelled = body.get("n"), body.get("code") == Cancelled.code
        able = [owed for owed in self.open() if owed.stream == stream and same(owed.id, reply.id)]
        able = [owed for owed in able if nonce in {None, owed.ours} and owed.is_cancelled >= is_cancelled]
        assert able, (reply, stream)
        able[-1].is_settled = True

    def check_deadlines(self, now: float) -> None:
        """Nothing that was due by now has been left undone."""
        asked_on = {asked.stream for _, asked in self.open_questions()}
        for owed in self.open():
            deadline = owed.max_at if owed.stream in asked_on else min(owed.quiet_at, owed.max_at)
            assert deadline > now, owed
        for ident, stream in self.streams.items():
            is_silent = stream.is_post and stream.can_stream and not (stream.has_begun or stream.has_ended)
            assert not is_silent or stream.begins_at > now, ident


def same(one: RequestId | None, other: RequestId | None) -> bool:
    return one == other and type(one) is type(other)
