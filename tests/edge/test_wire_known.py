"""Requests whose head a connection has seen before: handed over where they can be read in one way only."""

import asyncio
import gc
import random
import socket
from collections.abc import Iterator
from queue import SimpleQueue
from threading import Event
from typing import Any
from weakref import ref

import pytest

from app.edge.asgi import Way, remembers
from app.edge.wire import WireLimits
from tests.edge.wire_server import HEAD, PATIENCE, Client, Served, answer, post, serving

LIMITS = WireLimits(max_pipelined=8, body_bytes=3000, body_seconds=0.5)


class Remembering:
    """Answers in a task at first, and at once with what it was handed."""

    def __init__(self) -> None:
        self.ways: SimpleQueue[Way] = SimpleQueue()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, is_more = b"", True
        while is_more:
            event = await receive()
            if event["type"] == "http.disconnect":
                return
            body, is_more = body + event["body"], event["more_body"]
        await answer(send, 200, {"task": body.decode()})
        remember = remembers(scope)
        if remember is not None:
            remember(self.again)

    def again(self, text: bytes, way: Way) -> None:
        match text:
            case b"later":
                self.ways.put(way)
            case b"task":
                way.serve(self.serve)
            case b"bug":
                raise RuntimeError("a bug of the application")
            case b"late bug":
                way.answer(200, (), b"already")
                raise RuntimeError("a bug of the application")
            case b"end":
                way.answer(413, ((b"connection", b"close"),), b"end")
            case b"large":
                way.answer(200, (), b"x" * 1_000_000)
            case _:
                way.answer(200, ((b"x-kind", b"again"),), text)

    async def serve(self, _scope: Any, _receive: Any, send: Any) -> None:
        await answer(send, 200, {"task": "after all"})


@pytest.fixture(scope="module", params=["uvloop", "asyncio"])
def shared(request: pytest.FixtureRequest) -> Iterator[Served]:
    with serving(LIMITS, request.param) as served:
        yield served


@pytest.fixture
def app(shared: Served, monkeypatch: pytest.MonkeyPatch) -> Iterator[Remembering]:
    app = Remembering()
    monkeypatch.setattr(type(shared.app), "__call__", lambda _, *args: app(*args))
    yield app
    shared.records.clear()


@pytest.fixture
def client(shared: Served, app: Remembering) -> Iterator[Client]:
    """On a connection that knows `HEAD`."""
    with shared.connect() as client:
        for _ in range(2):
            assert said(client, post(b"first")) == b'{"task": "first"}'
        yield client


def said(client: Client, request: bytes) -> bytes:
    client.send(request)
    response = client.read()
    assert response is not None
    assert response.status == 200
    return response.body


def test_a_request_with_a_known_head_is_handed_over(client: Client) -> None:
    client.send(post(b"second"))
    response = client.read()
    assert response is not None
    assert (response.status, response.body, response.headers["x-kind"]) == (200, b"second", "again")
    assert "date" in response.headers
    assert said(client, post(b"a third")) == b"a third"


def test_another_connection_knows_nothing_and_learns_nothing_at_first(client: Client, shared: Served) -> None:
    with shared.connect() as other:
        assert said(other, post(b"second")) == b'{"task": "second"}'
        assert said(other, post(b"third")) == b'{"task": "third"}'
        assert said(other, post(b"fourth")) == b"fourth"


@pytest.mark.parametrize(
    "head",
    [
        b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\nConnection: keep-alive, upgrade\r\nUpgrade: h2c\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n",
        b"PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n",
    ],
    ids=["upgrade", "expect", "put"],
)
def test_what_is_more_than_a_head_and_a_body_is_never_handed_over(client: Client, head: bytes) -> None:
    for body in (b"one", b"two", b"three"):
        client.send(post(body, head))
        response = client.read()
        if response is not None and response.status == 100:
            response = client.read()
        assert response is not None
        assert response.json() == {"task": body.decode()}


def test_a_request_in_pieces_is_served_wherever_it_is_cut(client: Client, shared: Served) -> None:
    request = post(b"whole")
    client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for cut in range(1, len(request)):
        client.send(request[:cut])
        settle(shared)
        body = said(client, request[cut:])
        assert body == (b"whole" if cut >= len(HEAD % 5) else b'{"task": "whole"}')


def test_a_head_is_learned_from_a_request_in_two_pieces(shared: Served, app: Remembering) -> None:
    with shared.connect() as client:
        assert said(client, post(b"other", HEAD.replace(b"/x", b"/y"))) == b'{"task": "other"}'
        client.send(HEAD % 4)
        settle(shared)
        client.send(b"fi")
        settle(shared)
        assert said(client, b"ve") == b'{"task": "five"}'
        assert said(client, post(b"six")) == b"six"


def test_a_request_behind_a_body_that_came_late_is_not_forgotten(client: Client, shared: Served) -> None:
    client.send(HEAD % 3)
    settle(shared)
    client.send(b"one" + post(b"two") + HEAD % 5)
    settle(shared)
    client.send(b"three")
    answers = [client.read() for _ in range(3)]
    assert [answer and answer.body for answer in answers] == [
        b'{"task": "one"}',
        b'{"task": "two"}',
        b'{"task": "three"}',
    ]


@pytest.mark.parametrize("size", [10, 2999], ids=["nothing", "not all"])
def test_a_body_that_never_comes_is_cut_off_although_its_head_is_known(client: Client, size: int) -> None:
    client.send(HEAD % 3000 + b"x" * size)
    response = client.read()
    assert response is not None
    assert response.json() == {"task": ""}
    assert client.read() is None


def test_a_client_may_go_while_its_body_is_waited_for(client: Client, shared: Served) -> None:
    client.send(HEAD % 3)
    settle(shared)
    client.socket.close()
    while client.port in shared.connections():
        pass
    assert shared.complaints() == []


def test_requests_behind_one_that_was_handed_over_wait_for_its_answer(
    client: Client, app: Remembering, shared: Served
) -> None:
    client.send(post(b"later"))
    way = app.ways.get(timeout=PATIENCE)
    client.send(post(b"second") + post(b"third"))
    shared.loop.call_soon_threadsafe(way.answer, 200, (), b"first")
    answers = [client.read() for _ in range(3)]
    assert [answer and answer.body for answer in answers] == [b"first", b'{"task": "second"}', b'{"task": "third"}']
    assert said(client, post(b"fourth")) == b"fourth"


def test_an_answer_to_a_client_that_is_gone_goes_nowhere(client: Client, app: Remembering, shared: Served) -> None:
    client.send(post(b"later"))
    way = app.ways.get(timeout=PATIENCE)
    client.socket.close()
    while client.port in shared.connections():
        pass
    shared.on_loop(lambda: way.answer(200, (), b"too late"))
    assert shared.complaints() == []


def test_who_was_handed_a_request_is_told_that_its_client_is_gone_although_another_waits(
    client: Client, app: Remembering, shared: Served
) -> None:
    gone = Event()
    client.send(post(b"later"))
    way = app.ways.get(timeout=PATIENCE)
    shared.on_loop(lambda: way.watch(gone.set))
    client.send(post(b"waits"))
    settle(shared)
    connection = shared.connections()[client.port]
    client.socket.close()
    shared.on_loop(connection.flow.resume_reading)
    assert gone.wait(PATIENCE)


def test_who_has_answered_is_not_kept_for_the_client_that_stays(
    client: Client, app: Remembering, shared: Served
) -> None:
    class Answering:
        def gone(self) -> None: ...

    client.send(post(b"later"))
    way = app.ways.get(timeout=PATIENCE)
    answering = Answering()
    kept = ref(answering)
    way.watch(answering.gone)
    del answering
    assert kept() is not None
    shared.on_loop(lambda: way.answer(200, (), b"answered"))
    assert kept() is None
    assert client.read() is not None


def test_who_was_handed_a_request_may_answer_in_a_task_after_all(client: Client) -> None:
    assert said(client, post(b"task")) == b'{"task": "after all"}'
    assert said(client, post(b"again")) == b"again"


def test_an_answer_may_end_the_connection(client: Client) -> None:
    client.send(post(b"end"))
    response = client.read()
    assert response is not None
    assert (response.status, response.headers["connection"]) == (413, "close")
    assert client.read() is None


def test_a_large_answer_comes_whole(client: Client) -> None:
    assert said(client, post(b"large")) == b"x" * 1_000_000
    assert said(client, post(b"second")) == b"second"


def test_a_body_beyond_the_limit_is_refused_although_its_head_is_known(client: Client) -> None:
    client.send(post(b"x" * 3001))
    response = client.read()
    assert response is not None
    assert response.json() == {"task": ""}
    assert client.read() is None


def test_a_bug_in_who_was_handed_a_request_is_an_internal_error(client: Client, shared: Served) -> None:
    client.send(post(b"bug"))
    response = client.read()
    assert response is not None
    assert (response.status, response.json()["error"]["code"]) == (500, -32603)
    assert said(client, post(b"late bug")) == b"already"
    assert said(client, post(b"and on")) == b"and on"
    assert [record.exc_info is not None for record in shared.records] == [True, True]


def test_a_connection_that_has_ended_leaves_nothing_to_the_garbage_collector(client: Client, shared: Served) -> None:
    assert said(client, post(b"second")) == b"second"
    connection = ref(shared.connections()[client.port])
    gc.disable()
    try:
        client.socket.close()
        while client.port in shared.connections():
            pass
        settle(shared)
        assert connection() is None
    finally:
        gc.enable()


SEED = 20261130
PIECES = [
    post(b"one"),
    post(b""),
    post(b"four", HEAD.replace(b"/x", b"/y")),
    *(HEAD % 3, b"one", b"\r\n", b"POST ", b"Content-Length: 3\r\n", b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n", b"x" * 40),
]


@pytest.mark.parametrize("seed", range(40))
def test_a_connection_that_knows_a_head_answers_as_one_that_does_not(
    shared: Served, app: Remembering, seed: int
) -> None:
    """But for the way in which it was served: the same bytes are the same requests, or the same refusal."""
    chance = random.Random(SEED + seed)
    pieces = [chance.choice(PIECES) for _ in range(6)]
    outcomes = []
    for request in (post(b"first"), post(b"first").replace(b"POST", b"PUT")):
        with shared.connect() as client:
            said(client, request)
            said(client, request)
            answers = []
            for piece in pieces:
                client.send(piece)
                settle(shared)
            client.socket.shutdown(socket.SHUT_WR)
            try:
                while (response := client.read()) is not None:
                    answers.append((response.status, response.body.replace(b'{"task": "', b"").replace(b'"}', b"")))
            except ConnectionError:
                answers.append((0, b"reset"))
        outcomes.append(answers)
    assert outcomes[0] == outcomes[1]


def settle(shared: Served) -> None:
    """Until the loop has done what was sent before."""

    async def turns() -> None:
        for _ in range(8):
            await asyncio.sleep(0)

    asyncio.run_coroutine_threadsafe(turns(), shared.loop).result(PATIENCE)
