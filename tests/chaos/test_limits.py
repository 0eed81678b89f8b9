"""What the kernel keeps a server from: memory, processes, CPU time and open files."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.conftest import Connect
from tests.support.client import Client, called, greeting
from tests.support.gateway import Gateway, config, entry, eventually, serving, stage
from tests.support.http import on_loop

CALL = "tools/call"
BRISK: dict[str, Any] = {"stopTimeout": 0.3, "killTimeout": 0.3, "era": "legacy"}
MIB = 1 << 20
ROOT_USER = os.getuid() == 0
NOBODY = 65534
FORKS = 40


def tasks_of(user: int) -> int:
    """The kernel counts threads, too."""
    count = 0
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if folder.stat().st_uid == user:
                    count += len(list((folder / "task").iterdir()))
            except OSError:
                continue  # It has just ended.
    return count


AS_NOBODY = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "--"]


def is_run_by_nobody(python: str) -> bool:
    try:
        return (
            subprocess.run([*AS_NOBODY, python, "-I", "-S", "-c", ""], capture_output=True, check=False).returncode == 0
        )
    except OSError:
        return False


def unprivileged(*options: str, **settings: object) -> dict[str, object]:
    """Limits on processes hold for everybody but root. Not every interpreter of root's can be run by others."""
    if not ROOT_USER:
        return entry(*options, **settings)
    _, *rest = stage(*options)
    known = (sys.executable, "/usr/bin/python3", *filter(None, map(shutil.which, ("python3.11", "python3"))))
    python = next((python for python in known if is_run_by_nobody(python)), None)
    assert python is not None, f"none of these is run by nobody: {known}"
    command, *args = AS_NOBODY
    return {"command": command, "args": [*args, python, *rest], **settings}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    processes = tasks_of(NOBODY if ROOT_USER else os.getuid()) + FORKS
    servers = {
        "calm": entry(**BRISK),
        "hog": entry(**BRISK, limits={"memory": 128 * MIB}),
        "ends": entry(**BRISK, onExit="end", limits={"memory": 128 * MIB}),
        "bomb": unprivileged(**BRISK, limits={"processes": processes}),
        "spins": entry(**BRISK, limits={"cpuTime": 1}),
        "opens": entry(**BRISK, limits={"openFiles": 64}),
        "all": entry(**BRISK, limits={"memory": 256 * MIB, "processes": 5000, "cpuTime": 60, "openFiles": 99}),
    }
    with serving(config(servers), tmp_path_factory.mktemp("limits")) as gateway:
        yield gateway


@on_loop
async def test_a_server_that_takes_too_much_memory_dies_alone_and_its_calls_are_told(
    gateway: Gateway, connect: Connect
) -> None:
    client, before = await connect("hog"), gateway.rss()
    assert await client.tool("hog", size=16 * MIB) == "hoarded"
    answer = await client.call(CALL, called("hog", size=4096 * MIB))
    assert (answer["error"]["code"], answer["error"]["data"]["executed"]) == (-31002, "unknown")
    assert gateway.rss() < before + 16 * MIB
    assert await client.tool("count") == "1"


@on_loop
async def test_little_by_little_is_too_much_as_well(gateway: Gateway, connect: Connect) -> None:
    client = await connect("ends")
    for _ in range(30):
        answer = await client.call(CALL, called("hog", size=8 * MIB))
        if "error" in answer:
            break
    assert answer["error"]["code"] == -31002
    assert await client.status() == 404


@on_loop
async def test_a_fork_bomb_is_confined_and_ends_with_its_session(gateway: Gateway, connect: Connect) -> None:
    other, client = await connect(), await connect("bomb")
    others = set(gateway.children()) - {int(await client.tool("pid"))}
    assert await client.tool("fork_bomb") == "boom"
    assert eventually(lambda: len(set(gateway.children()) - others) > FORKS // 2)
    assert len(set(gateway.children()) - others) <= FORKS
    assert await other.tool("echo", nonce="still here") == "still here"
    assert (await client.delete()).status == 204
    assert eventually(lambda: not set(gateway.children()) - others, 4)


@on_loop
async def test_a_server_that_computes_for_ever_is_ended(gateway: Gateway, connect: Connect) -> None:
    client = await connect("spins")
    answer = await client.call(CALL, called("spin"))
    assert (answer["error"]["code"], answer["error"]["data"]["signal"]) == (-31002, signal.SIGKILL)


@on_loop
async def test_each_limit_is_set(gateway: Gateway, connect: Connect) -> None:
    client = await connect("all")
    told = json.loads(await client.tool("limits", names=["DATA", "NPROC", "CPU", "NOFILE"]))
    assert told == {"DATA": [256 * MIB] * 2, "NPROC": [5000] * 2, "CPU": [60] * 2, "NOFILE": [99] * 2}


def told_of(gateway: Gateway, server: str) -> str:
    [line] = [line for line in gateway.log_lines if "is protected" in line and f"server={server} " in line]
    return line


def test_a_line_at_start_says_what_is_active(gateway: Gateway) -> None:
    everywhere = '"own session", "death signal", "no new privileges"'
    assert told_of(gateway, "calm").endswith(f"active=[{everywhere}]")
    assert f'{everywhere}, "memory {128 * MIB}"]' in told_of(gateway, "hog")
    assert '"cpu time 1"' in told_of(gateway, "spins")
    assert '"open files 64"' in told_of(gateway, "opens")


@pytest.mark.skipif(not ROOT_USER, reason="only root is exempt")
def test_for_root_it_says_that_processes_are_not_counted(gateway: Gateway) -> None:
    assert "is protected in part" in told_of(gateway, "all")
    assert "processes 5000 (not enforced: the kernel does not count the processes of root)" in told_of(gateway, "all")


@on_loop
async def refused_and_served(gateway: Gateway) -> None:
    reply = await Client(gateway, "limited").post(greeting())
    error = (await Client(gateway, "limited").settle(reply, 0))["error"]
    assert (error["code"], error["data"]["reason"], error["data"]["executed"]) == (-31001, "no_prlimit", "no")
    assert "install util-linux or remove limits" in error["message"]
    assert await (await Client(gateway, "free").open()).tool("echo", nonce="served") == "served"


def test_where_limits_cannot_be_set_a_server_that_has_some_is_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    setpriv = shutil.which("setpriv")
    assert setpriv is not None
    (tools / "setpriv").symlink_to(setpriv)
    monkeypatch.setenv("PATH", str(tools))
    servers = {"limited": entry(**BRISK, limits={"openFiles": 64}), "free": entry(**BRISK)}
    with serving(config(servers), tmp_path) as gateway:
        refused_and_served(gateway)
        assert "prlimit of util-linux is missing" in told_of(gateway, "limited")
