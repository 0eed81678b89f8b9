"""A file that is looked at again and again, for it may be another one by now.

Looked at is what its path leads to: an editor puts another file in its place, and Kubernetes another folder.
"""

import time
from pathlib import Path

_RACY_NS = 2_000_000_000
"""A file may change twice without its times telling: until it is so old, it is read again."""

State = tuple[int, int, int, int]


class Watched:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_settled = False
        """Whether it need not be read again before its state is another; whoever could not read it may say no."""
        self._seen: State | None = None

    def look(self) -> bool:
        """Whether it may be another one than when it was looked at before."""
        state = state_of(self.path)
        if state == self._seen and self.is_settled:
            return False
        self.is_settled = state is None or time.time_ns() - state[0] > _RACY_NS
        self._seen = state
        return True

    @property
    def is_there(self) -> bool:
        return self._seen is not None


def state_of(path: Path) -> State | None:
    """By which another file is told from this one; None where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    except OSError:
        return (0, 0, 0, 0)
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns
