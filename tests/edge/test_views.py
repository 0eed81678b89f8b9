"""Where servers that are one are reached, and what a query chooses of them."""

import asyncio
import json
from typing import Any

import pytest

from app.auth.policy import Policy, Rule
from app.auth.principal import Principal
from app.core.shaping import Change, Choice, Shaping
from app.core.targets import Target
from app.edge import sse, streamable
from app.edge.app import Viaduct, _places
from app.edge.asgi import REMEMBER, Again, Way, respond
from app.edge.guards import Guards
from app.edge.incoming import EdgeSettings, Incoming, Repeat, StreamSettings
from app.edge.oauth import ResourceServer
from app.edge.refusals import Refusal
from app.edge.views import Views
from app.gateway.access import Access
from app.gateway.credentials import Reference
from app.gateway.gateway import Gateway
from app.gateway.settings import GatewaySettings, JointSettings, UpstreamSettings, viewed
from app.upstreams.command import Command
from tests.edge.test_app_again import HEADERS, Recorded, Tokens

SHAPING = Shaping(
    (Choice(changes={Target("git", "tools", "log"): Change(tags=frozenset({"home"}))}),), {"git": frozenset({"dev"})}
)


def server(name: str, header: str | None = None) -> UpstreamSettings:
    templates = {} if header is None else {"KEY": (Reference("header", header),)}
    return UpstreamSettings(name, Command(("true",)), templates=templates)


def joint(name: str, *servers: str) -> UpstreamSettings:
    return UpstreamSettings(name, Command(()), joint=JointSettings(servers, shaping=SHAPING))


GIT, MAIL = server("git", "x-key"), server("mail", "x-mail")
WHOLE, OFFICE = joint("/mcp", "git", "mail"), joint("/groups/office", "mail")


# Places.


def where(upstreams: tuple[UpstreamSettings, ...], *joints: UpstreamSettings, prefix: str = "") -> dict[str, str]:
    """What is at each URL of Streamable HTTP."""
    places = _places(upstreams, prefix, joints=joints)
    return {path: place.upstream.name for path, place in places.items() if place.upstream and path.endswith("/mcp")}


def test_all_servers_are_at_the_shortest_path_and_groups_at_their_own() -> None:
    assert where((GIT, MAIL), WHOLE, OFFICE) == {
        "/servers/git/mcp": "git",
        "/servers/mail/mcp": "mail",
        "/groups/office/mcp": "/groups/office",
        "/mcp": "/mcp",
    }


def test_a_single_server_is_at_the_shortest_path_itself() -> None:
    assert where((GIT,)) == {"/servers/git/mcp": "git", "/mcp": "git"}


def test_a_server_of_which_less_is_shown_is_shown_like_that_wherever_it_is() -> None:
    assert where((GIT,), joint("/servers/git", "git")) == {"/servers/git/mcp": "/servers/git", "/mcp": "/servers/git"}


def test_what_one_server_is_as_a_whole_is_at_the_shortest_path_only() -> None:
    assert where((GIT,), joint("/mcp", "git")) == {"/servers/git/mcp": "git", "/mcp": "/mcp"}


@pytest.mark.parametrize("path", ["/groups/office/mcp/", "/at/groups/office/mcp", "/at/groups/office/mcp/", "/at/mcp/"])
def test_they_are_in_every_spelling_and_under_the_prefix(path: str) -> None:
    assert path in _places((GIT, MAIL), "/at", joints=(WHOLE, OFFICE))


@pytest.mark.parametrize("base", ["", "/groups/office"])
def test_they_are_reached_over_either_transport(base: str) -> None:
    places = _places((GIT, MAIL), "", joints=(WHOLE, OFFICE))
    ends = {end: (places[f"{base}/{end}"].allow, places[f"{base}/{end}"].serve) for end in ("mcp", "sse", "messages")}
    assert ends == {
        "mcp": (streamable.METHODS, streamable.serve),
        "sse": (sse.STREAM_METHODS, sse.serve_stream),
        "messages": (sse.MESSAGE_METHODS, sse.serve_message),
    }


def test_they_take_the_headers_that_any_of_their_servers_needs() -> None:
    places = _places((GIT, MAIL), "", joints=(WHOLE, OFFICE))
    assert places["/mcp"].headers == {"x-key", "x-mail"}
    assert places["/groups/office/mcp"].headers == {"x-mail"}


def test_oauth_knows_them() -> None:
    oauth = ResourceServer("https://mcp.example.com", ("https://idp.example.com",))
    places = _places((GIT, MAIL), "", joints=(WHOLE, OFFICE), server=oauth)
    for path in ("/mcp", "/sse", "/groups/office/mcp", "/groups/office/sse"):
        document = places[f"/.well-known/oauth-protected-resource{path}"].document
        assert document is not None
        assert json.loads(document)["resource"] == f"https://mcp.example.com{path}"


# Queries.


@pytest.fixture
def views() -> Views:
    assert WHOLE.joint is not None
    return Views(WHOLE, WHOLE.joint)


@pytest.mark.parametrize("query", [b"x=1", b"session_id=abc"])
def test_a_query_that_chooses_nothing_is_the_whole(views: Views, query: bytes) -> None:
    assert views.of(query) is WHOLE


@pytest.mark.parametrize(
    ("query", "tags", "mode"),
    [
        (b"tags=dev", {"dev"}, None),
        (b"tags=dev,home", {"dev", "home"}, None),
        (b"tags=home%2C%20dev", {"dev", "home"}, None),
        (b"tags=home&tags=dev", {"dev", "home"}, None),
        (b"mode=search", set(), "search"),
        (b"mode=list", set(), "list"),
        (b"x=1&mode=search&tags=dev", {"dev"}, "search"),
    ],
)
def test_a_query_chooses_tags_and_a_mode(views: Views, query: bytes, tags: set[str], mode: Any) -> None:
    assert views.of(query) == viewed(WHOLE, frozenset(tags), mode)


def test_the_same_wish_is_the_same_view(views: Views) -> None:
    assert views.of(b"tags=dev,home") is views.of(b"tags=home&tags=dev")


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        (b"tags=dev,prod", "there is no tag 'prod'; there are dev, home"),
        (b"tags=", "tags must name tags; there are dev, home"),
        (b"tags=dev,", "tags must name tags; there are dev, home"),
        (b"tags=%ff", "there is no tag '\ufffd'; there are dev, home"),
        (b"tags=" + b"x" * 5000, f"there is no tag '{'x' * 64}'; there are dev, home"),
        (b"mode=find", "mode must be list or search"),
        (b"mode=", "mode must be list or search"),
        (b"mode=list&mode=search", "mode is there more than once; name one"),
    ],
)
def test_a_query_that_cannot_be_followed_is_refused(views: Views, query: bytes, sentence: str) -> None:
    with pytest.raises(Refusal) as wrong:
        views.of(query)
    assert (wrong.value.status, wrong.value.fault.reason, str(wrong.value)) == (400, "bad_query", sentence)


def test_where_nothing_has_a_tag_it_says_so() -> None:
    plain = JointSettings(("git",))
    with pytest.raises(Refusal, match="there is no tag 'dev'; nothing here has one"):
        Views(UpstreamSettings("/mcp", Command(()), joint=plain), plain).of(b"tags=dev")


# Requests.


class World:
    """An application whose endpoints say which upstream they were given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, policy: Policy | None = None) -> None:
        self.served: list[UpstreamSettings] = []
        self.said: list[dict[str, str]] = []
        self.kept: list[Again] = []
        monkeypatch.setattr(streamable, "serve", self.serve)
        upstreams = GatewaySettings((GIT, MAIL), joints=(WHOLE, OFFICE))
        self.tokens = Tokens({"t": Principal("laptop", frozenset({"*"}))})
        gateway = Gateway(upstreams, None, Access(policy))
        self.app = Viaduct(gateway, EdgeSettings(StreamSettings()), Guards(), self.tokens)

    async def serve(self, incoming: Incoming) -> Repeat | None:
        self.served.append(incoming.upstream)
        self.said.append(dict(incoming.said))
        if "extensions" not in incoming.scope:
            await respond(incoming.send, 200, [], b"{}")
        return self.repeat

    def repeat(self, text: bytes, principal: Principal, way: Way) -> None:
        way.answer(200, (), text)

    def ask(self, path: str, query: bytes = b"", **more: Any) -> tuple[int, Any]:
        sent: list[Any] = []

        async def send(event: Any) -> None:
            sent.append(event)

        async def unused() -> Any:
            raise AssertionError

        scope = {"type": "http", "method": "POST", "path": path, "query_string": query, "headers": HEADERS, **more}
        asyncio.run(self.app(scope, unused, send))
        return (sent[0]["status"], json.loads(sent[1]["body"])) if sent else (0, None)


def test_an_endpoint_gets_the_view_that_its_url_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    for path, query in (("/mcp", b""), ("/mcp", b"mode=search"), ("/groups/office/mcp", b"tags=dev")):
        assert world.ask(path, query)[0] == 200
    assert world.served == [
        WHOLE,
        viewed(WHOLE, frozenset(), "search"),
        viewed(OFFICE, frozenset({"dev"}), None),
    ]


def test_an_unknown_tag_is_refused_before_anything_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    status, body = world.ask("/mcp", b"tags=prod")
    assert (status, body["error"]["code"], body["error"]["data"]["reason"]) == (400, -32600, "bad_query")
    assert world.served == []


def test_who_has_no_token_does_not_learn_which_tags_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    status, body = world.ask("/mcp", b"tags=prod", headers=[(b"host", b"localhost")])
    assert status == 401
    assert "dev" not in json.dumps(body)


def test_a_query_at_a_server_of_its_own_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    assert world.ask("/servers/git/mcp", b"tags=prod&mode=find")[0] == 200
    assert world.served == [GIT]


def test_a_later_request_with_the_same_head_is_served_with_the_same_view(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.ask("/mcp", b"tags=dev", extensions={REMEMBER: world.kept.append})
    (again,) = world.kept
    way = Recorded()
    again(b"text", way)
    assert way.answers == [(200, {}, b"text")]
    world.tokens.learned["t"] = world.tokens.pop("t")
    again(b"later", way)
    (serve,) = way.served
    sent: list[Any] = []

    async def send(event: Any) -> None:
        sent.append(event)

    asyncio.run(serve({}, send, send))
    assert sent[0]["status"] == 200
    assert world.served == [viewed(WHOLE, frozenset({"dev"}), None)] * 2


def test_who_may_use_one_of_the_servers_may_come_in(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, Policy([Rule(allow=("git",))]))
    assert world.ask("/mcp")[0] == 200
    assert world.ask("/groups/office/mcp")[0] == 404


def test_who_could_come_in_with_a_further_scope_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, Policy([Rule(allow=("mail",), scopes=frozenset({"post"}))]))
    world.tokens["t"] = Principal("laptop", frozenset())
    status, body = world.ask("/mcp")
    assert (status, body["error"]["data"]["reason"]) == (403, "insufficient_scope")


def test_headers_for_any_of_the_servers_are_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.ask("/mcp", headers=[*HEADERS, (b"x-key", b"k"), (b"x-mail", b"m"), (b"x-other", b"o")])
    assert world.said == [{"x-key": "k", "x-mail": "m"}]
