"""Which client meets which server: the scenarios that count in each pair, and what became of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.conformance import verdict
from tests.conformance.suite import Scenario

HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"

ON_HEADERS = ("http-header-validation", "http-custom-header-server-validation")
OF_TASKS = (
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-status-notifications",
    "tasks-required-task-error",
    "tasks-mrtr-composition",
)
EXPECTED = Path(__file__).with_name("expected_failures.yaml")


@dataclass(frozen=True)
class Pair:
    revision: str
    server: str
    also: tuple[str, ...] = ()
    """Scenarios that the revision does not score, and that must pass here all the same."""
    is_joined: bool = False
    """Whether the server is one of five that are served as one."""

    @property
    def name(self) -> str:
        return f"{self.revision} client, {self.server} server{', joined' if self.is_joined else ''}"

    @property
    def place(self) -> str:
        return "joined" if self.is_joined else "alone"


PAIRS = (
    Pair(STATELESS, "legacy", ON_HEADERS),
    Pair(STATELESS, "modern", (*ON_HEADERS, *OF_TASKS)),
    Pair(STATELESS, "dual-era", ON_HEADERS),
    Pair(HANDSHAKE, "legacy"),
    Pair(HANDSHAKE, "modern"),
    Pair(HANDSHAKE, "dual-era"),
    Pair(STATELESS, "legacy", ON_HEADERS, is_joined=True),
    Pair(STATELESS, "modern", ON_HEADERS, is_joined=True),
    Pair(STATELESS, "dual-era", ON_HEADERS, is_joined=True),
    Pair(HANDSHAKE, "legacy", is_joined=True),
    Pair(HANDSHAKE, "modern", is_joined=True),
    Pair(HANDSHAKE, "dual-era", is_joined=True),
)


@dataclass(frozen=True)
class Outcome:
    """What a pair's scenarios came to; one that ran several times passed only if it always did."""

    pair: Pair
    required: Mapping[str, bool]
    also: Mapping[str, bool]
    expected: Mapping[str, str]

    @property
    def is_good(self) -> bool:
        return not [*self.faults()]

    def faults(self) -> Iterator[str]:
        counted = {**self.required, **self.also}
        for name, has_passed in counted.items():
            if has_passed and name in self.expected:
                yield f"passed, and is expected to fail: {name}; remove it from {EXPECTED.name}"
            if not has_passed and name not in self.expected:
                yield f"not passed: {name}"
        for name in self.expected.keys() - counted.keys():
            yield f"expected to fail, and does not count: {name}; remove it from {EXPECTED.name}"

    def row(self) -> tuple[str, ...]:
        failed = [name for name, has_passed in {**self.required, **self.also}.items() if not has_passed]
        listed = [f"{name} (expected)" if name in self.expected else name for name in failed]
        shares = _share(self.required), _share(self.also)
        return (self.pair.revision, self.pair.server, self.pair.place, *shares, ", ".join(listed))


def outcome(
    pair: Pair, required: Sequence[str], runs: Sequence[Mapping[str, Scenario]], expected: Mapping[str, str]
) -> Outcome:
    def passed(names: Sequence[str]) -> dict[str, bool]:
        return {name: all(verdict.passed(scenarios, name) for scenarios in runs) for name in names}

    return Outcome(pair, passed(required), passed(pair.also), expected)


def expected_failures() -> dict[str, dict[str, str]]:
    """By the pair's name: the scenarios and the reasons."""
    listed: dict[str, dict[str, str]] = yaml.safe_load(EXPECTED.read_text())
    return listed


def table(outcomes: Sequence[Outcome]) -> list[str]:
    header = ("client", "server", "place", "required", "unscored", "not passed")
    rows = [header, *(outcome.row() for outcome in outcomes)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _share(results: Mapping[str, bool]) -> str:
    return f"{sum(results.values())}/{len(results)}" if results else "-"
