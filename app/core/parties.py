"""Several parties on one child: the words in which their machines say who hears what."""

from typing import TypeAlias

from msgspec import Raw, Struct

from app.protocol.jsonrpc import Message, Notification

Party: TypeAlias = int
"""A session, or a stateless request, as the machine of its child knows it."""

OWN: Party = -1
"""The party that we are ourselves."""


class ToParty(Struct, frozen=True):
    party: Party
    message: Message


class ToChild(Struct, frozen=True):
    message: Message


class ToLog(Struct, frozen=True):
    """What the child said that is no party's, and that no client may see."""

    notification: Notification


class Changed(Struct, frozen=True):
    """One of the child's lists is another now: news to all who care, on this child or not."""

    notification: Notification


class Refused(Struct, frozen=True):
    """The child did not accept our greeting."""

    error: Raw


Outcome: TypeAlias = ToParty | ToChild | ToLog | Changed | Refused
