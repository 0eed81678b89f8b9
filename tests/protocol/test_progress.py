"""What a server can take for a progress token is ours, or is not there."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from app.protocol.jsonrpc import Request, RequestId
from app.protocol.progress import under_token


def asked(params: str | None) -> Request:
    return Request(7, "tools/call", None if params is None else Raw(params.encode()))


def rewritten(params: str) -> tuple[str, RequestId | None]:
    request, token = under_token(asked(params), 101)
    assert (request.id, request.method) == (7, "tools/call")
    return bytes(request.params or b"").decode(), token


@pytest.mark.parametrize("token", [0, -5, "t", "", 2**63])
def test_a_token_is_replaced_by_ours_and_told(token: RequestId) -> None:
    params = json.dumps({"name": "x", "_meta": {"progressToken": token}, "a": 1}, separators=(",", ":"))
    assert rewritten(params) == ('{"name":"x","_meta":{"progressToken":101},"a":1}', token)


def test_every_other_byte_of_a_value_stays() -> None:
    params = '{"z":1.0, "_meta" : {"b":1e5,"progressToken":"t","a":[ 1.50 ]},"a":{"y":18446744073709551616}}'
    told = '{"z":1.0,"_meta":{"b":1e5,"progressToken":101,"a":[ 1.50 ]},"a":{"y":18446744073709551616}}'
    assert rewritten(params) == (told, "t")


@pytest.mark.parametrize(
    "params", [None, "{}", '{ "name" : "x", "meta":{"progressToken":1},"_metas":{},"progressToken":3}']
)
def test_a_request_without_meta_stays_as_it_is(params: str | None) -> None:
    assert under_token(asked(params), 101) == (asked(params), None)


@pytest.mark.parametrize("token", ["1.0", "7.5", "true", "null", "[7]", '{"progressToken":7}'])
def test_what_is_no_token_is_shown_to_no_server(token: str) -> None:
    assert rewritten(f'{{"_meta":{{"progressToken":{token},"a":1}}}}') == ('{"_meta":{"a":1}}', None)


@pytest.mark.parametrize(
    ("params", "told", "token"),
    [
        ('{"_meta":{"progressToken":1},"_meta":{"progressToken":2}}', '{"_meta":{"progressToken":101}}', 2),
        ('{"_meta":{"progressToken":2,"progressToken":3}}', '{"_meta":{"progressToken":101}}', 3),
        ('{"_meta":{"progressToken":1},"_meta":null}', '{"_meta":null}', None),
        ('{"_meta":{"progressToken":1},"_meta":{}}', '{"_meta":{}}', None),
        ('{"_meta":{"progressToken":1,"progressToken":null}}', '{"_meta":{}}', None),
        ('{"_META":{"progressToken":1},"a":1}', '{"a":1}', None),
        ('{"_meta":{"a":1},"_Meta":{"progressToken":1}}', '{"_meta":{"a":1}}', None),
        ('{"_meta":{"PROGRESSTOKEN":1,"a":1}}', '{"_meta":{"a":1}}', None),
        ('{"_meta":{"progressToken":2,"ProgressToken":1}}', '{"_meta":{"progressToken":101}}', 2),
        ('{"_meta":{"progre\\u017fſToken":1}}', '{"_meta":{}}', None),
        ('{"_meta":{"progressTo\u212aen":1}}', '{"_meta":{}}', None),
        ('{"\\u005fmeta":{"\\u0070rogressToken":1}}', '{"_meta":{"progressToken":101}}', 1),
        ('{"_meta":[{"progressToken":1}]}', '{"_meta":[{"progressToken":1}]}', None),
    ],
)  # fmt: skip
def test_of_several_spellings_only_what_we_read_goes_on(params: str, told: str, token: RequestId | None) -> None:
    assert rewritten(params) == (told, token)


def folded(pairs: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return [(name.casefold(), value) for name, value in pairs]


NAMES = st.sampled_from(["_meta", "_Meta", "_META", "progressToken", "PROGRESSTOKEN", "progre\u017fsToken", "a"])


@st.composite
def texts(draw: st.DrawFn, depth: int = 3) -> str:
    """An object's text, with members that may be there again."""

    def value() -> str:
        return draw(texts(depth - 1)) if depth and draw(st.booleans()) else json.dumps(draw(st.sampled_from([1, "t"])))

    return "{" + ",".join(f"{json.dumps(draw(NAMES))}:{value()}" for _ in range(draw(st.integers(0, 4)))) + "}"


@given(texts())
def test_whichever_of_its_members_a_server_reads_it_finds_our_token_or_none(params: str) -> None:
    told, token = rewritten(params)
    found = [
        value
        for name, meta in json.loads(told, object_pairs_hook=folded)
        if name == "_meta" and isinstance(meta, list)
        for key, value in meta
        if key == "progresstoken"
    ]
    assert found == ([] if token is None else [101])
