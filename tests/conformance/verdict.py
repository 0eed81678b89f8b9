"""What a run of the suite is worth: which scenarios count, and which of their checks must have succeeded."""

from collections.abc import Mapping

from tests.conformance.suite import Scenario

MUST_SUCCEED: Mapping[str, frozenset[str]] = {
    "server-session-lifecycle": frozenset(
        {
            "server-session-initialized-accepted",
            "server-session-delete-accepted",
            "server-session-terminated-returns-404",
        }
    ),
    "server-sse-polling": frozenset(
        {
            "server-sse-priming-event",
            "server-sse-retry-field",
            "server-sse-disconnect-resume",
        }
    ),
}
"""Scenarios that no revision scores, and the checks of theirs that prove what they are about.

The suite is content with an INFO or a WARNING where a server does not close, prime or resume at all; we are not.
"""

_FINDS_FAULT = ("FAILURE", "WARNING", "SKIPPED")


def passed(scenarios: Mapping[str, Scenario], name: str) -> bool:
    """The suite's own word for it: no FAILURE. One that left no result did not pass."""
    return name in scenarios and scenarios[name].passed


def failed(scenarios: Mapping[str, Scenario]) -> list[str]:
    """Those that ran and did not pass, scored or not."""
    return [name for name, scenario in scenarios.items() if not scenario.passed]


def proved(scenarios: Mapping[str, Scenario], name: str) -> dict[str, bool]:
    """Whether each check that must succeed did; another check of the scenario that finds fault counts against it."""
    checks = scenarios[name].checks if name in scenarios else ()
    succeeded = {check.id for check in checks if check.status == "SUCCESS"}
    at_fault = {check.id for check in checks if check.status in _FINDS_FAULT}
    return {check: check in succeeded - at_fault for check in sorted(MUST_SUCCEED[name] | at_fault)}


def complaints(scenarios: Mapping[str, Scenario]) -> list[str]:
    """Every check that finds fault, as a line; the suite's own summary hides all but failures."""
    return [
        f"{check.status} {scenario.name} {check.id}: {check.message}"
        for scenario in scenarios.values()
        for check in scenario.checks
        if check.status in _FINDS_FAULT
    ]
