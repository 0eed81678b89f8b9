"""What there is at each server now, counted when somebody asks."""

from collections.abc import Iterable, Mapping

from app.core.supervision import ServerView
from app.gateway.exchanges import Exchanges
from app.gateway.live import LiveSession
from app.gateway.settings import UpstreamSettings
from app.gateway.sleepers import Sleepers
from app.telemetry.tally import Census


def taken(
    upstreams: Iterable[UpstreamSettings],
    views: Iterable[ServerView],
    sessions: Iterable[LiveSession],
    sleepers: Sleepers,
    exchanges: Exchanges,
    left: Iterable[ServerView] = (),
    unread: Mapping[str, str] | None = None,
) -> dict[str, Census]:
    """`views` are of these upstreams, in their order; `unread` says of whom the lists could not be read, and why. What
    there is still at servers that were `left` is counted with those of the same name."""
    counted = {upstream.name: _of_children(upstream, view) for upstream, view in zip(upstreams, views, strict=True)}
    for server, number in sleepers.by_server().items():
        if server in counted:
            counted[server].asleep = number
    for view in left:
        if view.name in counted:
            _count_children(counted[view.name], view)
    for server, reason in (unread or {}).items():
        if server in counted:
            counted[server].unread = reason
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
    return counted


def _of_children(upstream: UpstreamSettings, view: ServerView) -> Census:
    census = Census(state=view.state)
    _count_children(census, view)
    census.waiting_bytes = sum(child.waiting_bytes for child in upstream.tally.children)
    return census


def _count_children(census: Census, view: ServerView) -> None:
    for child in view.children:
        census.children[child.state] += 1
