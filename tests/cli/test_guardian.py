"""A killed gateway leaves nothing behind, for beside it somebody waits who is not killed with it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.upstreams.vigil import NAME
from tests.cli.test_orphans import FIRST, FORKING, gateway_of, needs_namespaces, one, said
from tests.cli.test_serving import TOKEN, arguments, children, greet, url_of
from tests.cli.viaduct import SECONDS, Serving, environment, serving
from tests.support.gateway import eventually
from tests.upstreams.heard import dies, is_alive

LONG_SINCE = 1.1
"""A guardian that ends sooner is replaced after a pause."""


def guardians(pid: int) -> set[int]:
    found = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return {child for child in found if NAME.encode() in arguments(child)}


def guarded(gateway: Serving) -> int:
    """Its guardian, once it is on watch."""
    pid = one(guardians(gateway.process.pid))
    assert eventually(lambda: Path(f"/proc/{pid}/comm").read_text() == f"{NAME}\n", 5.0)
    return pid


@contextmanager
def left_by_a_child(folder: Path) -> Iterator[tuple[Serving, int]]:
    """A gateway, and a process that one of its children has started and left: in a session of its own."""
    with gateway_of(folder, ()) as (gateway, pid):
        session = greet(url_of(gateway))[1]["mcp-session-id"]
        child = one(children(pid))
        assert said(url_of(gateway), session, "leave")["result"] == {}
        yield gateway, one(children(pid) - {child})


def test_what_children_have_left_dies_with_a_killed_gateway_and_so_does_the_guardian(tmp_path: Path) -> None:
    with left_by_a_child(tmp_path) as (gateway, orphan):
        guardian = guarded(gateway)
        gateway.process.kill()
        assert dies(orphan, 2.0)
        assert dies(guardian, 2.0)


def test_a_gateway_that_ends_in_order_takes_its_guardian_with_it(tmp_path: Path) -> None:
    with left_by_a_child(tmp_path) as (gateway, orphan):
        guardian = guarded(gateway)
        assert gateway.stop() == 0
        assert not Path(f"/proc/{guardian}").exists()
        assert not is_alive(orphan)


def test_the_guardian_holds_nothing_of_the_gateway_and_is_out_of_reach_of_its_terminal(tmp_path: Path) -> None:
    with gateway_of(tmp_path, ()) as (gateway, _):
        guardian = guarded(gateway)
        proc = Path(f"/proc/{guardian}")
        held = {int(fd.name): str(fd.readlink()) for fd in (proc / "fd").iterdir()}
        assert held.pop(0).startswith("pipe:")
        assert held == {1: "/dev/null", 2: "/dev/null"}
        assert os.getsid(guardian) == guardian
        assert os.readlink(proc / "cwd") == "/"
        assert b"VIADUCT" not in (proc / "environ").read_bytes()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(guardian, number)
        assert not dies(guardian, 0.2)


def test_whoever_waits_for_the_output_of_a_killed_gateway_does_not_wait_for_its_guardian(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "app", "run", "--port", "0", "--token", TOKEN, "--", sys.executable, "-c", FORKING]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=environment()) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        guardian = one(guardians(process.pid))
        os.kill(guardian, signal.SIGSTOP)
        process.kill()
        try:
            process.communicate(timeout=5)
            assert is_alive(guardian)
        finally:
            os.kill(guardian, signal.SIGCONT)
    assert dies(guardian)


def test_a_guardian_that_was_killed_is_replaced_and_the_next_keeps_watch(tmp_path: Path) -> None:
    with left_by_a_child(tmp_path) as (gateway, orphan):
        first, pid = guarded(gateway), gateway.process.pid
        assert eventually(lambda: age(first) > LONG_SINCE, 5.0)
        os.kill(first, signal.SIGKILL)
        assert eventually(lambda: guardians(pid) - {first}, 5.0)
        assert eventually(lambda: not Path(f"/proc/{first}").exists(), 2.0)
        assert gateway.log.read_text().count("the guardian was ended") == 1
        guarded(gateway)
        gateway.process.kill()
        assert dies(orphan, 2.0)


def test_one_gateways_guardian_leaves_the_children_of_another_alone(tmp_path: Path) -> None:
    folders = tmp_path / "killed", tmp_path / "spared"
    for folder in folders:
        folder.mkdir()
    with left_by_a_child(folders[0]) as (killed, orphan), left_by_a_child(folders[1]) as (spared, other):
        guardian, pid = guarded(killed), spared.process.pid
        before = children(pid)
        killed.process.kill()
        assert dies(guardian, 5.0)
        assert not is_alive(orphan)
        assert children(pid) == before
        assert other in before


@needs_namespaces
def test_the_first_process_of_a_container_has_none_for_everything_ends_with_it(tmp_path: Path) -> None:
    with gateway_of(tmp_path, FIRST) as (gateway, pid):
        assert greet(url_of(gateway))[0] == 200
        assert guardians(pid) == set()
        os.kill(pid, signal.SIGTERM)
        assert gateway.process.wait(SECONDS) == 0


def test_what_a_shell_bequeathed_to_the_gateway_outlives_it(tmp_path: Path) -> None:
    shell = ("sh", "-c", 'setsid sleep 600 >/dev/null 2>&1 & exec "$@"', "sh")
    with serving(tmp_path, "demo", "--port", "0", "--token", TOKEN, launcher=shell) as gateway:
        heir = children(gateway.process.pid)
        try:
            assert len(heir) == 1, heir
            assert gateway.stop() == 0
            assert all(map(is_alive, heir))
        finally:
            for pid in heir:
                os.kill(pid, signal.SIGKILL)


def age(pid: int) -> float:
    """In seconds."""
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    return float(Path("/proc/uptime").read_text().split()[0]) - ticks / os.sysconf("SC_CLK_TCK")
