"""The numbers in the text format of Prometheus."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from app.telemetry.bugs import BugCount
from app.telemetry.lag import LoopLag
from app.telemetry.numbers import NUMBERS, TIMES, Known, Number, Server, Time
from app.telemetry.tally import Census, ServerTally, Tally, Timing


class Metrics:
    """`take_census` is asked from within the loop; the text is made in a thread, for that takes its time."""

    content_type = b"text/plain; version=0.0.4; charset=utf-8"

    def __init__(
        self,
        tally: Tally,
        servers: Mapping[str, ServerTally],
        take_census: Callable[[], Mapping[str, Census]],
        version: str,
        *,
        needs_token: bool = True,
        is_store_failing: Callable[[], bool] = lambda: False,
    ) -> None:
        self.needs_token = needs_token
        self._tally = tally
        self._servers = servers
        self._take_census = take_census
        self._version = version
        self._is_store_failing = is_store_failing
        self._lag = LoopLag(tally.lag_seconds)
        self._bugs = BugCount(tally)
        self._writing: asyncio.Task[bytes] | None = None

    def start(self) -> None:
        """Begin to watch the loop, from within it, and the log."""
        self._lag.start()
        self._bugs.start()

    def stop(self) -> None:
        self._lag.stop()
        self._bugs.stop()

    async def text(self) -> bytes:
        """All numbers. Who asks while they are being written gets the same as who asked before."""
        if self._writing is None or self._writing.done():
            self._writing = asyncio.get_running_loop().create_task(self._write(), name="metrics")
        return await asyncio.shield(self._writing)

    async def _write(self) -> bytes:
        census = self._take_census()
        servers = {name: Server(tally, census[name]) for name, tally in self._servers.items() if name in census}
        waiting = sum(stream.waiting_bytes for stream in self._tally.writing)
        known = Known(self._version, self._tally, waiting, servers, len(asyncio.all_tasks()), self._is_store_failing())
        return await asyncio.to_thread(written, known)


def written(known: Known) -> bytes:
    registry = CollectorRegistry()
    registry.register(_Numbers(known))
    ProcessCollector(registry=registry)
    return generate_latest(registry)


class _Numbers(Collector):
    def __init__(self, known: Known) -> None:
        self._known = known

    def describe(self) -> Iterable[Metric]:
        """Without it, everything would be read twice."""
        return []

    def collect(self) -> Iterator[Metric]:
        for number in NUMBERS:
            yield _counted(number, self._known)
        for time in TIMES:
            yield _timed(time, self._known)


def _counted(number: Number, known: Known) -> Metric:
    kind = GaugeMetricFamily if number.kind == "gauge" else CounterMetricFamily
    family = kind(number.name, number.says, labels=number.labels)
    for labels, value in number.read(known):
        family.add_metric(labels, value)
    return family


def _timed(time: Time, known: Known) -> Metric:
    family = HistogramMetricFamily(time.name, time.says, labels=time.labels)
    for labels, timing in time.read(known):
        family.add_metric(labels, _buckets(timing), timing.sum)
    return family


def _buckets(timing: Timing) -> list[tuple[str, float]]:
    """Each with all that took no longer."""
    total, buckets = 0, []
    for bound, number in zip((*map(str, timing.bounds), "+Inf"), list(timing.counts), strict=True):
        total += number
        buckets.append((bound, float(total)))
    return buckets
