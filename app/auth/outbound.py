"""What is fetched from other machines, within bounds: the only place that knows httpx.

Where a URL leads is decided here and then held to: its host is resolved once, each address is judged, and the
connection goes to an address that was. No redirect is followed, no proxy asked, no connection used twice, and an
answer is small and in time, or none.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from ssl import SSLContext
from typing import TypeAlias

import httpx

from app.auth.names import Address, Names

Network: TypeAlias = IPv4Network | IPv6Network

_NAT64 = IPv6Network("64:ff9b::/96")
_UNICAST = IPv6Network("2000::/3")
"""All of IPv6 that was ever given out for the public (RFC 4291, section 2.4). Some kernels and gateways know what is
inside of other addresses, as in ::127.0.0.1 and in 64:ff9b:1::/48, and lead there."""
_PORTS = range(1, 65_536)
_ADDRESSES_MAX = 4
"""Of one host are tried."""


class FetchFailed(Exception):
    """There is no answer; the text says why, and holds nothing that was sent."""


@dataclass(frozen=True, slots=True)
class Fetched:
    status: int
    body: bytes
    cache_control: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """What is posted, and as whom."""

    fields: Mapping[str, str]
    user: str
    password: str


class Outbound:
    """`allowed` are networks beyond the public ones that may be asked, and the only ones over plain HTTP."""

    def __init__(self, allowed: Iterable[str] = (), *, seconds: float = 5.0, bytes_max: int = 65_536) -> None:
        self._allowed = tuple(ip_network(each) for each in allowed)
        self._seconds = seconds
        self._bytes_max = bytes_max
        self._names = Names()
        self._trust: SSLContext | None = None

    async def fetch(self, url: str, form: Form | None = None) -> Fetched:
        """GET, or POST of a form.

        Raises:
            FetchFailed: there is no answer within the bounds.
        """
        try:
            async with asyncio.timeout(self._seconds):
                return await self._fetch(httpx.URL(url), form)
        except TimeoutError as late:
            raise FetchFailed(f"no answer within {self._seconds:g} s") from late
        except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
            raise FetchFailed(type(error).__name__) from error

    async def _fetch(self, url: httpx.URL, form: Form | None) -> Fetched:
        trouble: httpx.ConnectError | None = None
        for address in await self._judged(url):
            try:
                return await self._ask(url, address, form)
            except httpx.ConnectError as error:
                trouble = error
        raise trouble or FetchFailed("the host has no address")

    async def _judged(self, url: httpx.URL) -> list[Address]:
        """The host's addresses, if all of them may be asked."""
        if url.scheme not in ("http", "https") or not url.host:
            raise FetchFailed("not a URL of HTTP")
        port = url.port if url.port is not None else (443 if url.scheme == "https" else 80)
        if port not in _PORTS:
            raise FetchFailed("not a URL of HTTP")
        addresses = (await self._names.addresses(url.host, port))[:_ADDRESSES_MAX]
        for address in addresses:
            is_allowed = any(address in network for network in self._allowed)
            if not is_allowed and not is_public(address):
                raise FetchFailed("the host is at a private address, which viaduct.outbound.allow does not name")
            if not is_allowed and url.scheme != "https":
                raise FetchFailed("plain HTTP is only for hosts that viaduct.outbound.allow names")
        return addresses

    async def _ask(self, url: httpx.URL, address: Address, form: Form | None) -> Fetched:
        host = f"[{address}]" if address.version == 6 else str(address)
        request = httpx.Request(
            "GET" if form is None else "POST",
            url.copy_with(host=host),
            headers={"host": url.netloc.decode("ascii"), "accept": "application/json", "accept-encoding": "identity"},
            data=None if form is None else dict(form.fields),
            extensions={"sni_hostname": url.raw_host.decode("ascii")},
        )
        limits = httpx.Limits(max_connections=1, max_keepalive_connections=0)
        async with httpx.AsyncClient(
            verify=self._context(), trust_env=False, limits=limits, timeout=self._seconds
        ) as client:
            auth = None if form is None else httpx.BasicAuth(form.user, form.password)
            answer = await client.send(request, auth=auth, stream=True, follow_redirects=False)
            try:
                return Fetched(answer.status_code, await self._body(answer), answer.headers.get("cache-control", ""))
            finally:
                await answer.aclose()

    async def _body(self, answer: httpx.Response) -> bytes:
        if answer.headers.get("content-encoding", "identity") != "identity":
            raise FetchFailed("the answer is compressed, which was not asked for")
        body = bytearray()
        async for chunk in answer.aiter_raw():
            body += chunk
            if len(body) > self._bytes_max:
                raise FetchFailed(f"the answer has more than {self._bytes_max} bytes")
        return bytes(body)

    def _context(self) -> SSLContext:
        if self._trust is None:
            self._trust = httpx.create_ssl_context()
        return self._trust


def is_public(address: Address) -> bool:
    """Whether anybody could reach it. An IPv4 address inside of one of IPv6 is judged as itself."""
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = IPv4Address(int(address) & 0xFFFF_FFFF)
        if inner is not None:
            return is_public(inner)
        if address.teredo is not None or address not in _UNICAST:
            return False
    return address.is_global and not address.is_multicast
