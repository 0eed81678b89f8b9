"""A file of static tokens that is looked at again and again: whom it lets in may change while we run."""

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from app.auth.tokens import Entry, StaticTokens

log = logging.getLogger("viaduct.auth")

_RACY_NS = 2_000_000_000
"""A file may change twice without its times telling: until it is so old, it is read again."""

_State = tuple[int, int, int, int]


class TokensFile:
    """`read` gives the file's entries. A file that is gone lets nobody in; one that is no such file changes nothing."""

    def __init__(
        self, path: Path, read: Callable[[Path], Sequence[Entry]], fixed: Sequence[Entry], tokens: StaticTokens
    ) -> None:
        """`fixed` are let in whatever it says; `read` raises ValueError for what is no such file."""
        self._path = path
        self._read = read
        self._fixed = fixed
        self._tokens = tokens
        self._seen: _State | None = None
        self._is_settled = False
        self._complaint = ""

    def look(self) -> None:
        state = self._state()
        if state == self._seen and self._is_settled:
            return
        self._is_settled = state is None or time.time_ns() - state[0] > _RACY_NS
        self._seen = state
        try:
            entries = [] if state is None else self._read(self._path)
        except ValueError as error:
            self._is_settled = False  # What cannot be read now may be later, and tell of it by nothing.
            if str(error) != self._complaint:
                self._complaint = str(error)
                log.error("the tokens file cannot be read, and those before it stay", extra={"cause": self._complaint})  # noqa: TRY400 - the cause is a sentence
            return
        self._complaint = ""
        came, went = self._tokens.replace([*self._fixed, *entries])
        if came or went:
            log.info("other tokens are let in", extra={"added": came, "removed": went})

    def _state(self) -> _State | None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        except OSError:
            return (0, 0, 0, 0)
        return found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns
