"""Who is let in, from where, and what the others are told."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.chaos.conftest import Connect
from tests.support.client import Client
from tests.support.gateway import OTHER_TOKEN, TOKEN, Gateway, config, entry, serving
from tests.support.http import ACCEPT, Reply, on_loop, request
from tests.support.invariants import CANARY

BODY = 1 << 20
MCP = "/servers/calm/mcp"
PATHS = [MCP, "/servers/calm/sse", "/servers/calm/messages"]
PING = b'{"jsonrpc":"2.0","id":"x","method":"ping"}'
JSON = {"Content-Type": "application/json", "Accept": ACCEPT}
EXPIRED = "a-token-that-was-good-once"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    content = config(
        {"calm": entry(stopTimeout=0.5)},
        limits={"body": BODY},
        allowedHosts=["mcp.example.com", "exact.example.com:8443"],
        allowedOrigins=["https://app.example.com"],
    )
    spent = {"name": "spent", "hash": _hash(EXPIRED), "expires": "2020-01-01T00:00:00Z"}
    content["viaduct"]["auth"]["tokens"].append(spent)
    with serving(content, tmp_path_factory.mktemp("admission")) as gateway:
        yield gateway


def _hash(token: str) -> str:
    return f"sha256:{hashlib.sha256(token.encode()).hexdigest()}"


async def refused(reply: Reply, status: int) -> Any:
    """The error of a refusal, which is JSON whatever was asked for."""
    body = await reply.body()
    assert reply.status == status, (reply.status, body)
    assert reply.headers["content-type"] == "application/json"
    return json.loads(body)["error"]


# Who and from where.

HOSTS = {
    "evil.com": 421,
    "127.0.0.1.evil.com": 421,
    "localhost:80@evil.com": 421,
    "localhost.": 421,
    "localhost:port": 421,
    "127.0.0.2": 421,
    "[::2]": 421,
    "mcp.example.com.evil.com": 421,
    "exact.example.com": 421,
    "exact.example.com:443": 421,
    "localhost": 200,
    "LOCALHOST:1234": 200,
    "127.0.0.1": 200,
    "[::1]:9": 200,
    "mcp.example.com": 200,
    "mcp.example.com:8443": 200,
    "exact.example.com:8443": 200,
}


@pytest.mark.parametrize("host", HOSTS)
@on_loop
async def test_only_known_hosts_are_served_on_any_route(gateway: Gateway, connect: Connect, host: str) -> None:
    client = await connect()
    replies = [await client.post(PING, Host=host), await request(gateway.port, "GET", "/healthz", {"Host": host})]
    assert [reply.status for reply in replies] == [HOSTS[host]] * 2
    if HOSTS[host] == 421:
        assert "--allowed-host" in (await replies[0].json())["error"]["message"]


ORIGINS = {
    "http://evil.com": 403,
    "null": 403,
    "": 403,
    "http://localhost.evil.com": 403,
    "http://localhost:1@evil.com": 403,
    "http://127.0.0.1:x": 403,
    "file://localhost": 403,
    "https://app.example.com.evil.com": 403,
    "http://app.example.com": 403,
    "http://localhost:3000": 200,
    "https://127.0.0.1": 200,
    "http://[::1]:8080": 200,
    "https://app.example.com": 200,
}


@pytest.mark.parametrize("origin", ORIGINS)
@on_loop
async def test_only_known_origins_are_served_on_any_route(gateway: Gateway, connect: Connect, origin: str) -> None:
    client = await connect()
    fields = [*client.headers().items(), ("Origin", origin)]
    replies = [
        await request(gateway.port, "POST", MCP, fields, PING),
        await request(gateway.port, "GET", "/healthz", [("Origin", origin)]),
        await request(gateway.port, "OPTIONS", MCP, [("Origin", origin)], token=None),
    ]
    wanted = [403] * 3 if ORIGINS[origin] == 403 else [200, 200, 204]
    assert [reply.status for reply in replies] == wanted
    allowed = [reply.headers.get("access-control-allow-origin") for reply in replies]
    assert allowed == [None if ORIGINS[origin] == 403 else origin] * 3


@pytest.mark.parametrize("path", PATHS)
@on_loop
async def test_a_browser_may_ask_first_without_a_token_and_hears_what_it_may_send(
    gateway: Gateway, undisturbed: list[Client], path: str
) -> None:
    fields = {
        "Origin": "https://app.example.com",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type, authorization, mcp-session-id, mcp-protocol-version",
    }
    reply = await request(gateway.port, "OPTIONS", path, fields, token=None)
    assert reply.status in (200, 204)
    allowed = {name.strip().lower() for name in reply.headers["access-control-allow-headers"].split(",")}
    assert allowed >= {
        "content-type", "authorization", "mcp-session-id", "mcp-protocol-version", "last-event-id", "mcp-method",
        "mcp-name",
    }  # fmt: skip
    methods = {name.strip() for name in reply.headers["access-control-allow-methods"].split(",")}
    assert methods & {"POST", "GET"}


@on_loop
async def test_a_browser_can_read_every_answer_also_a_refusal(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    origin = {"Origin": "https://app.example.com"}
    good = await client.post(PING, **origin)
    replies = {
        200: good,
        401: await request(gateway.port, "POST", MCP, {**JSON, **origin}, PING, token="wrong"),
        404: await client.post(PING, Mcp_Session_Id="unknown", **origin),
        405: await request(gateway.port, "PUT", MCP, origin),
        406: await client.post(PING, Accept="text/html", **origin),
        413: await client.post(PING + b" " * BODY, **origin),
        415: await client.post(PING, Content_Type="text/plain", **origin),
        400: await client.post(b"{", **origin),
    }
    assert {status: reply.status for status, reply in replies.items()} == {status: status for status in replies}
    for reply in replies.values():
        assert reply.headers["access-control-allow-origin"] == origin["Origin"]
        exposed = {name.strip().lower() for name in reply.headers["access-control-expose-headers"].split(",")}
        assert exposed >= {"mcp-session-id", "www-authenticate"}


CREDENTIALS = {
    "none": [],
    "wrong": [("Authorization", "Bearer wrong")],
    "expired": [("Authorization", f"Bearer {EXPIRED}")],
    "empty": [("Authorization", "Bearer ")],
    "no scheme": [("Authorization", TOKEN)],
    "another scheme": [("Authorization", f"Basic {TOKEN}")],
    "with more behind it": [("Authorization", f"Bearer {TOKEN} x")],
    "in two parts": [("Authorization", f"Bearer {TOKEN}, Bearer {OTHER_TOKEN}")],
    "in a cookie": [("Cookie", f"token={TOKEN}")],
    "in another header": [("X-Api-Key", TOKEN)],
    "its hash": [("Authorization", f"Bearer {_hash(TOKEN)}")],
    "10 kB": [("Authorization", "Bearer " + "x" * 10_000)],
}


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
@pytest.mark.parametrize("path", [*PATHS, "/mcp", "/sse", "/messages", "/mcp/"])
@on_loop
async def test_every_cause_of_401_looks_the_same_on_every_path(
    gateway: Gateway, undisturbed: list[Client], method: str, path: str
) -> None:
    bodies = set()
    for fields in CREDENTIALS.values():
        reply = await request(gateway.port, method, path, [*JSON.items(), *fields], PING, token=None)
        assert reply.status == 401
        challenge = reply.headers["www-authenticate"]
        assert challenge == "Bearer"
        bodies.add(await reply.body())
    assert len(bodies) == 1
    assert json.loads(bodies.pop())["error"]["code"] == -32600


@pytest.mark.parametrize("name", ["token", "access_token", "api_key", "apikey", "TOKEN"])
@pytest.mark.parametrize("path", [MCP, "/servers/calm/sse", "/servers/calm/messages"])
@on_loop
async def test_a_token_in_the_query_is_refused_with_or_without_one_in_the_header(
    gateway: Gateway, undisturbed: list[Client], name: str, path: str
) -> None:
    for token in (TOKEN, None):
        method = "GET" if path.endswith("sse") else "POST"
        reply = await request(gateway.port, method, f"{path}?{name}={TOKEN}", JSON, PING, token=token)
        await refused(reply, 400)


@on_loop
async def test_a_token_in_the_path_opens_nothing(gateway: Gateway, undisturbed: list[Client]) -> None:
    await refused(await request(gateway.port, "POST", f"/t/{TOKEN}/mcp", JSON, PING, token=None), 404)


@on_loop
async def test_health_needs_no_token_and_tells_no_secret(gateway: Gateway, undisturbed: list[Client]) -> None:
    for path in ("/healthz", "/readyz", "/healthz/", "/readyz/"):
        reply = await request(gateway.port, "GET", path, token=None)
        assert reply.status == 200
        assert set(await reply.json()) == {"status"}


# Where.


@pytest.mark.parametrize("path", [MCP, f"{MCP}/", "/mcp", "/mcp/"])
@on_loop
async def test_both_spellings_answer_directly(gateway: Gateway, connect: Connect, path: str) -> None:
    client = await connect()
    client.path = path
    assert (await client.call("ping"))["result"] == {}
    stream = await client.listen()
    assert (stream.status, stream.is_stream) == (200, True)
    assert (await client.delete()).status == 204


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/favicon.ico",
        "/servers",
        "/servers/nobody/mcp",
        "/servers/calm",
        "/servers/calm/mcp/x",
        "/servers//mcp",
        "/servers/calm/../calm/mcp",
        "/servers/%63alm/%2e%2e/mcp",
        "//servers/calm/mcp",
        "/servers/calm%2fmcp",
        "/servers/%63alm/mcp",
        "/servers/calm/mcp%2f",
        "/%6dcp",
        "/%73se",
        "/%68ealthz",
        "/servers/calm/mcp;x",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/servers/calm/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
        "/servers/calm/mcp/.well-known/openid-configuration",
        "/register",
        "/" + "x" * 4000,
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
@on_loop
async def test_everything_unknown_is_404_in_json(
    gateway: Gateway, undisturbed: list[Client], path: str, method: str
) -> None:
    for token in (TOKEN, None):
        error = await refused(await request(gateway.port, method, path, JSON, token=token), 404)
        assert error["code"] == -32600


@on_loop
async def test_nothing_secret_is_logged_wherever_it_was_put(gateway: Gateway, undisturbed: list[Client]) -> None:
    for fields in ({"Mcp-Session-Id": CANARY}, {"Last-Event-ID": CANARY}, {"X-Secret": CANARY}, {"Cookie": CANARY}):
        await (await request(gateway.port, "POST", MCP, {**JSON, **fields}, b'{"x":"' + CANARY.encode())).body()
    await (await request(gateway.port, "POST", f"{MCP}?token={CANARY}", JSON, PING)).body()
    await (await request(gateway.port, "POST", MCP, JSON, PING, token=CANARY)).body()
