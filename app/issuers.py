"""The part of the composition root that only those need who take tokens of issuers: its libraries load slowly."""

from collections.abc import Mapping

from app.auth.authentication import Signed
from app.auth.claims import Expected, Ours, spellings
from app.auth.introspection import Endpoint, Introspection
from app.auth.issuers import JwksSource
from app.auth.jwks import KeySet, Patience
from app.auth.jwt import JwtRules, JwtVerifier
from app.auth.outbound import Outbound
from app.config import tree


def verifiers(
    settings: tree.Viaduct, ours: Ours, former: Mapping[str, Signed]
) -> tuple[list[JwtVerifier], Introspection | None]:
    """Whoever the `former` ones were of, too, has its keys known already, for it may be down just now."""
    auth = settings.auth
    outbound = Outbound(settings.outbound.allow, seconds=settings.outbound.timeout, bytes_max=settings.outbound.body)
    asked = None if auth.introspection is None else _introspection(auth.introspection, settings, ours, outbound)
    signed = [_verifier(each, settings, ours, outbound) for each in auth.jwt]
    for verifier in signed:
        known = former.get(verifier.issuer)
        if isinstance(known, JwtVerifier):
            verifier.keys.succeed(known.keys)
    return signed, asked


def _verifier(jwt: tree.Jwt, settings: tree.Viaduct, ours: Ours, outbound: Outbound) -> JwtVerifier:
    jwks = settings.auth.jwks
    keys = KeySet(
        jwt.issuer,
        jwt.algorithms,
        JwksSource(jwt.issuer, jwt.jwks_uri, outbound),
        Patience(jwks.ttl, jwks.cooldown, jwks.max_stale),
        place=jwt.jwks_uri,
    )
    expected = _expected(jwt, jwt.issuer, settings, ours)
    return JwtVerifier(JwtRules(expected, jwt.algorithms, jwt.types), keys)


def _introspection(settings: tree.Introspection, of: tree.Viaduct, ours: Ours, outbound: Outbound) -> Introspection:
    endpoint = Endpoint(
        settings.endpoint,
        settings.client_id,
        settings.client_secret,
        settings.max_at_once,
        settings.max_waiting,
        settings.failures,
        settings.pause,
    )
    return Introspection(endpoint, _expected(settings, settings.issuer or settings.endpoint, of, ours), outbound)


def _expected(said: tree.Jwt | tree.Introspection, issuer: str, settings: tree.Viaduct, ours: Ours) -> Expected:
    """Where no audience is named, each endpoint is one, and all of us."""
    return Expected(
        issuer,
        spellings(said.audience or [settings.public_url or ""]),
        frozenset() if said.audience else spellings(ours.resources),
        said.scope_claim,
        said.leeway,
        said.max_lifetime,
        claims_read=ours.claims_read,
    )
