"""Starts that go on although their client has gone, until the same client comes again and asks for the same."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple, Protocol

from app.core.revival import Told
from app.gateway.lasting import LastingSeat
from app.gateway.live import LiveSession
from app.protocol.faults import GatewayFault
from app.protocol.jsonrpc import Failure, Message, RequestId


class Wish(NamedTuple):
    """Whose start it is, of which server, and what its client said of itself."""

    owner: str
    upstream: str
    params: bytes


class Forsaken(Protocol):
    """Who has the seat, and does not need it for now."""

    def give_up(self) -> LastingSeat | None:
        """The seat is the caller's, and this is over; None where it is needed after all."""


class Begun:
    """A session that an `initialize` opened, which may be forsaken before its client has heard of it."""

    def __init__(self, wish: Wish, live: LiveSession, seat: LastingSeat) -> None:
        self.wish = wish
        self.seat = seat
        self._live = live

    def leave(self, foundlings: "Foundlings") -> None:
        """Nobody waits for it now."""
        self.seat.awaited(is_awaited=False)
        foundlings.leave(self.wish, self)

    def give_up(self) -> LastingSeat | None:
        """Unless its client came back by its id."""
        if self._live.is_over or self._live.is_confirmed:
            return None
        self._live.vacate("taken over")
        return self.seat


class Foundlings:
    def __init__(self) -> None:
        self._left: dict[Wish, list[Forsaken]] = {}

    def leave(self, wish: Wish, forsaken: Forsaken) -> None:
        self._left.setdefault(wish, []).append(forsaken)

    def take(self, wish: Wish) -> LastingSeat | None:
        """The oldest, for that is the nearest to its end."""
        for forsaken in list(self._left.get(wish, ())):
            self.forget(wish, forsaken)
            seat = forsaken.give_up()
            if seat is not None:
                return seat
        return None

    def forget(self, wish: Wish, forsaken: Forsaken) -> None:
        left = self._left.get(wish, [])
        if forsaken in left:
            left.remove(forsaken)
            if not left:
                del self._left[wish]

    def close(self, server: str | None = None) -> None:
        """All, or those at one server: their starts end."""
        for wish, left in list(self._left.items()):
            if server is not None and wish.upstream.partition(" ")[0] != server:
                continue
            for forsaken in list(left):
                seat = forsaken.give_up()
                if seat is not None:
                    seat.leave()
            self._left.pop(wish, None)


class Foundling:
    """The seat of a session that was ended before its server was ready, for so many seconds; `on_end` is told once."""

    is_busy = False

    def __init__(self, seat: LastingSeat, seconds: float, on_end: Callable[["Foundling"], None]) -> None:
        self._seat: LastingSeat | None = seat
        self._on_end = on_end
        self._timer = asyncio.get_running_loop().call_later(seconds, self._expire)
        seat.move(self)

    def give_up(self) -> LastingSeat | None:
        self._timer.cancel()
        seat, self._seat = self._seat, None
        if seat is not None:
            self._on_end(self)
        return seat

    def _expire(self) -> None:
        seat = self.give_up()
        if seat is not None:
            seat.leave()

    # As who has a seat.

    def deliver(self, message: Message, about: RequestId | None = None) -> None:  # noqa: ARG002 - as a session's
        """Nobody hears it; what matters of it the seat remembers, unless the server refuses the client."""
        if isinstance(message, Failure):
            self._expire()

    def remember(self, told: Told) -> None:
        """So does the seat."""

    def bereft(self, fault: GatewayFault, withdraw: Callable[[int], bool]) -> None:
        """Nobody waited."""

    def lost(self, fault: GatewayFault, reason: str) -> None:  # noqa: ARG002 - as a session's
        self._expire()
