"""Which headers are kept of a request, and what becomes of one that is there twice."""

import pytest

from app.edge.heads import Head
from app.edge.refusals import Refusal
from app.protocol.faults import HeaderMismatch
from app.protocol.headers import plain


def head(*headers: tuple[bytes, bytes]) -> Head:
    return Head({"type": "http", "headers": list(headers)})


def test_what_mirrors_a_tools_parameters_is_kept() -> None:
    kept = head((b"mcp-param-region", b"us-west1"), (b"mcp-param-zone", b""), (b"mcp-other", b"x"), (b"x-y", b"z"))
    assert kept == {b"mcp-param-region": b"us-west1", b"mcp-param-zone": b""}


@pytest.mark.parametrize("name", [b"mcp-param-region", b"mcp-name", b"mcp-method"])
def test_a_mirror_that_is_there_twice_mirrors_nothing(name: bytes) -> None:
    kept = head((name, b"a"), (b"accept", b"*/*"), (name, b"a"))
    with pytest.raises(HeaderMismatch):
        plain(kept, name)


@pytest.mark.parametrize("name", [b"host", b"authorization", b"mcp-session-id", b"mcp-protocol-version"])
def test_what_is_judged_by_itself_and_there_twice_is_refused(name: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        head((name, b"a"), (b"accept", b"*/*"), (name, b"a"))
    assert (refused.value.status, refused.value.fault.reason) == (400, "duplicate_header")
