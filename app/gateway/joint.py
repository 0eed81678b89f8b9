"""Servers that are served as one, as one kind of client sees them."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from app.core.catalog import Catalog, Conflict, composed
from app.core.inventory import Inventory
from app.core.joint_names import JointNames
from app.core.joint_rules import Known, Rules
from app.core.shaping import WHOLE
from app.gateway.cataloguer import Cataloguer
from app.gateway.searching import Searching
from app.gateway.settings import JointSettings, UpstreamSettings
from app.protocol import aims
from app.protocol.faults import BadParams
from app.protocol.jsonrpc import Request

log = logging.getLogger("viaduct.catalog")

_TOLD_MAX = 10_000
_LINES_MAX = 20
"""Of the log, at once."""
_NOTHING = composed({}, "none", WHOLE)


class Joint:
    """`members` are its servers, by their names. One whose children are given something of their client's cannot be
    asked before there is a client: each session asks its own."""

    settings: JointSettings
    rules: Rules

    def __init__(
        self,
        upstream: UpstreamSettings,
        cataloguer: Cataloguer,
        searching: Searching,
        version: str,
        members: Mapping[str, UpstreamSettings],
    ) -> None:
        self.name = upstream.name
        self.find = searching.find
        """Gives the tools of a catalog that are nearest to a question."""
        self._cataloguer = cataloguer
        self._product = version
        self._told: set[Conflict] = set()
        """Conflicts that the log knows of."""
        self._known = Known({}, _NOTHING, is_whole=False)
        self.adopt(upstream, members)

    def adopt(self, upstream: UpstreamSettings, members: Mapping[str, UpstreamSettings]) -> None:
        """From now on they are joined so."""
        settings = upstream.joint
        assert settings is not None  # noqa: S101 - it is several
        own = frozenset(server for server in settings.servers if members[server].templates)
        limits = {server: members[server].deadlines for server in settings.servers}
        self.uneven = {server: its for server, its in limits.items() if its != upstream.deadlines}
        """The deadlines of servers that have others than all together."""
        self.settings = settings
        self.asked = [server for server in settings.servers if server not in own]
        self._version = -1
        self._learning_until: float | None = None
        is_search = settings.mode == "search"
        self.names = JointNames(lambda: self.known.catalog, finds=is_search)
        """What is known to whoever has no session."""
        self.rules = Rules(
            upstream.name,
            self._product,
            self._compose,
            is_search,
            settings.found,
            settings.page,
            self._cataloguer.settings.pages_max,
            settings.patience_seconds,
            upstream.bounds,
            own,
            reading=self._cataloguer.settings.patience_seconds,
        )

    @property
    def known(self) -> Known:
        """What is known now; whoever asks wants to know."""
        cataloguer = self._cataloguer
        if self._known.is_whole and self._version == cataloguer.version:
            return self._known
        cataloguer.want(self.asked)
        if self._version != cataloguer.version:
            self._version = cataloguer.version
            found = cataloguer.inventories
            inventories = {server: found[server] for server in self.settings.servers if server in found}
            is_whole = all(map(cataloguer.is_settled, self.asked))
            self._known = Known(inventories, self._compose(inventories), is_whole)
        return self._known

    def knows(self, request: Request) -> bool:
        """Whether it is known whose that is which the request is for: others may come that make it another's."""
        known = self.known
        if known.is_whole:
            return True
        try:
            aimed = aims.aimed(self.names.unwrapped(request))
        except BadParams:
            return True
        is_fixed = self.settings.naming == "prefix"
        named = () if aimed is None else aimed[1]
        return all(is_fixed and kind != "resources" and known.catalog.find(kind, name) for kind, name in named)

    async def learn(self, requests: Sequence[Request]) -> None:
        """Wait until it is known whose they are, but no longer than what is there is waited for in all."""
        if self._learning_until is None:
            self._learning_until = asyncio.get_running_loop().time() + self.rules.patience
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._learning_until):
                await self._cataloguer.until(lambda: all(map(self.knows, requests)))

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """As far as is known by now; nobody has seen them yet."""
        return self._composed(self._cataloguer.inventories).conflicts

    def watch(self, changed: Callable[[], None]) -> None:
        self._cataloguer.watch(changed)

    def unwatch(self, changed: Callable[[], None]) -> None:
        self._cataloguer.unwatch(changed)

    def announced(self, server: str) -> None:
        self._cataloguer.announced(server)

    def _compose(self, inventories: Mapping[str, Inventory]) -> Catalog:
        """Of what is known to all, or of what one session sees."""
        catalog = self._composed(inventories)
        if catalog.conflicts:
            self._tell(catalog.conflicts)
        return catalog

    def _composed(self, inventories: Mapping[str, Inventory]) -> Catalog:
        ordered = {server: inventories[server] for server in self.settings.servers if server in inventories}
        return composed(ordered, self.settings.naming, self.settings.shaping, self._known.catalog)

    def _tell(self, conflicts: tuple[Conflict, ...]) -> None:
        news = [conflict for conflict in conflicts if conflict not in self._told]
        for conflict in news[:_LINES_MAX]:
            extra = {
                "at": self.rules.name,
                "kind": conflict.shelf,
                "named": conflict.public,
                "servers": conflict.servers,
            }
            log.warning("two servers have something of one name: that of the second is left out", extra=extra)
        if len(news) > _LINES_MAX:
            more = {"at": self.rules.name, "count": len(news) - _LINES_MAX}
            log.warning("two servers have something of one name: there is more of that", extra=more)
        if len(self._told) > _TOLD_MAX:
            self._told.clear()
        self._told.update(conflicts)
