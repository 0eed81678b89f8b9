"""Runs the official suite through the gateway, a client of each era against a server of each, and prints the table.

With a bearer token each pair once, and without authentication once more where client and server shake hands: the
scenarios that the client's revision requires, and some that it does not score. Each pair once more with the server as
one of five that are served as one. On a gateway that closes connections early (`closeStreamAfter`): the two unscored
ones that prove that sessions end and streams resume.

Arguments are words of the pairs to run, as in `2026-07-28 legacy`; without any, everything is run.
"""

import json
import secrets
import shutil
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from tests.conformance import environment, joined, pairs, servers, verdict
from tests.conformance.hop import hop
from tests.conformance.pairs import HANDSHAKE, PAIRS, STATELESS, Outcome, Pair
from tests.conformance.served import ROOT, GatewayFailed, gateway
from tests.conformance.suite import Scenario, Suite, SuiteMissing, find

CLOSE_STREAM_AFTER_SECONDS = 1.5
AT_ONCE = 2
CACHE = ROOT / ".cache" / "conformance"
BESIDE = Pair(HANDSHAKE, "legacy")
"""The pair that is also run without authentication."""
CLOSING_EARLY = (BESIDE, Pair(HANDSHAKE, "legacy", is_joined=True))
"""Those beside which streams are closed early."""


class Runs:
    """The suite, the servers, and a folder for what both leave behind."""

    def __init__(self, suite: Suite, commands: dict[str, list[str]], results: Path) -> None:
        self._suite = suite
        self._commands = commands
        self._results = results

    def of(self, pair: Pair) -> Outcome:
        runs = [self._with_a_token(pair)]
        if pair == BESIDE:
            runs.append(self._without_authentication(pair))
        required = self._suite.required(pair.revision)
        counted = [{name: run[name] for name in (*required, *pair.also) if name in run} for run in runs]
        for line in (line for scenarios in counted for line in verdict.complaints(scenarios)):
            print(f"{pair.name}: {line}")
        return pairs.outcome(pair, required, counted, pairs.expected_failures().get(pair.name, {}))

    def closing_early(self, pair: Pair) -> dict[str, Scenario]:
        results = self._results / f"closing early, {pair.place}"
        results.mkdir(parents=True)
        config = results / "viaduct.json"
        config.write_text(json.dumps(_closing_early(self._commands[pair.server], pair)))
        found: dict[str, Scenario] = {}
        with _behind_hop(results, "serve", str(config)) as url:
            for name in verdict.MUST_SUCCEED:
                found |= self._suite.run(url, results / name, "--scenario", name, "--spec-version", HANDSHAKE)
        return found

    def _with_a_token(self, pair: Pair) -> dict[str, Scenario]:
        results = self._results / pair.name
        results.mkdir(parents=True)
        with _behind_hop(results, *self._served(pair, results)) as url:
            if pair.revision == STATELESS:
                servers.warm(url)
            return self._suite.run(url, results / "scenarios", "--requirements", pair.revision)

    def _served(self, pair: Pair, results: Path) -> tuple[str, ...]:
        """What the gateway is told to serve."""
        command = self._commands[pair.server]
        if not pair.is_joined:
            return ("run", "--", *command)
        path = results / "viaduct.json"
        path.write_text(json.dumps(joined.among_five(command)))
        return ("serve", str(path))

    def _without_authentication(self, pair: Pair) -> dict[str, Scenario]:
        results = self._results / f"{pair.name}, without authentication"
        with gateway(results, "run", "--port", "0", "--no-auth", "--", *self._commands[pair.server]) as port:
            url = f"http://127.0.0.1:{port}/mcp"
            return self._suite.run(url, results / "scenarios", "--requirements", pair.revision)


def main(words: Sequence[str]) -> int:
    wanted = [pair for pair in PAIRS if all(word in pair.name for word in words)]
    try:
        suite = find(CACHE)
        commands = servers.commands(environment.python(CACHE))
    except SuiteMissing as missing:
        print(f"conformance cannot run: {missing}", file=sys.stderr)
        return 78
    results = _fresh_folder()
    try:
        is_good = _run(Runs(suite, commands, results), wanted)
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


def _run(runs: Runs, wanted: Sequence[Pair]) -> bool:
    closing = [pair for pair in wanted if pair in CLOSING_EARLY]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        outcomes = [*pool.map(runs.of, wanted)]
        early = [*pool.map(runs.closing_early, closing)]
    unproved = [fault for pair, found in zip(closing, early, strict=True) for fault in _unproved(pair, found)]
    for outcome in outcomes:
        for fault in outcome.faults():
            print(f"{outcome.pair.name}: {fault}")
    for line in pairs.table(outcomes):
        print(f"conformance {line}")
    return bool(outcomes) and all(outcome.is_good for outcome in outcomes) and not unproved


def _unproved(pair: Pair, scenarios: dict[str, Scenario]) -> list[str]:
    for line in verdict.complaints(scenarios):
        print(f"closing early, {pair.place}: {line}")
    return [fault for name in verdict.MUST_SUCCEED for fault in _missing(pair, scenarios, name)]


def _missing(pair: Pair, scenarios: dict[str, Scenario], name: str) -> list[str]:
    checks = verdict.proved(scenarios, name)
    missing = [check for check, succeeded in checks.items() if not succeeded]
    for check in missing:
        print(f"not a success: {name} {check}")
    share = f"{len(checks) - len(missing)}/{len(checks)}"
    print(f"conformance {pair.revision} {pair.place} unscored {name}: {share} checks succeeded")
    return missing


def _closing_early(command: Sequence[str], pair: Pair) -> dict[str, object]:
    """A child that is there: the fixture's answer is timed by when its stream begins, and may not wait for a start."""
    config = joined.among_five(command) if pair.is_joined else joined.alone(command)
    config["mcpServers"]["fixture"]["warm"] = 1
    config["viaduct"]["streams"] = {"closeStreamAfter": CLOSE_STREAM_AFTER_SECONDS}
    return config


@contextmanager
def _behind_hop(results: Path, command: str, *arguments: str) -> Iterator[str]:
    token = secrets.token_urlsafe(24)
    with (
        gateway(results, command, "--port", "0", "--token", token, *arguments) as port,
        hop(port, token) as hop_port,
    ):
        yield f"http://127.0.0.1:{hop_port}/mcp"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
