"""The socket that clients connect to: taken before anything starts, so that what is wrong with it is one sentence."""

import errno
import socket

from app.config import ConfigError
from app.config.listening import Listen

BACKLOG = 2048


def listener(listen: Listen) -> socket.socket:
    """A listening socket.

    Raises:
        ConfigError: nobody can listen there, and what else would work.
    """
    try:
        family, address = _address(listen)
        taken = socket.socket(family, socket.SOCK_STREAM)
    except OSError as wrong:
        raise ConfigError(_sentence(listen, wrong)) from wrong
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
        # Two sockets may be bound to one address; only one may listen.
        taken.listen(BACKLOG)
    except OSError as wrong:
        taken.close()
        raise ConfigError(_sentence(listen, wrong)) from wrong
    taken.setblocking(False)
    return taken


def _address(listen: Listen) -> tuple[socket.AddressFamily, tuple[object, ...]]:
    """Of a name with both kinds of address, the one that more clients try."""
    found = socket.getaddrinfo(listen.host, listen.port, type=socket.SOCK_STREAM)
    family, _, _, _, address = min(found, key=lambda candidate: candidate[0] != socket.AF_INET)
    return family, address


def _sentence(listen: Listen, wrong: OSError) -> str:
    if wrong.errno == errno.EADDRINUSE:
        return f"cannot listen on {listen}: the port is in use; choose another with --port, 0 picks a free one"
    if wrong.errno in (errno.EACCES, errno.EPERM):
        return f"cannot listen on {listen}: that is not permitted; choose a port above 1023 with --port"
    if isinstance(wrong, socket.gaierror):
        return f"cannot listen on {listen}: no address of that name is known; choose another with --host"
    cause = (wrong.strerror or "error").lower()
    return f"cannot listen on {listen}: {cause}; choose an address of this machine with --host"
