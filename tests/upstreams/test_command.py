"""What can be run is found as the child would find it, and what cannot is refused in a sentence (F01)."""

import os
from pathlib import Path

import pytest

from app.protocol.faults import Unavailable
from app.upstreams.command import Command, environment, resolve


def program(path: Path, text: str = "#!/bin/sh\n", mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def refusal(command: Command) -> Unavailable:
    with pytest.raises(Unavailable) as caught:
        resolve(command)
    return caught.value


def test_a_command_is_found_in_the_path_of_the_child(tmp_path: Path) -> None:
    server = program(tmp_path / "bin" / "server")
    assert resolve(Command(("server",), {"PATH": f"/nowhere:{server.parent}"})) == str(server)


def test_a_relative_command_and_a_relative_path_start_from_the_childs_folder(tmp_path: Path) -> None:
    server = program(tmp_path / "bin" / "server")
    assert resolve(Command(("bin/server",), cwd=str(tmp_path))) == str(server)
    assert resolve(Command(("server",), {"PATH": "bin"}, cwd=str(tmp_path))) == str(server)


def test_what_may_not_be_executed_does_not_hide_what_may(tmp_path: Path) -> None:
    program(tmp_path / "a" / "server", mode=0o644)
    server = program(tmp_path / "b" / "server")
    assert resolve(Command(("server",), {"PATH": f"{tmp_path}/a:{tmp_path}/b"})) == str(server)


@pytest.mark.parametrize(
    ("command", "reason", "words"),
    [
        (Command(()), "bad_argument", "no command"),
        (Command(("",)), "command_not_found", "''"),
        (Command(("no-such-server",)), "command_not_found", "'no-such-server' is not installed here"),
        (Command(("/no/such/server",)), "command_not_found", "'/no/such/server'"),
        (Command(("/etc",)), "command_not_found", "'/etc'"),
        (Command(("x" * 300,)), "command_not_found", "is not installed"),
        (Command(("/etc/passwd",)), "not_executable", "chmod +x"),
        (Command(("/etc/passwd/server",)), "command_not_found", "/etc/passwd/server"),
        (Command(("cat",), cwd="/no/such/folder"), "bad_cwd", "'/no/such/folder'"),
        (Command(("cat",), cwd="/etc/passwd"), "bad_cwd", "'/etc/passwd'"),
        (Command(("cat", "a\0b")), "bad_argument", "NUL"),
        (Command(("cat",), {"A": "b\0c"}), "bad_argument", "NUL"),
        (Command(("cat",), cwd="/\0"), "bad_argument", "NUL"),
        (Command(("cat",), {"A=B": "c"}), "bad_argument", "'A=B'"),
        (Command(("cat",), {"": "c"}), "bad_argument", "''"),
        (Command(("cat", "\ud800")), "bad_argument", "characters"),
    ],
)
def test_what_cannot_be_run_is_refused_with_a_reason_and_a_sentence(command: Command, reason: str, words: str) -> None:
    fault = refusal(command)
    assert (fault.reason, fault.executed) == (reason, "no")
    assert words in fault.message


@pytest.mark.parametrize(
    "line", ["#!/no/such/interpreter", "#! /no/such/interpreter -u", "#!/bin/sh\r", "#!/etc/passwd"]
)
def test_a_script_whose_interpreter_is_not_here_is_refused_by_name(tmp_path: Path, line: str) -> None:
    server = program(tmp_path / "server", f"{line}\nexit 0\n")
    fault = refusal(Command((str(server),)))
    assert fault.reason == "bad_interpreter"
    assert repr(line[2:].strip(" ").split(" ")[0]) in fault.message


def test_a_script_with_an_argument_in_its_first_line_is_run(tmp_path: Path) -> None:
    server = program(tmp_path / "server", "#! /usr/bin/env python3\n")
    assert resolve(Command((str(server),))) == str(server)


def test_the_child_sees_little_of_our_environment_and_what_its_configuration_adds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = (
        "HOME LANG LC_ALL LC_TIME LOGNAME PATH SHELL TERM TMPDIR USER HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY "
        "http_proxy https_proxy no_proxy all_proxy SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE "
        "CURL_CA_BUNDLE"
    ).split()
    lost = "VIADUCT_TOKEN AWS_SECRET_ACCESS_KEY PYTHONPATH LD_PRELOAD VIRTUAL_ENV NODE_OPTIONS VIADUCT_CHILD".split()
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name in (*kept, *lost):
        monkeypatch.setenv(name, f"our {name}")
    seen = environment(Command(("cat",), {"API_KEY": "k", "HOME": "/srv"}))
    expected = {name: f"our {name}" for name in kept}
    assert seen == {**expected, "PYTHONUNBUFFERED": "1", "API_KEY": "k", "HOME": "/srv"}


def test_a_gateway_without_a_path_gives_its_children_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PATH")
    assert "/usr/bin" in environment(Command(("cat",)))["PATH"].split(":")
