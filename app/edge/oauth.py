"""What OAuth clients must know of us: whose tokens we take and for which URL (RFC 9728), and how we ask for one.

All of it is made of what the operator configured. Nothing that a request says about where it was sent is in it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from msgspec.json import encode

WELL_KNOWN = "/.well-known/oauth-protected-resource"
_BASE = ""


@dataclass(frozen=True, slots=True)
class Resource:
    """One URL as OAuth knows it. `names` are the audiences that mean it."""

    url: str
    metadata_url: str
    names: frozenset[str]
    scopes: tuple[str, ...]
    document: bytes


@dataclass(frozen=True, slots=True)
class ResourceServer:
    """`public_url` has no slash at its end; `issuers` are the authorization servers whose tokens we take."""

    public_url: str
    issuers: tuple[str, ...]
    scopes: tuple[str, ...] = ()

    def resource(self, path: str = _BASE) -> Resource:
        """What is at a path of ours. A token for the whole of us is one for everything here.

        The metadata is under our own URL, where a proxy that passes on nothing but that leaves it reachable.
        """
        url = self.public_url + path
        said: dict[str, object] = {
            "resource": url,
            "authorization_servers": self.issuers,
            "bearer_methods_supported": ["header"],
        }
        if self.scopes:
            said["scopes_supported"] = self.scopes
        names = frozenset({url, f"{url}/", self.public_url, f"{self.public_url}/"})
        return Resource(url, f"{self.public_url}{WELL_KNOWN}{path}", names, self.scopes, encode(said))


def paths(path: str, prefix: str) -> list[str]:
    """Where the metadata of a path is looked for: under our own URL, and where RFC 9728 puts it, before its path."""
    return [WELL_KNOWN + path, *([WELL_KNOWN + prefix + path] if prefix else [])]


def challenge(resource: Resource | None, error: str = "", scopes: Iterable[str] = ()) -> bytes:
    """The value of WWW-Authenticate (RFC 6750, section 3); plain where nobody could get a token from an issuer.

    A client that sent no token did nothing wrong, so that it is told of no error.
    """
    wanted = " ".join(scopes)
    if resource is None and not wanted:
        return b"Bearer"
    said = {"error": error} if error else {}
    if resource is not None:
        said["resource_metadata"] = resource.metadata_url
        wanted = wanted or " ".join(resource.scopes)
    if wanted:
        said["scope"] = wanted
    parameters = ", ".join(f'{name}="{value}"' for name, value in said.items())
    return f"Bearer {parameters}".encode("ascii")
