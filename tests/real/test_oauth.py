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
from pathlib import Path
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


@contextmanager
def taking(idp: Idp, folder: Path, scopes: str, **viaduct: object) -> Iterator[Gateway]:
    """Its public URL is in what it tells clients, so that its port must be known before it starts."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    content = config({"stage": entry(), "opaque": entry()}, publicUrl=f"http://127.0.0.1:{port}", **viaduct)
    content["viaduct"]["auth"] |= {
        "jwt": [{"issuer": idp.issuer}],
        "introspection": {
            "issuer": idp.issuer,
            "endpoint": f"{idp.issuer}/token/introspection",
            "clientId": "viaduct",
            "clientSecret": SECRET,
        },
        "scopes": scopes.split(),
        "keep": {"introspected": 0.2},
        "jwks": {"cooldown": 0.2},
    }
    content["viaduct"]["outbound"] = {"allow": ["127.0.0.1"]}
    with serving(content, folder, "--port", str(port)) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def gateway(idp: Idp, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with taking(idp, tmp_path_factory.mktemp("oauth"), SCOPE) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def guarded(idp: Idp, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Under a policy that opens `env` to whoever comes, and `echo` to who asks for more than that."""
    policy = [
        {"scopes": ["mcp:read"], "allow": ["*/env"]},
        {"scopes": ["mcp:admin", "mcp:write"], "allow": ["*/echo"]},
    ]
    with taking(idp, tmp_path_factory.mktemp("guarded"), "mcp:read", policy=policy) as gateway:
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


def call(gateway: Gateway, token: str, server: str, tool: str, **arguments: str) -> httpx.Response:
    params = {"name": tool, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
    return httpx.post(url(gateway, server), json=message, headers=headers, trust_env=False)


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
    said = claims(found["tokens"][-1])
    assert (said["iss"], said["aud"], said["sub"]) == (idp.issuer, url(gateway), "ada")
    assert status(gateway, found["tokens"][-1]) == 200
    assert status(gateway, found["tokens"][-1], "opaque") == 401


@EVERY_CLIENT
def test_an_opaque_token_is_introspected_and_ends_where_it_is_revoked(gateway: Gateway, idp: Idp, client: str) -> None:
    found = visited(client, gateway, "opaque")
    assert "." not in found["tokens"][-1]
    (sent,) = found["authorizations"]
    idp.revoke(found["tokens"][-1], parse_qs(urlsplit(sent).query)["client_id"][0])
    assert eventually(lambda: status(gateway, found["tokens"][-1], "opaque") == 401, 5)


@EVERY_CLIENT
@pytest.mark.parametrize("server", ["stage", "opaque"])
def test_a_client_steps_up_to_the_scopes_that_a_tool_needs(guarded: Gateway, client: str, server: str) -> None:
    """Each SDK does that itself. Those for TypeScript leave it to their user to call again after the login, as they do
    with the first one; the others call again, too."""
    found = visited(client, guarded, server)
    first, second = (set(parse_qs(urlsplit(each).query)["scope"][0].split()) for each in found["authorizations"])
    before, after = found["tokens"]
    needed = {"mcp:admin", "mcp:read", "mcp:write"}
    assert needed & first == {"mcp:read"}
    assert needed <= second
    refused = call(guarded, before, server, "echo", nonce="x")
    assert (refused.status_code, refused.json()["error"]["data"]["reason"]) == (403, "insufficient_scope")
    assert refused.headers["www-authenticate"] == (
        'Bearer error="insufficient_scope", '
        f'resource_metadata="{guarded.url}/.well-known/oauth-protected-resource/servers/{server}/mcp", '
        'scope="mcp:admin mcp:read mcp:write"'
    )
    for token, tool in ((before, "env"), (after, "env"), (after, "echo")):
        assert "result" in call(guarded, token, server, tool, nonce="x").json()


def test_keys_change_and_old_and_new_tokens_are_served(gateway: Gateway, idp: Idp) -> None:
    before = visited("python-2.x", gateway)["tokens"][-1]
    idp.order("rotate")
    after = visited("typescript-1.x", gateway)["tokens"][-1]
    assert [status(gateway, token) for token in (before, after)] == [200, 200]
    idp.order("forget")
    assert [status(gateway, token) for token in (before, after)] == [200, 200]


def test_a_static_token_is_good_beside_all_that(gateway: Gateway) -> None:
    assert status(gateway, TOKEN) == 200


def test_no_token_is_in_the_log(gateway: Gateway) -> None:
    token = visited("python-2.x", gateway)["tokens"][-1]
    for secret in (token, token.split(".")[2], SECRET):
        assert secret not in gateway.log
