"""Names of hosts, looked up. The system may take its time for it, and can be kept from nothing that it has begun.

So each name has a thread of its own while it is looked up, one for all who ask: neither another name nor the end of
the process waits for it, as they would where a pool of threads is shared.
"""

import asyncio
import contextlib
import socket
import threading
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Found: TypeAlias = list[Address] | OSError | UnicodeError


class Names:
    def __init__(self) -> None:
        self._looked_up: dict[tuple[str, int], asyncio.Future[Found]] = {}

    async def addresses(self, host: str, port: int) -> list[Address]:
        """
        Raises:
            OSError, UnicodeError: it has none, as far as is known.
        """
        found = await asyncio.shield(self._flight(host, port))
        if isinstance(found, list):
            return found
        raise found

    def _flight(self, host: str, port: int) -> "asyncio.Future[Found]":
        flight = self._looked_up.get((host, port))
        if flight is None:
            loop = asyncio.get_running_loop()
            flight = self._looked_up[host, port] = loop.create_future()
            flight.add_done_callback(lambda _: self._looked_up.pop((host, port)))
            threading.Thread(target=_look_up, args=(loop, flight, host, port), name="a name", daemon=True).start()
        return flight


def _look_up(loop: asyncio.AbstractEventLoop, flight: "asyncio.Future[Found]", host: str, port: int) -> None:
    found: Found
    try:
        listed = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        found = [ip_address(str(each[4][0]).partition("%")[0]) for each in listed]
    except (OSError, UnicodeError) as error:
        found = error
    with contextlib.suppress(RuntimeError):  # The loop has ended, and nobody waits any more.
        loop.call_soon_threadsafe(flight.set_result, found)
