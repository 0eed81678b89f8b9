"""What OAuth clients find of us, and how they are asked for a token."""

import asyncio
import json
from typing import Any

import pytest

from app.auth.policy import Policy, Rule
from app.auth.principal import Principal
from app.auth.verdicts import BadToken, CannotVerify
from app.edge import streamable
from app.edge.app import Viaduct
from app.edge.guards import Guards
from app.edge.incoming import EdgeSettings, Incoming, StreamSettings
from app.edge.oauth import ResourceServer
from app.edge.refusals import insufficient_scope
from app.gateway.access import Access
from app.gateway.gateway import Gateway
from app.gateway.settings import GatewaySettings, SessionSettings, UpstreamSettings
from app.upstreams.command import Command

PUBLIC = "https://mcp.example.com"
WELL_KNOWN = "/.well-known/oauth-protected-resource"
IDP = "https://idp.example.com"


class Tokens:
    """Of two principals, one of whom is for a single endpoint."""

    def __init__(self) -> None:
        self.wrong: Exception = BadToken("unknown")
        git = frozenset({f"{PUBLIC}/servers/git/mcp"})
        self.known = {
            "any": Principal("ada", frozenset(), None, IDP),
            "low": Principal("eve", frozenset({"low"}), None, IDP),
            "git": Principal("bob", frozenset(), None, IDP, resources=git),
        }

    def find(self, token: str) -> Principal | None:
        return self.known.get(token)

    def is_askable(self, token: str) -> bool:
        return True

    async def ask(self, token: str) -> Principal:
        raise self.wrong

    def start(self) -> None:
        """Nothing ends here."""

    def stop(self) -> None:
        """Nothing has started."""


Answer = tuple[int, dict[bytes, bytes], Any]


class World:
    def __init__(
        self, *names: str, oauth: ResourceServer | None, prefix: str = "", policy: Policy | None = None
    ) -> None:
        self.tokens = Tokens()
        upstreams = tuple(UpstreamSettings(name, Command(("true",), {}, None)) for name in names)
        gateway = Gateway(GatewaySettings(upstreams, SessionSettings(), "0"), None, Access(policy))
        settings = EdgeSettings(StreamSettings())
        self.app = Viaduct(gateway, settings, Guards(["mcp.example.com"]), self.tokens, prefix, None, oauth)

    def ask(
        self, path: str, method: str = "GET", *headers: tuple[bytes, bytes], host: bytes = b"mcp.example.com"
    ) -> Answer:
        sent: list[Any] = []

        async def send(event: Any) -> None:
            sent.append(event)

        async def unused() -> Any:
            raise AssertionError

        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": b"",
            "headers": [(b"host", host), *headers],
        }
        asyncio.run(self.app(scope, unused, send))
        body = sent[1]["body"]
        return sent[0]["status"], dict(sent[0]["headers"]), json.loads(body) if body else None

    def post(self, path: str, token: bytes | None = None) -> Answer:
        return self.ask(path, "POST", *([] if token is None else [(b"authorization", b"Bearer " + token)]))


@pytest.fixture
def world() -> World:
    return World("git", "time", oauth=ResourceServer(PUBLIC, (IDP, "https://other.example"), ("read", "write")))


@pytest.mark.parametrize("path", ["/servers/git/mcp", "/servers/git/sse", "/servers/time/mcp", ""])
@pytest.mark.parametrize("end", ["", "/"])
def test_each_endpoint_has_its_document_and_all_of_us_one(world: World, path: str, end: str) -> None:
    status, headers, document = world.ask(WELL_KNOWN + path + end)
    assert (status, headers[b"content-type"]) == (200, b"application/json")
    assert document == {
        "resource": PUBLIC + path,
        "authorization_servers": [IDP, "https://other.example"],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["read", "write"],
    }


def test_it_is_of_the_public_url_whatever_the_request_says(world: World) -> None:
    forwarded = [
        (b"x-forwarded-host", b"evil.example"),
        (b"x-forwarded-proto", b"http"),
        (b"forwarded", b"host=evil.example"),
    ]
    assert world.ask(WELL_KNOWN, "GET", *forwarded, host=b"localhost:80") == world.ask(WELL_KNOWN)


def test_with_one_server_the_short_paths_have_theirs() -> None:
    world = World("git", oauth=ResourceServer(PUBLIC, (IDP,)))
    for path in ("/mcp", "/sse", "/servers/git/mcp", ""):
        assert world.ask(WELL_KNOWN + path)[2]["resource"] == PUBLIC + path
    assert "scopes_supported" not in world.ask(WELL_KNOWN)[2]


def test_under_a_prefix_it_is_found_in_both_orders() -> None:
    world = World("git", "time", oauth=ResourceServer(f"{PUBLIC}/gw", (IDP,)), prefix="/gw")
    for path in ("/servers/git/mcp", ""):
        for where in (f"{WELL_KNOWN}/gw{path}", f"/gw{WELL_KNOWN}{path}", f"{WELL_KNOWN}{path}"):
            assert world.ask(where)[2]["resource"] == f"{PUBLIC}/gw{path}", where
    challenge = world.post("/gw/servers/git/mcp")[1][b"www-authenticate"].decode()
    assert f'resource_metadata="{PUBLIC}/gw{WELL_KNOWN}/servers/git/mcp"' in challenge


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("OPTIONS", 204), ("POST", 405), ("DELETE", 405)])
def test_it_is_there_to_be_read(world: World, method: str, status: int) -> None:
    assert world.ask(WELL_KNOWN, method)[0] == status


def test_a_browser_may_read_it_too(world: World) -> None:
    origin = (b"origin", b"http://localhost:6274")
    asked = world.ask(WELL_KNOWN, "OPTIONS", origin)[1]
    assert (asked[b"access-control-allow-methods"], asked[b"access-control-allow-origin"]) == (
        b"GET, HEAD, OPTIONS",
        origin[1],
    )
    assert b"mcp-protocol-version" in asked[b"access-control-allow-headers"]
    assert world.ask(WELL_KNOWN, "GET", origin)[1][b"access-control-allow-origin"] == origin[1]


@pytest.mark.parametrize(
    "path",
    [
        WELL_KNOWN,
        f"{WELL_KNOWN}/servers/git/mcp",
        f"{WELL_KNOWN}/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
        "/servers/git/mcp/.well-known/openid-configuration",
        "/register",
        "/authorize",
        "/token",
    ],
)
def test_where_no_issuer_is_configured_there_is_nothing_to_discover(path: str) -> None:
    status, headers, body = World("git", oauth=None).ask(path)
    assert (status, headers[b"content-type"], body["error"]["data"]["reason"]) == (
        404,
        b"application/json",
        "unknown_path",
    )
    assert b"www-authenticate" not in headers


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
        f"{WELL_KNOWN}/servers/none/mcp",
        f"{WELL_KNOWN}/healthz",
        f"{WELL_KNOWN}/servers/git/messages",
    ],
)
def test_nor_is_there_anything_else_where_one_is(world: World, path: str) -> None:
    assert world.ask(path)[0] == 404


# Challenges.


def test_who_sends_no_token_did_nothing_wrong(world: World) -> None:
    status, headers, _ = world.post("/servers/git/mcp")
    assert status == 401
    assert headers[b"www-authenticate"].decode() == (
        f'Bearer resource_metadata="{PUBLIC}{WELL_KNOWN}/servers/git/mcp", scope="read write"'
    )


@pytest.mark.parametrize("token", [b"bad", b"", b"\xff", b"a b"])
def test_who_sends_a_bad_one_is_told_so_and_nothing_more(world: World, token: bytes) -> None:
    status, headers, body = world.post("/servers/git/sse", token)
    assert (status, body["error"]["message"]) == (401, "send a valid token: Authorization: Bearer <token>")
    assert headers[b"www-authenticate"].decode() == (
        f'Bearer error="invalid_token", resource_metadata="{PUBLIC}{WELL_KNOWN}/servers/git/sse", scope="read write"'
    )


def test_an_empty_token_admits_nobody_whatever_is_known() -> None:
    world = World("git", oauth=None)
    world.tokens.known[""] = Principal("somebody", frozenset())
    assert world.post("/mcp", b"")[0] == 401


def test_where_nobody_could_get_one_the_challenge_is_plain() -> None:
    world = World("git", oauth=None)
    assert [world.post("/mcp", token)[1][b"www-authenticate"] for token in (None, b"bad")] == [b"Bearer"] * 2


def test_a_token_for_one_url_is_refused_at_all_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[str] = []

    async def serve(incoming: Incoming) -> None:
        served.append(incoming.principal.name)
        raise insufficient_scope(["admin"])

    monkeypatch.setattr(streamable, "serve", serve)
    world = World("git", "time", oauth=ResourceServer(PUBLIC, (IDP,)))
    assert [world.post(f"/servers/{name}/mcp", b"git")[0] for name in ("git", "time")] == [403, 401]
    assert [world.post(f"/servers/{name}/mcp", b"any")[0] for name in ("git", "time")] == [403, 403]
    assert world.post("/servers/git/sse", b"git")[0] == 401
    assert world.post("/servers/git/messages", b"git")[0] == 401
    assert served == ["bob", "ada", "ada"]


@pytest.mark.parametrize("token", [None, b"bad", b"git"])
def test_every_place_but_the_open_ones_wants_a_token_for_itself(world: World, token: bytes | None) -> None:
    """All that is there, so that a path that is added later is tried as well."""
    headers = [] if token is None else [(b"authorization", b"Bearer " + token)]
    open_to_all: set[str] = set()
    closed: set[str] = set()
    for path in world.app._places:
        if token == b"git" and path.strip("/") == "servers/git/mcp":
            continue
        for method in ("GET", "POST", "DELETE"):
            status = world.ask(path, method, *headers)[0]
            (closed if status == 401 else open_to_all).add(path.strip("/"))
    assert {path for path in open_to_all if not path.startswith(".well-known/")} == {"healthz", "readyz"}
    assert closed >= {"servers/time/mcp", "servers/git/sse", "servers/git/messages"}


def test_no_place_at_all_serves_a_wrong_host_or_origin(world: World) -> None:
    """The open ones neither, for a page that was led here by its own name would read them."""
    token = (b"authorization", b"Bearer any")
    for path in world.app._places:
        for method in ("GET", "POST", "OPTIONS"):
            assert world.ask(path, method, token, host=b"evil.example")[0] == 421, path
            assert world.ask(path, method, token, (b"origin", b"https://evil.example"))[0] == 403, path


@pytest.mark.parametrize(
    "header",
    [
        (b"x-forwarded-user", b"ada"),
        (b"x-forwarded-for", b"127.0.0.1"),
        (b"x-forwarded-host", b"mcp.example.com"),
        (b"forwarded", b"for=127.0.0.1;host=mcp.example.com"),
        (b"x-real-ip", b"127.0.0.1"),
        (b"x-mcp-authenticated", b"true"),
        (b"x-authorization", b"Bearer any"),
        (b"proxy-authorization", b"Bearer any"),
        (b"cookie", b"token=any"),
        (b"x-original-url", b"/healthz"),
        (b"x-http-method-override", b"OPTIONS"),
    ],
)
def test_no_header_stands_in_for_a_token_or_a_host(world: World, header: tuple[bytes, bytes]) -> None:
    for path in ("/servers/git/mcp", "/servers/git/sse", "/servers/git/messages"):
        assert world.ask(path, "POST", header) == world.ask(path, "POST")
        assert world.ask(path, "POST", header)[0] in (401, 405)
    assert world.ask("/healthz", "GET", header, host=b"evil.example")[0] == 421


_ERAS = {
    "handshake": ((b"mcp-session-id", b"somebody-has-it"), (b"mcp-protocol-version", b"2025-11-25")),
    "stateless": ((b"mcp-method", b"tools/list"), (b"mcp-protocol-version", b"2026-07-28")),
}


@pytest.mark.parametrize("era", _ERAS)
def test_no_place_is_reached_with_too_little_scope(era: str) -> None:
    """All that is there, as above. Nothing of a request's body is read."""
    policy = Policy(
        [
            Rule(scopes=frozenset({"low"}), allow=("other",)),
            Rule(scopes=frozenset({"read", "more"}), allow=("git",)),
            Rule(scopes=frozenset({"read"}), subjects=("ada",), allow=("time",)),
        ]
    )
    world = World("git", "time", "other", oauth=ResourceServer(PUBLIC, (IDP,)), policy=policy)
    headers = [(b"authorization", b"Bearer low"), (b"content-type", b"application/json"), *_ERAS[era]]
    answers = {
        (path.strip("/"), method): world.ask(path, method, *headers)
        for path in world.app._places
        if path.strip("/").startswith(("servers/git", "servers/time"))
        for method in ("GET", "POST", "DELETE")
    }
    assert len(answers) == 2 * 3 * 3
    for (path, _), (status, head, body) in answers.items():
        if path.startswith("servers/git"):
            metadata = f"{PUBLIC}{WELL_KNOWN}/{path.replace('messages', 'sse')}"
            assert head[b"www-authenticate"].decode() == (
                f'Bearer error="insufficient_scope", resource_metadata="{metadata}", scope="low more read"'
            )
            assert (status, body["error"]["data"]["reason"]) == (403, "insufficient_scope")
        else:
            assert (status, body["error"]["data"]["reason"]) == (404, "unknown_path")
            assert b"www-authenticate" not in head


@pytest.mark.parametrize(
    ("oauth", "challenge"),
    [
        (
            ResourceServer(PUBLIC, (IDP,), ("read",)),
            f'Bearer error="insufficient_scope", resource_metadata="{PUBLIC}{WELL_KNOWN}/servers/git/mcp", '
            'scope="files:read admin"',
        ),
        (None, 'Bearer error="insufficient_scope", scope="files:read admin"'),
    ],
)
def test_a_step_up_names_all_scopes_at_once(
    oauth: ResourceServer | None, challenge: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def serve(_incoming: Incoming) -> None:
        raise insufficient_scope(["files:read", "admin"])

    monkeypatch.setattr(streamable, "serve", serve)
    status, headers, body = World("git", oauth=oauth).post("/servers/git/mcp", b"any")
    assert (status, headers[b"www-authenticate"].decode()) == (403, challenge)
    assert body["error"]["data"]["reason"] == "insufficient_scope"


def test_a_token_that_nobody_can_judge_is_not_called_bad(world: World) -> None:
    world.tokens.wrong = CannotVerify("down", 12.4)
    status, headers, body = world.post("/servers/git/mcp", b"t")
    assert (status, headers[b"retry-after"]) == (503, b"12")
    assert b"www-authenticate" not in headers
    assert "down" not in json.dumps(body)


@pytest.mark.parametrize("wrong", [ValueError(), KeyError(), RuntimeError(), OSError(), AssertionError()], ids=repr)
def test_whatever_goes_wrong_the_endpoint_is_not_reached(
    world: World, wrong: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def serve(incoming: Incoming) -> None:
        raise NotImplementedError(incoming)

    monkeypatch.setattr(streamable, "serve", serve)
    world.tokens.wrong = wrong
    with pytest.raises(type(wrong)):
        world.post("/servers/git/mcp", b"t")
