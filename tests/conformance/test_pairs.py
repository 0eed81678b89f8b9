"""The table must not be content with less than it claims, nor with excuses that nobody needs any more."""

from tests.conformance import pairs
from tests.conformance.pairs import Outcome, Pair
from tests.conformance.suite import Check, Scenario

PAIR = Pair("2026-07-28", "legacy", also=("http-header-validation",))
PASSED = (Check("a", "SUCCESS", ""),)
FAILED = (Check("a", "FAILURE", "went wrong"),)


def outcome(*runs: dict[str, tuple[Check, ...]], expected: dict[str, str] | None = None) -> Outcome:
    read = [{name: Scenario(name, checks) for name, checks in run.items()} for run in runs]
    return pairs.outcome(PAIR, ["caching", "tools-list"], read, expected or {})


def test_a_pair_is_good_when_all_that_counts_passed_and_nothing_else_matters() -> None:
    found = outcome(
        {"caching": PASSED, "tools-list": PASSED, "http-header-validation": PASSED, "tasks-lifecycle": FAILED}
    )
    assert found.is_good
    assert found.row() == ("2026-07-28", "legacy", "alone", "2/2", "1/1", "")


def test_an_unscored_scenario_that_is_wanted_counts() -> None:
    found = outcome({"caching": PASSED, "tools-list": PASSED, "http-header-validation": FAILED})
    assert [*found.faults()] == ["not passed: http-header-validation"]


def test_a_scenario_that_never_ran_did_not_pass() -> None:
    found = outcome({"caching": PASSED, "http-header-validation": PASSED})
    assert [*found.faults()] == ["not passed: tools-list"]


def test_a_scenario_must_pass_in_every_run() -> None:
    good: dict[str, tuple[Check, ...]] = {"caching": PASSED, "tools-list": PASSED, "http-header-validation": PASSED}
    assert not outcome(good, good | {"caching": FAILED}).is_good


def test_a_failure_that_was_expected_is_shown_and_forgiven() -> None:
    found = outcome(
        {"caching": FAILED, "tools-list": PASSED, "http-header-validation": PASSED}, expected={"caching": "because"}
    )
    assert found.is_good
    assert found.row() == ("2026-07-28", "legacy", "alone", "1/2", "1/1", "caching (expected)")


def test_an_excuse_that_nobody_needs_any_more_is_a_fault() -> None:
    found = outcome(
        {"caching": PASSED, "tools-list": PASSED, "http-header-validation": PASSED}, expected={"caching": "because"}
    )
    assert [*found.faults()] == [
        "passed, and is expected to fail: caching; remove it from expected_failures.yaml",
    ]


def test_an_excuse_for_what_does_not_count_is_a_fault() -> None:
    found = outcome(
        {"caching": PASSED, "tools-list": PASSED, "http-header-validation": PASSED}, expected={"cahcing": "because"}
    )
    assert [*found.faults()] == [
        "expected to fail, and does not count: cahcing; remove it from expected_failures.yaml",
    ]


def test_every_excuse_is_for_a_pair_that_is_run_and_gives_its_reason() -> None:
    listed = pairs.expected_failures()
    assert listed.keys() <= {pair.name for pair in pairs.PAIRS}
    assert all(reason.strip() for reasons in listed.values() for reason in reasons.values())


def test_the_table_is_aligned_and_names_what_did_not_pass() -> None:
    found = outcome({"caching": FAILED, "tools-list": PASSED, "http-header-validation": PASSED})
    assert pairs.table([found]) == [
        "client      server  place  required  unscored  not passed",
        "2026-07-28  legacy  alone  1/2       1/1       caching",
    ]
