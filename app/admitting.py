"""The part of the composition root that says who is let in: from settings to whom a token admits."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from app.auth.authentication import Authentication, Introspected, Keeping, Signed
from app.auth.claims import Ours
from app.auth.policy import EVERYTHING
from app.auth.tokens import Entry, StaticTokens
from app.auth.tokens_file import TokensFile
from app.config import Config, ConfigError, credentials, tree
from app.edge.oauth import ResourceServer
from app.gateway.credentials import claims_in


def authentication(config: Config, places: Sequence[str], former: Authentication | None = None) -> Authentication:
    """`places` are the paths of the servers, each without its last part. What lives as long as a token that the
    `former` one let in ends now, or when it was verified again, unless this one lets it in, too."""
    settings, auth = config.viaduct, config.viaduct.auth
    fixed = [_entry(token) for token in auth.tokens]
    static = StaticTokens(fixed) if former is None else former.static
    reload = None
    if auth.tokens_file is None:
        static.replace(fixed)
    else:
        file = TokensFile(Path(auth.tokens_file), partial(_entries, auth.tokens), fixed, static)
        file.look()
        reload = file.look
    resources = frozenset(f"{settings.public_url}{place}/{end}" for place in places for end in ("mcp", "sse"))
    ours = Ours(resources, claims_read(config))
    known = {} if former is None else former.issuers
    signed, introspected = _of_issuers(settings, ours, known) if auth.has_issuers else ([], None)
    return Authentication(
        static,
        signed,
        introspected,
        Keeping(auth.keep.signed, auth.keep.introspected, auth.keep.refused, auth.keep.max, auth.check_interval),
        reload,
        former=former,
    )


def resource_server(settings: tree.Viaduct) -> ResourceServer | None:
    """None where no issuer is configured from which a client could get a token."""
    auth = settings.auth
    issuers = [jwt.issuer for jwt in auth.jwt]
    if auth.introspection is not None and auth.introspection.issuer is not None:
        issuers.append(auth.introspection.issuer)
    if not issuers or settings.public_url is None:
        return None
    scopes = auth.scopes or _of_policy(settings.policy)
    return ResourceServer(settings.public_url, tuple(dict.fromkeys(issuers)), scopes)


def _of_policy(rules: Sequence[tree.PolicyRule]) -> tuple[str, ...]:
    """All that it names and that an issuer could grant."""
    named = dict.fromkeys(scope for rule in rules for scope in rule.scopes)
    return tuple(scope for scope in named if scope not in (EVERYTHING, credentials.OFFLINE))


def claims_read(config: Config) -> frozenset[str]:
    """By the policy, and by what children are given."""
    named = frozenset(name for rule in config.viaduct.policy for name in rule.claims)
    return named.union(*(claims_in(server.templates) for server in config.servers.values()))


def _of_issuers(
    settings: tree.Viaduct, ours: Ours, former: Mapping[str, Signed]
) -> tuple[Sequence[Signed], Introspected | None]:
    from app.issuers import verifiers

    return verifiers(settings, ours, former)


def _entries(fixed: tuple[tree.Token, ...], path: Path) -> list[Entry]:
    try:
        return [_entry(token) for token in credentials.tokens_in(path, fixed)]
    except ConfigError as error:
        raise ValueError(str(error)) from error


def _entry(token: tree.Token) -> Entry:
    return Entry(token.name, token.hash, frozenset(token.scopes), token.expires_at)
