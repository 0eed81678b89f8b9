"""What this process does for its own protection, before it starts what it does not trust."""

import ctypes
import logging
import os
from collections.abc import MutableMapping

from app.config.errors import ConfigError
from app.config.listening import Listen
from app.config.tree import SECRET_NAMES

log = logging.getLogger("viaduct")

_PR_SET_DUMPABLE = 4


def withdraw(environ: MutableMapping[str, str]) -> dict[str, str]:
    """A copy of all variables. Those whose name tells of a secret are taken away: who reads ours later, by a bug or a
    library's kindness, does not find them. (The kernel's own copy stays: see `close_memory`.)"""
    copied = dict(environ)
    for name in copied:
        if SECRET_NAMES.search(name):
            del environ[name]
    return copied


def refuse_root(listen: Listen, *, is_allowed: bool) -> None:
    """
    Raises:
        ConfigError: servers would run as root, and strangers reach them.
    """
    if os.geteuid() != 0 or listen.is_loopback:
        return
    if not is_allowed:
        raise ConfigError(
            f"on {listen} strangers would reach servers that run as root; "
            "run as another user, listen on 127.0.0.1, or add --allow-root"
        )
    log.warning("servers run as root, and can read and change everything, this gateway too")


def close_memory() -> None:
    """Servers run as the same user: without this they could read our memory and environment, and trace us. It is of no
    use against root. From here on there are no core dumps, and debuggers need to be root."""
    try:
        failed = ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0
    except (OSError, AttributeError):
        failed = True  # Not Linux.
    if failed:
        log.info("servers of the same user can read this process")
