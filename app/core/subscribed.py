"""What one session has subscribed to, at many servers of which some are gone, or not known yet."""

from collections.abc import Mapping

from msgspec import Raw

from app.core.bounds import Bounds
from app.core.catalog import Catalog
from app.core.joint_rules import Known
from app.core.ledger import too_many_subscriptions
from app.core.routing import routed
from app.protocol import methods
from app.protocol.jsonrpc import Reply, Request, RequestId, Result


class Subscribed:
    """`kept` are those of the session before, by their public URIs."""

    def __init__(self, kept: Mapping[str, Raw]) -> None:
        self.kept = dict(kept)
        """Another value, whenever there is another one."""
        self.later = dict(kept)
        """Those that are still to be made again: of the session before, or of a server that was lost."""
        self._noted: dict[RequestId, Request] = {}
        """Requests that count once they are answered."""

    def note(self, request: Request, bounds: Bounds) -> None:
        """
        Raises:
            Overloaded: there are too many.
        """
        if request.method == methods.SUBSCRIBE:
            size = sum(map(len, self.kept.values())) + len(request.params or b"")
            if len(self.kept) + len(self._noted) >= bounds.subscriptions or size > bounds.subscription_bytes:
                raise too_many_subscriptions()
        self._noted[request.id] = request

    def answered(self, ident: RequestId, reply: Reply | None) -> None:
        """None is no answer."""
        request = self._noted.pop(ident, None) if self._noted else None
        if request is None or not isinstance(reply, Result):
            return
        uri = methods.resource_uri(request.params)
        self.later.pop(uri, None)
        self.kept = {known: said for known, said in self.kept.items() if known != uri}
        if request.method == methods.SUBSCRIBE and request.params is not None:
            self.kept[uri] = request.params

    def lost(self, server: str, catalog: Catalog) -> None:
        """It is gone for now, and with it what it was told."""
        owners = ((uri, catalog.owner_of(uri)) for uri in self.kept)
        self.later |= {uri: self.kept[uri] for uri, owner in owners if owner is None or owner[0] == server}

    def due(self, catalog: Catalog, known: Known) -> set[str]:
        """The servers at which something is to be made again."""
        return {_owner(uri, catalog, known) for uri in self.later} - {""}

    def take(self, server: str, catalog: Catalog, known: Known) -> list[Request]:
        """What is to be made there again, as it knows it."""
        uris = [uri for uri in self.later if _owner(uri, catalog, known) == server]
        asked = [Request(0, methods.SUBSCRIBE, self.later.pop(uri)) for uri in uris]
        return [routed(request, catalog).request for request in asked]


def _owner(uri: str, catalog: Catalog, known: Known) -> str:
    """Whose that resource is, whatever will be known."""
    owner = catalog.owner_of(uri)
    return owner[0] if owner and (known.is_whole or catalog.find("resources", uri)) else ""
