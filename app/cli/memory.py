"""The C library's memory, which it would rather keep: a gateway has large messages now and then, and lives for long.

glibc learns from each large block that is freed to take the next ones out of its arenas (mallopt(3): "dynamic mmap
threshold"), where they leave holes; and each thread may get an arena of its own. Measured in an hour of the soak, that
is 6 MB of nothing after half an hour, while what Python has stays the same.
"""

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_LARGE = 256 << 10
"""Blocks of so many bytes are mapped each by itself, and go back as soon as they are freed."""
_ARENAS = 2


def give_back() -> None:
    """From now on what is freed goes back to the machine soon. Other C libraries have no such settings."""
    library = ctypes.CDLL(None)
    mallopt = getattr(library, "mallopt", None)
    if mallopt is None:
        return
    for setting, value in ((_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _LARGE), (_ARENA_MAX, _ARENAS)):
        mallopt(setting, value)
