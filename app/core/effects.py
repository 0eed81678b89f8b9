"""What the core can ask the world to do: values, performed by `app.gateway` and by nobody else."""

from typing import TypeAlias

from msgspec import Struct

from app.protocol.jsonrpc import Message

StreamId: TypeAlias = int


class ToClient(Struct, frozen=True):
    """Put `message` on one of the client's streams."""

    stream: StreamId
    message: Message


class BeginStream(Struct, frozen=True):
    """There is nothing to say yet, but it will be said on an event stream."""

    stream: StreamId


class EndStream(Struct, frozen=True):
    """Nothing more will be said on this stream."""

    stream: StreamId


class ToUpstream(Struct, frozen=True):
    """Hand `message` to the server behind the session."""

    message: Message


class Doubt(Struct, frozen=True):
    """A call timed out: see whether the server is still there at all."""


class Ended(Struct, frozen=True):
    """The session is over; its id is unknown from now on."""

    reason: str


Effect: TypeAlias = ToClient | BeginStream | EndStream | ToUpstream | Doubt | Ended
