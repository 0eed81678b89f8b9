"""What the gateway knows of a store: facts of sessions are kept in it, and sessions are made of them again."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from app.core.effects import StreamId
from app.core.replay import Event, Evicted, Forgotten, Lost, Mark
from app.core.revival import Told
from app.protocol.jsonrpc import RequestId
from app.stores.sealed import Key


@dataclass(frozen=True, slots=True)
class Opened:
    """A session is kept from now on. `tag` names it in its event ids."""

    owner: str
    server: str
    tag: str
    used_at: float
    """In unix seconds, by the wall clock: the monotonic one ends with the machine."""


@dataclass(frozen=True, slots=True)
class Used:
    at: float


@dataclass(frozen=True, slots=True)
class Way:
    """What a stream is for: the answers to these requests, or, with None, whatever answers no request. `first` is the
    number of its first event."""

    stream: StreamId
    first: int
    owed: tuple[RequestId, ...] | None


@dataclass(frozen=True, slots=True)
class Ended:
    """Nothing of the session is kept any more."""


Fact: TypeAlias = Opened | Used | Told | Way | Event | Mark | Lost | Evicted | Forgotten | Ended


@dataclass(frozen=True, slots=True)
class Sleeper:
    """A session that is kept, and that no gateway has taken up yet."""

    owner: str
    server: str
    used_at: float


@dataclass(frozen=True, slots=True)
class Saved:
    """All there is of a session."""

    tag: str
    told: Told
    times: int
    """How often it was taken up."""
    number: int
    """No event had a greater one, whatever was sent and could not be committed."""
    ways: list[Way]
    history: list[Event | Mark | Lost]


class Store(Protocol):
    """Whatever is written is written in its order, and by somebody else than the event loop."""

    sleepers: dict[bytes, Sleeper]
    """Those that were there at the start, by the names of their keys, the longest unused first; whoever takes one up
    takes it out."""
    is_failing: bool

    def start(self) -> None:
        """From within the loop that hears when something is done."""

    def keep(self, key: Key, facts: list[Fact], done: Callable[[], None]) -> None:
        """Make them last; `done` is told when they do, or when that has failed and will be tried again."""

    def forget(self, name: bytes) -> None:
        """A sleeper that nobody comes for."""

    async def take_up(self, key: Key) -> Saved | None:
        """From now on it is the caller's; None where nothing of it is kept, or it is damaged.

        Raises:
            Overloaded: it cannot be read now, or cannot be written down that it was taken up.
        """

    def is_late(self) -> None:
        """Somebody has waited for too long, and was let go on."""

    async def close(self) -> None:
        """Write what is left, within the time that it may take."""
