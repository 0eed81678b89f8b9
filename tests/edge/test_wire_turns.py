"""Several requests on one connection, and requests that go wrong while others are being answered."""

from collections.abc import Iterator

import pytest

from app.edge.wire import WireLimits
from tests.edge.wire_server import Served, serving

LIMITS = WireLimits(max_pipelined=8)


@pytest.fixture(scope="module", params=["uvloop", "asyncio"])
def shared(request: pytest.FixtureRequest) -> Iterator[Served]:
    with serving(LIMITS, request.param) as served:
        yield served


@pytest.fixture
def served(shared: Served) -> Iterator[Served]:
    shared.reset()
    shared.records.clear()
    yield shared
    assert shared.complaints() == []


def get(path: str, extra: bytes = b"") -> bytes:
    return b"GET %b HTTP/1.1\r\nHost: a\r\n%b\r\n" % (path.encode(), extra)


def post(path: str, body: bytes) -> bytes:
    return b"POST %b HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b" % (path.encode(), len(body), body)


@pytest.mark.parametrize("size", [1_000_000, 40], ids=["at once", "in pieces"])
def test_pipelined_requests_are_answered_in_their_order(served: Served, size: int) -> None:
    with served.connect() as client:
        client.send_in_pieces(get("/gated") + b"".join(post(f"/{n}", b"%d" % n) for n in range(8)), size)
        served.app.wait_for(served.app.started, "/gated")
        served.open_gate()
        answers = [client.read().json() for _ in range(9)]
    assert [answer["path"] for answer in answers] == ["/gated", *(f"/{n}" for n in range(8))]
    assert [answer["body"] for answer in answers] == ["", *(str(n) for n in range(8))]


@pytest.mark.parametrize(
    ("bad", "status"),
    [
        (b"GET /bad HTTP/1.1\r\n\r\n", 400),
        (b"nonsense\r\n\r\n", 400),
        (b"POST /bad HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"GET /bad HTTP/1.1\r\nX: " + b"a" * 40_000, 431),
        (b"GET /bad HTTP/1.1\r\nX: " + b"a" * 40_000 + b"\r\nHost: a\r\n\r\n", 431),
    ],
    ids=["no host", "no HTTP", "bad chunk", "endless header", "large header"],
)
def test_a_refusal_waits_for_the_answers_before_it(served: Served, bad: bytes, status: int) -> None:
    with served.connect() as client:
        client.send(get("/gated") + get("/x") + bad + get("/after"))
        served.app.wait_for(served.app.started, "/gated")
        served.open_gate()
        answers = client.read_all()
    assert [answer.status for answer in answers] == [200, 200, status]
    assert answers[-1].error()[0] == status
    assert served.app.served == ["/gated", "/x"]


def test_a_large_body_does_not_count_against_the_head_behind_it(served: Served) -> None:
    with served.connect() as client:
        client.send(post("/a", b"x" * 100_000) + get("/b"))
        assert client.read().status == 200
        assert client.read().json()["path"] == "/b"


def test_who_lets_too_many_requests_wait_is_refused_after_their_answers(served: Served) -> None:
    with served.connect() as client:
        client.send(get("/gated") + get("/x") * 20)
        served.app.wait_for(served.app.started, "/gated")
        served.open_gate()
        answers = client.read_all()
    assert [answer.status for answer in answers] == [200] * 9 + [429]
    assert answers[-1].error() == (429, "limits.pipelined")


def test_a_request_in_flight_hears_of_the_lost_connection_although_another_waits(served: Served) -> None:
    with served.connect() as client:
        client.send(get("/mute") + get("/x"))
        served.app.wait_for(served.app.started, "/mute")
    served.app.wait_for(served.app.disconnected, "/mute")
    assert served.app.served == []


def test_a_cut_body_waits_for_the_answers_before_it(served: Served) -> None:
    with served.connect() as client:
        client.send(get("/gated") + b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5000000\r\n\r\n" + b"x" * 1000)
        served.app.wait_for(served.app.started, "/gated")
        served.open_gate()
        answers = client.read_all()
    assert [answer.status for answer in answers] == [200, 413]
    assert answers[1].json() == {"from": "app", "fault": "too_large"}


def test_the_end_that_a_client_asks_for_comes_after_the_answer(served: Served) -> None:
    with served.connect() as client:
        client.send(get("/x", b"Connection: close\r\n") + get("/after"))
        answers = client.read_all()
    assert [answer.json()["path"] for answer in answers] == ["/x"]
    assert answers[0].headers["connection"] == "close"


def test_http_1_0_ends_with_its_answer(served: Served) -> None:
    (answer,) = served.exchange(b"GET /x HTTP/1.0\r\n\r\n")
    assert answer.status == 200


def test_a_body_of_unknown_length_comes_in_chunks_except_in_http_1_0_which_has_none(served: Served) -> None:
    with served.connect() as client:
        client.send(get("/parts", b"Connection: close\r\n"))
        modern = client.drain()
    with served.connect() as client:
        client.send(b"GET /parts HTTP/1.0\r\n\r\n")
        old = client.drain()
    assert modern.partition(b"\r\n\r\n")[2] == b"4\r\none,\r\n3\r\ntwo\r\n0\r\n\r\n"
    assert old.partition(b"\r\n\r\n")[2] == b"one,two"
    assert b"transfer-encoding" not in old


@pytest.mark.parametrize("path", ["/crash", "/silent"])
def test_a_bug_of_the_application_is_an_internal_error_in_json(shared: Served, path: str) -> None:
    (answer,) = shared.exchange(get(path))
    assert answer.status == 500
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {"jsonrpc": "2.0", "id": None, "error": {"code": -32603, "message": "internal error"}}
    assert len(shared.records) == 1
    shared.records.clear()


def test_a_bug_in_the_reading_is_an_internal_error_and_not_the_clients_fault(
    shared: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def take(*_: object, **__: object) -> None:
        raise LookupError("a bug of ours")

    monkeypatch.setattr("app.edge.wire_turns.Turns.take", take)
    (answer,) = shared.exchange(get("/x"))
    assert (answer.status, answer.json()["error"]["code"]) == (500, -32603)
    (record,) = shared.records
    assert record.exc_info is not None
    assert record.exc_info[0] is LookupError
    shared.records.clear()
