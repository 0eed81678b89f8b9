"""Every number that is shown: one row each here, and one in docs/reference/metrics.md."""

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

from app.telemetry.tally import SERVER_STATES, Census, ServerTally, Tally, Timing, Words

Labels: TypeAlias = tuple[str, ...]
Counted: TypeAlias = Iterable[tuple[Labels, float]]
Timed: TypeAlias = Iterable[tuple[Labels, Timing]]


class Server(NamedTuple):
    """One server: what has happened there, and what there is now."""

    tally: ServerTally
    now: Census


class Known(NamedTuple):
    """All that numbers are read of. `waiting_bytes` is what clients have not taken yet, `tasks` what runs or waits."""

    version: str
    tally: Tally
    waiting_bytes: int
    servers: Mapping[str, Server]
    tasks: int = 0
    is_store_failing: bool = False


class Number(NamedTuple):
    """`read` gives a value for each set of labels that there is."""

    name: str
    kind: Literal["counter", "gauge"]
    says: str
    labels: Labels
    read: Callable[[Known], Counted]


class Time(NamedTuple):
    """How long something takes."""

    name: str
    says: str
    labels: Labels
    read: Callable[[Known], Timed]


def of_each(name: str, kind: Literal["counter", "gauge"], says: str, read: Callable[[Server], float]) -> Number:
    """One number of each server."""
    return Number(
        name, kind, says, ("server",), lambda known: [((at,), read(server)) for at, server in known.servers.items()]
    )


def by_word(
    name: str, kind: Literal["counter", "gauge"], says: str, label: str, read: Callable[[Server], Words]
) -> Number:
    """Some of each server, by what it is counted under."""

    def counted(known: Known) -> Counted:
        return [((at, *word), number) for at, server in known.servers.items() for word, number in _each(read(server))]

    return Number(name, kind, says, ("server", label), counted)


def _each(words: Words) -> Counted:
    return [((word,), number) for word, number in list(words.items())]


def _build(known: Known) -> Counted:
    return [((known.version, platform.python_version()), 1)]


def _states(known: Known) -> Counted:
    return [((at, state), server.now.state == state) for at, server in known.servers.items() for state in SERVER_STATES]


def _unread(known: Known) -> Counted:
    return [((at, server.now.unread), 1) for at, server in known.servers.items() if server.now.unread]


def _calls(known: Known) -> Iterator[tuple[Labels, float]]:
    for at, server in known.servers.items():
        for era, calls in (("legacy", server.tally.legacy), ("modern", server.tally.modern)):
            for method, outcome, timing in calls.all():
                yield (at, era, method, outcome), sum(timing.counts)


def _in_flight(known: Known) -> Counted:
    return [((at, era), number) for at, server in known.servers.items() for era, number in server.now.calls.items()]


def _call_seconds(known: Known) -> Iterator[tuple[Labels, Timing]]:
    """Of either era and every outcome together: to tell these apart would be very many numbers."""
    for at, server in known.servers.items():
        together: dict[str, Timing] = {}
        for calls in (server.tally.legacy, server.tally.modern):
            for method, _, timing in calls.all():
                together.setdefault(method, Timing(timing.bounds)).add_all(timing)
        for method, timing in together.items():
            yield (at, method), timing


def _start_seconds(known: Known) -> Timed:
    return [((at,), server.tally.child_start_seconds) for at, server in known.servers.items()]


def _refusals(known: Known) -> Iterator[tuple[Labels, float]]:
    """What was for no server is told under an empty name."""
    told = [("", known.tally.refusals), *((at, server.tally.refusals) for at, server in known.servers.items())]
    for at, words in told:
        for word, number in _each(words):
            yield (at, *word), number


NUMBERS = (
    Number("viaduct_build_info", "gauge", "1, with what is running in its labels", ("version", "python"), _build),
    of_each("viaduct_sessions", "gauge", "Sessions that are open", lambda at: at.now.sessions),
    of_each("viaduct_sessions_opened_total", "counter", "Sessions opened", lambda at: at.tally.sessions_opened),
    by_word(
        "viaduct_sessions_ended_total", "counter", "Sessions ended", "reason", lambda at: at.tally.sessions_ended
    ),
    of_each(
        "viaduct_sessions_asleep", "gauge", "Sessions in the store that no gateway has taken up yet",
        lambda at: at.now.asleep,
    ),
    Number(
        "viaduct_store_failing", "gauge", "1 where what is to outlive the gateway cannot be written", (),
        lambda known: [((), known.is_store_failing)],
    ),
    Number("viaduct_server_state", "gauge", "1 for the state that a server is in", ("server", "state"), _states),
    Number(
        "viaduct_server_unread", "gauge", "1 for why a server's lists could not be read", ("server", "reason"), _unread
    ),
    by_word("viaduct_children", "gauge", "Child processes", "state", lambda at: at.now.children),
    of_each("viaduct_child_starts_total", "counter", "Children started", lambda at: at.tally.child_starts),
    of_each(
        "viaduct_child_restarts_total", "counter", "Children started in the place of one that was lost",
        lambda at: at.tally.child_restarts,
    ),
    by_word(
        "viaduct_child_ends_total", "counter", "Children let go or given up", "reason", lambda at: at.tally.child_ends
    ),
    of_each(
        "viaduct_child_bad_lines_total", "counter", "Lines of children that were no messages, or too long",
        lambda at: at.tally.bad_lines,
    ),
    of_each(
        "viaduct_child_undelivered_total", "counter", "Messages for which a child's queue had no room",
        lambda at: at.tally.undelivered,
    ),
    of_each(
        "viaduct_child_queue_bytes", "gauge", "What waits for children to be ready, or to read",
        lambda at: at.now.waiting_bytes,
    ),
    Number(
        "viaduct_calls_total", "counter", "Requests that are over", ("server", "era", "method", "outcome"), _calls
    ),
    Number("viaduct_calls_in_flight", "gauge", "Requests whose clients wait", ("server", "era"), _in_flight),
    of_each(
        "viaduct_parked_calls", "gauge", "Stateless calls that wait for what their clients were asked",
        lambda at: at.now.parked,
    ),
    of_each("viaduct_streams", "gauge", "Event streams with a connection", lambda at: at.now.streams),
    of_each(
        "viaduct_events_replayed_total", "counter", "Events said again to clients that resumed",
        lambda at: at.tally.replayed,
    ),
    of_each(
        "viaduct_events_lost_total", "counter", "Answers no longer kept when their clients resumed",
        lambda at: at.tally.lost,
    ),
    Number(
        "viaduct_client_queue_bytes", "gauge", "What event streams hold that clients have not taken", (),
        lambda known: [((), known.waiting_bytes)],
    ),
    Number(
        "viaduct_notifications_left_out_total", "counter", "Notifications spared to clients that read too slowly", (),
        lambda known: [((), known.tally.left_out)],
    ),
    Number(
        "viaduct_slow_clients_total", "counter", "Connections closed because their clients read too slowly", (),
        lambda known: [((), known.tally.cut_off)],
    ),
    Number(
        "viaduct_audit_lost_total", "counter", "Records that could not be written to the audit", (),
        lambda known: [((), known.tally.audit_lost)],
    ),
    Number(
        "viaduct_refusals_total", "counter", "Requests refused before they were accepted", ("server", "reason"),
        _refusals,
    ),
    Number(
        "viaduct_reloads_total", "counter", "Configurations read again while one ran", ("result",),
        lambda known: _each(known.tally.reloads),
    ),
    Number("viaduct_tasks", "gauge", "Tasks of the event loop", (), lambda known: [((), known.tasks)]),
    Number(
        "viaduct_internal_errors_total", "counter", "Mistakes of ours, each with a traceback in the log", (),
        lambda known: [((), known.tally.bugs)],
    ),
)  # fmt: skip

TIMES = (
    Time("viaduct_call_seconds", "From a request to its answer", ("server", "method"), _call_seconds),
    Time("viaduct_child_start_seconds", "From the start of a child to its first answer", ("server",), _start_seconds),
    Time(
        "viaduct_loop_lag_seconds", "By how much a timer that rings twice a second was late", (),
        lambda known: [((), known.tally.lag_seconds)],
    ),
)  # fmt: skip
