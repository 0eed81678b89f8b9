"""Heads that a connection has seen before: what is learned, and what is known again."""

import pytest

from app.edge.asgi import Way
from app.edge.wire_known import KnownHeads
from tests.edge.wire_server import HEAD, post


def again(text: bytes, way: Way) -> None: ...


def known(request: bytes, head_max: int = 32768) -> KnownHeads:
    heads = KnownHeads(head_max)
    heads.add(request, again)
    return heads


@pytest.mark.parametrize("spelling", [b"Content-Length", b"content-length"])
def test_a_head_is_known_again_with_another_body(spelling: bytes) -> None:
    head = HEAD.replace(b"Content-Length", spelling)
    assert known(post(b"one", head)).find(post(b"x" * 1234, head)) == (again, b"x" * 1234, 1234)


def test_a_body_may_come_later() -> None:
    assert known(post(b"one")).find(post(b"four")[:-1]) == (again, b"fou", 4)
    assert known(post(b"one")).find(HEAD % 4) == (again, b"", 4)


def test_what_comes_behind_a_body_is_told_by_its_length() -> None:
    assert known(post(b"one")).find(post(b"four") + b"x") == (again, b"fourx", 4)


@pytest.mark.parametrize(
    "other",
    [
        post(b"two").replace(b"Host: a", b"Host: b"),
        post(b"two").replace(b"X-Last: 1", b"X-Last: 2"),
        post(b"two").replace(b"Content-Length", b"content-length"),
        post(b"two").replace(b"POST", b"PUT"),
        post(b"two").replace(b"Content-Length: 3", b"Content-Length:  3"),
        post(b"two").replace(b": 3", b": +3"),
        post(b"two").replace(b": 3", b": 3 "),
        post(b"two").replace(b": 3", b": "),
        post(b"two").replace(b": 3", b": 0x3"),
        post(b"two").replace(b": 3", b": \xb3"),
        post(b"two").replace(b": 3", b": " + b"0" * 5000 + b"3"),
        b"\r\n" + post(b"two"),
        (HEAD % 3)[:-1],
        b"",
        b"two",
    ],
)
def test_anything_else_is_not_known(other: bytes) -> None:
    assert known(post(b"one")).find(other) is None


@pytest.mark.parametrize(
    "request_",
    [
        b"POST /x HTTP/1.1\r\nX-Content-Length: 3\r\ncontent-length:3\r\n\r\none",
        b"POST /x HTTP/1.1\r\nX: Content-Length: 3\r\ncontent-length:3\r\n\r\none",
        b"POST /x HTTP/1.1\r\ncontent-length: 3\r\nX-Content-Length: 3\r\n\r\none",
        b"POST /Content-Length: HTTP/1.1\r\ncontent-length:3\r\n\r\none",
        b"POST /x HTTP/1.1\r\nHost: a\r\n\r\n",
        post(b"one") + post(b"two"),
        post(b"one")[:-1],
        post(b"one", HEAD.replace(b"X-Last", b"X-" + b"y" * 5000)),
    ],
)
def test_a_head_is_learned_only_where_its_length_is_beyond_doubt(request_: bytes) -> None:
    assert not known(request_)


def test_no_head_is_learned_that_may_grow_past_what_a_head_may_have() -> None:
    request = post(b"one")
    size = len(request) - 3
    assert not known(request, size)
    assert known(request, size + 9)


def test_a_connection_remembers_a_few_heads_only() -> None:
    heads = KnownHeads(32768)
    requests = [post(b"one", HEAD.replace(b"/x", b"/%d" % n)) for n in range(17)]
    for request in requests:
        heads.add(request, again)
    assert [heads.find(request) is not None for request in requests] == [False] * 16 + [True]
