"""What a session writes down of its calls and of the questions to its client, until they are settled."""

from msgspec import Struct

from app.core.effects import StreamId
from app.protocol.jsonrpc import RequestId


class Call(Struct):
    """A client's request in flight."""

    id: RequestId
    method: str
    stream: StreamId
    token: RequestId | None
    max_at: float
    quiet_at: float


class Ask(Struct):
    """A server's question in flight."""

    id: RequestId
    stream: StreamId | None
    """None until there is one that can carry it."""
    max_at: float
