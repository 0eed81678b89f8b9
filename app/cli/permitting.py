"""Who may do what of all that the servers offer, by the policy, for who runs them to read."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from app.auth.policy import UNKNOWN, Hints, Policy
from app.auth.principal import Principal
from app.core.targets import Kind, Target
from app.telemetry.logs import printable

Offered: TypeAlias = Mapping[str, Sequence[Mapping[str, object]]]
"""What a server listed: the items of each list, by the name of that list."""
Permitted: TypeAlias = dict[str, dict[str, list[str]]]
"""By server and list, the names of what may be used."""

_LISTS: Mapping[str, tuple[Kind, str]] = {
    "tools": ("tools", "name"),
    "resources": ("resources", "uri"),
    "templates": ("resources", "uriTemplate"),
    "prompts": ("prompts", "name"),
}


def permitted(policy: Policy, principal: Principal, servers: Mapping[str, Offered]) -> Permitted:
    """What one principal may use; servers that it may not come to at all are left out."""
    rights = policy.rights(principal)
    found: Permitted = {}
    for server, offered in servers.items():
        if not rights.enter(server).is_allowed:
            continue
        found[server] = {}
        for listed, items in offered.items():
            kind, member = _LISTS[listed]
            named = [(str(item.get(member, "")), item) for item in items]
            found[server][listed] = [
                name
                for name, item in named
                if rights.allows(Target(server, kind, name), _hints(item) if kind == "tools" else UNKNOWN)
            ]
    return found


def lines(policy: Policy, principals: Iterable[Principal], servers: Mapping[str, Offered]) -> list[str]:
    """The same in words."""
    said = ["who may do what:"]
    for principal in principals:
        limits = policy.rights(principal).limits
        told = [f"scopes {' '.join(sorted(principal.scopes)) or 'none'}"]
        told += [f"{limits.per_minute} calls a minute"] if limits.per_minute is not None else []
        told += [f"{limits.concurrent} calls at once"] if limits.concurrent is not None else []
        said.append(f"  {printable(principal.name)} ({', '.join(told)})")
        found = permitted(policy, principal, servers)
        for server, lists in found.items():
            whole = all(len(names) == len(servers[server][listed]) for listed, names in lists.items())
            names = "; ".join(f"{kind}: {', '.join(map(printable, names))}" for kind, names in lists.items() if names)
            everything = "everything: " if whole and names else ""
            said.append(f"      {server}  {everything}{names or 'nothing that it lists'}")
        if not found:
            said.append("      nothing")
    return said


def _hints(tool: Mapping[str, object]) -> Hints:
    said = tool.get("annotations")
    if not isinstance(said, dict):
        return UNKNOWN
    return Hints.said(read_only=said.get("readOnlyHint"), destructive=said.get("destructiveHint"))
