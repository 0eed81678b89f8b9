"""A real authorization server, and official clients that know nothing but a URL: they find it, log in, call a tool."""

import base64
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.real import installed
from tests.real.installed import CACHE, HERE, NODE, Json
from tests.support.gateway import PATIENCE, TOKEN, Gateway, config, entry, eventually, serving

pytestmark = [pytest.mark.registry, pytest.mark.slow]

SECRET = "what-the-gateway-introspects-with"
SCOPE = "mcp:read mcp:write"
CLIENTS = {
    "python-2.x": (sys.executable, str(HERE / "clients/oauth.py")),
    "python-1.x": (str(CACHE / "mcp1/bin/python"), str(HERE / "clients/oauth.py")),
    "typescript-1.x": (str(NODE), str(HERE / "clients/oauth.mjs"), "1"),
    "typescript-2.x": (str(NODE), str(HERE / "clients/oauth.mjs"), "2"),
}
EVERY_CLIENT = pytest.mark.parametrize("client", CLIENTS)


@dataclass(frozen=True)
class Idp:
    issuer: str
    process: subprocess.Popen[str]

    def order(self, what: str) -> None:
        """Of its keys: `rotate` or `forget`."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == f"{what}\n"

    def revoke(self, token: str, client: str) -> None:
        form = {"token": token, "client_id": client}
        assert httpx.post(f"{self.issuer}/token/revocation", data=form, trust_env=False).status_code == 200


@contextmanager
def issuing() -> Iterator[Idp]:
    process = subprocess.Popen(
        [str(NODE), str(HERE / "clients/provider.mjs")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "INTROSPECTION_SECRET": SECRET},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield Idp(process.stdout.readline().strip(), process)
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(PATIENCE)


@pytest.fixture(scope="module")
def idp() -> Iterator[Idp]:
    installed.require()
    with issuing() as idp:
        yield idp


@pytest.fixture(scope="module")
def gateway(idp: Idp, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Its public URL is in what it tells clients, so that its port must be known before it starts."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    content = config({"stage": entry(), "opaque": entry()}, publicUrl=f"http://127.0.0.1:{port}")
    content["viaduct"]["auth"] |= {
        "jwt": [{"issuer": idp.issuer}],
        "introspection": {
            "issuer": idp.issuer,
            "endpoint": f"{idp.issuer}/token/introspection",
            "clientId": "viaduct",
            "clientSecret": SECRET,
        },
        "scopes": SCOPE.split(),
        "keep": {"introspected": 0.2},
        "jwks": {"cooldown": 0.2},
    }
    content["viaduct"]["outbound"] = {"allow": ["127.0.0.1"]}
    with serving(content, tmp_path_factory.mktemp("oauth"), "--port", str(port)) as gateway:
        yield gateway


def url(gateway: Gateway, server: str = "stage") -> str:
    return f"{gateway.url}/servers/{server}/mcp"


def visited(client: str, gateway: Gateway, server: str = "stage") -> Json:
    job = {"url": url(gateway, server), "tool": "echo", "arguments": {"nonce": f"by {client}"}}
    done = subprocess.run(
        CLIENTS[client], input=json.dumps(job), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: Json = json.loads(done.stdout)
    assert found["said"] == f"by {client}"
    return found


def status(gateway: Gateway, token: str, server: str = "stage") -> int:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
    return httpx.post(url(gateway, server), json=ping, headers=headers, trust_env=False).status_code


def claims(token: str) -> Json:
    payload = token.split(".")[1]
    found: Json = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return found


@EVERY_CLIENT
def test_a_client_comes_from_a_bare_url_to_a_tool_call(gateway: Gateway, idp: Idp, client: str) -> None:
    found = visited(client, gateway)
    (sent,) = found["authorizations"]
    asked = parse_qs(urlsplit(sent).query)
    assert asked["resource"] == [url(gateway)]
    assert set(asked["scope"][0].split()) >= set(SCOPE.split())
    said = claims(found["token"])
    assert (said["iss"], said["aud"], said["sub"]) == (idp.issuer, url(gateway), "ada")
    assert status(gateway, found["token"]) == 200
    assert status(gateway, found["token"], "opaque") == 401


@EVERY_CLIENT
def test_an_opaque_token_is_introspected_and_ends_where_it_is_revoked(gateway: Gateway, idp: Idp, client: str) -> None:
    found = visited(client, gateway, "opaque")
    assert "." not in found["token"]
    (sent,) = found["authorizations"]
    idp.revoke(found["token"], parse_qs(urlsplit(sent).query)["client_id"][0])
    assert eventually(lambda: status(gateway, found["token"], "opaque") == 401, 5)


def test_keys_change_and_old_and_new_tokens_are_served(gateway: Gateway, idp: Idp) -> None:
    before = visited("python-2.x", gateway)["token"]
    idp.order("rotate")
    after = visited("typescript-1.x", gateway)["token"]
    assert [status(gateway, token) for token in (before, after)] == [200, 200]
    idp.order("forget")
    assert [status(gateway, token) for token in (before, after)] == [200, 200]


def test_a_static_token_is_good_beside_all_that(gateway: Gateway) -> None:
    assert status(gateway, TOKEN) == 200


def test_no_token_is_in_the_log(gateway: Gateway) -> None:
    token = visited("python-2.x", gateway)["token"]
    for secret in (token, token.split(".")[2], SECRET):
        assert secret not in gateway.log
