"""What the audit is told, and what it is spared."""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.gateway.witness import Showing, Speaker, Witness
from app.protocol.faults import BadParams, Denied
from app.protocol.jsonrpc import Request, Result, payload
from app.telemetry import logs
from app.telemetry.audit import Audit
from app.telemetry.tally import Tally

ONE = Speaker("one", "git", "the-id-of-a-session")


class Clock:
    now = 10.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def audit(tmp_path: Path) -> Iterator[Audit]:
    audit = Audit(tmp_path / "audit", is_strict=True)
    yield audit
    audit.close()


@pytest.fixture
def witness(audit: Audit, clock: Clock) -> Witness:
    return Witness(audit, {"git": Showing(arguments=True, mask=frozenset({"key"}))}, Tally(), clock)


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "audit").read_text().splitlines()][1:]


def test_the_id_of_a_session_is_told_as_a_hash(witness: Witness, tmp_path: Path) -> None:
    witness.session(ONE, "opened")
    assert re.fullmatch(r"[0-9a-f]{16}", records(tmp_path)[0]["session"])
    assert "the-id" not in (tmp_path / "audit").read_text()


@pytest.mark.parametrize(
    "names",
    [
        ["file:///" + 60 * "a/../" + "etc/shadow"],
        ["db://table?of=somebody"],
        [f"file:///{number}" for number in range(17)],
    ],
)
def test_what_is_not_shown_of_a_target_is_in_a_digest(witness: Witness, tmp_path: Path, names: list[str]) -> None:
    witness.call(ONE, Request(1, "resources/read"), [("resources", name) for name in names], None)
    (call,) = records(tmp_path)
    assert call["target_digest"] == hashlib.sha256("\n".join(names).encode()).hexdigest()


def test_a_target_that_is_shown_whole_needs_none(witness: Witness, tmp_path: Path) -> None:
    witness.call(ONE, Request(1, "resources/read"), [("resources", "file:///a/b")], None)
    assert "target_digest" not in records(tmp_path)[0]


def test_an_outcome_names_its_call_and_says_how_long_it_took(witness: Witness, tmp_path: Path, clock: Clock) -> None:
    docket = witness.call(ONE, Request(1, "tools/list"), (), None)
    clock.now += 0.5
    assert docket is not None
    docket.over(Result(1, payload({"tools": []})))
    call, outcome = records(tmp_path)
    assert (outcome["call"], outcome["outcome"], outcome["ms"], outcome["bytes"]) == (call["seq"], "ok", 500.0, 12)


def test_pings_are_not_recorded(witness: Witness, tmp_path: Path) -> None:
    assert witness.call(ONE, Request(1, "ping"), (), None) is None
    assert records(tmp_path) == []


def test_of_the_refusals_of_nobody_a_hundred_in_a_second_are_recorded_and_the_others_counted(
    witness: Witness, tmp_path: Path, clock: Clock
) -> None:
    for _ in range(250):
        witness.refused(None, None, "unauthorized", {})
    assert len(records(tmp_path)) == 100
    witness.refused("one", None, "unknown_path", {})
    assert "omitted" not in records(tmp_path)[-1]
    clock.now += 1
    witness.refused(None, None, "unauthorized", {})
    witness.refused(None, None, "unauthorized", {})
    assert [each.get("omitted") for each in records(tmp_path)[-2:]] == [150, None]


def test_known_secrets_are_shown_nowhere(witness: Witness, tmp_path: Path) -> None:
    logs.redact("canary-secret-1")
    arguments = {"x": ["canary-secret-1"], "canary-secret-1": 1, "KEY": "of-a-member"}
    request = Request(1, "tools/call", payload({"name": "canary-secret-1", "arguments": arguments}))
    witness.call(ONE, request, (("tools", "canary-secret-1"),), None)
    greeting = {"clientInfo": {"name": "canary-secret-1", "version": "1"}}
    witness.call(ONE, Request(1, "initialize", payload(greeting)), (), None)
    text = (tmp_path / "audit").read_text()
    assert "canary" not in text
    assert "of-a-member" not in text
    assert records(tmp_path)[0]["arguments"] == {"x": ["***"], "***": 1, "KEY": "***"}
    assert records(tmp_path)[1]["client"] == "*** 1"


class Broken(Audit):
    def __init__(self, *, is_strict: bool) -> None:
        super().__init__(Path("/dev/full"), is_strict=False)
        self.is_strict = is_strict


@pytest.mark.parametrize("is_strict", [True, False])
def test_what_begins_is_refused_without_a_record_and_what_ends_is_not(is_strict: bool) -> None:
    tally = Tally()
    witness = Witness(Broken(is_strict=is_strict), {}, tally)
    asks = [
        lambda: witness.session(ONE, "opened"),
        lambda: witness.call(ONE, Request(1, "tools/list"), (), None),
        lambda: witness.denied(ONE, Request(1, "tools/list"), (), BadParams("why")),
    ]
    for ask in asks:
        if is_strict:
            with pytest.raises(Denied) as denied:
                ask()
            assert denied.value.reason == "audit_failed"
        else:
            ask()
    witness.session(ONE, "ended")
    witness.refused("one", "git", "why", {})
    witness.over(1, 0.0, None)
    assert tally.audit_lost == 6
