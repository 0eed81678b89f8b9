"""The types of ASGI that we use, the shortest way to send a response, and an extension that is shorter still.

ASGI starts a task for each request. Clients send the same head over and over, so our own HTTP protocol offers to hand
later requests with that head over without one, once they are there as a whole.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]
Headers: TypeAlias = list[tuple[bytes, bytes]]

JSON = (b"content-type", b"application/json")

REMEMBER = "viaduct.remember"
"""Among the extensions of a scope: `remember(again)` lets `again` have the later requests with the same head."""


class Way(Protocol):
    """The way back to the client of a request that was handed over; for one use."""

    def answer(self, status: int, headers: tuple[tuple[bytes, bytes], ...], body: bytes) -> None:
        """A whole response; `headers` without its length. Nothing happens where the client is gone."""

    def serve(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        """Answer in a task after all."""

    def watch(self, gone: Callable[[], None]) -> None:
        """Call `gone` where the client goes before it was answered."""


Again: TypeAlias = Callable[[bytes, Way], None]
"""Gets the body of a request whose head is known, and answers then or later."""


async def respond(send: Send, status: int, headers: Headers, body: bytes = b"") -> None:
    """A whole response at once."""
    if body or status not in (202, 204):
        headers.append((b"content-length", b"%d" % len(body)))
    elif status == 202:
        headers.append((b"content-length", b"0"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def remembers(scope: Scope) -> Callable[[Again], None] | None:
    """Takes who should have the later requests with the head of this one; None where the server has no such offer."""
    offer: Callable[[Again], None] | None = scope.get("extensions", {}).get(REMEMBER)
    return offer
