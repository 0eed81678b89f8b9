"""The part of the composition root that says which servers are one, and where: at /mcp, at the URL of a group, and at
a server's own where something is said of what is shown of it."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TypeVar

from app.config import Config, choosing
from app.config.joining import Catalog
from app.core.conversation import Tolerance
from app.core.deadlines import Deadlines
from app.core.public_names import Naming
from app.core.shaping import Shaping
from app.gateway.settings import WHOLE_NAME, CatalogSettings, JointSettings, Mode, UpstreamSettings
from app.upstreams.child import ChildLimits
from app.upstreams.command import Command

_Numbers = TypeVar("_Numbers", Deadlines, Tolerance, ChildLimits)


def places(config: Config) -> list[str]:
    """The paths of all endpoints, each without its last part."""
    groups = [
        f"/groups/{name}" for name, group in config.viaduct.groups.items() if choosing.members(group, config.servers)
    ]
    return [*(f"/servers/{name}" for name in config.servers), *groups, ""]


def joints(config: Config, upstreams: Mapping[str, UpstreamSettings]) -> tuple[UpstreamSettings, ...]:
    """`upstreams` are all servers, by their names. A single one is nothing else at /mcp than at its own URL."""
    settings, servers = config.viaduct, config.servers
    found: list[UpstreamSettings] = []

    def join(name: str, of: Sequence[str], shaping: Shaping, naming: Naming, mode: Mode) -> None:
        catalog = settings.catalog
        joint = JointSettings(tuple(of), naming, shaping, mode, catalog.page_size, catalog.list_timeout, catalog.found)
        found.append(_joined(name, joint, [upstreams[server] for server in of]))

    if len(servers) > 1:
        join(WHOLE_NAME, list(servers), choosing.shaping(servers), settings.naming, settings.mode)
    elif settings.mode == "search":
        join(WHOLE_NAME, list(servers), choosing.shaping(servers), "none", settings.mode)
    for name, group in settings.groups.items():
        members = choosing.members(group, servers)
        if members:
            naming = group.naming or settings.naming
            join(f"/groups/{name}", list(members), choosing.shaping(members, group), naming, group.mode)
    for name, server in servers.items():
        if server.tools.says_something:
            join(f"/servers/{name}", [name], choosing.shaping({name: server}), "none", "list")
    return tuple(found)


def catalog(settings: Catalog) -> CatalogSettings:
    return CatalogSettings(
        begins=settings.read,
        retry_seconds=settings.retry,
        retry_max_seconds=settings.max_retry,
        fresh_seconds=settings.fresh,
        pages_max=settings.pages,
        patience_seconds=settings.read_timeout,
    )


def _joined(name: str, joint: JointSettings, members: Sequence[UpstreamSettings]) -> UpstreamSettings:
    """As patient as the most patient of its servers, and as careful with what clients keep as the most careful."""
    return UpstreamSettings(
        name,
        Command(()),
        deadlines=_largest([member.deadlines for member in members]),
        tolerance=_largest([member.tolerance for member in members]),
        limits=_largest([member.limits for member in members]),
        bounds=members[0].bounds,
        logs_payloads=members[0].logs_payloads,
        ttl_ms=min(member.ttl_ms for member in members),
        cache_scope="public" if all(member.cache_scope == "public" for member in members) else "private",
        joint=joint,
    )


def _largest(values: Sequence[_Numbers]) -> _Numbers:
    """Of each number."""
    return replace(
        values[0], **{each.name: max(getattr(value, each.name) for value in values) for each in fields(values[0])}
    )
