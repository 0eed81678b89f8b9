"""From a file, or a command, and what goes before it, to one checked configuration."""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from app.config import choosing, credentials, expansion, listening, naming, overrides, permissions, reading, servers
from app.config.errors import ConfigError
from app.config.listening import Listen
from app.config.notes import Note
from app.config.overrides import Overrides
from app.config.reading import Tree
from app.config.tree import Server, Token, Viaduct
from app.config.wording import sentence, unknown_key
from app.core.targets import Pattern
from app.telemetry import logs

log = logging.getLogger("viaduct.config")

_TOP_LEVEL = ("mcpServers", "servers", "viaduct")
_OF_OTHERS = ("$schema", "inputs")


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that was decided before the start."""

    servers: Mapping[str, Server]
    viaduct: Viaduct
    listen: Listen
    no_auth: bool = False
    may_be_root: bool = False
    """Whether the operator has said that servers may run as root where strangers reach them."""
    notes: tuple[Note, ...] = ()
    files: tuple[Path, ...] = ()
    """All that it was read from, but for the tokens file, which is looked at anyway."""

    def admitting(self, token: str) -> "Config":
        """The same, with one more token let in."""
        tokens = self.viaduct.auth.tokens
        entry = credentials.admitting(token, {known.name for known in tokens})
        auth = self.viaduct.auth.model_copy(update={"tokens": (*tokens, entry)})
        return replace(self, viaduct=self.viaduct.model_copy(update={"auth": auth}))

    @property
    def has_credentials(self) -> bool:
        return self.no_auth or self.viaduct.auth.has_any


def load(path: Path, environ: Mapping[str, str], given: Overrides | None = None) -> Config:
    """The configuration of a file; `given` goes before `environ`, and that before the file.

    Raises:
        ConfigError: one sentence that says what to change.
    """
    try:
        tree = reading.read(path)
        key = _servers_key(tree)
        found, notes = servers.read(tree[key], key, path.parent, environ)
        notes += permissions.notes(path, found)
        block = expansion.expand(tree.get("viaduct", {}), environ, "viaduct")
        config = _settled(block, found, notes, environ, given, path.parent, servers.names(tree[key]))
        env_files = [server.env_file for server in found.values() if server.env_file is not None]
        return replace(config, files=(path, *dict.fromkeys(env_files)))
    except ConfigError as error:
        text = str(error)
        raise ConfigError(
            text if str(path) in text or text.startswith(("-", "VIADUCT_")) else f"{path}: {text}"
        ) from None


def named_by(environ: Mapping[str, str]) -> Config:
    """The configuration of the file that VIADUCT_CONFIG names, for servers that are not ours to start.

    Raises:
        ConfigError: there is none, or nobody could be let in: here a token could be shown to nobody.
    """
    name = environ.get("VIADUCT_CONFIG")
    if not name:
        raise ConfigError("VIADUCT_CONFIG is not set; let it name the config file")
    config = load(Path(name), environ)
    if not config.has_credentials:
        raise ConfigError("no token is configured; set VIADUCT_TOKEN, or add one to viaduct.auth.tokens")
    return config


def single(
    command: Sequence[str],
    name: str | None,
    environ: Mapping[str, str],
    settings: Mapping[str, object] | None = None,
    given: Overrides | None = None,
) -> Config:
    """The configuration of one command, without a file; `settings` are further fields of its server.

    Raises:
        ConfigError: one sentence that says what to change.
    """
    if not command:
        raise ConfigError("a command is missing; give one as in uvx mcp-server-time")
    named = name or naming.derived(command)
    naming.check([named], "--name")
    entry: Tree = {"command": command[0], "args": list(command[1:]), **(settings or {})}
    found = {named: servers.built(entry, named)}
    return _settled({}, found, servers.warnings(found), environ, given)


def open_logs(config: Config) -> None:
    """Set logging up as configured, with this configuration's secrets kept out, and say what was noticed in it."""
    logs.configure(config.viaduct.log_level, config.viaduct.log_format, rate=config.viaduct.limits.log_rate)
    tell(config)


def tell(config: Config, former: Config | None = None) -> None:
    """Keep the secrets of a configuration out of the logs, and say what was noticed in it, and not in the `former`."""
    for server in config.servers.values():
        for value in server.secrets:
            logs.redact(value)
    for note in config.notes:
        if former is not None and note in former.notes:
            continue
        log.log(logging.WARNING if note.is_warning else logging.INFO, note.event, extra=dict(note.fields))


def _servers_key(tree: Tree) -> str:
    for key in tree:
        if key not in (*_TOP_LEVEL, *_OF_OTHERS):
            raise ConfigError(unknown_key(key, _TOP_LEVEL))
    keys = [key for key in ("mcpServers", "servers") if key in tree]
    if len(keys) == 2:
        raise ConfigError("mcpServers and servers are both there; move all entries under mcpServers")
    if not keys:
        raise ConfigError('mcpServers is missing; add it as in {"mcpServers": {"time": {"command": "uvx", ...}}}')
    return keys[0]


def _settled(
    block: object,
    found: Mapping[str, Server],
    notes: list[Note],
    environ: Mapping[str, str],
    given: Overrides | None,
    folder: Path = Path(),
    names: Sequence[str] = (),
) -> Config:
    """`names` are those of all servers, of the disabled ones, too."""
    layers = (overrides.from_environment(environ), given or Overrides())
    viaduct = _viaduct(block, layers)
    choosing.check_groups(viaduct, found, names)
    listen = _listen(viaduct.listen, layers)
    auth, about_auth = credentials.auth(viaduct.auth, layers)
    credentials.check_issuers(viaduct)
    if auth.tokens_file is not None:
        path = (folder / expansion.home(auth.tokens_file, environ)).absolute()
        credentials.tokens_in(path, auth.tokens)
        auth = auth.model_copy(update={"tokens_file": str(path)})
    settings: dict[str, object] = {"auth": auth, "listen": str(listen)}
    if not listen.is_any and not listen.is_loopback:
        settings["allowed_hosts"] = (*viaduct.allowed_hosts, listen.bracketed.lower())
    return Config(
        found,
        viaduct.model_copy(update=settings),
        listen,
        credentials.is_open(listen, layers),
        any(layer.root_is_allowed or layer.open_is_known for layer in layers),
        (
            *notes,
            *overrides.misspelt(environ),
            *about_auth,
            *_expired(auth.tokens),
            *_exposure(viaduct, listen),
            *_aimless(viaduct, found),
            *choosing.notes(viaduct, found),
        ),
    )


def _viaduct(block: object, layers: tuple[Overrides, ...]) -> Viaduct:
    if not isinstance(block, dict):
        raise ConfigError("viaduct must be an object")
    merged, sources = overrides.apply(block, layers)
    try:
        viaduct = Viaduct.model_validate(merged)
    except ValidationError as wrong:
        raise sentence(wrong, Viaduct, "viaduct", sources) from None
    if viaduct.limits.queue_bytes < viaduct.limits.body:
        raise ConfigError("viaduct.limits.queueBytes must be at least limits.body, or a large request never fits")
    return viaduct


def _listen(setting: str, layers: tuple[Overrides, ...]) -> Listen:
    listen = listening.parse(setting, "viaduct.listen")
    for layer in layers:
        if layer.listen is not None:
            listen = listening.parse(layer.listen, layer.spelled("listen"))
        if layer.host is not None:
            listen = replace(listen, host=listening.host(layer.host, layer.spelled("host")))
        if layer.port is not None:
            listen = replace(listen, port=listening.port(layer.port, layer.spelled("port")))
    return listen


def _exposure(viaduct: Viaduct, listen: Listen) -> list[Note]:
    if not listen.is_any or viaduct.allowed_hosts or viaduct.public_url:
        return []
    event = "only requests to localhost are served; name this machine with --allowed-host or --public-url"
    return [Note(event, {"listen": str(listen)}, is_warning=True)]


def _expired(tokens: tuple[Token, ...]) -> list[Note]:
    names = [token.name for token in tokens if token.expires_at is not None and token.expires_at <= time.time()]
    return [Note("a configured token has expired", {"names": names}, is_warning=True)] if names else []


def _aimless(viaduct: Viaduct, found: Mapping[str, Server]) -> list[Note]:
    """Patterns of a policy that no server's name fits: perhaps it was renamed."""
    patterns = {text for rule in viaduct.policy for text in (*rule.allow, *rule.deny)}
    lost = sorted(text for text in patterns if not any(Pattern(text).is_of(name) for name in found))
    return [Note("a pattern of the policy fits no server", {"patterns": lost}, is_warning=True)] if lost else []
