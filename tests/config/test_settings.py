# ruff: noqa: E501 - a sentence is compared whole
import json
import re
from pathlib import Path
from typing import Any

import pytest

from app.auth.tokens import hash_of
from app.config import ConfigError, Overrides, load, named_by, single
from app.config.listening import Listen
from app.config.notes import Note
from app.config.overrides import VARIABLES, from_environment
from tests.config.conftest import TIME, Complaint, Loading

HASH = "sha256:" + "a" * 64


def tokens(*entries: dict[str, object]) -> dict[str, object]:
    return {"auth": {"tokens": list(entries)}}


def test_the_viaduct_block_has_the_documented_defaults(loading: Loading) -> None:
    settings = loading().viaduct.model_dump(by_alias=True)
    assert settings == {
        "listen": "127.0.0.1:8080", "publicUrl": None, "allowedHosts": (), "allowedOrigins": (),
        "auth": {
            "tokens": (), "tokensFile": None, "jwt": (), "introspection": None, "scopes": (),
            "jwks": {"ttl": 600, "cooldown": 30, "maxStale": 86400},
            "keep": {"signed": 300, "introspected": 60, "refused": 10, "max": 4096}, "checkInterval": 0.5,
        },
        "outbound": {"allow": (), "timeout": 5, "body": 65536},
        "policy": (), "audit": None,
        "sessions": {
            "idleTimeout": 1800, "max": 1000, "maxPerPrincipal": 100, "withoutId": "implicit", "confirmTimeout": 120,
            "shutdownGrace": 5, "rate": 200, "burst": 2000, "ratePerPrincipal": 50, "burstPerPrincipal": 500,
        },
        "stateless": {
            "parkTimeout": 300, "expiredTimeout": 60, "askAfter": 0.02, "askWithin": 0.2, "idleTimeout": 300, "maxChildren": 16,
            "maxChildrenPerPrincipal": 64, "maxCapabilitySets": 8, "maxRequests": 1000, "maxParked": 100, "maxBytes": 67108864,
            "toolsPages": 100, "toolsFresh": 1,
            "toolsTimeout": 5, "toolsRetry": 60,
        },
        "streams": {
            "streamAfter": 0.25, "closeStreamAfter": None, "keepAlive": 15, "retry": 1.0, "questionWait": 5, "maxPerSession": 16,
            "logBytes": 1048576, "logCount": 1024, "queueBytes": 8388608,
        },
        "limits": {
            "body": 4194304, "line": 16777216, "headerBytes": 32768, "headerCount": 100, "urlBytes": 8192,
            "headerTimeout": 10, "bodyTimeout": 15, "sendTimeout": 30, "keepAliveTimeout": 75, "answerTimeout": 5,
            "lingerTimeout": 2, "lingerBytes": 16777216, "pipelined": 32, "batch": 1000, "queueBytes": 8388608, "queueCount": 256,
            "connections": 2000, "children": 1000, "openFilesPercent": 80, "memory": None, "inFlight": 1000, "badLines": 100, "longLines": 3, "recoverTimeout": 5,
            "stderrBytes": 65536, "stderrRate": 50, "logRate": 200, "questions": 100, "waiting": 100,
            "subscriptions": 1000, "subscriptionBytes": 262144, "greeting": 262144,
        },
        "drain": 20, "drainOvertime": 15, "closeTimeout": 3, "starts": 4,
        "restarts": {"backoff": 0.2, "maxBackoff": 30, "deaths": 5, "window": 60, "coolDown": 300, "uptime": 60},
        "store": "memory", "storeTimeout": 5, "logLevel": "info", "logFormat": "text", "debugPayloads": False, "metrics": "token",
        "naming": "prefix", "mode": "list", "groups": {},
        "catalog": {
            "read": "start", "listTimeout": 2, "pageSize": 500, "retry": 5, "maxRetry": 300, "fresh": 10, "pages": 100,
            "readTimeout": 30, "found": 8,
        },
        "watchInterval": 0.5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("block", "sentence"),
    [
        ([], "viaduct must be an object"),
        ({"limit": {}}, "viaduct.limit is not a setting; did you mean viaduct.limits?"),
        ({"limits": {"boddy": 1}}, "viaduct.limits.boddy is not a setting; did you mean viaduct.limits.body?"),
        (tokens({"name": "a", "hash": HASH, "expire": "x"}), "viaduct.auth.tokens.0.expire is not a setting; did you mean viaduct.auth.tokens.0.expires?"),
        ({"limits": {"body": 0}}, "viaduct.limits.body must be at least 1"),
        ({"limits": {"body": 1.5}}, "viaduct.limits.body must be a whole number"),
        ({"limits": {"queueBytes": 100}}, "viaduct.limits.queueBytes must be at least limits.body, or a large request never fits"),
        ({"limits": 5}, "viaduct.limits must be an object"),
        ({"drain": -1}, "viaduct.drain must be at least 0"),
        ({"audit": {}}, "viaduct.audit.path is missing; add it"),
        ({"audit": {"path": "audit.jsonl"}}, "viaduct.audit.path must be an absolute path of a file as in /var/log/viaduct/audit.jsonl"),
        ({"audit": {"path": "/a", "onFail": "x"}}, "viaduct.audit.onFail is not a setting; did you mean viaduct.audit.onFailure?"),
        ({"policy": []}, "viaduct.policy must not be empty"),
        ({"policy": {}}, "viaduct.policy must be a list"),
        ({"policy": [{"alow": ["*"]}]}, "viaduct.policy.0.alow is not a setting; did you mean viaduct.policy.0.allow?"),
        ({"policy": [{"deny": ["fs/resources"]}]}, "viaduct.policy.0.deny.0 must be like fs/resources/*, or fs/tools/resources for a tool of that name"),
        ({"policy": [{"allow": ["git/"]}]}, "viaduct.policy.0.allow.0 must be like time, git/git_status, git/prompts/*, fs/resources/* or *"),
        ({"policy": [{"scopes": ["a b"]}]}, "viaduct.policy.0.scopes.0 must be one word of visible ASCII without quotes and backslashes"),
        ({"policy": [{"perMinute": 0}]}, "viaduct.policy.0.perMinute must be at least 1"),
        ({"drain": 1e300}, "viaduct.drain must be at most 3.1536e+07"),
        ({"store": "redis"}, "viaduct.store must be memory, or a file as in sqlite:///var/lib/viaduct/sessions.db"),
        ({"store": "sqlite://sessions.db"}, "viaduct.store must be memory, or a file as in sqlite:///var/lib/viaduct/sessions.db"),
        ({"store": "sqlite:///srv/"}, "viaduct.store must be memory, or a file as in sqlite:///var/lib/viaduct/sessions.db"),
        ({"logLevel": "loud"}, "viaduct.logLevel must be 'debug', 'info', 'warning' or 'error'"),
        ({"debugPayloads": 1}, "viaduct.debugPayloads must be true or false"),
        ({"sessions": {"withoutId": "x"}}, "viaduct.sessions.withoutId must be 'implicit' or 'reject'"),
        ({"listen": 8080}, "viaduct.listen must be a string; put it in quotes"),
        ({"listen": "8080"}, 'viaduct.listen must be host:port as in "127.0.0.1:8080" or "[::1]:8080"'),
        ({"listen": "::1:8080"}, 'viaduct.listen must be host:port as in "127.0.0.1:8080" or "[::1]:8080"'),
        ({"listen": "[::x]:80"}, 'viaduct.listen must be host:port as in "127.0.0.1:8080" or "[::1]:8080"'),
        ({"listen": "localhost:70000"}, "viaduct.listen must be a port from 0 to 65535"),
        ({"publicUrl": "mcp.example.com"}, "viaduct.publicUrl must be like https://mcp.example.com, a path prefix allowed"),
        ({"publicUrl": "https://u:p@h"}, "viaduct.publicUrl must be like https://mcp.example.com, a path prefix allowed"),
        ({"publicUrl": "https://h:99999"}, "viaduct.publicUrl must be like https://mcp.example.com, a path prefix allowed"),
        *(({"publicUrl": f"https://h/{path}"}, "viaduct.publicUrl must have no query, no fragment and a plain path, like https://example.com/mcp-gateway") for path in ("ü", 'a"b', "a\\b", "%zz", "a..b")),
        ({"publicUrl": "https://h/?x"}, "viaduct.publicUrl must have no query, no fragment and a plain path, like https://example.com/mcp-gateway"),
        ({"allowedHosts": ["https://h"]}, "viaduct.allowedHosts.0 must be a host or host:port as in mcp.example.com, without scheme and path"),
        ({"allowedOrigins": ["h"]}, "viaduct.allowedOrigins.0 must be an origin as in https://app.example.com, without path"),
        (tokens({"name": "a", "hash": hash_of("")}), "viaduct.auth.tokens.0.hash must be that of a token, and is that of an empty text; `viaduct token` prints one"),
        (tokens({"name": "a", "hash": "hunter2"}), "viaduct.auth.tokens.0.hash must be sha256: and 64 hexadecimal digits; `viaduct token` prints one"),
        (tokens({"hash": HASH}), "viaduct.auth.tokens.0.name is missing; add it"),
        (tokens({"name": "", "hash": HASH}), "viaduct.auth.tokens.0.name must be 1 to 64 printable ASCII characters"),
        (tokens({"name": "a", "hash": HASH, "scopes": ["a b"]}), "viaduct.auth.tokens.0.scopes.0 must be one word of visible ASCII without quotes and backslashes"),
        (tokens({"name": "a", "hash": HASH, "expires": "2027-01-01"}), "viaduct.auth.tokens.0.expires must be a time with an offset as in 2027-01-01T00:00:00Z"),
        (tokens({"name": "a", "hash": HASH, "expires": 1}), "viaduct.auth.tokens.0.expires must be a time with an offset as in 2027-01-01T00:00:00Z"),
        (tokens({"name": "a", "hash": HASH}, {"name": "a", "hash": HASH}), "viaduct.auth.tokens.1.name 'a' is taken by an earlier token; rename it"),
        (tokens({"name": "a", "hash": HASH}, {"name": "b", "hash": HASH.upper().replace("SHA", "sha")}), "viaduct.auth.tokens.1.hash is that of 'a' too; make a token of its own"),
        (tokens({"name": "anonymous", "hash": HASH}), "viaduct.auth.tokens.0.name 'anonymous' is kept for those without a token; rename it"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_setting_is_one_sentence(block: object, sentence: str, complaint: Complaint) -> None:
    assert complaint(viaduct=block) == sentence


def test_a_token_is_read_with_scopes_and_expiry(loading: Loading) -> None:
    block = tokens(
        {"name": "a", "hash": HASH},
        {"name": "b", "hash": HASH[:-1] + "b", "scopes": ["x:y"], "expires": "1970-01-01T00:01:00Z"},
    )
    config = loading(viaduct=block)
    a, b = config.viaduct.auth.tokens
    assert (a.scopes, a.expires_at) == (("*",), None)
    assert (b.scopes, b.expires_at) == (("x:y",), 60.0)
    assert config.notes == (Note("a configured token has expired", {"names": ["b"]}, is_warning=True),)


@pytest.mark.parametrize(
    ("written", "kept"),
    [("HTTPS://Mcp.Example.com", "https://mcp.example.com"), ("http://[::1]:81/a/b/", "http://[::1]:81/a/b")],
)
def test_a_public_url_is_kept_in_one_spelling(written: str, kept: str, loading: Loading) -> None:
    assert loading(viaduct={"publicUrl": written}).viaduct.public_url == kept


@pytest.mark.parametrize(
    ("written", "listen"),
    [("[::1]:81", Listen("::1", 81)), ("0.0.0.0:0", Listen("0.0.0.0", 0)), ("localhost:1", Listen("localhost", 1))],
)
def test_an_address_may_be_of_either_kind_or_a_name(written: str, listen: Listen, loading: Loading) -> None:
    config = loading(viaduct={"listen": written})
    assert config.listen == listen
    assert str(config.listen) == written


def test_the_address_itself_is_a_host_that_is_served(loading: Loading) -> None:
    assert loading(viaduct={"listen": "192.0.2.1:80"}).viaduct.allowed_hosts == ("192.0.2.1",)
    assert loading(viaduct={"listen": "[2001:DB8::1]:80"}).viaduct.allowed_hosts == ("[2001:db8::1]",)
    assert loading().viaduct.allowed_hosts == ()


def test_listening_everywhere_without_a_name_is_a_warning(loading: Loading) -> None:
    everywhere = loading(viaduct={"listen": "0.0.0.0:80"})
    assert [note.is_warning for note in everywhere.notes] == [True]
    assert "--allowed-host" in everywhere.notes[0].event
    assert loading(viaduct={"listen": "0.0.0.0:80", "publicUrl": "https://a.example"}).notes == ()


def test_options_go_before_variables_and_those_before_the_file(loading: Loading) -> None:
    block = {"publicUrl": "https://file", "logLevel": "error", "listen": "127.0.0.1:1", "allowedHosts": ["file"]}
    environ = {
        "VIADUCT_STORE": "sqlite:///s.db", "VIADUCT_PUBLIC_URL": "https://variable", "VIADUCT_LOG_LEVEL": "WARNING", "VIADUCT_HOST": "::1",
        "VIADUCT_PORT": "2", "VIADUCT_ALLOWED_HOSTS": "a, b,", "VIADUCT_LOG_FORMAT": "json",
    }  # fmt: skip
    given = Overrides(public_url="https://option", port="3", log_format="text")
    config = loading(viaduct=block, environ=environ, given=given)
    settings = config.viaduct
    assert (settings.public_url, settings.log_level, settings.log_format) == ("https://option", "warning", "text")
    assert (config.listen, settings.listen) == (Listen("::1", 3), "[::1]:3")
    assert settings.allowed_hosts == ("a", "b")
    assert settings.store == "sqlite:///s.db"


@pytest.mark.parametrize(
    ("environ", "given", "sentence"),
    [
        ({"VIADUCT_PUBLIC_URL": "x"}, {}, "VIADUCT_PUBLIC_URL must be like https://mcp.example.com, a path prefix allowed"),
        ({"VIADUCT_PUBLIC_URL": "x"}, {"public_url": "y"}, "--public-url must be like https://mcp.example.com, a path prefix allowed"),
        ({"VIADUCT_LOG_LEVEL": "loud"}, {}, "VIADUCT_LOG_LEVEL must be 'debug', 'info', 'warning' or 'error'"),
        ({"VIADUCT_PORT": "x"}, {}, "VIADUCT_PORT must be a port from 0 to 65535"),
        ({"VIADUCT_LISTEN": "x"}, {}, 'VIADUCT_LISTEN must be host:port as in "127.0.0.1:8080" or "[::1]:8080"'),
        ({"VIADUCT_NO_AUTH": "maybe"}, {}, "VIADUCT_NO_AUTH must be 1 or 0"),
        ({}, {"host": "a b"}, "--host must be an address or a host name as in 127.0.0.1, ::1 or localhost"),
        ({}, {"allowed_hosts": ("a", "/")}, "--allowed-host must be a host or host:port as in mcp.example.com, without scheme and path"),
        ({}, {"allowed_origins": ("a",)}, "--allowed-origin must be an origin as in https://app.example.com, without path"),
        ({"VIADUCT_TOKEN": "hunter 2"}, {}, "VIADUCT_TOKEN may hold only letters, digits and -._~+/ with = at the end"),
        ({}, {"tokens": ("hünter",)}, "--token may hold only letters, digits and -._~+/ with = at the end"),
        ({}, {"no_auth": True, "tokens": ("x",)}, "--no-auth and --token contradict each other; leave one out"),
        ({}, {"no_auth": True, "host": "0.0.0.0"}, "--no-auth on 0.0.0.0:8080 would let anybody in who reaches it; use a token, listen on 127.0.0.1, or add --i-know-this-is-open"),
        ({"VIADUCT_NO_AUTH": "1", "VIADUCT_HOST": "::"}, {}, "VIADUCT_NO_AUTH on [::]:8080 would let anybody in who reaches it; use a token, listen on 127.0.0.1, or add --i-know-this-is-open"),
    ],
)  # fmt: skip
def test_who_set_what_is_wrong_is_named(
    environ: dict[str, str], given: dict[str, object], sentence: str, complaint: Complaint
) -> None:
    assert complaint(environ=environ, given=Overrides(**given)) == sentence


def test_the_port_that_kubernetes_gives_a_pod_is_none(loading: Loading) -> None:
    assert loading(environ={"VIADUCT_PORT": "tcp://10.0.0.1:80"}).listen.port == 8080


@pytest.mark.parametrize(
    ("environ", "given", "is_open"),
    [
        ({}, {}, False),
        ({"VIADUCT_NO_AUTH": "yes"}, {}, True),
        ({"VIADUCT_NO_AUTH": "0"}, {"no_auth": True}, True),
        ({"VIADUCT_NO_AUTH": "1"}, {"tokens": ("a-token-of-some-length",)}, False),
        ({"VIADUCT_TOKEN": "a-token-of-some-length"}, {"no_auth": True}, True),
        ({}, {"no_auth": True, "host": "0.0.0.0", "open_is_known": True}, True),
        ({}, {"no_auth": True, "host": "127.8.8.8"}, True),
        ({}, {"no_auth": True, "host": "localhost"}, True),
    ],
)
def test_everybody_is_let_in_only_where_the_strongest_word_says_so(
    environ: dict[str, str], given: dict[str, object], is_open: bool, loading: Loading
) -> None:
    assert loading(environ=environ, given=Overrides(**given)).no_auth is is_open


def test_tokens_for_a_run_are_let_in_beside_those_of_the_file(loading: Loading) -> None:
    block = tokens({"name": "token", "hash": HASH})
    config = loading(
        viaduct=block, environ={"VIADUCT_TOKEN": "ignored"}, given=Overrides(tokens=("short", "a-long-enough-token"))
    )
    assert [token.name for token in config.viaduct.auth.tokens] == ["token", "token-given", "token-2"]
    event = "a token is short enough to be guessed; `viaduct token` makes a long one"
    assert config.notes == (Note(event, {"names": ["token-given"]}, is_warning=True),)
    assert "short" not in repr(config.viaduct)
    assert "a-long-enough-token" not in repr(config)


def test_vs_codes_file_is_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"inputs": [{"id": "x"}], "servers": {"time": {"type": "stdio", **TIME}}}))
    assert list(load(path, {}).servers) == ["time"]


@pytest.mark.parametrize(
    ("tree", "sentence"),
    [
        ({"servers": {}, "mcpServers": {}}, "mcpServers and servers are both there; move all entries under mcpServers"),
        ({"mcpservers": {}}, "mcpservers is not a setting; did you mean mcpServers?"),
        ({"zzz": {}}, "zzz is not a setting; the file may hold mcpServers, servers, viaduct"),
        ({}, 'mcpServers is missing; add it as in {"mcpServers": {"time": {"command": "uvx", ...}}}'),
        ({"servers": {"a": {"comand": "x", "command": "y"}}}, "servers.a.comand is not a setting; did you mean servers.a.command?"),
    ],
)  # fmt: skip
def test_what_is_wrong_at_the_top_is_one_sentence_that_names_the_file(
    tree: object, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "viaduct.json"
    path.write_text(json.dumps(tree))
    with pytest.raises(ConfigError, match=f"^{re.escape(f'{path}: {sentence}')}$"):
        load(path, {})


def test_no_value_of_a_file_is_ever_repeated(complaint: Complaint) -> None:
    """Any value may be a secret that was put in the wrong place."""
    secret = "hunter2"
    blocks = [{key: secret} for key in ("listen", "publicUrl", "auth", "limits", "drain", "store", "logLevel", secret)]
    for block in blocks[:-1]:
        assert secret not in complaint(viaduct=block)
    for entry in ({"isolation": secret}, {"env": secret}, {"args": secret}, {"env": {"A": "${" + secret}}):
        assert secret not in complaint({"git": {"command": "uvx", **entry}})


def test_one_command_is_a_configuration_too() -> None:
    config = single(["uvx", "mcp-server-time", "--x"], None, {}, {"isolation": "shared", "env": {"A": "${B}"}})
    [(name, server)] = config.servers.items()
    assert (name, server.argv, server.isolation) == ("time", ("uvx", "mcp-server-time", "--x"), "shared")
    assert server.env == {"A": "${B}"}


def test_a_given_name_must_be_a_good_one() -> None:
    with pytest.raises(ConfigError, match=r"^--name: 'a/b' cannot be part of a URL"):
        single(["uvx"], "a/b", {})


def test_under_a_foreign_server_there_must_be_a_file_and_a_credential(tmp_path: Path) -> None:
    path = tmp_path / "viaduct.json"
    path.write_text(json.dumps({"mcpServers": {"time": TIME}}))
    with pytest.raises(ConfigError, match=r"^VIADUCT_CONFIG is not set; let it name the config file$"):
        named_by({})
    with pytest.raises(ConfigError, match=r"^no token is configured; set VIADUCT_TOKEN"):
        named_by({"VIADUCT_CONFIG": str(path)})
    assert named_by({"VIADUCT_CONFIG": str(path), "VIADUCT_TOKEN": "a-token-of-some-length"}).has_credentials


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("VIADUCT_TOKENS", "TOKEN"),
        ("VIADUCT_LOGLEVEL", "LOG_LEVEL"),
        ("VIADUCT_ALLOWED_HOST", "ALLOWED_HOSTS"),
        ("VIADUCT_Port", "PORT"),
        ("VIADUCT_NOAUTH", "NO_AUTH"),
    ],
)
def test_a_variable_that_is_nearly_one_of_ours_is_warned_of(loading: Loading, name: str, meant: str) -> None:
    note = Note(f"the variable {name} means nothing; did you mean VIADUCT_{meant}?", is_warning=True)
    assert note in loading(environ={name: "x"}).notes
    assert note in single(["true"], None, {name: "x"}).notes


def test_variables_of_others_are_not_warned_of(loading: Loading) -> None:
    kubernetes = ("SERVICE_HOST", "SERVICE_PORT", "PORT_8080_TCP", "PORT_8080_TCP_ADDR", "SERVICE_PORT_HTTP")
    theirs = {f"VIADUCT_{name}": "x" for name in (*kubernetes, "CHILD", "MY_OWN_KEY")}
    ours = {f"VIADUCT_{name}": "" for name in VARIABLES}
    assert loading(environ={**theirs, **ours, "MY_VIADUCT_TOKENS": "x"}).notes == loading().notes


def test_each_variable_that_is_read_is_known() -> None:
    read: set[str] = set()

    class Environment(dict[str, str]):
        def get(self, key: str, default: object = None) -> Any:
            read.add(key)
            return default

        def __contains__(self, key: object) -> bool:
            read.add(str(key))
            return False

    from_environment(Environment())
    assert read | {"VIADUCT_CONFIG"} == {f"VIADUCT_{name}" for name in VARIABLES}
