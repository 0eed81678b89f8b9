"""What one session has subscribed to at many servers: it outlives each of them, and is made anew at the next.

by its client   asked ──its server's answer──▶ kept ──the server is gone──▶ owed
by us           owed ──asked again──▶ open ──answered, whatever with──▶ kept
                 ▲──the server is gone──┘
"""

from collections.abc import Callable, Iterable

from msgspec import Raw

from app.core.bounds import Bounds
from app.core.catalog import Catalog
from app.core.ledger import too_many_subscriptions
from app.protocol import methods
from app.protocol.jsonrpc import Reply, Request, RequestId, Result

_AT_ONCE_MAX = 32
"""So many may be open at one server; its queue is finite."""


class Subscribing:
    """`kept` is of the session before, where there was one: all of it is owed."""

    def __init__(self, bounds: Bounds, kept: dict[str, Raw]) -> None:
        self.kept = kept
        """The parameters, by public URI; another value, whenever there is more to it."""
        self.owed = dict(kept)
        self._bounds = bounds
        self._noted: dict[RequestId, Request] = {}
        self._open: dict[RequestId, tuple[str, str]] = {}
        """Ours, with the server and the URI."""

    def note(self, request: Request) -> None:
        """It counts once it is answered.

        Raises:
            Overloaded: there is too much of it.
        """
        asked = [each.params or b"" for each in self._noted.values()]
        kept = list(self.kept.values()) if request.method == methods.SUBSCRIBE else []
        size = sum(map(len, asked)) + sum(map(len, kept)) + len(request.params or b"")
        if len(asked) + len(kept) >= self._bounds.subscriptions or size > self._bounds.subscription_bytes:
            raise too_many_subscriptions()
        self._noted[request.id] = request

    def passed(self, request: Request) -> None:
        """To its server: from now on it is the client's word on this resource that counts."""
        self.owed.pop(methods.resource_uri(request.params), None)

    def forget(self, ident: RequestId) -> None:
        """Nobody waits for the answer any more."""
        self._noted.pop(ident, None)

    def answered(self, reply: Reply) -> bool:
        """Whether that was news of what is kept."""
        noted = self._noted.pop(reply.id, None) if reply.id is not None else None
        if noted is None or not isinstance(reply, Result):
            return False
        uri = methods.resource_uri(noted.params)
        kept = {known: params for known, params in self.kept.items() if known != uri}
        if noted.method == methods.SUBSCRIBE and noted.params is not None:
            kept[uri] = noted.params
        self.kept = kept
        return True

    # Made anew.

    def has_room(self, server: str) -> bool:
        return sum(asked == server for asked, _ in self._open.values()) < _AT_ONCE_MAX

    def owners(self, catalog: Catalog, *, is_whole: bool) -> list[tuple[str, str]]:
        """The URIs that are owed, each with its server, where nothing that may yet be known can change whose it is."""
        owned = [(uri, catalog.owner_of(uri)) for uri in self.owed]
        return [(uri, owner[0]) for uri, owner in owned if owner and (is_whole or catalog.find("resources", uri))]

    def again(self, ident: RequestId, server: str, uri: str) -> Request:
        """It is being asked for."""
        self._open[ident] = server, uri
        return Request(ident, methods.SUBSCRIBE, self.owed.pop(uri))

    def answered_again(self, reply: Reply) -> bool:
        """Whether it was one of ours, and there is room for so many more that it is worth while."""
        if reply.id is None or self._open.pop(reply.id, None) is None:
            return False
        return len(self._open) <= _AT_ONCE_MAX // 2

    def bereft(self, server: str) -> None:
        """Its child is gone, and another comes that knows of what was answered."""
        lost = [ident for ident, (asked, _) in self._open.items() if asked == server]
        self._owe([self._open.pop(ident)[1] for ident in lost])

    def lost(self, server: str, is_of: Callable[[str], bool]) -> None:
        """It is gone with all that it knew."""
        self.bereft(server)
        self._owe(uri for uri in self.kept if is_of(uri))

    def _owe(self, uris: Iterable[str]) -> None:
        self.owed.update({uri: self.kept[uri] for uri in uris if uri in self.kept})
