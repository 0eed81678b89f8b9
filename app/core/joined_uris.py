"""Resources of many servers: whose each URI is, and what it is in public.

A URI is kept where one server alone lists it. Where two do, or where it could not be told whose it is, it becomes
`viaduct://{server}/{uri}`, which names the server and is read back by taking that away. The same goes for templates, so
that what a client makes of one is such a URI, too: they are kept where nothing of another server begins like them.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from app.core.targets import Glob

SCHEME = "viaduct://"

Owned: TypeAlias = tuple[str, str]
"""A server, and a URI or a template of its own."""

_EXPRESSION = re.compile(r"\{[^{}]*\}")


def marked(server: str, uri: str) -> str:
    """The URI with its server's name; that has no character that means something in a URI."""
    return f"{SCHEME}{server}/{uri}"


def unmarked(uri: str) -> tuple[str, str] | None:
    """The server and its own URI, where it is one of ours."""
    if not uri.startswith(SCHEME):
        return None
    server, slash, own = uri[len(SCHEME) :].partition("/")
    return (server, own) if slash else None


def glob(template: str) -> Glob:
    """What a URI looks like that was made of it (RFC 6570): any characters stand for its variables."""
    return Glob(_EXPRESSION.sub("*", template))


def disputed(templates: Iterable[Owned], uris: Iterable[Owned]) -> set[Owned]:
    """Those of the templates that begin, up to their first variable, like what is another server's, or like ours."""
    forms = sorted((_beginning(template), server, template) for server, template in templates)
    taken = sorted({(begin, server) for begin, server, _ in forms} | {(uri, server) for server, uri in uris})
    found, above = set[Owned](), list[Owned]()
    for begin, server, template in forms:
        while above and not begin.startswith(above[-1][1]):
            above.pop()
        if any(other != server for other, _ in above) or _is_ours(begin) or _goes_on_elsewhere(begin, server, taken):
            found.add((server, template))
        if (server, begin) not in above[-1:]:
            above.append((server, begin))
    return found


def _beginning(template: str) -> str:
    return glob(template).text.partition("*")[0]


def _is_ours(begin: str) -> bool:
    return begin.startswith(SCHEME) or SCHEME.startswith(begin)


def _goes_on_elsewhere(begin: str, server: str, taken: Sequence[tuple[str, str]]) -> bool:
    for at in range(bisect_left(taken, (begin, "")), len(taken)):
        text, other = taken[at]
        if not text.startswith(begin):
            return False
        if other != server:
            return True
    return False
