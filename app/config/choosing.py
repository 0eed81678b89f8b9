"""What an operator chose of the servers' things, from settings to what the core knows, and what is wrong with it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from app.config import naming
from app.config.errors import ConfigError
from app.config.joining import Change as ChangeBlock
from app.config.joining import Group, Tools
from app.config.notes import Note
from app.config.wording import unknown_server
from app.core.shaping import Change, Choice, Shaping
from app.core.targets import Kind, Pattern, Target

if TYPE_CHECKING:
    from app.config.tree import Server, Viaduct

Servers = Mapping[str, "Server"]


def members(group: Group, servers: Servers) -> dict[str, "Server"]:
    """Those of its servers that are not disabled, in its order."""
    names = servers if group.servers is None else group.servers
    return {name: servers[name] for name in names if name in servers}


def shaping(servers: Servers, group: Group | None = None) -> Shaping:
    """What is shown of these servers together."""
    own = [_choice(server.tools, f"{name}/") for name, server in servers.items()]
    choices = [
        Choice(
            tuple(pattern for each in own for pattern in each.allow),
            tuple(pattern for each in own for pattern in each.deny),
            {target: change for each in own for target, change in each.changes.items()},
        ),
        _choice(Tools() if group is None else group.tools),
    ]
    return Shaping(
        tuple(each for each in choices if each.allow or each.deny or each.changes),
        {name: frozenset(server.tags) for name, server in servers.items() if server.tags},
        () if group is None or not group.tags else (frozenset(group.tags),),
    )


def check_changes(tools: Tools, where: str) -> None:
    """Of one server.

    Raises:
        ConfigError: one is of no tool or prompt.
    """
    for name in tools.change:
        _check_change(name, where)


def check_groups(viaduct: "Viaduct", servers: Servers, names: Sequence[str]) -> None:
    """`names` are those of all servers, of the disabled ones, too.

    Raises:
        ConfigError: one cannot be as it is written, or two things would have one name.
    """
    naming.check(viaduct.groups, "viaduct.groups", "group")
    known = names or tuple(servers)
    for name, group in viaduct.groups.items():
        where = f"viaduct.groups.{name}"
        _check_servers(group.servers or (), known, f"{where}.servers")
        _check_patterns(group.tools.allow, f"{where}.tools.allow")
        _check_patterns(group.tools.deny, f"{where}.tools.deny")
        for key in group.tools.change:
            server, _, own = key.partition("/")
            _check_change(own, f"{where}.tools.change", key)
            _check_servers((server,), known, f"{where}.tools.change")
        _check_names(members(group, servers), group, where)
    _check_names(servers, None, "mcpServers")


def notes(viaduct: "Viaduct", servers: Servers) -> Iterator[Note]:
    """What works, but perhaps not as meant."""
    for name, server in servers.items():
        own = [text for text in _said(server.tools) if text.startswith(f"{name}/")]
        if own:
            event = "a server's own tools are named without it: leave its name out"
            yield Note(event, {"server": name, "patterns": own}, is_warning=True)
    for name, group in viaduct.groups.items():
        yield from _group_notes(name, group, members(group, servers))


def _group_notes(name: str, group: Group, servers: Servers) -> Iterator[Note]:
    if not servers:
        yield Note("a group is left out: all of its servers are disabled", {"group": name}, is_warning=True)
        return
    lost = [text for text in _said(group.tools) if not any(Pattern(text).is_of(server) for server in servers)]
    if lost:
        yield Note("a pattern of a group fits no server of it", {"group": name, "patterns": lost}, is_warning=True)
    unknown = sorted(set(group.tags) - shaping(servers, group).known_tags())
    if unknown:
        yield Note("a group wants tags that nothing in it has", {"group": name, "tags": unknown}, is_warning=True)


def _said(tools: Tools) -> list[str]:
    return sorted({*tools.allow, *tools.deny, *tools.change})


def _choice(tools: Tools, prefix: str = "") -> Choice:
    return Choice(
        tuple(Pattern(prefix + text) for text in tools.allow),
        tuple(Pattern(prefix + text) for text in tools.deny),
        {_target(prefix + name): _change(change) for name, change in tools.change.items()},
    )


def _target(name: str) -> Target:
    pattern = Pattern(name)
    kind: Kind = pattern.kind or "tools"
    return Target(pattern.server.text, kind, pattern.name.text)


def _change(said: ChangeBlock) -> Change:
    return Change(said.name or "", said.title or "", said.description or "", said.enabled, frozenset(said.tags))


def _check_servers(named: Iterable[str], known: Sequence[str], where: str) -> None:
    for name in named:
        if name not in known:
            raise ConfigError(unknown_server(where, name, known))


def _check_patterns(patterns: Iterable[str], where: str) -> None:
    for index, text in enumerate(patterns):
        try:
            Pattern(text)
        except ValueError as wrong:
            raise ConfigError(f"{where}.{index} {wrong}") from None


def _check_change(own: str, where: str, key: str | None = None) -> None:
    """`key` is how it is written, where it is more than what a server calls it."""
    written = repr(own if key is None else key)
    if "*" in own:
        raise ConfigError(f"{where}: {written} must be one name; patterns belong into allow and deny")
    if own.startswith("resources/"):
        raise ConfigError(f"{where}: {written} is a resource, and these stay as they are; deny it where it shall go")
    if own in ("", "tools/", "prompts/"):
        example = "git_status or prompts/review" if key is None else "git/git_status or git/prompts/review"
        raise ConfigError(f"{where}: {written} names nothing; write {example}")


def _check_names(servers: Servers, group: Group | None, where: str) -> None:
    """As far as that can be seen before they have said what they offer."""
    chosen = shaping(servers, group)
    taken: dict[tuple[Kind, str], Target] = {}
    for target in dict.fromkeys(target for choice in chosen.choices for target in choice.changes):
        name = chosen.change(target).name
        if not name or target.server not in servers or not chosen.keeps(target):
            continue
        first = taken.setdefault((target.kind, name), target)
        if first is not target:
            both = f"{_spelt(first)} and {_spelt(target)}"
            raise ConfigError(f"{where}: {both} are both named {name!r}; give one of them another name")


def _spelt(target: Target) -> str:
    kind = "" if target.kind == "tools" else f"{target.kind}/"
    return f"{target.server}/{kind}{target.name}"
