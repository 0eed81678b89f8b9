"""What protects us from a child, and what is told of it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.protocol.faults import Unavailable
from app.upstreams import protections
from app.upstreams.command import Allowance, Command
from app.upstreams.protections import Protection, wrapped

LIMITED = Command(("cat",), allowance=Allowance(memory=1 << 28, processes=64, cpu_seconds=60, open_files=99))
FREE = Command(("cat",))


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """What was found is found anew, by this test and by the next one."""
    forget()
    yield
    forget()


def forget() -> None:
    protections._setpriv.cache_clear()
    protections._tool.cache_clear()


def test_limits_are_set_closest_to_the_program() -> None:
    setpriv, *options = wrapped(LIMITED)
    prlimit = options[4]
    assert (Path(setpriv).name, Path(prlimit).name) == ("setpriv", "prlimit")
    assert options == [
        "--pdeathsig", "KILL", "--no-new-privs", "--", prlimit,
        "--data=268435456", "--nproc=64", "--cpu=60", "--nofile=99", "--",
    ]  # fmt: skip


def test_who_has_no_limits_does_not_pay_for_them() -> None:
    assert len(wrapped(FREE)) == 5


def told(command: Command) -> list[str]:
    return [str(protection) for protection in protections.protections(command)]


@pytest.mark.parametrize("user", [0, 1000])
def test_each_protection_is_told_with_its_value(monkeypatch: pytest.MonkeyPatch, user: int) -> None:
    monkeypatch.setattr(os, "getuid", lambda: user)
    exempt = "" if user else " (not enforced: the kernel does not count the processes of root)"
    assert told(LIMITED) == [
        "own session", "death signal", "no new privileges",
        "memory 268435456", f"processes 64{exempt}", "cpu time 60", "open files 99",
    ]  # fmt: skip


@pytest.mark.parametrize("has_another", [False, True])
def test_without_the_tools_it_is_told_what_is_missing_and_limits_are_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_another: bool
) -> None:
    """Another program of that name may not know the options."""
    if has_another:
        for name in ("setpriv", "prlimit"):
            (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
            (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = "not active: setpriv of util-linux is missing"
    assert told(FREE) == ["own session", f"death signal ({missing})", f"no new privileges ({missing})"]
    assert wrapped(FREE) == ()
    with pytest.raises(Unavailable) as caught:
        wrapped(LIMITED)
    assert caught.value.reason == "no_prlimit"
    assert [protection.missing for protection in protections.protections(LIMITED)[3:]] == [
        "not active: prlimit of util-linux is missing, so it is not started"
    ] * 4


def test_a_protection_reads_as_what_it_is() -> None:
    assert str(Protection("memory", 5)) == "memory 5"
    assert str(Protection("memory", 5, "not active")) == "memory 5 (not active)"
