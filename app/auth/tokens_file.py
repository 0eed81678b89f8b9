"""A file of static tokens that is looked at again and again: whom it lets in may change while we run."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from app.auth.tokens import Entry, StaticTokens
from app.auth.watched import Watched

log = logging.getLogger("viaduct.auth")


class TokensFile:
    """`read` gives the file's entries. A file that is gone lets nobody in; one that is no such file changes nothing."""

    def __init__(
        self, path: Path, read: Callable[[Path], Sequence[Entry]], fixed: Sequence[Entry], tokens: StaticTokens
    ) -> None:
        """`fixed` are let in whatever it says; `read` raises ValueError for what is no such file."""
        self._file = Watched(path)
        self._read = read
        self._fixed = fixed
        self._tokens = tokens
        self._complaint = ""

    def look(self) -> None:
        file = self._file
        if not file.look():
            return
        try:
            entries = self._read(file.path) if file.is_there else []
        except ValueError as error:
            file.is_settled = False  # What cannot be read now may be later, and tell of it by nothing.
            if str(error) != self._complaint:
                self._complaint = str(error)
                log.error("the tokens file cannot be read, and those before it stay", extra={"cause": self._complaint})  # noqa: TRY400 - the cause is a sentence
            return
        self._complaint = ""
        came, went = self._tokens.replace([*self._fixed, *entries])
        if came or went:
            log.info("other tokens are let in", extra={"added": came, "removed": went})
