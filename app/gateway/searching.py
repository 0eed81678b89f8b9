"""Finding tools, in a thread of its own: a catalog is indexed when somebody first asks, and that takes its time."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from app.core.catalog import Catalog, Entry, Sight
from app.core.ranking import Ranker, described
from app.search.fts import Fts

log = logging.getLogger("viaduct.catalog")

_KEPT_MAX = 8
"""Catalogs that are indexed at a time; sessions may have their own."""

Then = Callable[[list[Entry]], None]


class Searching:
    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._asked: set[asyncio.Future[list[str]]] = set()
        self._is_closed = False
        self._rankers: OrderedDict[Catalog, Ranker] = OrderedDict()
        """The thread's alone."""

    def find(self, catalog: Catalog, query: str, limit: int, sees: Sight, then: Then) -> None:
        """The best of what may be seen, however much that is better may not be. `then` is told in any case, once."""
        if self._is_closed:
            then([])
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "viaduct-search")
        asked = asyncio.get_running_loop().run_in_executor(self._thread, self._ranked, catalog, query)
        self._asked.add(asked)
        asked.add_done_callback(self._asked.discard)
        asked.add_done_callback(partial(_found, catalog, limit, sees, then))

    def close(self) -> None:
        """What is being looked for finds nothing any more."""
        self._is_closed = True
        for asked in self._asked:
            asked.cancel()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.submit(self._forget)
            thread.shutdown(wait=False)

    def _ranked(self, catalog: Catalog, query: str) -> list[str]:
        ranker = self._rankers.get(catalog)
        if ranker is None:
            ranker = self._rankers[catalog] = Fts(
                described(entry.public, entry.server, entry.shown) for entry in catalog.entries["tools"]
            )
            if len(self._rankers) > _KEPT_MAX:
                self._rankers.popitem(last=False)[1].close()
        self._rankers.move_to_end(catalog)
        return ranker.rank(query, len(catalog.entries["tools"]))

    def _forget(self) -> None:
        for ranker in self._rankers.values():
            ranker.close()
        self._rankers.clear()


def _found(catalog: Catalog, limit: int, sees: Sight, then: Then, asked: "asyncio.Future[list[str]]") -> None:
    """Nobody waits for the thread: a bug there must not leave a call that is never answered."""
    wrong = None if asked.cancelled() else asked.exception()
    if wrong is not None:
        log.error("internal error", exc_info=wrong)
    names = [] if asked.cancelled() or wrong is not None else asked.result()
    entries = (catalog.find("tools", name) for name in names)
    then([entry for entry in entries if entry is not None and sees("tools", entry)][:limit])
