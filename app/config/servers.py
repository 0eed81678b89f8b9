"""The entries of `mcpServers`, with what other clients write into them."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from app.config import choosing, env_file, expansion, naming, references
from app.config.errors import ConfigError
from app.config.notes import Note
from app.config.reading import Tree
from app.config.tree import Server
from app.config.wording import sentence
from app.gateway.credentials import Template

IGNORED = ("autoApprove", "alwaysAllow", "timeout", "description", "icon", "dev", "gallery", "version", "trust")
"""Keys of other clients that change nothing here."""

_MEANT_FOR_US = ("type", "disabled", "envFile")
_REMOTE = ("url", "serverUrl", "httpUrl", "headers")
_LOCAL_TYPES = ("stdio", "local")


def read(entries: object, where: str, folder: Path, environ: Mapping[str, str]) -> tuple[dict[str, Server], list[Note]]:
    if not isinstance(entries, dict):
        raise ConfigError(
            f'{where} must be an object as in {{"time": {{"command": "uvx", "args": ["mcp-server-time"]}}}}'
        )
    naming.check(entries, where)
    servers: dict[str, Server] = {}
    notes: list[Note] = []
    for name, entry in entries.items():
        path = f"{where}.{name}"
        if not isinstance(entry, dict):
            raise ConfigError(f"{path} must be an object with a command")
        if _is_disabled(entry, path):
            notes.append(Note("a disabled server is left out", {"server": name}))
            continue
        ignored = sorted(set(entry) & set(IGNORED))
        if ignored:
            notes.append(Note("keys of other clients are ignored", {"server": name, "keys": ignored}))
        servers[name] = _server(entry, path, folder, environ)
    if not servers:
        raise ConfigError(f"{where} has no server to serve; add one or enable one")
    return servers, [*notes, *warnings(servers)]


def names(entries: object) -> tuple[str, ...]:
    """Of the disabled ones, too."""
    return tuple(entries) if isinstance(entries, dict) else ()


def built(entry: Tree, where: str) -> Server:
    """A server of plain values, checked."""
    try:
        server = Server.model_validate(entry)
    except ValidationError as error:
        raise sentence(error, Server, where, {}, (*IGNORED, *_MEANT_FOR_US)) from None
    _check_env(server.env, f"{where}.env")
    choosing.check_changes(server.tools, f"{where}.tools.change")
    return _with_consistent_deadlines(server, where)


def _server(entry: Tree, where: str, folder: Path, environ: Mapping[str, str]) -> Server:
    _check_kind(entry, where)
    kept = {key: value for key, value in entry.items() if key not in (*IGNORED, "type", "disabled")}
    known, templates = references.split(kept.get("env"), environ, f"{where}.env")
    expanded = expansion.expand(kept | ({"env": known} if templates else {}), environ, where)
    assert isinstance(expanded, dict)  # noqa: S101 - a dict stays one
    _check_command(expanded.get("command"), where)
    _expand_home(expanded, environ)
    if isinstance(cwd := expanded.get("cwd"), str):
        expanded["cwd"] = str(folder / cwd)
    named = expanded.pop("envFile", None)
    from_file = env_file.read(named, folder, f"{where}.envFile")
    server = built(expanded, where)
    _check_templates(server, templates, where)
    env = {name: value for name, value in {**from_file, **server.env}.items() if name not in templates}
    return server.with_env(env, templates, folder / named if isinstance(named, str) else None)


def _check_templates(server: Server, templates: Mapping[str, Template], where: str) -> None:
    _check_env(dict.fromkeys(templates, ""), f"{where}.env")
    references.check(templates, server.client_headers, where)
    if not references.is_of_client(templates):
        return
    if server.isolation == "shared":
        raise ConfigError(f"{where}.env names what one client says, and a shared child is everybody's; leave one out")
    if server.warm:
        raise ConfigError(f"{where}.env names what one client says, and warm children wait for anybody; set warm to 0")


def _is_disabled(entry: Tree, where: str) -> bool:
    disabled = entry.get("disabled", False)
    if not isinstance(disabled, bool):
        raise ConfigError(f"{where}.disabled must be true or false")
    return disabled


def _check_kind(entry: Tree, where: str) -> None:
    remote = next((key for key in _REMOTE if key in entry), None)
    if remote is None and entry.get("type", "stdio") in _LOCAL_TYPES:
        return
    named = f"{where}.{remote or 'type'}"
    raise ConfigError(
        f"{named}: Viaduct serves stdio commands and this entry is not one; give it a command, or remove it"
    )


def _check_command(command: object, where: str) -> None:
    if isinstance(command, list):
        raise ConfigError(f"{where}.command must be a string; put what follows the program into args")
    if isinstance(command, str) and " " in command.strip() and "/" not in command.split()[0]:
        raise ConfigError(f"{where}.command must be one program; put what follows {command.split()[0]!r} into args")


def _expand_home(entry: Tree, environ: Mapping[str, str]) -> None:
    for key in ("command", "cwd", "envFile"):
        if isinstance(value := entry.get(key), str):
            entry[key] = expansion.home(value, environ)
    if isinstance(args := entry.get("args"), list):
        entry["args"] = [expansion.home(arg, environ) if isinstance(arg, str) else arg for arg in args]


def _check_env(env: Mapping[str, str], where: str) -> None:
    for name in env:
        if not name or "=" in name or "\0" in name:
            raise ConfigError(f"{where}: {name!r} cannot be the name of a variable; rename it")


def _with_consistent_deadlines(server: Server, where: str) -> Server:
    """A lowered maximum lowers the default deadline; a contradiction that somebody wrote is an error."""
    if server.request_timeout <= server.max_request_timeout:
        return server
    if "request_timeout" not in server.model_fields_set:
        return server.model_copy(update={"request_timeout": server.max_request_timeout})
    raise ConfigError(
        f"{where}.requestTimeout ({server.request_timeout:g}) is above maxRequestTimeout "
        f"({server.max_request_timeout:g}); lower it or raise maxRequestTimeout"
    )


def warnings(servers: Mapping[str, Server]) -> list[Note]:
    """What works, but perhaps not as meant."""
    asking = [name for name, server in servers.items() if _would_ask(server)]
    notes = []
    if asking:
        notes.append(
            Note("npx may wait for an answer that nobody can give; add -y", {"servers": asking}, is_warning=True)
        )
    return notes


def _would_ask(server: Server) -> bool:
    """npx asks whether it may install, on a terminal that is not there."""
    if Path(server.command).name not in ("npx", "npx.cmd"):
        return False
    return not {"-y", "--yes", "--no-install", "--no"} & set(server.args)
