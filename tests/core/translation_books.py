"""The books that the machine of a translation keeps, and the child that it plays."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from app.protocol import methods, stateless
from app.protocol.jsonrpc import Failure, Message, Notification, Request, RequestId, Result
from tests.core.translations import read


@dataclass
class Owed:
    """A request of the client's; its nonce goes with it to the child and comes back in the child's answer."""

    stream: int
    id: RequestId
    method: str
    is_over: bool = False
    is_cancelled: bool = False
    """The session may still say so, once, and nothing else."""


@dataclass
class Posed:
    """A question of the child's about a call: which round asked it, and what the client made of it."""

    nonce: int
    method: str
    client_id: RequestId | None = None
    answer: object = None
    is_over: bool = False


@dataclass
class Round:
    """What an `input_required` result of the child's wants back."""

    keys: dict[str, int]
    """Of each key, the number of the question."""
    state: str | None


@dataclass
class Stream:
    wanted: dict[str, Any]
    agreed: dict[str, Any] | None = None


@dataclass
class Child:
    seen: set[int] = field(default_factory=set)
    open: dict[int, Request] = field(default_factory=dict)
    streams: dict[int, Stream] = field(default_factory=dict)
    cancelled: list[int] = field(default_factory=list)

    def hear(self, message: Message) -> None:
        match message:
            case Request():
                assert isinstance(message.id, int)
                assert message.id not in self.seen
                self.seen.add(message.id)
                said = read(message.params)
                assert said["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
                assert set(said["_meta"]["io.modelcontextprotocol/clientCapabilities"]) == {"elicitation", "roots"}
                if message.method == stateless.LISTEN:
                    self.streams[message.id] = Stream(said["notifications"])
                else:
                    self.open[message.id] = message
            case Notification():
                assert message.method == methods.CANCELLED
                ident = methods.cancelled_id(message)
                assert isinstance(ident, int)
                assert ident in self.open or ident in self.streams
                self.open.pop(ident, None)
                self.streams.pop(ident, None)
                self.cancelled.append(ident)
            case Result() | Failure():
                pytest.fail("a stateless child is not answered")

    @property
    def opening(self) -> list[int]:
        return [ident for ident, stream in self.streams.items() if stream.agreed is None]

    @property
    def listened(self) -> list[int]:
        return [ident for ident, stream in self.streams.items() if stream.agreed is not None]
