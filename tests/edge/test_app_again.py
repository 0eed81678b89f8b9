"""What the application looks at again, of a request whose head it has judged before."""

import asyncio
from typing import Any

import pytest

from app.auth.principal import Principal
from app.auth.verdicts import CannotVerify
from app.edge import streamable
from app.edge.app import Viaduct
from app.edge.asgi import REMEMBER, Again, Way, respond
from app.edge.guards import Guards
from app.edge.incoming import EdgeSettings, Incoming, Repeat, StreamSettings
from app.gateway.gateway import Gateway
from app.gateway.settings import GatewaySettings, SessionSettings, UpstreamSettings
from app.protocol.faults import Unavailable
from app.upstreams.command import Command

HEADERS = [(b"host", b"localhost"), (b"origin", b"http://localhost"), (b"authorization", b"Bearer t")]


class Tokens(dict[str, Principal]):
    """Tokens that are known; `learned` become known only when they are asked for."""

    def __init__(self, known: dict[str, Principal]) -> None:
        super().__init__(known)
        self.learned: dict[str, Principal] = {}
        self.is_broken = False

    def find(self, token: str) -> Principal | None:
        return self.get(token)

    def is_askable(self, token: str) -> bool:
        return self.is_broken or token in self.learned

    async def ask(self, token: str) -> Principal:
        if self.is_broken:
            raise CannotVerify("broken", 3.0)
        self[token] = self.learned[token]
        return self[token]

    def start(self) -> None:
        raise AssertionError

    def stop(self) -> None:
        raise AssertionError


class Recorded:
    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[bytes, bytes], bytes]] = []
        self.served: list[Any] = []

    def answer(self, status: int, headers: tuple[tuple[bytes, bytes], ...], body: bytes) -> None:
        self.answers.append((status, dict(headers), body))

    def watch(self, gone: object) -> None:
        """Nobody goes here."""

    def serve(self, app: object) -> None:
        self.served.append(app)


@pytest.fixture
def tokens() -> Tokens:
    return Tokens({"t": Principal("laptop", frozenset({"*"}))})


@pytest.fixture
def remembered(tokens: Tokens, monkeypatch: pytest.MonkeyPatch) -> tuple[Again, Viaduct]:
    """What the application gave the server for the later requests, after a first one was served."""

    def repeat(text: bytes, principal: Principal, way: Way) -> None:
        if text == b"down":
            raise Unavailable("not now")
        way.answer(200, (), principal.name.encode() + b" said " + text)

    async def serve(incoming: Incoming) -> Repeat | None:
        if "extensions" not in incoming.scope:  # A later request, served like a first one.
            said = incoming.principal.name.encode() + b" said " + await incoming.body()
            await respond(incoming.send, 200, [], said)
        return repeat

    monkeypatch.setattr(streamable, "serve", serve)
    upstream = UpstreamSettings("stage", Command(("true",), {}, None))
    gateway = Gateway(GatewaySettings((upstream,), SessionSettings(), "0"))
    app = Viaduct(gateway, EdgeSettings(StreamSettings(), body_max=100), Guards(), tokens)
    kept: list[Again] = []
    scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": HEADERS}

    async def unused(*_: Any) -> Any:
        raise AssertionError

    asyncio.run(app(scope | {"extensions": {REMEMBER: kept.append}}, unused, unused))
    (again,) = kept
    return again, app


@pytest.fixture
def again(remembered: tuple[Again, Viaduct]) -> Again:
    return remembered[0]


def told(again: Again, text: bytes) -> tuple[int, dict[bytes, bytes], bytes]:
    way = Recorded()
    again(text, way)
    (answer,) = way.answers
    return answer


def test_a_later_request_is_served_as_the_first(again: Again) -> None:
    assert told(again, b"hello") == (200, {}, b"laptop said hello")


def test_a_token_that_has_ended_is_refused_although_its_head_is_known(again: Again, tokens: Tokens) -> None:
    del tokens["t"]
    status, headers, _ = told(again, b"hello")
    assert (status, headers[b"www-authenticate"]) == (401, b"Bearer")


def test_a_token_that_is_somebody_elses_now_speaks_for_them(again: Again, tokens: Tokens) -> None:
    tokens["t"] = Principal("phone", frozenset())
    assert told(again, b"hello") == (200, {}, b"phone said hello")


def test_a_refusal_tells_a_browser_that_it_may_read_it(again: Again) -> None:
    status, headers, body = told(again, b"down")
    assert (status, headers[b"access-control-allow-origin"]) == (503, b"http://localhost")
    assert b'"server":"stage"' in body


def test_a_body_that_is_too_large_ends_the_connection(again: Again) -> None:
    status, headers, _ = told(again, b"x" * 101)
    assert (status, headers[b"connection"]) == (413, b"close")


def served(again: Again, text: bytes) -> list[Any]:
    """The events of a request that had to be served in a task."""
    way, sent = Recorded(), []

    async def send(event: Any) -> None:
        sent.append(event)

    async def unused() -> Any:
        raise AssertionError

    again(text, way)
    assert way.answers == []
    (app,) = way.served
    asyncio.run(app({}, unused, send))
    return sent


def test_a_token_that_must_be_asked_for_again_is_and_the_request_served_whole(again: Again, tokens: Tokens) -> None:
    tokens.learned["t"] = tokens.pop("t")
    start, body = served(again, b"hello")
    assert (start["status"], body["body"]) == (200, b"laptop said hello")
    assert told(again, b"more") == (200, {}, b"laptop said more")


def test_a_later_request_whose_token_nobody_can_judge_is_told_to_come_again(again: Again, tokens: Tokens) -> None:
    del tokens["t"]
    tokens.is_broken = True
    start, body = served(again, b"hello")
    headers = dict(start["headers"])
    assert (start["status"], headers[b"retry-after"]) == (503, b"3")
    assert headers[b"access-control-allow-origin"] == b"http://localhost"
    assert b"auth_unavailable" in body["body"]


def test_a_request_that_another_application_judged_is_judged_anew(
    remembered: tuple[Again, Viaduct], tokens: Tokens
) -> None:
    again, app = remembered
    app.adopt(EdgeSettings(StreamSettings(), body_max=4), Guards(), tokens)
    assert [event["status"] for event in served(again, b"now") if "status" in event] == [200]
    assert served(again, b"longer")[0]["status"] == 413
