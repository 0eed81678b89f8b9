"""What the public names of many servers mean, to who judges what may be done."""

from collections.abc import Callable

from msgspec import Raw

from app.core import finding
from app.core.catalog import Catalog
from app.core.targets import Kind, Target
from app.protocol.faults import BadParams
from app.protocol.jsonrpc import Request


class JointNames:
    """`catalog` gives what counts now; `finds` is whether there are tools that find and call others."""

    __slots__ = ("_catalog", "_finds")

    def __init__(self, catalog: Callable[[], Catalog], *, finds: bool) -> None:
        self._catalog = catalog
        self._finds = finds

    def target(self, kind: Kind, public: str) -> Target | None:
        """Whose it is, and what it is called there."""
        return self._catalog().target(kind, public)

    def shown(self, public: str) -> Raw | None:
        """What is said of a tool."""
        entry = self._catalog().find("tools", public)
        return None if entry is None else entry.shown

    def unwrapped(self, request: Request) -> Request:
        """
        Raises:
            BadParams: it is a call of a call, and not readable.
        """
        return finding.unwrapped(request) if self._finds else request

    def is_search(self, request: Request) -> bool:
        """Whether it is answered without any server."""
        try:
            return self._finds and finding.search(request, 1) is not None
        except BadParams:
            return True
