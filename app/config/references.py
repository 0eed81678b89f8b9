"""`${header:X-Name}`, `${claim:sub}`, `${file:/run/secrets/x}` in a server's `env`: filled in when a child starts."""

import re
from collections.abc import Mapping

from app.config import expansion
from app.config.errors import ConfigError
from app.gateway.credentials import Reference, Template
from app.upstreams.command import SecretFile

_REFERENCE = re.compile(r"\$\$\{|\$\{(header|claim|file):([^}]*)\}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_CLAIM = re.compile(r"[A-Za-z0-9_.:/-]+")
_OURS = frozenset(
    "authorization connection content-length content-type cookie forwarded host origin proxy-authorization te "
    "transfer-encoding upgrade".split()
)
"""Headers that are for us, or say nothing of whoever wrote them: above all, the one with the bearer token."""


def split(env: object, environ: Mapping[str, str], where: str) -> tuple[object, dict[str, Template]]:
    """The variables that are known now, and those that are not, with what is known of them filled in."""
    if not isinstance(env, dict):
        return env, {}
    templates = {
        name: _template(value, environ, f"{where}.{name}")
        for name, value in env.items()
        if isinstance(value, str) and any(found[1] for found in _REFERENCE.finditer(value))
    }
    return {name: value for name, value in env.items() if name not in templates}, templates


def check(templates: Mapping[str, Template], headers: tuple[str, ...], where: str) -> None:
    """
    Raises:
        ConfigError: a header is named that clients may not give, or cannot.
    """
    allowed = {header.lower() for header in headers}
    for header in headers:
        if not _HEADER.fullmatch(header) or header.lower() in _OURS or header.lower().startswith("mcp-"):
            raise ConfigError(f"{where}.clientHeaders: {header!r} is no header that a child may be given; use another")
    for name, template in templates.items():
        for part in template:
            if isinstance(part, Reference) and part.kind == "header" and part.name not in allowed:
                raise ConfigError(f"{where}.env.{name}: add {part.name!r} to {where}.clientHeaders")


def is_of_client(templates: Mapping[str, Template]) -> bool:
    return any(isinstance(part, Reference) for template in templates.values() for part in template)


def _template(value: str, environ: Mapping[str, str], where: str) -> Template:
    parts: list[str | SecretFile | Reference] = []
    at = 0
    for found in _REFERENCE.finditer(value):
        if found[1] is None:
            continue  # `$${`, which expansion knows.
        text = value[at : found.start()]
        parts += [_expanded(text, environ, where)] if text else []
        parts.append(_part(found[1], found[2], where))
        at = found.end()
    return (*parts, _expanded(value[at:], environ, where)) if at < len(value) else tuple(parts)


def _expanded(text: str, environ: Mapping[str, str], where: str) -> str:
    expanded = expansion.expand(text, environ, where)
    assert isinstance(expanded, str)  # noqa: S101 - a string stays one
    if "\0" in expanded:
        raise ConfigError(f"{where} must not hold a NUL character")
    return expanded


def _part(kind: str, body: str, where: str) -> SecretFile | Reference:
    if kind == "file":
        if not body.startswith("/"):
            raise ConfigError(f"{where}: ${{file:{body}}} must name an absolute path as in ${{file:/run/secrets/key}}")
        return SecretFile(body)
    name, has_default, default = body.partition(":-")
    pattern = _HEADER if kind == "header" else _CLAIM
    if not pattern.fullmatch(name):
        raise ConfigError(f"{where}: ${{{kind}:{name}}} names no {kind}")
    if kind == "header":
        return Reference("header", name.lower(), default if has_default else None)
    return Reference("claim", name, default if has_default else None)
