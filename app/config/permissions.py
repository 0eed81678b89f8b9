"""Who else can read or change a config file: whoever can change it has commands run in our name."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from app.config.notes import Note
from app.config.tree import Server


def notes(path: Path, servers: Mapping[str, Server]) -> list[Note]:
    try:
        status = path.stat()
    except OSError:
        return []
    found = []
    if status.st_uid not in (0, os.geteuid()):
        found.append("the config file belongs to somebody else, who can have commands run; chown it")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        found.append("others can change the config file, and have commands run; chmod go-w it")
    if status.st_mode & stat.S_IROTH and any(server.secrets for server in servers.values()):
        found.append("everybody can read the config file, which has secrets in env; chmod o-r it, or use ${VAR}")
    return [Note(event, {"path": str(path)}, is_warning=True) for event in found]
