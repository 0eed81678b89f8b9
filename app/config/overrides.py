"""What goes before the file: options of the command line, and before them only, `VIADUCT_*` variables."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from app.config.errors import ConfigError
from app.config.notes import Note
from app.config.reading import Tree

_SETTINGS = {
    "public_url": "publicUrl",
    "allowed_hosts": "allowedHosts",
    "allowed_origins": "allowedOrigins",
    "store": "store",
    "log_level": "logLevel",
    "log_format": "logFormat",
}
_OPTIONS = {"allowed_hosts": "--allowed-host", "allowed_origins": "--allowed-origin", "tokens": "--token"}
VARIABLES = frozenset(
    "ALLOWED_HOSTS ALLOWED_ORIGINS ALLOW_ROOT CONFIG HOST I_KNOW_THIS_IS_OPEN LISTEN LOG_FORMAT LOG_LEVEL NO_AUTH "
    "PORT PUBLIC_URL STORE TOKEN".split()
)
"""What comes behind VIADUCT_ in those that are read."""
_OF_KUBERNETES = re.compile(r"SERVICE_\w+|PORT_\d+_\w+")
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"", "0", "false", "no", "off"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """One layer of them; None and empty mean that nobody said anything."""

    origin: Literal["option", "variable"] = "option"
    listen: str | None = None
    host: str | None = None
    port: str | None = None
    public_url: str | None = None
    store: str | None = None
    log_level: str | None = None
    log_format: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    no_auth: bool | None = None
    open_is_known: bool = False
    """`--i-know-this-is-open`"""
    root_is_allowed: bool = False
    """`--allow-root`"""

    def spelled(self, field: str) -> str:
        """The name under which whoever set a field knows it."""
        if self.origin == "option":
            return _OPTIONS.get(field, f"--{field.replace('_', '-')}")
        return "VIADUCT_TOKEN" if field == "tokens" else f"VIADUCT_{field.upper()}"

    def settings(self) -> Iterator[tuple[str, str, object]]:
        """Those that are settings of the file too: key, who says so, value."""
        for field, key in _SETTINGS.items():
            value: str | tuple[str, ...] | None = getattr(self, field)
            if value:
                yield key, self.spelled(field), list(value) if isinstance(value, tuple) else value


def from_environment(environ: Mapping[str, str]) -> Overrides:
    return Overrides(
        origin="variable",
        listen=environ.get("VIADUCT_LISTEN") or None,
        host=environ.get("VIADUCT_HOST") or None,
        port=_port(environ),
        public_url=environ.get("VIADUCT_PUBLIC_URL") or None,
        store=environ.get("VIADUCT_STORE") or None,
        log_level=environ.get("VIADUCT_LOG_LEVEL", "").lower() or None,
        log_format=environ.get("VIADUCT_LOG_FORMAT", "").lower() or None,
        allowed_hosts=listed([environ.get("VIADUCT_ALLOWED_HOSTS", "")]),
        allowed_origins=listed([environ.get("VIADUCT_ALLOWED_ORIGINS", "")]),
        tokens=listed([environ.get("VIADUCT_TOKEN", "")]),
        no_auth=_switch(environ, "VIADUCT_NO_AUTH") if "VIADUCT_NO_AUTH" in environ else None,
        open_is_known=_switch(environ, "VIADUCT_I_KNOW_THIS_IS_OPEN"),
        root_is_allowed=_switch(environ, "VIADUCT_ALLOW_ROOT"),
    )


def misspelt(environ: Mapping[str, str]) -> list[Note]:
    """Of variables that are like one of ours and none. Others may be the file's own, as in ${VIADUCT_KEY}."""
    notes = []
    for name in sorted(environ):
        prefix, said, rest = name.partition("VIADUCT_")
        if prefix or not said or rest in VARIABLES or _OF_KUBERNETES.fullmatch(rest):
            continue
        near = difflib.get_close_matches(rest.upper(), sorted(VARIABLES), n=1)
        if near:
            event = f"the variable {name} means nothing; did you mean VIADUCT_{near[0]}?"
            notes.append(Note(event, is_warning=True))
    return notes


def listed(texts: Iterable[str]) -> tuple[str, ...]:
    """The parts of comma separated lists."""
    return tuple(part.strip() for text in texts for part in text.split(",") if part.strip())


def apply(tree: Tree, layers: tuple[Overrides, ...]) -> tuple[Tree, dict[str, str]]:
    """The `viaduct` block as the layers, the strongest last, leave it; and who set what."""
    merged = dict(tree)
    sources: dict[str, str] = {}
    for layer in layers:
        for key, source, value in layer.settings():
            merged[key] = value
            sources[f"viaduct.{key}"] = source
    return merged, sources


def _port(environ: Mapping[str, str]) -> str | None:
    """Kubernetes gives every pod a VIADUCT_PORT of its own making if a service is called viaduct."""
    port = environ.get("VIADUCT_PORT", "")
    return None if "://" in port else port or None


def _switch(environ: Mapping[str, str], name: str) -> bool:
    value = environ.get(name, "").strip().lower()
    if value not in _TRUE | _FALSE:
        raise ConfigError(f"{name} must be 1 or 0")
    return value in _TRUE
