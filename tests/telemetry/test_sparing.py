"""No event of the log crowds out the others."""

import logging

from app.telemetry.sparing import WHOLE, Sparing


def record(event: str = "refused", level: int = logging.INFO, name: str = "viaduct.edge") -> logging.LogRecord:
    return logging.LogRecord(name, level, "", 0, event, None, None)


def test_an_event_passes_so_often_in_a_second_and_then_says_how_many_did_not() -> None:
    now = 10.0
    spare = Sparing(2, lambda: now)
    assert [spare.filter(record()) for _ in range(5)] == [True, True, False, False, False]
    assert spare.filter(record("another"))
    now = 11.5
    late = record()
    assert spare.filter(late)
    assert vars(late)["suppressed"] == 3
    assert "suppressed" not in vars(record())


def test_one_event_of_two_loggers_is_two_events() -> None:
    spare = Sparing(1, lambda: 0.0)
    assert spare.filter(record(name="a"))
    assert spare.filter(record(name="b"))
    assert not spare.filter(record(name="a"))


def test_errors_and_what_is_logged_whole_always_pass() -> None:
    spare = Sparing(1, lambda: 0.0)
    assert all(spare.filter(record(level=logging.ERROR)) for _ in range(3))
    assert all(spare.filter(record(name=WHOLE)) for _ in range(3))
