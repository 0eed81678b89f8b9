"""The conformance run must not be content with less than it claims."""

import json
from pathlib import Path

from tests.conformance import verdict
from tests.conformance.suite import Check, Scenario, read

POLLING = "server-sse-polling"
PROVED = [Check(check, "SUCCESS", "") for check in sorted(verdict.MUST_SUCCEED[POLLING])]


def polling(*checks: Check) -> dict[str, bool]:
    return verdict.proved({POLLING: Scenario(POLLING, checks)}, POLLING)


def test_a_warning_does_not_cost_a_required_scenario_its_pass_but_is_listed() -> None:
    scenarios = {"ping": Scenario("ping", (Check("ping", "SUCCESS", ""), Check("slow", "WARNING", "slow answer")))}
    assert verdict.passed(scenarios, "ping")
    assert verdict.complaints(scenarios) == ["WARNING ping slow: slow answer"]


def test_one_failure_costs_a_scenario_its_pass() -> None:
    scenarios = {"ping": Scenario("ping", (Check("ping", "SUCCESS", ""), Check("wire", "FAILURE", "bad")))}
    assert not verdict.passed(scenarios, "ping")
    assert verdict.failed(scenarios) == ["ping"]


def test_a_scenario_that_left_no_result_has_not_passed() -> None:
    assert not verdict.passed({}, "ping")
    assert not verdict.passed({"ping": Scenario("ping", ())}, "ping")


def test_log_rows_of_the_suite_are_no_fault() -> None:
    assert all(polling(*PROVED, Check("outgoing-request", "INFO", "")).values())


def test_a_resumption_that_is_only_noted_is_not_proved() -> None:
    resume = "server-sse-disconnect-resume"
    others = [check for check in PROVED if check.id != resume]
    assert polling(*others, Check(resume, "INFO", ""))[resume] is False


def test_a_check_that_is_missing_is_not_proved() -> None:
    assert polling() == dict.fromkeys(verdict.MUST_SUCCEED[POLLING], False)
    assert not any(verdict.proved({}, POLLING).values())


def test_another_check_that_warns_counts_against_the_scenario() -> None:
    assert polling(*PROVED, Check("server-sse-polling-session", "WARNING", ""))["server-sse-polling-session"] is False


def test_results_are_read_by_scenario_and_an_unfinished_one_has_no_checks(tmp_path: Path) -> None:
    saved = tmp_path / "server-server-sse-polling-2026-11-30T05-17-46-915Z"
    saved.mkdir()
    rows = [
        {"id": "a", "status": "FAILURE", "description": "says", "errorMessage": "went wrong"},
        {"id": "b", "status": "SUCCESS", "description": "says"},
    ]
    (saved / "checks.json").write_text(json.dumps(rows))
    (tmp_path / "server-ping-2026-11-30T05-17-46-854Z").mkdir()
    (tmp_path / "suite.log").touch()
    assert read(tmp_path) == {
        "ping": Scenario("ping", ()),
        POLLING: Scenario(POLLING, (Check("a", "FAILURE", "went wrong"), Check("b", "SUCCESS", "says"))),
    }
