"""What the process does for its own protection."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli import hardening
from app.cli.hardening import refuse_root, withdraw
from app.config.errors import ConfigError
from app.config.listening import Listen
from tests.cli.viaduct import WEATHER, environment, serving, viaduct
from tests.support.gateway import eventually


def test_secrets_are_taken_out_of_the_environment_and_kept_in_a_copy() -> None:
    environ = {"VIADUCT_TOKEN": "t", "PATH": "/bin", "GITHUB_PAT": "p", "API_KEY": "k", "TERM": "x"}
    whole = dict(environ)
    assert withdraw(environ) == whole
    assert environ == {"PATH": "/bin", "TERM": "x"}


@pytest.mark.parametrize(
    ("uid", "host", "is_allowed", "is_refused"),
    [(0, "0.0.0.0", False, True), (0, "192.0.2.1", False, True), (0, "0.0.0.0", True, False),
     (0, "127.0.0.1", False, False), (0, "::1", False, False), (1000, "0.0.0.0", False, False)],
)  # fmt: skip
def test_root_is_refused_where_strangers_reach_servers(
    monkeypatch: pytest.MonkeyPatch, uid: int, host: str, is_allowed: bool, is_refused: bool
) -> None:
    monkeypatch.setattr(hardening.os, "geteuid", lambda: uid)
    if is_refused:
        with pytest.raises(ConfigError, match="--allow-root"):
            refuse_root(Listen(host, 80), is_allowed=is_allowed)
    else:
        refuse_root(Listen(host, 80), is_allowed=is_allowed)


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be refused as root, or become somebody else")


@AS_ROOT
def test_root_on_every_address_is_78_with_a_sentence() -> None:
    run = viaduct("run", "--host", "0.0.0.0", "--port", "0", "--", *WEATHER)
    assert (run.returncode, run.stdout) == (78, "")
    assert "as root" in run.stderr


@AS_ROOT
@pytest.mark.parametrize(
    ("options", "env"),
    [(["--allow-root"], {}), ([], {"VIADUCT_ALLOW_ROOT": "1"}), (["--no-auth", "--i-know-this-is-open"], {})],
)
def test_root_on_every_address_serves_where_that_is_allowed(
    tmp_path: Path, options: list[str], env: dict[str, str]
) -> None:
    with serving(tmp_path, "run", "--host", "0.0.0.0", "--port", "0", *options, "--", *WEATHER, env=env) as running:
        assert "/servers/weather/mcp" in running.banner
        assert running.stop() == 0


PROBE = """
import ctypes, os, sys
from app.cli.hardening import close_memory

libc = ctypes.CDLL(None, use_errno=True)
os.setgid(12345)
os.setuid(12345)
libc.prctl(4, 1, 0, 0, 0)  # To change the user has closed it already.
if "close" in sys.argv:
    close_memory()
parent = os.getpid()
if os.fork() == 0:
    told = []
    for path in ("environ", "mem", "maps"):
        try:
            open(f"/proc/{parent}/{path}", "rb").close()
            told.append(path)
        except OSError:
            pass
    try:
        os.listdir(f"/proc/{parent}/fd")
        told.append("fd")
    except OSError:
        pass
    if libc.ptrace(0x4206, parent, 0, 0) == 0:  # PTRACE_SEIZE, which stops nobody.
        told.append("ptrace")
    print(" ".join(told), flush=True)
    os._exit(0)
os.wait()
print(os.path.exists("/proc/self/environ") and len(os.listdir("/proc/self/fd")) > 2)
"""


@AS_ROOT
@pytest.mark.parametrize("closes", [True, False])
def test_a_server_of_the_same_user_can_read_nothing_of_the_gateway(closes: bool) -> None:
    arguments = ["close"] if closes else []
    run = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True, check=True, timeout=20
    )
    seen, own = run.stdout.splitlines()
    assert own == "True"
    if closes:
        assert seen == ""
    else:
        assert {"environ", "fd"} <= set(seen.split())


PLAIN = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
"""Without capabilities, root is as any other user; who has them is closed to who has not."""


@AS_ROOT
def test_a_serving_gateway_is_closed_to_who_is_of_its_user(tmp_path: Path) -> None:
    command = ("run", "--port", "0", "--", *WEATHER)
    with serving(tmp_path, *command, env={"VIADUCT_TOKEN": "t" * 20}, launcher=PLAIN) as running:
        assert _seen(running.process.pid) == "closed"
        assert running.stop() == 0


@AS_ROOT
def test_who_is_not_hardened_is_open_to_who_is_of_its_user() -> None:
    """Else the tests beside this one would show nothing."""
    with subprocess.Popen([*PLAIN, sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        assert eventually(lambda: _seen(other.pid) == "open")


@AS_ROOT
def test_a_server_that_is_only_checked_can_read_nothing_of_who_checks_it(tmp_path: Path) -> None:
    told, config = tmp_path / "told", tmp_path / "servers.json"
    begin = f"import os, sys; sys.argv.append(str(os.getppid())); sys.stdout = open({str(told)!r}, 'w')"
    server = {"command": sys.executable, "args": ["-c", begin + DUMPABLE]}
    config.write_text(json.dumps({"mcpServers": {"probe": server}}))
    command = [*PLAIN, sys.executable, "-m", "app", "check", str(config)]
    subprocess.run(command, capture_output=True, env=environment({"VIADUCT_TOKEN": "t" * 20}), check=False, timeout=20)
    assert told.read_text().strip() == "closed"


def _seen(pid: int) -> str:
    probe = [*PLAIN, sys.executable, "-c", DUMPABLE, str(pid)]
    return subprocess.run(probe, capture_output=True, text=True, check=True, timeout=20).stdout.strip()


DUMPABLE = """
import sys
try:
    open(f"/proc/{sys.argv[1]}/environ", "rb").read()
    print("open")
except PermissionError:
    print("closed")
"""
