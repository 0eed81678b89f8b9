"""What a value of the config file must be. Durations are seconds."""

import re
from ipaddress import ip_network
from typing import Annotated, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from app.auth.expiry import unix_seconds
from app.auth.tokens import SCOPE, hash_of
from app.core.targets import Pattern

_YEAR = 31_536_000

Seconds = Annotated[float, Field(gt=0, le=_YEAR)]
Budget = Annotated[float, Field(ge=0, le=_YEAR)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Bytes = Annotated[int, Field(ge=1, le=1 << 34)]
Memory = Annotated[int, Field(ge=1 << 20, le=1 << 50)]
PerSecond = Annotated[float, Field(gt=0, le=1_000_000)]

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9]([a-z0-9._-]*[a-z0-9])?)(:\d{1,5})?")
_TAG = re.compile(r"[A-Za-z0-9._-]+")
_PUBLIC_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PATH = re.compile(r"([A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*")
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@,]+")


def public_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme.lower() not in ("http", "https") or not _is_netloc(parts):
        raise ValueError("must be like https://mcp.example.com, a path prefix allowed")
    if "?" in value or "#" in value or "//" in parts.path or ".." in parts.path or not _PATH.fullmatch(parts.path):
        raise ValueError("must have no query, no fragment and a plain path, like https://example.com/mcp-gateway")
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}{parts.path.rstrip('/')}"


def _is_netloc(parts: SplitResult) -> bool:
    return bool(_HOST.fullmatch(parts.netloc.lower())) and _has_possible_port(parts)


def allowed_host(value: str) -> str:
    host = value.lower()
    if not _HOST.fullmatch(host):
        raise ValueError("must be a host or host:port as in mcp.example.com, without scheme and path")
    return host


def allowed_origin(value: str) -> str:
    origin = value.lower().rstrip("/")
    if not _ORIGIN.fullmatch(origin):
        raise ValueError("must be an origin as in https://app.example.com, without path")
    return origin


def token_hash(value: str) -> str:
    lowered = value.lower()
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", lowered):
        raise ValueError("must be sha256: and 64 hexadecimal digits; `viaduct token` prints one")
    if lowered == hash_of(""):
        raise ValueError("must be that of a token, and is that of an empty text; `viaduct token` prints one")
    return lowered


def scope(value: str) -> str:
    if not SCOPE.fullmatch(value):
        raise ValueError("must be one word of visible ASCII without quotes and backslashes")
    return value


def expiry(value: object) -> object:
    """RFC 3339 with an offset, as unix seconds."""
    if not isinstance(value, str):
        raise ValueError("must be a time with an offset as in 2027-01-01T00:00:00Z")  # noqa: TRY004 - pydantic's way
    return unix_seconds(value)


def pattern(value: str) -> str:
    Pattern(value)
    return value


def tag(value: str) -> str:
    if not _TAG.fullmatch(value):
        raise ValueError("must be one word of A-Z a-z 0-9 . _ and -")
    return value


def public_name(value: str) -> str:
    """One that the APIs of models take."""
    if not _PUBLIC_NAME.fullmatch(value):
        raise ValueError("must be 1 to 64 of A-Z a-z 0-9 _ and -, for models know tools by such names only")
    return value


def absolute_path(value: str) -> str:
    if not value.startswith("/") or value.endswith("/") or "\0" in value:
        raise ValueError("must be an absolute path of a file as in /var/log/viaduct/audit.jsonl")
    return value


def plain_text(value: str) -> str:
    if "\0" in value:
        raise ValueError("must not hold a NUL character")
    return value


def url(value: str) -> str:
    """As the issuer writes it: it is compared letter by letter."""
    parts = urlsplit(value)
    is_plain = parts.hostname and "@" not in parts.netloc and not re.search(r"[\s#]", value)
    if parts.scheme not in ("http", "https") or not is_plain or not _has_possible_port(parts):
        raise ValueError("must be a URL as in https://idp.example.com, without a fragment")
    return value


def _has_possible_port(parts: SplitResult) -> bool:
    try:
        return parts.port != 0
    except ValueError:
        return False


def network(value: str) -> str:
    try:
        return str(ip_network(value))
    except ValueError as error:
        raise ValueError("must be an address or a network as in 10.0.0.0/8") from error


def listed(value: object) -> object:
    """One alone may stand for a list of one."""
    return [value] if isinstance(value, str) else value


def store_url(value: str) -> str:
    if value != "memory" and not re.fullmatch(r"sqlite:///[^?#]*[^/?#]", value):
        raise ValueError("must be memory, or a file as in sqlite:///var/lib/viaduct/sessions.db")
    return value


Text = Annotated[str, AfterValidator(plain_text)]
Audience = Annotated[tuple[Text, ...], BeforeValidator(listed), Field(strict=False)]
Algorithm = Literal["RS256", "RS384", "RS512", "ES256", "ES384", "ES512"]
PublicUrl = Annotated[str, AfterValidator(public_url)]
AllowedHosts = Annotated[tuple[Annotated[str, AfterValidator(allowed_host)], ...], Field(strict=False)]
AllowedOrigins = Annotated[tuple[Annotated[str, AfterValidator(allowed_origin)], ...], Field(strict=False)]
Words = Annotated[tuple[Text, ...], Field(strict=False)]
Scopes = Annotated[tuple[Annotated[str, AfterValidator(scope)], ...], Field(strict=False)]
Tags = Annotated[tuple[Annotated[str, AfterValidator(tag)], ...], Field(strict=False)]
Filled = Annotated[Text, Field(min_length=1)]
PublicName = Annotated[str, AfterValidator(public_name)]
Patterns = Annotated[tuple[Annotated[Text, AfterValidator(pattern)], ...], Field(strict=False)]


class Block(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        populate_by_name=False,
        hide_input_in_errors=True,
    )
