"""What needs no gateway: help, tokens, bad usage and bad configuration."""

import json
import re
import socket
from pathlib import Path

import pytest

from app.auth.expiry import unix_seconds
from app.auth.tokens import StaticTokens, digest, hash_of
from app.config import load
from tests.cli.viaduct import WEATHER, viaduct

HEAVY = ("pydantic", "uvicorn", "uvloop", "asyncio", "yaml", "msgspec")


def test_a_token_is_printed_once_with_an_entry_that_admits_it(tmp_path: Path) -> None:
    done = viaduct("token", "--name", "laptop", "--scope", "a", "--scope", "b", "--expires", "90d")
    assert done.returncode == 0
    token = done.stdout.split("\n", 1)[0]
    assert done.stdout.count(token) == 1
    entry = json.loads(done.stdout.strip().rsplit("\n", 1)[-1])
    assert entry["hash"] == hash_of(token)
    path = tmp_path / "viaduct.json"
    path.write_text(json.dumps({"mcpServers": {"x": {"command": "x"}}, "viaduct": {"auth": {"tokens": [entry]}}}))
    [admitted] = load(path, {}).viaduct.auth.tokens
    assert (admitted.name, admitted.scopes) == ("laptop", ("a", "b"))
    assert admitted.expires_at == unix_seconds(entry["expires"])


def test_a_token_without_options_may_do_everything_for_ever() -> None:
    entry = json.loads(viaduct("token").stdout.strip().rsplit("\n", 1)[-1])
    assert (entry["name"], entry["scopes"], "expires" in entry) == ("token", ["*"], False)


def test_the_version_is_told() -> None:
    assert re.fullmatch(r"viaduct, version \d+\.\d+\.\d+\n", viaduct("--version").stdout)


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["token"]])
def test_help_and_tokens_do_not_wait_for_heavy_imports(arguments: list[str]) -> None:
    import subprocess
    import sys

    code = (
        f"import sys; sys.argv[1:] = {arguments}; from app.__main__ import main\n"
        "try: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True)
    assert set(done.stderr.split()) & set(HEAVY) == set()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "Usage: viaduct"),
        (["fly"], "No such command 'fly'"),
        (["run"], "Missing argument"),
        (["run", "--wings", "--", "x"], "No such option"),
        (["serve"], "Missing argument 'CONFIG'"),
        (["demo", "--port", "65536"], "--port"),
        (["demo", "--log-level", "loud"], "--log-level"),
        (["token", "--expires", "soon"], "--expires: it must be a time with an offset"),
        (["token", "--expires", "0d"], "--expires"),
        (["token", "--expires", "2020-01-01T00:00:00Z"], "--expires: it must be in the future"),
        (["token", "--scope", "read write"], "--scope: it must be one word of visible ASCII"),
        (["token", "--scope", ""], "--scope: it must be one word of visible ASCII"),
        (["token", "--name", ""], "--name: it must be 1 to 64 characters of printable ASCII"),
        (["token", "--name", "anonymous"], "--name: it must be 1 to 64 characters of printable ASCII, and not"),
        (["run", "uvx", "x", "--port", "1"], "--port could be meant for viaduct or for the server; put -- before"),
        (["run", "uvx", "x", "--token=secret"], "--token could be meant for viaduct or for the server; put -- before"),
    ],
)
def test_bad_usage_is_2(arguments: list[str], complaint: str) -> None:
    done = viaduct(*arguments)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert "secret" not in done.stderr
    assert "Traceback" not in done.stderr


def refused(*arguments: str, env: dict[str, str] | None = None) -> str:
    """The one sentence of exit code 78."""
    done = viaduct(*arguments, env=env)
    assert done.returncode == 78, done.stderr
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    return line.removeprefix("viaduct: ")


def test_a_port_in_use_is_78_before_anything_starts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        sentence = refused("demo", "--port", str(port))
    assert sentence == (
        f"cannot listen on 127.0.0.1:{port}: the port is in use; choose another with --port, 0 picks a free one"
    )


@pytest.mark.parametrize(
    ("host", "complaint"),
    [
        ("192.0.2.1", "choose an address of this machine with --host"),
        ("no.such.name.invalid", "no address of that name is known; choose another with --host"),
    ],
)
def test_an_address_of_somebody_else_is_78(host: str, complaint: str) -> None:
    assert complaint in refused("demo", "--host", host, "--port", "0")


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (["no-such-command-anywhere"], "'no-such-command-anywhere' is not installed here"),
        (["./no/such/file"], "is not installed here"),
        (["/etc/passwd"], "'/etc/passwd' is not executable"),
    ],
)
def test_a_command_that_cannot_be_started_is_78(command: list[str], complaint: str) -> None:
    assert complaint in refused("run", "--port", "0", "--", *command)


@pytest.mark.parametrize("option", [["--no-auth"], []])
def test_an_open_gateway_on_every_address_is_78(option: list[str]) -> None:
    env = None if option else {"VIADUCT_NO_AUTH": "1"}
    assert "--i-know-this-is-open" in refused("demo", "--host", "0.0.0.0", *option, env=env)


def test_a_variable_that_is_to_be_passed_on_must_be_set() -> None:
    assert refused("run", "--env", "NOT_SET", "--", *WEATHER) == (
        "--env NOT_SET: the variable NOT_SET is not set; set it or write --env NOT_SET=VALUE"
    )


@pytest.mark.parametrize("command", ["serve", "check"])
def test_a_bad_config_is_78_with_its_file(command: str, tmp_path: Path) -> None:
    path = tmp_path / "viaduct.json"
    assert refused(command, str(path)) == f"cannot read the config file {path}: no such file or directory"
    path.write_text('{"mcpServers": {"a": {"command": "x", "env": {"T": "${NOT_SET}"}}}}')
    env = {"VIADUCT_CONFIG": str(path)}
    assert refused(command, env=env).startswith(f"{path}: mcpServers.a.env.T: the variable NOT_SET is not set")


def test_what_the_minted_token_opens_is_what_its_hash_says() -> None:
    from app.auth.tokens import Entry

    token = viaduct("token").stdout.split("\n", 1)[0]
    assert StaticTokens([Entry("a", hash_of(token))]).find(digest(token)) is not None
