"""The audit file: whole lines in a chain, whatever happens to the file and to us."""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.telemetry.audit import Audit, AuditFailed
from app.telemetry.audit_chain import verify


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture
def audit(path: Path) -> Iterator[Audit]:
    audit = opened(path)
    yield audit
    audit.close()


def opened(path: Path, *, is_strict: bool = True) -> Audit:
    return Audit(path, is_strict=is_strict, clock=lambda: 1_800_000_000.25)


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def events(path: Path) -> list[tuple[int, str]]:
    return [(record["seq"], record["event"]) for record in records(path)]


def test_a_record_is_one_line_with_its_number_its_time_and_its_chain(audit: Audit, path: Path) -> None:
    assert audit.write("call", {"method": "tools/call", "target": "a\nb"}) == 2
    first, second = records(path)
    assert first == {"seq": 1, "time": "2027-01-15T08:00:00.250000Z", "event": "opened", "previous": "",
                     "chain": first["chain"]}  # fmt: skip
    assert second == {"seq": 2, "time": "2027-01-15T08:00:00.250000Z", "event": "call", "method": "tools/call",
                      "target": "a\nb", "chain": second["chain"]}  # fmt: skip
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    assert verify([path]).problems == []


def test_the_chain_goes_on_over_restarts(path: Path) -> None:
    for _ in range(3):
        audit = opened(path)
        audit.write("call", {})
        audit.close()
    assert events(path) == [(1, "opened"), (2, "call"), (3, "opened"), (4, "call"), (5, "opened"), (6, "call")]
    assert verify([path])[:2] == (6, [])


@pytest.mark.parametrize("gone", ["renamed", "removed"])
def test_a_file_that_was_rotated_is_opened_anew_and_the_chain_goes_on(audit: Audit, path: Path, gone: str) -> None:
    old = path.with_suffix(".1")
    audit.write("call", {"n": 1})
    path.rename(old)
    if gone == "removed":
        old.unlink()
    audit.write("call", {"n": 2})
    assert events(path) == [(3, "opened"), (4, "call")]
    assert verify([path]).problems == []
    if gone == "renamed":
        assert verify([old, path])[:2] == (4, [])
        assert verify([path, old]).problems != []


def test_a_file_that_may_not_be_written_any_more_still_is_by_who_has_it_open(audit: Audit, path: Path) -> None:
    path.chmod(0o400)
    audit.write("call", {})
    assert events(path) == [(1, "opened"), (2, "call")]


def test_a_second_process_does_not_write_the_same_file(audit: Audit, path: Path) -> None:
    with pytest.raises(AuditFailed, match="another process"):
        opened(path)
    audit.write("call", {})
    assert verify([path]).problems == []


@pytest.mark.parametrize("torn", [b'{"seq":3,"time":"20', b"x" * 5000])
def test_half_a_record_at_the_end_is_taken_away_at_the_next_start(path: Path, torn: bytes) -> None:
    audit = opened(path)
    audit.write("call", {})
    audit.close()
    with path.open("ab") as file:
        file.write(torn)
    opened(path).close()
    assert records(path)[-1]["torn_bytes"] == len(torn)
    assert verify([path])[:2] == (3, [])


def test_what_is_no_record_of_ours_begins_a_new_chain_and_shows(path: Path) -> None:
    path.write_text('{"seq":1}\n')
    opened(path).close()
    assert verify([path]).problems == [f"{path}:1: this is no whole record"]


# What shows.


@pytest.fixture
def written(path: Path) -> list[bytes]:
    audit = opened(path)
    for n in range(5):
        audit.write("call", {"n": n})
    audit.close()
    return path.read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize("index", range(1, 6))
def test_a_record_that_was_changed_shows(path: Path, written: list[bytes], index: int) -> None:
    written[index] = written[index].replace(b'"call"', b'"none"')
    path.write_bytes(b"".join(written))
    assert [problem.split(" ")[0] for problem in verify([path]).problems] == [f"{path}:{index + 1}:"]


@pytest.mark.parametrize("index", range(5))
def test_a_record_that_was_left_out_shows(path: Path, written: list[bytes], index: int) -> None:
    del written[index]
    path.write_bytes(b"".join(written))
    assert verify([path]).problems != []


def test_records_in_another_order_show(path: Path, written: list[bytes]) -> None:
    written[2], written[3] = written[3], written[2]
    path.write_bytes(b"".join(written))
    assert verify([path]).problems != []


def test_a_start_that_was_put_in_between_shows(path: Path, written: list[bytes]) -> None:
    path.write_bytes(b"".join([*written[:3], written[0], *written[3:]]))
    assert verify([path]).problems != []


def test_records_that_were_cut_off_at_the_end_show_by_the_hash_that_was_kept(path: Path, written: list[bytes]) -> None:
    whole = verify([path]).last
    path.write_bytes(b"".join(written[:-1]))
    cut = verify([path])
    assert cut.problems == []
    assert cut.last != whole


# A disk that is full.

FULL = """
import json, os, resource, signal, sys
from pathlib import Path
from app.telemetry.audit import Audit, AuditFailed
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
audit = Audit(Path(sys.argv[1]), is_strict=True)
audit.write("call", {"n": 0})
limit = os.stat(sys.argv[1]).st_size + 30
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
failures = 0
for n in range(3):
    try:
        audit.write("call", {"n": n})
    except AuditFailed as wrong:
        failures += 1
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
audit.write("call", {"n": 9})
print(failures, audit.lost)
"""


def test_what_does_not_fit_is_taken_back_and_counted_and_what_fits_again_is_written(path: Path) -> None:
    """The system writes what still fits of a line."""
    run = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True, env={**os.environ}
    )
    assert run.stdout == "3 3\n"
    assert events(path) == [(1, "opened"), (2, "call"), (3, "lost"), (4, "call")]
    assert (records(path)[2]["count"], verify([path]).problems) == (3, [])
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    assert signal.getsignal(signal.SIGXFSZ) is not signal.SIG_DFL


def test_who_is_strict_does_not_begin_without_a_file(tmp_path: Path) -> None:
    for wrong in (Path("/dev/full"), tmp_path, tmp_path / "no" / "where"):
        with pytest.raises(AuditFailed, match=str(wrong)):
            opened(wrong)


def test_a_pipe_is_no_file_for_it_would_stop_us_when_it_is_full(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(AuditFailed, match="it is a pipe"):
        opened(path)


def test_who_is_not_strict_tries_again_and_counts(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    audit = opened(folder / "audit", is_strict=False)
    with pytest.raises(AuditFailed):
        audit.write("call", {})
    folder.mkdir()
    audit.write("call", {})
    assert audit.lost == 2
    assert events(folder / "audit") == [(1, "opened"), (2, "lost"), (3, "call")]
    audit.close()
