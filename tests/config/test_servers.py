# ruff: noqa: E501 - a sentence is compared whole
from pathlib import Path

import pytest

from app.config.notes import Note
from app.gateway.credentials import Reference
from app.upstreams.command import SecretFile
from tests.config.conftest import TIME, Complaint, Loading


def one(**entry: object) -> dict[str, object]:
    return {"git": {"command": "uvx", **entry}}


def test_a_server_has_the_documented_defaults(loading: Loading) -> None:
    server = loading().servers["time"]
    assert server.argv == ("uvx", "mcp-server-time")
    assert (server.env, server.cwd, server.isolation, server.warm) == ({}, None, "session", 0)
    assert (server.start_timeout, server.request_timeout, server.max_request_timeout) == (60, 60, 600)
    assert (server.stop_timeout, server.kill_timeout, server.ping_timeout) == (2, 2, 30)


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({"comand": "x"}, "mcpServers.git.comand is not a setting; did you mean mcpServers.git.command?"),
        (
            {"requesttimeout": 5},
            "mcpServers.git.requesttimeout is not a setting; did you mean mcpServers.git.requestTimeout?",
        ),
        (
            {"start_timeout": 5},
            "mcpServers.git.start_timeout is not a setting; did you mean mcpServers.git.startTimeout?",
        ),
        ({"EnvFile": "x"}, "mcpServers.git.EnvFile is not a setting; did you mean mcpServers.git.envFile?"),
        ({"command": ""}, "mcpServers.git.command must not be empty"),
        ({"command": 5}, "mcpServers.git.command must be a string; put it in quotes"),
        ({"command": ["uvx", "x"]}, "mcpServers.git.command must be a string; put what follows the program into args"),
        ({"command": "npx -y x"}, "mcpServers.git.command must be one program; put what follows 'npx' into args"),
        ({"args": "x"}, "mcpServers.git.args must be a list"),
        ({"args": ["a", 5]}, "mcpServers.git.args.1 must be a string; put it in quotes"),
        ({"args": ["a\0"]}, "mcpServers.git.args.0 must not hold a NUL character"),
        ({"env": {"PORT": 5}}, "mcpServers.git.env.PORT must be a string; put it in quotes"),
        ({"env": {"A=B": "x"}}, "mcpServers.git.env: 'A=B' cannot be the name of a variable; rename it"),
        ({"isolation": "none"}, "mcpServers.git.isolation must be 'session' or 'shared'"),
        ({"requestTimeout": 0}, "mcpServers.git.requestTimeout must be greater than 0"),
        ({"requestTimeout": "5"}, "mcpServers.git.requestTimeout must be a number"),
        ({"requestTimeout": True}, "mcpServers.git.requestTimeout must be a number"),
        ({"warm": 1.5}, "mcpServers.git.warm must be a whole number"),
        ({"warm": -1}, "mcpServers.git.warm must be at least 0"),
        (
            {"requestTimeout": 700},
            "mcpServers.git.requestTimeout (700) is above maxRequestTimeout (600); lower it or raise maxRequestTimeout",
        ),
        ({"env": {"A": "${header:X-Key}"}}, "mcpServers.git.env.A: add 'x-key' to mcpServers.git.clientHeaders"),
        ({"env": {"A": "${header:}"}}, "mcpServers.git.env.A: ${header:} names no header"),
        ({"env": {"A": "${claim:a b}"}}, "mcpServers.git.env.A: ${claim:a b} names no claim"),
        (
            {"env": {"A": "${file:key}"}},
            "mcpServers.git.env.A: ${file:key} must name an absolute path as in ${file:/run/secrets/key}",
        ),
        (
            {"clientHeaders": ["Authorization"]},
            "mcpServers.git.clientHeaders: 'Authorization' is no header that a child may be given; use another",
        ),
        (
            {"clientHeaders": ["Mcp-Session-Id"]},
            "mcpServers.git.clientHeaders: 'Mcp-Session-Id' is no header that a child may be given; use another",
        ),
        (
            {"clientHeaders": ["a b"]},
            "mcpServers.git.clientHeaders: 'a b' is no header that a child may be given; use another",
        ),
        (
            {"args": ["${header:X-Key}"]},
            "mcpServers.git.args.0: ${header:...} may stand in a server's env only; put it there",
        ),
        ({"cwd": "${file:/x}"}, "mcpServers.git.cwd: ${file:...} may stand in a server's env only; put it there"),
        (
            {"env": {"A": "${claim:sub}"}, "isolation": "shared"},
            "mcpServers.git.env names what one client says, and a shared child is everybody's; leave one out",
        ),
        (
            {"env": {"A": "${claim:sub}"}, "warm": 1},
            "mcpServers.git.env names what one client says, and warm children wait for anybody; set warm to 0",
        ),
        (
            {"env": {"A": "x${UNSET}${claim:sub}"}},
            "mcpServers.git.env.A: the variable UNSET is not set; set it or write ${UNSET:-default}",
        ),
        ({"disabled": "yes"}, "mcpServers.git.disabled must be true or false"),
        ({"disabled": True}, "mcpServers has no server to serve; add one or enable one"),
        (
            {"type": "http"},
            "mcpServers.git.type: Viaduct serves stdio commands and this entry is not one; give it a command, or remove it",
        ),
        (
            {"url": "https://example.com"},
            "mcpServers.git.url: Viaduct serves stdio commands and this entry is not one; give it a command, or remove it",
        ),
        ({"envFile": 5}, "mcpServers.git.envFile must be the path of a file"),
    ],
)
def test_what_is_wrong_with_a_server_is_one_sentence(
    entry: dict[str, object], sentence: str, complaint: Complaint
) -> None:
    assert complaint(one(**entry)) == sentence


def test_an_unknown_key_that_resembles_none_is_answered_with_all(complaint: Complaint) -> None:
    sentence = complaint(one(zzz=1))
    assert sentence.startswith("mcpServers.git.zzz is not a setting; mcpServers.git may hold alwaysAllow, args, ")


def test_a_server_without_command_is_told_so(complaint: Complaint) -> None:
    assert complaint({"git": {}}) == "mcpServers.git.command is missing; add it"
    assert complaint({"git": "uvx"}) == "mcpServers.git must be an object with a command"


def test_servers_must_be_an_object_of_good_names(complaint: Complaint) -> None:
    assert complaint([]).startswith("mcpServers must be an object as in ")
    assert complaint({"a/b": TIME}).startswith("mcpServers: 'a/b' cannot be part of a URL")
    assert complaint({"Git": TIME, "git": TIME}) == "mcpServers: 'Git' and 'git' differ only in case; rename one"


def test_a_lowered_maximum_lowers_the_default_deadline_too(loading: Loading) -> None:
    server = loading(one(maxRequestTimeout=30)).servers["git"]
    assert (server.request_timeout, server.max_request_timeout) == (30, 30)


def test_keys_of_other_clients_are_ignored_and_noted(loading: Loading) -> None:
    config = loading(
        one(type="stdio", autoApprove=["x"], timeout="${NOT_SET}", description="d", icon=1, alwaysAllow=[])
    )
    keys = ["alwaysAllow", "autoApprove", "description", "icon", "timeout"]
    assert config.notes == (Note("keys of other clients are ignored", {"server": "git", "keys": keys}),)


def test_a_disabled_server_is_left_out_whatever_else_it_lacks(loading: Loading) -> None:
    config = loading({"git": {"command": "${NOT_SET}", "disabled": True}, "time": TIME})
    assert list(config.servers) == ["time"]
    assert config.notes == (Note("a disabled server is left out", {"server": "git"}),)


def test_what_works_but_perhaps_not_as_meant_is_a_warning(loading: Loading) -> None:
    config = loading({"a": {"command": "npx", "args": ["x"]}, "b": {"command": "npx", "args": ["-y", "x"]}})
    assert config.notes == (
        Note("npx may wait for an answer that nobody can give; add -y", {"servers": ["a"]}, is_warning=True),
    )


def test_variables_expand_in_every_string(loading: Loading) -> None:
    entry = one(args=["${A}/${env:B}", "${C:-see}", "${EMPTY:-full}", "$${A}", "$A", "${EMPTY}"], env={"X": "${A}${A}"})
    server = loading(entry, environ={"A": "a$1\\1", "B": "b", "EMPTY": ""}).servers["git"]
    assert server.args == ("a$1\\1/b", "see", "full", "${A}", "$A", "")
    assert server.env == {"X": "a$1\\1a$1\\1"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("${TOKEN}", "the variable TOKEN is not set; set it or write ${TOKEN:-default}"),
        ("${env:TOKEN}", "the variable TOKEN is not set; set it or write ${TOKEN:-default}"),
        (
            "${input:git-token}",
            "nobody can be asked for ${input:git-token} here; write ${GIT_TOKEN} and set that variable",
        ),
        (
            "${workspaceFolder}/x",
            "${workspaceFolder} is not known here; write ${VAR}, ${VAR:-default} or the value itself",
        ),
        ("${A:-${B}}", "one ${...} inside another is not supported; use a single variable"),
        ("${OPEN", "${ without a closing }; write $${ for a literal one"),
    ],
)
def test_what_cannot_be_expanded_is_named_with_its_place(text: str, sentence: str, complaint: Complaint) -> None:
    assert complaint(one(env={"TOKEN": text})) == f"mcpServers.git.env.TOKEN: {sentence}"


def test_a_tilde_is_the_home_folder_where_a_path_is_meant(loading: Loading) -> None:
    entry = {"a": {"command": "~/bin/x", "args": ["~", "~/d", "~x", "a~/"], "cwd": "~/w", "env": {"P": "~/p"}}}
    server = loading(entry, environ={"HOME": "/home/ada"}).servers["a"]
    assert server.argv == ("/home/ada/bin/x", "/home/ada", "/home/ada/d", "~x", "a~/")
    assert (server.cwd, server.env) == ("/home/ada/w", {"P": "~/p"})


def test_a_relative_cwd_and_env_file_are_beside_the_config(loading: Loading, tmp_path: Path) -> None:
    lines = [
        "\ufeff# comment",
        "",
        "A=1",
        "export B = two words # why",
        "C='#${X}'",
        'D="a\\nb"',
        "E=",
        "F=a#b",
        "X=file",
    ]
    (tmp_path / ".env").write_text("\r\n".join(lines))
    server = loading(one(cwd="sub", envFile=".env", env={"X": "entry"})).servers["git"]
    assert server.cwd == str(tmp_path / "sub")
    assert server.env == {
        "A": "1", "B": "two words", "C": "#${X}", "D": "a\nb", "E": "", "F": "a#b", "X": "entry"
    }  # fmt: skip


def test_a_bad_env_file_is_named_with_its_line_and_without_its_content(complaint: Complaint, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1\nhunter2\n")
    assert complaint(one(envFile=".env")) == f"mcpServers.git.envFile: {tmp_path}/.env line 2 is not KEY=VALUE"
    assert (
        complaint(one(envFile="no")) == f"mcpServers.git.envFile: cannot read {tmp_path}/no: no such file or directory"
    )


def test_what_clients_say_is_put_into_env_when_a_child_starts(loading: Loading) -> None:
    env = {"A": "x-${B}-${header:X-Key:-none}", "C": "${claim:sub}", "D": "${file:/run/d}", "E": "$${header:X-Key}${B}"}
    server = loading(one(env=env, clientHeaders=["X-KEY"]), environ={"B": "b"}).servers["git"]
    assert server.env == {"E": "${header:X-Key}b"}
    assert server.templates == {
        "A": ("x-b-", Reference("header", "x-key", "none")),
        "C": (Reference("claim", "sub"),),
        "D": (SecretFile("/run/d"),),
    }


def test_a_file_may_be_named_for_children_of_everybody(loading: Loading) -> None:
    server = loading(one(env={"A": "${file:/run/a}"}, isolation="shared")).servers["git"]
    assert server.templates == {"A": (SecretFile("/run/a"),)}
