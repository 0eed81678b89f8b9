"""Who is let in: the tokens of the file and those given for this run, or everybody if the operator says so."""

from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from app.auth.principal import ANONYMOUS
from app.auth.tokens import BEARER, WEAK_LENGTH, hash_of
from app.config import reading
from app.config.errors import ConfigError
from app.config.listening import Listen
from app.config.notes import Note
from app.config.overrides import Overrides
from app.config.tree import Auth, Token, TokenList, Viaduct
from app.config.wording import sentence
from app.telemetry import logs

OFFLINE = "offline_access"
"""The scope by which a client gets a refresh token (OpenID Connect): its own affair."""


def auth(from_file: Auth, layers: tuple[Overrides, ...]) -> tuple[Auth, list[Note]]:
    """The file's tokens, and those of the strongest layer that gives any: only their hashes are kept."""
    check_names(from_file.tokens)
    if from_file.introspection is not None:
        logs.redact(from_file.introspection.client_secret)
    layer = next((layer for layer in reversed(layers) if layer.tokens), None)
    if layer is None:
        return from_file, []
    source = layer.spelled("tokens")
    for token in layer.tokens:
        logs.redact(token)
        if not BEARER.fullmatch(token):
            raise ConfigError(f"{source} may hold only letters, digits and -._~+/ with = at the end")
    taken = {token.name for token in from_file.tokens}
    added = [admitting(token, taken, number) for number, token in enumerate(dict.fromkeys(layer.tokens), start=1)]
    weak = [entry.name for entry, token in zip(added, layer.tokens, strict=False) if len(token) < WEAK_LENGTH]
    notes = [
        Note(
            "a token is short enough to be guessed; `viaduct token` makes a long one", {"names": weak}, is_warning=True
        )
    ]
    return from_file.model_copy(update={"tokens": (*from_file.tokens, *added)}), notes if weak else []


def admitting(token: str, taken: Iterable[str] = (), number: int = 1) -> Token:
    """The entry that lets a plain token in."""
    name = "token" if number == 1 else f"token-{number}"
    while name in taken:
        name += "-given"
    return Token(name=name, hash=hash_of(token))


def is_open(listen: Listen, layers: tuple[Overrides, ...]) -> bool:
    """Whether nobody is asked for a token."""
    layer = next((layer for layer in reversed(layers) if layer.no_auth is not None or layer.tokens), None)
    if layer is None or not layer.no_auth:
        return False
    source = layer.spelled("no_auth")
    if layer.tokens:
        raise ConfigError(f"{source} and {layer.spelled('tokens')} contradict each other; leave one out")
    if not listen.is_loopback and not any(each.open_is_known for each in layers):
        raise ConfigError(
            f"{source} on {listen} would let anybody in who reaches it; "
            "use a token, listen on 127.0.0.1, or add --i-know-this-is-open"
        )
    return True


def check_issuers(settings: Viaduct) -> None:
    """What is to be checked of a token must be known."""
    auth = settings.auth
    if auth.has_issuers and settings.public_url is None:
        raise ConfigError("viaduct.publicUrl is missing; add it, for by that URL OAuth clients and issuers know us")
    if OFFLINE in auth.scopes:
        raise ConfigError(f"viaduct.auth.scopes must not have {OFFLINE}; leave that to the clients")
    for index, jwt in enumerate(auth.jwt):
        if jwt.issuer in [earlier.issuer for earlier in auth.jwt[:index]]:
            raise ConfigError(f"viaduct.auth.jwt.{index}.issuer {jwt.issuer!r} is there twice; keep one")


def tokens_in(path: Path, fixed: tuple[Token, ...] = ()) -> tuple[Token, ...]:
    """The tokens of a file that holds nothing else; `fixed` are those that are let in beside them.

    Raises:
        ConfigError: it is no such file.
    """
    try:
        tokens = TokenList.model_validate(reading.read(path)).tokens
    except ValidationError as wrong:
        raise sentence(wrong, TokenList, str(path), {}) from None
    check_names((*fixed, *tokens), f"{path}: tokens", len(fixed))
    return tokens


def check_names(tokens: tuple[Token, ...], listed: str = "viaduct.auth.tokens", skipped: int = 0) -> None:
    """`skipped` tokens at the beginning are not from that list."""
    for index, token in enumerate(tokens):
        where = f"{listed}.{index - skipped}"
        if token.name == ANONYMOUS.name:
            raise ConfigError(f"{where}.name {token.name!r} is kept for those without a token; rename it")
        for earlier in tokens[:index]:
            if token.name == earlier.name:
                raise ConfigError(f"{where}.name {token.name!r} is taken by an earlier token; rename it")
            if token.hash == earlier.hash:
                raise ConfigError(f"{where}.hash is that of {earlier.name!r} too; make a token of its own")
