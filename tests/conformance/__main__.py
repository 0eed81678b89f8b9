"""Runs the official suite through the gateway three times, side by side, and says what passed.

With a bearer token and without authentication: the scenarios that a revision requires. On a gateway that closes
connections early (`closeStreamAfter`): the two unscored ones that prove that sessions end and streams resume.
"""

import json
import secrets
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from tests.conformance import verdict
from tests.conformance.hop import hop
from tests.conformance.served import FIXTURE_COMMAND, GatewayFailed, gateway
from tests.conformance.suite import Scenario, Suite, SuiteMissing, find

REVISION = "2025-11-25"
CLOSE_STREAM_AFTER_SECONDS = 1.5
CACHE = Path(__file__).resolve().parents[2] / ".cache" / "conformance"


def main() -> int:
    try:
        suite = find(CACHE)
    except SuiteMissing as missing:
        print(f"conformance cannot run: {missing}", file=sys.stderr)
        return 78
    results = _fresh_folder()
    try:
        is_good = _run(suite, results)
    except GatewayFailed as failed:
        print(f"conformance failed: {failed}", file=sys.stderr)
        is_good = False
    if not is_good:
        print(f"conformance logs and results: {results}", file=sys.stderr)
        return 1
    shutil.rmtree(results)
    return 0


def _fresh_folder() -> Path:
    """One for each run, for several may go on at once."""
    parent = CACHE / "results"
    parent.mkdir(exist_ok=True)
    return Path(mkdtemp(dir=parent))


def _run(suite: Suite, results: Path) -> bool:
    with ThreadPoolExecutor() as pool:
        with_a_token = pool.submit(_with_a_token, suite, results / "with a token")
        without = pool.submit(_without_authentication, suite, results / "without authentication")
        closing_early = pool.submit(_closing_early, suite, results / "closing early")
    return _report(suite, with_a_token.result(), without.result(), unscored=closing_early.result())


def _with_a_token(suite: Suite, results: Path) -> dict[str, Scenario]:
    with _behind_hop(results, "run", "--", *FIXTURE_COMMAND) as url:
        return suite.run(url, results / "scenarios", "--requirements", REVISION)


def _without_authentication(suite: Suite, results: Path) -> dict[str, Scenario]:
    with gateway(results, "run", "--port", "0", "--no-auth", "--", *FIXTURE_COMMAND) as port:
        return suite.run(f"http://127.0.0.1:{port}/mcp", results / "scenarios", "--requirements", REVISION)


def _closing_early(suite: Suite, results: Path) -> dict[str, Scenario]:
    results.mkdir(parents=True)
    config = results / "viaduct.json"
    command, *arguments = FIXTURE_COMMAND
    config.write_text(
        json.dumps(
            {
                "mcpServers": {"fixture": {"command": command, "args": arguments}},
                "viaduct": {"streams": {"closeStreamAfter": CLOSE_STREAM_AFTER_SECONDS}},
            }
        )
    )
    found: dict[str, Scenario] = {}
    with _behind_hop(results, "serve", str(config)) as url:
        for name in verdict.MUST_SUCCEED:
            found |= suite.run(url, results / name, "--scenario", name, "--spec-version", REVISION)
    return found


@contextmanager
def _behind_hop(results: Path, command: str, *arguments: str) -> Iterator[str]:
    token = secrets.token_urlsafe(24)
    with (
        gateway(results, command, "--port", "0", "--token", token, *arguments) as port,
        hop(port, token) as hop_port,
    ):
        yield f"http://127.0.0.1:{hop_port}/mcp"


def _report(suite: Suite, *scored: dict[str, Scenario], unscored: dict[str, Scenario]) -> bool:
    """Prints every complaint and then the totals; a required scenario counts once, and only if it passed everywhere."""
    for scenarios in (*scored, unscored):
        for line in verdict.complaints(scenarios):
            print(line)
    names = suite.required(REVISION)
    passed = [name for name in names if all(verdict.passed(scenarios, name) for scenarios in scored)]
    for name in sorted(set(names) - set(passed)):
        print(f"not passed: {name}")
    unproved = [fault for name in verdict.MUST_SUCCEED for fault in _unproved(unscored, name)]
    print(f"conformance {REVISION}: {len(passed)}/{len(names)} passed")
    return names == passed and not unproved and not any(map(verdict.failed, scored))


def _unproved(scenarios: dict[str, Scenario], name: str) -> list[str]:
    checks = verdict.proved(scenarios, name)
    missing = [check for check, succeeded in checks.items() if not succeeded]
    for check in missing:
        print(f"not a success: {name} {check}")
    print(f"conformance {REVISION} unscored {name}: {len(checks) - len(missing)}/{len(checks)} checks succeeded")
    return missing


if __name__ == "__main__":
    sys.exit(main())
