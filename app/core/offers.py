"""What many servers offer to one session: what is known to all, but of those servers that offer it something else."""

from collections.abc import Container

from app.core.inventory import LISTED, Inventory
from app.core.joint_rules import Known, Rules


class Offers:
    def __init__(self, rules: Rules, known: Known) -> None:
        self.catalog = known.catalog
        self._rules = rules
        self._known = known
        self._own: dict[str, Inventory] = {}

    def of(self, server: str) -> Inventory:
        return self._own.get(server) or self._known.inventories.get(server) or Inventory()

    def read(self, server: str, inventory: Inventory) -> set[str]:
        """The session has read it itself. What its client would have to be told of is returned; what is the same for
        all is kept once for all."""
        if inventory == self._known.inventories.get(server):
            self._own.pop(server, None)
        else:
            self._own[server] = inventory
        return self._recompose()

    def learn(self, known: Known, rules: Rules, opened: Container[str]) -> set[str]:
        """Something else is known to all. It counts for all servers but those that were `opened` here, and those that
        nobody else can know."""
        self._known, self._rules, shared = known, rules, known.inventories
        self._own = {
            server: inventory
            for server, inventory in self._own.items()
            if inventory != shared.get(server)
            and (server in opened or (server in rules.eager and server not in shared))
        }
        return self._recompose()

    def renewed(self, server: str) -> set[str]:
        """What it offered says nothing any more."""
        self._own.pop(server, None)
        return self._recompose()

    def _recompose(self) -> set[str]:
        before, known = self.catalog, self._known
        self.catalog = known.catalog
        if self._own:
            self.catalog = self._rules.compose({**known.inventories, **self._own})
        return {listed.changed for shelf, listed in LISTED.items() if not self.catalog.is_like(before, shelf)}
