"""Who may speak to us at all: the Host and Origin of a request, and what a browser is told about it.

A web page that resolves its own name to our address sends its own name as Host (DNS rebinding), and any page sends
its own Origin; both are compared whole with lists (2025-11-25, basic/transports: "Security Warning").
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from app.edge.asgi import Headers
from app.edge.refusals import Refusal

_LOOPBACK_HOST = re.compile(rb"(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?")
_LOOPBACK_ORIGIN = re.compile(rb"https?://(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?")
_ALLOWED_HEADERS = (
    b"authorization, content-type, accept, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name, last-event-id"
)
_EXPOSED_HEADERS = b"mcp-session-id, mcp-protocol-version, www-authenticate, retry-after, allow"


class Guards:
    """`hosts` are names with or without a port, `origins` are as browsers write them; loopback names are always in."""

    def __init__(self, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        self._hosts = frozenset(host.lower().encode() for host in hosts)
        self._origins = frozenset(origin.lower().rstrip("/").encode() for origin in origins)
        self._is_host_known = lru_cache(maxsize=256)(self._judge_host)
        self._is_origin_known = lru_cache(maxsize=256)(self._judge_origin)

    def check_host(self, host: bytes | None) -> None:
        if host is None:
            raise Refusal(400, "no_host", "a Host header is needed")
        if not self._is_host_known(host):
            raise Refusal(421, "wrong_host", "this Host is not served here; allow it with --allowed-host or publicUrl")

    def check_origin(self, origin: bytes | None) -> Headers:
        """The headers that tell a browser it may read the answer; none where no browser asked."""
        if origin is None:
            return []
        if not self._is_origin_known(origin):
            raise Refusal(403, "wrong_origin", "this Origin is not allowed; allow it with --allowed-origin")
        return [
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", _EXPOSED_HEADERS),
            (b"vary", b"origin"),
        ]

    def _judge_host(self, host: bytes) -> bool:
        host = host.lower()
        if _LOOPBACK_HOST.fullmatch(host) or host in self._hosts:
            return True
        name, colon, port = host.rpartition(b":")
        return bool(colon) and port.isdigit() and name in self._hosts

    def _judge_origin(self, origin: bytes) -> bool:
        origin = origin.lower()
        return bool(_LOOPBACK_ORIGIN.fullmatch(origin)) or origin in self._origins


def preflight(allow: bytes, headers: Iterable[str] = ()) -> Headers:
    """What a browser may send here after it asked, these headers too (Fetch standard: "CORS-preflight request")."""
    return [
        (b"access-control-allow-methods", allow),
        (b"access-control-allow-headers", b", ".join([_ALLOWED_HEADERS, *(name.encode() for name in sorted(headers))])),
        (b"access-control-max-age", b"600"),
    ]
