"""What the application looks at again, of a request whose head it has judged before."""

import asyncio
from typing import Any

import pytest

from app.auth.principal import Principal
from app.edge import streamable
from app.edge.app import Viaduct
from app.edge.asgi import REMEMBER, Again, Way
from app.edge.guards import Guards
from app.edge.incoming import EdgeSettings, Incoming, Repeat, StreamSettings
from app.edge.refusals import Refusal
from app.gateway.gateway import Gateway
from app.gateway.settings import GatewaySettings, SessionSettings, UpstreamSettings
from app.protocol.faults import Unavailable
from app.upstreams.command import Command

HEADERS = [(b"host", b"localhost"), (b"origin", b"http://localhost"), (b"authorization", b"Bearer t")]


class Recorded:
    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[bytes, bytes], bytes]] = []

    def answer(self, status: int, headers: tuple[tuple[bytes, bytes], ...], body: bytes) -> None:
        self.answers.append((status, dict(headers), body))

    def watch(self, gone: object) -> None:
        """Nobody goes here."""

    def serve(self, app: object) -> None:
        raise AssertionError(app)


@pytest.fixture
def tokens() -> dict[str, Principal]:
    return {"t": Principal("laptop", frozenset({"*"}))}


@pytest.fixture
def again(tokens: dict[str, Principal], monkeypatch: pytest.MonkeyPatch) -> Again:
    """What the application gave the server for the later requests, after a first one was served."""

    def repeat(text: bytes, principal: Principal, way: Way) -> None:
        if text == b"down":
            raise Unavailable("not now")
        way.answer(200, (), principal.key.encode() + b" said " + text)

    async def serve(incoming: Incoming) -> Repeat | None:
        if incoming.head.get(b"x-wrong"):
            raise Refusal(400, "wrong", "wrong")
        return repeat

    monkeypatch.setattr(streamable, "serve", serve)
    upstream = UpstreamSettings("stage", Command(("true",), {}, None))
    gateway = Gateway(GatewaySettings((upstream,), SessionSettings(), "0"))
    app = Viaduct(gateway, EdgeSettings(StreamSettings(), body_max=100), Guards(), tokens.get)
    kept: list[Again] = []
    scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": HEADERS}

    async def unused(*_: Any) -> Any:
        raise AssertionError

    asyncio.run(app(scope | {"extensions": {REMEMBER: kept.append}}, unused, unused))
    (again,) = kept
    return again


def told(again: Again, text: bytes) -> tuple[int, dict[bytes, bytes], bytes]:
    way = Recorded()
    again(text, way)
    (answer,) = way.answers
    return answer


def test_a_later_request_is_served_as_the_first(again: Again) -> None:
    assert told(again, b"hello") == (200, {}, b"laptop said hello")


def test_a_token_that_has_ended_is_refused_although_its_head_is_known(
    again: Again, tokens: dict[str, Principal]
) -> None:
    del tokens["t"]
    status, headers, _ = told(again, b"hello")
    assert (status, headers[b"www-authenticate"]) == (401, b"Bearer")


def test_a_token_that_is_somebody_elses_now_speaks_for_them(again: Again, tokens: dict[str, Principal]) -> None:
    tokens["t"] = Principal("phone", frozenset())
    assert told(again, b"hello") == (200, {}, b"phone said hello")


def test_a_refusal_tells_a_browser_that_it_may_read_it(again: Again) -> None:
    status, headers, body = told(again, b"down")
    assert (status, headers[b"access-control-allow-origin"]) == (503, b"http://localhost")
    assert b'"server":"stage"' in body


def test_a_body_that_is_too_large_ends_the_connection(again: Again) -> None:
    status, headers, _ = told(again, b"x" * 101)
    assert (status, headers[b"connection"]) == (413, b"close")
