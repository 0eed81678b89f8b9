"""The configuration: a file as other MCP clients have it, with one block of ours, or a single command."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from app.config import expansion, naming, reading, servers
from app.config.errors import ConfigError
from app.config.notes import Note
from app.config.tree import Server, Viaduct
from app.config.wording import sentence, unknown_key

__all__ = ["Config", "ConfigError", "load", "single"]

_SERVER_KEYS = ("mcpServers", "servers")
_IGNORED = ("inputs", "$schema")


@dataclass(frozen=True, slots=True)
class Config:
    """`no_auth` where the operator asked for no authentication; `notes` are for the log."""

    servers: Mapping[str, Server]
    viaduct: Viaduct = field(default_factory=Viaduct)
    no_auth: bool = False
    notes: tuple[Note, ...] = ()


def load(path: Path, environ: Mapping[str, str]) -> Config:
    """The configuration of a file, with what the environment overrides.

    Raises:
        ConfigError: one sentence that says what to change.
    """
    tree = reading.read(path)
    for key in tree:
        if key not in (*_SERVER_KEYS, *_IGNORED, "viaduct"):
            raise ConfigError(unknown_key(key, (*_SERVER_KEYS, "viaduct")))
    present = [key for key in _SERVER_KEYS if key in tree]
    if len(present) != 1:
        many = "both mcpServers and servers; keep one" if present else 'no servers; add {"mcpServers": {...}}'
        raise ConfigError(f"{path} has {many}")
    found, notes = servers.read(tree[present[0]], present[0], path.absolute().parent, environ)
    return Config(found, _block(tree.get("viaduct", {}), environ), notes=tuple(notes))


def single(
    command: Sequence[str], name: str | None, environ: Mapping[str, str], settings: Mapping[str, object] | None = None
) -> Config:
    """The configuration of one command, without a file; `settings` are further fields of its server.

    Raises:
        ConfigError: one sentence that says what to change.
    """
    given = name or naming.derived(command)
    naming.check([given], "--name")
    entry = {"command": command[0], "args": list(command[1:]), **(settings or {})}
    return Config({given: servers.built(entry, given)}, _block({}, environ))


def _block(tree: object, environ: Mapping[str, str]) -> Viaduct:
    if not isinstance(tree, dict):
        raise ConfigError("viaduct must be an object")
    expanded = expansion.expand(tree, environ, "viaduct")
    merged, sources = overridden(expanded, environ)
    try:
        return Viaduct.model_validate(merged)
    except ValidationError as wrong:
        raise sentence(wrong, Viaduct, "viaduct", sources) from None


_SETTINGS = {
    "VIADUCT_LISTEN": "listen",
    "VIADUCT_PUBLIC_URL": "publicUrl",
    "VIADUCT_LOG_LEVEL": "logLevel",
    "VIADUCT_LOG_FORMAT": "logFormat",
}
_LISTS = {"VIADUCT_ALLOWED_HOSTS": "allowedHosts", "VIADUCT_ALLOWED_ORIGINS": "allowedOrigins"}


def overridden(tree: object, environ: Mapping[str, str]) -> tuple[dict[str, object], dict[str, str]]:
    """The block with what the environment sets, and which variable set which path."""
    merged: dict[str, object] = dict(tree) if isinstance(tree, dict) else {}
    sources: dict[str, str] = {}
    for variable, key in {**_SETTINGS, **_LISTS}.items():
        text = environ.get(variable)
        if text:
            merged[key] = [item.strip() for item in text.split(",") if item.strip()] if variable in _LISTS else text
            sources[f"viaduct.{key}"] = variable
    return merged, sources
