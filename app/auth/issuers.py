"""Where an issuer keeps its keys: where its operator said, or where its metadata says (RFC 8414, OpenID Discovery)."""

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from app.auth.compact import strict_object
from app.auth.outbound import Fetched, FetchFailed, Outbound

_KINDS = ("oauth-authorization-server", "openid-configuration")


class JwksSource:
    """`jwks_uri` is None where the metadata is to be asked."""

    def __init__(self, issuer: str, jwks_uri: str | None, outbound: Outbound) -> None:
        self._issuer = issuer
        self._jwks_uri = jwks_uri
        self._outbound = outbound

    async def __call__(self) -> Fetched:
        """
        Raises:
            FetchFailed: neither the metadata nor the keys can be had.
        """
        uri = self._jwks_uri or await self._said_by_metadata()
        return await self._outbound.fetch(uri)

    async def _said_by_metadata(self) -> str:
        async for document in self._documents():
            uri = document.get("jwks_uri")
            # Whoever could make another's metadata pass for this issuer's would choose its keys (RFC 8414, 3.3).
            if document.get("issuer") == self._issuer and isinstance(uri, str):
                return uri
        raise FetchFailed("the issuer's metadata does not say where its keys are; set jwksUri")

    async def _documents(self) -> AsyncIterator[dict[str, object]]:
        for url in well_known(self._issuer):
            answer = await self._outbound.fetch(url)
            if answer.status == 200:
                try:
                    yield strict_object(answer.body)
                except ValueError:
                    continue


def well_known(issuer: str) -> list[str]:
    """The places where its metadata may be: the path of an issuer goes behind the well-known part, or before it."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    urls = [f"{origin}/.well-known/{kind}{path}" for kind in _KINDS]
    return [*urls, f"{origin}{path}/.well-known/openid-configuration"] if path else urls
