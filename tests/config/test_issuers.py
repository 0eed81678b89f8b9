"""Settings of issuers, and the file of static tokens."""

# ruff: noqa: E501 - a sentence is compared whole
import json
import re
from pathlib import Path

import pytest

from app.admitting import resource_server
from app.config import ConfigError
from app.config.credentials import tokens_in
from app.edge.oauth import challenge
from tests.config.conftest import Loading

HASH = "sha256:" + "a" * 64
JWT: dict[str, object] = {"issuer": "https://idp.example.com"}
ASKED: dict[str, object] = {"endpoint": "https://idp.example.com/introspect", "clientId": "a", "clientSecret": "b"}


def issuers(*jwt: dict[str, object], **more: object) -> dict[str, object]:
    return {"publicUrl": "https://mcp.example.com", "auth": {"jwt": list(jwt), **more}}


def test_issuers_are_credentials_as_tokens_are(loading: Loading) -> None:
    config = loading(viaduct=issuers(JWT, introspection=ASKED))
    assert config.has_credentials
    (jwt,) = config.viaduct.auth.jwt
    assert jwt.model_dump() == {
        "issuer": "https://idp.example.com",
        "audience": (),
        "jwks_uri": None,
        "algorithms": ("RS256",),
        "types": ("at+jwt",),
        "scope_claim": "scope",
        "leeway": 30,
        "max_lifetime": 86400,
    }


def test_one_audience_may_stand_for_a_list_of_one(loading: Loading) -> None:
    given = [{**JWT, "audience": "a"}, {"issuer": "https://other.example", "audience": ["a", "b"]}]
    assert [jwt.audience for jwt in loading(viaduct=issuers(*given)).viaduct.auth.jwt] == [("a",), ("a", "b")]


@pytest.mark.parametrize(
    ("block", "sentence"),
    [
        ({"auth": {"jwt": [JWT]}}, "viaduct.publicUrl is missing; add it, for by that URL OAuth clients and issuers know us"),
        (issuers(JWT, JWT), "viaduct.auth.jwt.1.issuer 'https://idp.example.com' is there twice; keep one"),
        (issuers({"issuer": "idp.example.com"}), "viaduct.auth.jwt.0.issuer must be a URL as in https://idp.example.com, without a fragment"),
        (issuers({**JWT, "jwksUri": "file:///etc/passwd"}), "viaduct.auth.jwt.0.jwksUri must be a URL as in https://idp.example.com, without a fragment"),
        (issuers({**JWT, "jwksUri": "https://idp.example.com:99999/keys"}), "viaduct.auth.jwt.0.jwksUri must be a URL as in https://idp.example.com, without a fragment"),
        (issuers({**JWT, "algorithms": []}), "viaduct.auth.jwt.0.algorithms must not be empty"),
        (issuers({**JWT, "algorithms": ["HS256"]}), "viaduct.auth.jwt.0.algorithms.0 must be 'RS256', 'RS384', 'RS512', 'ES256', 'ES384' or 'ES512'"),
        (issuers({**JWT, "algorithms": ["none"]}), "viaduct.auth.jwt.0.algorithms.0 must be 'RS256', 'RS384', 'RS512', 'ES256', 'ES384' or 'ES512'"),
        (issuers({**JWT, "leeway": 61}), "viaduct.auth.jwt.0.leeway must be at most 60"),
        (issuers({**JWT, "jwks": "x"}), "viaduct.auth.jwt.0.jwks is not a setting; did you mean viaduct.auth.jwt.0.jwksUri?"),
        (issuers(introspection={**ASKED, "clientSecret": ""}), "viaduct.auth.introspection.clientSecret must not be empty"),
        (issuers(introspection={**ASKED, "secret": "x"}), "viaduct.auth.introspection.secret is not a setting; did you mean viaduct.auth.introspection.clientSecret?"),
        (issuers(JWT, scopes=["read", "offline_access"]), "viaduct.auth.scopes must not have offline_access; leave that to the clients"),
        ({"outbound": {"allow": ["10.0.0.1/8"]}}, "viaduct.outbound.allow.0 must be an address or a network as in 10.0.0.0/8"),
        ({"auth": {"tokensFile": "none.json"}}, "none.json: no such file or directory"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_issuers_is_told_in_a_sentence(loading: Loading, block: object, sentence: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        loading(viaduct=block)
    assert str(wrong.value).endswith(sentence)


POLICY = [
    {"scopes": ["read"], "allow": ["git"]},
    {"scopes": ["write", "read"], "allow": ["*"]},
    {"scopes": ["*", "offline_access"], "allow": ["*"]},
]


@pytest.mark.parametrize(
    ("given", "policy", "told"),
    [((), POLICY, {"read", "write"}), (("read",), POLICY, {"read"}), ((), None, None), (("read",), None, {"read"})],
)
def test_clients_are_told_of_the_scopes_of_the_policy_unless_others_are_named(
    loading: Loading, given: tuple[str, ...], policy: object, told: set[str] | None
) -> None:
    block = issuers(JWT, **({"scopes": list(given)} if given else {})) | ({"policy": policy} if policy else {})
    server = resource_server(loading(viaduct=block).viaduct)
    assert server is not None
    resource = server.resource("/servers/git/mcp")
    document = json.loads(resource.document)
    assert set(document.get("scopes_supported", ())) == (told or set())
    assert ("scopes_supported" in document) == (told is not None)
    challenged = re.findall(r'scope="([^"]*)"', challenge(resource).decode())
    assert [set(each.split()) for each in challenged] == ([told] if told else [])


# The tokens file.


def test_a_tokens_file_stands_beside_the_config_file(loading: Loading, tmp_path: Path) -> None:
    (tmp_path / "tokens.yaml").write_text(f"tokens:\n- name: phone\n  hash: {HASH}\n")
    config = loading(viaduct={"auth": {"tokensFile": "tokens.yaml"}})
    assert config.has_credentials
    assert config.viaduct.auth.tokens_file == str(tmp_path / "tokens.yaml")
    assert [token.name for token in tokens_in(tmp_path / "tokens.yaml")] == ["phone"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{}", "tokens.json.tokens is missing; add it"),
        ('{"tokens": [{"name": "a"}]}', "tokens.json.tokens.0.hash is missing; add it"),
        (json.dumps({"tokens": [{"name": "fixed", "hash": HASH}]}), "tokens.json: tokens.0.name 'fixed' is taken by an earlier token; rename it"),
        ('{"tokens": [', "is not JSON at line 1, column 13: expecting value"),
    ],
)  # fmt: skip
def test_a_wrong_tokens_file_is_told_in_a_sentence(
    loading: Loading, tmp_path: Path, content: str, sentence: str
) -> None:
    (tmp_path / "tokens.json").write_text(content)
    fixed = {"name": "fixed", "hash": "sha256:" + "b" * 64}
    with pytest.raises(ConfigError) as wrong:
        loading(viaduct={"auth": {"tokensFile": "tokens.json", "tokens": [fixed]}})
    assert str(wrong.value).endswith(sentence)
