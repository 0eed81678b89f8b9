"""Who carries the tag of a child that is gone is killed, and nobody else ever is."""

import os
import subprocess
from collections.abc import Callable, Iterator

import pytest

from app.upstreams import proc, sweep
from tests.upstreams.heard import dies, is_alive

RUN = f"run{os.getpid()}"
Tagged = Callable[[str | None], int]


@pytest.fixture
def tagged() -> Iterator[Tagged]:
    """Starts a process with that tag, and none without one."""
    processes: list[subprocess.Popen[bytes]] = []

    def started(tag: str | None) -> int:
        env = {"PATH": os.environ["PATH"], "OTHER": f"x{sweep.TAG}={RUN}:1"}
        processes.append(subprocess.Popen(["sleep", "60"], env=env if tag is None else env | {sweep.TAG: tag}))
        return processes[-1].pid

    yield started
    for process in processes:
        process.kill()
        process.wait()


def test_only_the_very_tag_is_killed(tagged: Tagged) -> None:
    pids = [tagged(tag) for tag in (f"{RUN}:1", f"{RUN}:10", f"{RUN}:2", "other:1", None)]
    assert sweep.kill_tagged({f"{RUN}:1", f"{RUN}:3"}) == pids[:1]
    assert [is_alive(pid) for pid in pids] == [False, True, True, True, True]


def test_nothing_wanted_is_nobody_killed(tagged: Tagged) -> None:
    pid = tagged(f"{RUN}:1")
    assert sweep.kill_tagged(set()) == []
    assert is_alive(pid)


def test_what_a_gateway_that_is_gone_left_behind_is_killed(tagged: Tagged, monkeypatch: pytest.MonkeyPatch) -> None:
    _, own, started, *_ = sweep.run_tag().split(".")
    namespace = f"{own}0"  # Of these processes only: any other gateway that starts now would kill them, too.
    monkeypatch.setattr(proc, "pid_namespace", lambda: namespace)
    gone = subprocess.Popen(["true"])
    gone.wait()
    pids = {
        "of one that is gone": tagged(f"{namespace}.{gone.pid}.{started}.abcd:1"),
        "of one whose number is another's now": tagged(f"{namespace}.{own}.{int(started) - 1}.abcd:1"),
        "of one that lives": tagged(f"{namespace}.{own}.{started}.abcd:1"),
        "of one that is not seen from here": tagged(f"1{namespace}.{gone.pid}.{started}.abcd:1"),
        "of nobody known": tagged("abcd:1"),
        "of no name": tagged(""),
        "without a tag": tagged(None),
    }
    monkeypatch.setattr(proc, "pids", lambda: list(pids.values()))
    assert sweep.sweep_forsaken() == list(pids.values())[:2]
    assert [is_alive(pid) for pid in pids.values()] == [False, False, True, True, True, True, True]


def test_a_machine_without_proc_is_left_alone(monkeypatch: pytest.MonkeyPatch, tagged: Tagged) -> None:
    def missing(_path: str) -> Iterator[object]:
        raise FileNotFoundError

    tagged(f"{RUN}:1")
    monkeypatch.setattr(os, "scandir", missing)
    assert sweep.kill_tagged({f"{RUN}:1"}) == []


def test_one_that_starts_others_while_it_is_killed_is_killed_with_them() -> None:
    code = "i=0; while [ $i -lt 300 ]; do i=$((i+1)); setsid sleep 60 & [ $i = 3 ] && echo begun; done; wait"
    env = {"PATH": os.environ["PATH"], sweep.TAG: f"{RUN}:1"}
    with subprocess.Popen(["sh", "-c", code], env=env, stdout=subprocess.PIPE) as hydra:
        assert hydra.stdout is not None
        assert hydra.stdout.readline() == b"begun\n"
        killed = sweep.kill_tagged({f"{RUN}:1"})
        assert hydra.pid in killed
        assert len(killed) > 3
        assert dies(hydra.pid)
        assert sweep.kill_tagged({f"{RUN}:1"}) == []
