"""Resources of many servers: whose each URI is, and what it is in public.

A URI is kept where one server alone lists it. Where two do, or where it could not be told whose it is, it becomes
`viaduct://{server}/{uri}`, which names the server and is read back by taking that away. The same goes for templates, so
that what a client makes of one is such a URI, too.
"""

import re

from app.core.targets import Glob

SCHEME = "viaduct://"

_EXPRESSION = re.compile(r"\{([^{}]*)\}")


def marked(server: str, uri: str) -> str:
    """The URI with its server's name; that has no character that means something in a URI."""
    return f"{SCHEME}{server}/{uri}"


def unmarked(uri: str) -> tuple[str, str] | None:
    """The server and its own URI, where it is one of ours."""
    if not uri.startswith(SCHEME):
        return None
    server, slash, own = uri[len(SCHEME) :].partition("/")
    return (server, own) if slash and own else None


def shape(template: str) -> str:
    """Two templates of one shape expand to the same URIs, whatever their variables are called."""
    return _EXPRESSION.sub(lambda found: "{" + _operator(found[1]) + "}", template)


def glob(template: str) -> Glob:
    """What a URI looks like that was made of it (RFC 6570): any characters stand for its variables."""
    return Glob(_EXPRESSION.sub("*", template))


def _operator(expression: str) -> str:
    return expression[:1] if expression[:1] in "+#./;?&" else ""
