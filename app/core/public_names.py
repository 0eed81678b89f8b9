"""What the tools and prompts of many servers are called in public, where each of them knows its own names only.

    time        get_current_time      time__get_current_time
    files       docs/read.txt         files__docs_read_txt_9rvfj5yaqa

A public name is one that model APIs accept. It depends on nothing but the server's name and the own name, so it is the
same in every run, whatever other servers there are. Where both names can be joined as they are, and read apart again,
they are. Otherwise each run of other characters becomes one `_`, the server's part is cut to 20 characters and the
whole to 53, and `_` and ten characters that tell it from all others follow: a digit, so that it looks like no word, and
nine letters or digits, both of the SHA-256 of the two names. A name that looks so by itself is written like that, too.
"""

import re
from base64 import b32encode
from hashlib import sha256
from typing import Literal, TypeAlias

Naming: TypeAlias = Literal["prefix", "onConflict", "none"]

LENGTH_MAX = 64
SEPARATOR = "__"

_LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OTHERS = re.compile(r"[^A-Za-z0-9-]+")
_SHORTENED = re.compile(r".*_[0-9][a-z2-7]{9}")
_TAIL = 10
_SERVER_MAX = 20


def prefixed(server: str, own: str) -> str:
    """The public name of what `server` calls `own`; no two have the same."""
    joined = f"{server}{SEPARATOR}{own}"
    return joined if _can_be_read_apart(server, own, joined) else _shortened(server, own)


def is_public(own: str) -> bool:
    """Whether a server's own name can be a public one beside prefixed ones, and never be one of those."""
    return bool(_LEGAL.fullmatch(own)) and SEPARATOR not in own and not _SHORTENED.fullmatch(own)


def _can_be_read_apart(server: str, own: str, joined: str) -> bool:
    """The first separator is where the server's name ends, and nothing of it looks as if it were shortened."""
    if SEPARATOR in server or server.endswith("_"):
        return False
    return bool(own) and bool(_LEGAL.fullmatch(joined)) and not _SHORTENED.fullmatch(joined)


def _shortened(server: str, own: str) -> str:
    digest = sha256(f"{len(server)} {server} {own}".encode("utf-8", "surrogatepass")).digest()
    tail = f"{digest[-1] % 10}{b32encode(digest).decode().lower()}"[:_TAIL]
    readable = f"{_spelt(server)[:_SERVER_MAX]}{SEPARATOR}{_spelt(own)}"[: LENGTH_MAX - _TAIL - 1]
    return f"{readable.rstrip('_') or 'x'}_{tail}"


def _spelt(name: str) -> str:
    return _OTHERS.sub("_", name).strip("_")
