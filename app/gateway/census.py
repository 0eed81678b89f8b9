"""What there is at each server now, counted when somebody asks."""

from collections.abc import Iterable, Mapping

from app.core.supervision import ServerView
from app.gateway.exchanges import Exchanges
from app.gateway.live import LiveSession
from app.gateway.settings import UpstreamSettings
from app.gateway.sleepers import Sleepers
from app.telemetry.tally import Census


def taken(
    upstreams: Mapping[str, UpstreamSettings],
    joints: Iterable[UpstreamSettings],
    views: Iterable[ServerView],
    left: Iterable[ServerView],
    sessions: Iterable[LiveSession],
    sleepers: Sleepers,
    exchanges: Exchanges,
    unread: Mapping[str, str],
) -> dict[str, Census]:
    """What there is still at servers that were left is counted with those of the same name. `unread` says of which
    servers the lists could not be read, and why."""
    counted = {name: Census() for name in (*upstreams, *(joint.name for joint in joints))}
    for view in views:
        counted[view.name].state = view.state
        _count_children(counted[view.name], view)
    for view in left:
        if view.name in counted:
            _count_children(counted[view.name], view)
    for name, upstream in upstreams.items():
        counted[name].waiting_bytes = sum(child.waiting_bytes for child in upstream.tally.children)
    for server, number in sleepers.by_server().items():
        if server in counted:
            counted[server].asleep = number
    for server, reason in unread.items():
        if server in counted:
            counted[server].unread = reason
    _count_clients(counted, sessions, exchanges)
    return counted


def _count_clients(counted: Mapping[str, Census], sessions: Iterable[LiveSession], exchanges: Exchanges) -> None:
    nowhere = Census()
    for session in sessions:
        census = counted.get(session.upstream, nowhere)
        census.sessions += 1
        census.calls["legacy"] += session.call_count
        census.streams += session.stream_count
        census.waiting_bytes += session.waiting_bytes
    for exchange in exchanges:
        census = counted.get(exchange.asked.upstream.name, nowhere)
        census.calls["modern"] += exchange.is_waiting
        census.streams += exchange.is_streaming
    for exchange in exchanges.parked:
        counted.get(exchange.asked.upstream.name, nowhere).parked += 1


def _count_children(census: Census, view: ServerView) -> None:
    for child in view.children:
        census.children[child.state] += 1
