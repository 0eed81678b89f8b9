"""What is counted, and how it is shown."""

import asyncio
import platform
import threading
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from app.protocol import faults
from app.protocol.jsonrpc import Failure, Result, failure, payload
from app.telemetry import metrics, tally
from app.telemetry.lag import LoopLag
from app.telemetry.metrics import Metrics, written
from app.telemetry.numbers import NUMBERS, TIMES, Known, Server
from app.telemetry.tally import METHODS, OUTCOMES, Calls, Census, ServerTally, Tally, Timing, count, outcome_of
from tests.support.metrics import Shown, shown

OK = Result(1, payload({}))


def known(*servers: str) -> Known:
    return Known("9", Tally(), 0, {name: Server(ServerTally(), Census()) for name in servers})


def read(what: Known) -> Shown:
    return shown(written(what).decode())


# Counting.


@pytest.mark.parametrize(("seconds", "place"), [(0.0, 0), (0.9, 0), (1.0, 0), (1.1, 1), (2.0, 1), (2.1, 2), (99.0, 2)])
def test_a_time_is_counted_at_the_first_bound_that_it_does_not_pass(seconds: float, place: int) -> None:
    timing = Timing((1.0, 2.0))
    timing.add(seconds)
    assert (timing.counts, timing.sum) == ([int(at == place) for at in range(3)], seconds)


def test_a_method_that_nobody_knows_is_counted_as_other() -> None:
    calls = Calls()
    for number in range(1000):
        calls.add(f"tools/{number}", OK, 0.1)
        calls.end(f"tools/{number}", "cancelled", 0.1)
    assert [(method, outcome, sum(timing.counts)) for method, outcome, timing in calls.all()] == [
        ("other", "ok", 1000),
        ("other", "cancelled", 1000),
    ]


def test_every_known_method_has_a_number_of_its_own() -> None:
    calls = Calls()
    for method in sorted(METHODS):
        calls.add(method, OK, 0.1)
        calls.add(method, OK, 0.1)
    assert {method: sum(timing.counts) for method, _, timing in calls.all()} == dict.fromkeys(METHODS, 2)


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (faults.Exited("it ended"), "exited"),
        (faults.TimedOut("too late"), "timed_out"),
        (faults.Overloaded("full", reason="queue"), "overloaded"),
        (faults.ShuttingDown("ending", reason="idle"), "shutting_down"),
        (faults.Cancelled("gone"), "cancelled"),
        (faults.BadParams("no such tool"), "error"),
    ],
)
def test_the_outcome_of_a_call_is_told_by_the_code_of_its_error(fault: faults.GatewayFault, outcome: str) -> None:
    assert outcome_of(failure(1, fault)) == outcome
    assert outcome in OUTCOMES


@pytest.mark.parametrize("error", [{}, {"code": "x"}, {"code": 1.5}, 7, "text", {"code": 10**30}])
def test_an_error_that_is_none_is_an_error_all_the_same(error: object) -> None:
    assert outcome_of(Failure(1, payload(error))) == "error"


def test_so_many_words_are_counted_and_no_more() -> None:
    words: dict[str, int] = {}
    for number in range(1000):
        count(words, str(number))
    count(words, "0")
    assert (len(words), words["0"], words["other"]) == (101, 2, 900)


# Showing.


def test_every_number_is_shown_from_the_start_where_its_labels_are_known() -> None:
    told = read(known("one", "two"))
    assert told["viaduct_build_info"].keys() >= {frozenset({("version", "9"), ("python", platform.python_version())})}
    for name in ("viaduct_sessions", "viaduct_child_restarts_total", "viaduct_streams"):
        assert told[name] == {frozenset({("server", server)}): 0 for server in ("one", "two")}
    assert told["viaduct_children"] == {
        frozenset({("server", server), ("state", state)}): 0 for server in ("one", "two") for state in tally.STATES
    }
    assert told["process_resident_memory_bytes"].popitem()[1] > 1 << 20


def test_calls_are_shown_by_era_method_and_outcome_and_their_time_by_method() -> None:
    what = known("one")
    server = what.servers["one"].tally
    server.legacy.add("ping", OK, 0.002)
    server.modern.add("ping", OK, 0.5)
    server.modern.add("ping", failure(1, faults.Exited("it ended")), 1000.0)
    told = read(what)
    counted = {tuple(sorted(dict(labels).values())): value for labels, value in told["viaduct_calls_total"].items()}
    assert counted == {
        ("legacy", "ok", "one", "ping"): 1,
        ("modern", "ok", "one", "ping"): 1,
        ("exited", "modern", "one", "ping"): 1,
    }
    buckets = {float(dict(at)["le"]): value for at, value in told["viaduct_call_seconds_bucket"].items()}
    assert [buckets[bound] for bound in (0.001, 0.0025, 0.25, 0.5, 300.0, float("inf"))] == [0, 1, 1, 2, 2, 3]
    labels = frozenset({("server", "one"), ("method", "ping")})
    assert told["viaduct_call_seconds_count"] == {labels: 3}
    assert told["viaduct_call_seconds_sum"] == {labels: pytest.approx(1000.502)}


def test_a_refusal_of_no_server_is_shown_under_an_empty_name() -> None:
    what = known("one")
    count(what.tally.refusals, "wrong_host")
    count(what.servers["one"].tally.refusals, "unauthorized")
    assert read(what)["viaduct_refusals_total"] == {
        frozenset({("server", ""), ("reason", "wrong_host")}): 1,
        frozenset({("server", "one"), ("reason", "unauthorized")}): 1,
    }


def test_names_are_those_that_the_format_asks_for() -> None:
    for number in NUMBERS:
        assert number.name.endswith("_total") == (number.kind == "counter"), number.name
    for time in TIMES:
        assert time.name.endswith("_seconds")


# Who asks.


@dataclass(eq=False)
class Stream:
    waiting_bytes: int


def of(numbers: Tally, census: Callable[[], dict[str, Census]]) -> Metrics:
    return Metrics(numbers, {"one": ServerTally()}, census, "9")


def test_what_waits_for_clients_is_added_up() -> None:
    numbers = Tally()
    numbers.writing |= {Stream(3), Stream(4)}
    text = asyncio.run(of(numbers, lambda: {"one": Census()}).text())
    assert shown(text.decode())["viaduct_client_queue_bytes"] == {frozenset(): 7}


def test_who_asks_while_the_numbers_are_written_gets_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    may_write, writings = threading.Event(), []

    def slowly(what: Known) -> bytes:
        writings.append(what)
        assert may_write.wait(5)
        return b"%d" % len(writings)

    async def ask() -> list[bytes]:
        numbers = of(Tally(), lambda: {"one": Census()})
        asked = [asyncio.ensure_future(numbers.text()) for _ in range(20)]
        for _ in range(3):
            await asyncio.sleep(0)
        asked[0].cancel()
        may_write.set()
        await asyncio.wait(asked)
        assert asked[0].cancelled()
        return [*(each.result() for each in asked[1:]), await numbers.text()]

    monkeypatch.setattr(metrics, "written", slowly)
    assert asyncio.run(ask()) == [b"1"] * 19 + [b"2"]


def test_a_loop_that_is_held_up_is_seen() -> None:
    async def hold_up() -> Timing:
        timing, rung = Timing((0.02,)), asyncio.Event()
        lag = LoopLag(timing, 0.01)
        lag.start()
        threading.Event().wait(0.1)
        asyncio.get_running_loop().call_later(0.03, rung.set)
        await asyncio.wait_for(rung.wait(), 5)
        lag.stop()
        return timing

    timing = asyncio.run(hold_up())
    assert timing.counts[1] >= 1
    assert timing.sum >= 0.05


def test_a_lag_that_was_stopped_leaves_no_timer() -> None:
    async def start_and_stop() -> None:
        timing = Timing((1.0,))
        lag = LoopLag(timing, 0.001)
        lag.start()
        lag.stop()
        lag.stop()
        passed = asyncio.Event()
        asyncio.get_running_loop().call_later(0.01, passed.set)
        await passed.wait()
        assert timing.counts == [0, 0]

    asyncio.run(start_and_stop())
