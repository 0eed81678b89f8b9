"""What this process has of the machine, and how much it may have."""

import os
import resource
from pathlib import Path

import pytest

from app.upstreams import machine


def test_descriptors_are_counted() -> None:
    before = machine.open_files()
    read, write = os.pipe()
    assert machine.open_files() == before + 2
    os.close(read)
    os.close(write)


def test_memory_grows_with_what_is_kept() -> None:
    before = machine.memory()
    kept = bytearray(b"x") * (64 << 20)
    assert machine.memory().resident > before.resident + (32 << 20)
    assert machine.memory().mapped > machine.memory().resident
    del kept


def test_a_limit_that_is_none_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert machine.mapped_max() is None
    assert machine.open_files_max() > 1 << 60


def tree(root: Path, cgroup: str, **limits: str) -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(cgroup)
    for path, limit in limits.items():
        file = root / "sys/fs/cgroup" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(limit)
    return root


@pytest.mark.parametrize(
    ("cgroup", "limits", "expected"),
    [
        ("0::/a/b\n", {"a/b/memory.max": "1000\n", "a/memory.max": "max\n"}, 1000),
        ("0::/a/b\n", {"a/b/memory.max": "1000\n", "a/memory.max": "500\n"}, 500),
        ("0::/\n", {"memory.max": "700\n"}, 700),
        ("0::/a\n", {"a/memory.max": "max\n"}, None),
        ("0::/a\n", {}, None),
        ("9:name=systemd:/x\n4:memory:/a\n0::/\n", {"memory/a/memory.limit_in_bytes": "300\n"}, 300),
        ("4:cpu,memory:/a\n", {"memory/memory.limit_in_bytes": "400\n"}, 400),
        ("4:memory:/a\n", {"memory/a/memory.limit_in_bytes": "9223372036854771712\n"}, None),
        ("4:memory:/a\n", {"memory/a/memory.limit_in_bytes": "lots\n"}, None),
    ],
)
def test_the_least_that_any_cgroup_above_us_allows_counts(
    tmp_path: Path, cgroup: str, limits: dict[str, str], expected: int | None
) -> None:
    assert machine.resident_max(tree(tmp_path, cgroup, **limits)) == expected


def test_where_there_are_no_cgroups_there_is_no_limit(tmp_path: Path) -> None:
    assert machine.resident_max(tmp_path) is None
