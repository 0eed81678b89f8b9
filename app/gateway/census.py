"""What there is at each server now, counted when somebody asks."""

from collections.abc import Iterable

from app.gateway.exchanges import Exchanges
from app.gateway.live import LiveSession
from app.gateway.settings import UpstreamSettings
from app.telemetry.tally import Census


def taken(
    upstreams: Iterable[UpstreamSettings], sessions: Iterable[LiveSession], exchanges: Exchanges
) -> dict[str, Census]:
    counted = {upstream.name: _of_children(upstream) for upstream in upstreams}
    for session in sessions:
        census = counted[session.upstream]
        census.sessions += 1
        census.calls["legacy"] += session.call_count
        census.streams += session.stream_count
        census.waiting_bytes += session.waiting_bytes
    for exchange in exchanges:
        census = counted[exchange.asked.upstream.name]
        census.calls["modern"] += exchange.is_waiting
        census.streams += exchange.is_streaming
    for exchange in exchanges.parked:
        counted[exchange.asked.upstream.name].parked += 1
    return counted


def _of_children(upstream: UpstreamSettings) -> Census:
    census = Census()
    for child in upstream.tally.children:
        census.children[child.state] = census.children.get(child.state, 0) + 1
        census.waiting_bytes += child.waiting_bytes
    return census
