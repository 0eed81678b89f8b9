"""The types of ASGI that we use, and the shortest way to send a response."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]
Headers: TypeAlias = list[tuple[bytes, bytes]]

JSON = (b"content-type", b"application/json")


async def respond(send: Send, status: int, headers: Headers, body: bytes = b"") -> None:
    """A whole response at once."""
    if body or status not in (202, 204):
        headers.append((b"content-length", b"%d" % len(body)))
    elif status == 202:
        headers.append((b"content-length", b"0"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
