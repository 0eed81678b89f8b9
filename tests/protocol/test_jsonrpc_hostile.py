"""Hostile JSON: whatever comes is a message or one of two faults, and nothing else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.protocol.faults import InvalidRequest, Malformed
from app.protocol.jsonrpc import Failure, Result, encode, read, read_all
from tests.protocol.written import MESSAGES


def request(ident: str) -> bytes:
    return f'{{"jsonrpc":"2.0","id":{ident},"method":"m"}}'.encode()


def notification(params: str) -> bytes:
    return f'{{"jsonrpc":"2.0","method":"m","params":{params}}}'.encode()


BAD_IDS = [
    *("null", "true", "false", "1.5", "1.0", "-0.0", "1e3", "1E0", "1e400", "[]", "[1]", "{}"),
    *(str(2**64), str(-(2**63) - 1), "1" * 5000, "-" + "1" * 5000, f'"{"x" * 257}"', f'"{"😀" * 257}"'),
]


@pytest.mark.parametrize("ident", BAD_IDS, ids=lambda ident: ident[:24])
def test_an_id_that_cannot_be_given_back_is_refused(ident: str) -> None:
    for text in (request(ident), f'{{"jsonrpc":"2.0","id":{ident},"result":{{}}}}'.encode()):
        with pytest.raises(InvalidRequest):
            read(text)
    if ident != "null":
        with pytest.raises(InvalidRequest):
            read(f'{{"jsonrpc":"2.0","id":{ident},"error":{{}}}}'.encode())


def test_a_fault_does_not_repeat_an_id_that_is_too_long() -> None:
    with pytest.raises(InvalidRequest, match="at most 256 characters"):
        read(request(f'"{"x" * 257}"'))


@pytest.mark.parametrize("params", ["[]", "[1]", "0", "1.5", '"x"', "true", "false", '"null"'])
def test_params_are_an_object_or_nothing(params: str) -> None:
    with pytest.raises(InvalidRequest, match="params must be an object"):
        read(notification(params))
    with pytest.raises(InvalidRequest, match="params must be an object"):
        read(b'{"jsonrpc":"2.0","id":1,"method":"m","params":%b}' % params.encode())


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"method":"m"}',
        '{"jsonrpc":"1.0","method":"m"}',
        '{"jsonrpc":"2","method":"m"}',
        '{"jsonrpc":"2.0 ","method":"m"}',
        '{"jsonrpc":2.0,"method":"m"}',
        '{"jsonrpc":null,"method":"m"}',
        '{"jsonrpc":["2.0"],"method":"m"}',
        '{"JSONRPC":"2.0","method":"m"}',
        '{"jsonRpc":"2.0","method":"m"}',
        '{"jsonrpc":"2.0"}',
        '{"jsonrpc":"2.0","id":1}',
        '{"jsonrpc":"2.0","Method":"m"}',
        '{"jsonrpc":"2.0","id":1,"METHOD":"m"}',
        '{"jsonrpc":"2.0","method":null}',
        '{"jsonrpc":"2.0","method":7}',
        '{"jsonrpc":"2.0","method":["m"]}',
        '{"jsonrpc":"2.0","result":{}}',
        '{"jsonrpc":"2.0","id":1,"Result":{}}',
        '{"jsonrpc":"2.0","id":1,"result":{},"error":{}}',
        '{"jsonrpc":"2.0","id":1,"result":null,"error":null}',
        '{"jsonrpc":"2.0","id":1,"method":"m","result":{}}',
        '{"jsonrpc":"2.0","id":1,"method":"m","error":{}}',
        '{"jsonrpc":"2.0","id":1,"method":"m","result":null}',
        '{"jsonrpc":"2.0","method":"m","result":{}}',
        "null",
        "true",
        "1",
        '"x"',
        "1.5",
    ],
)
def test_json_that_is_no_message_is_an_invalid_request(text: str) -> None:
    with pytest.raises(InvalidRequest):
        read(text.encode())
    with pytest.raises(InvalidRequest):
        read_all(text.encode())


GOOD = b'{"jsonrpc":"2.0","method":"m"}'
BROKEN = {
    "nothing": b"",
    "white space": b" \r\n\t",
    "a byte order mark": b"\xef\xbb\xbf" + GOOD,
    "a byte order mark behind": GOOD + b"\xef\xbb\xbf",
    "UTF-16": GOOD.decode().encode("utf-16-le"),
    "a NUL": b"\0",
    "a NUL behind": GOOD + b"\0",
    "a letter behind": GOOD + b"x",
    "a bracket behind": GOOD + b"}",
    "two messages": GOOD + GOOD,
    "two lines": GOOD + b"\n" + GOOD,
    "cut off": GOOD[:-1],
    "a comment": b"/* x */" + GOOD,
    "no quotes": b"{jsonrpc:2.0}",
    "single quotes": GOOD.replace(b'"', b"'"),
    "a trailing comma": GOOD[:-1] + b",}",
    "no break space": "\u00a0".encode() + GOOD,
    "a form feed": b"\x0c" + GOOD,
    "depth without end": b'{"a":' * 100_000,
    "Latin-1": notification('"é"').decode().encode("latin-1"),
}
BROKEN_VALUES = [
    *("NaN", "Infinity", "-Infinity", "nan", "undefined", "None", "True", "tru", "nul", "'a'", "a"),
    *("01", "-01", "1.", ".5", "+1", "1e", "1e+", "-", "--1", "0x10", "1_000", "1.5.5", "1e5e5"),
    *(r'"\ud800"', r'"\udc00"', r'"\ud83dx"', r'"\ud83d\u0041"', r'"\ud83d\n"', r'"\udc00\ud800"', r'"\ud800\ud800"'),
    *(r'"\x41"', r'"\u12"', r'"\u12g4"', r'"\'"', r'"\U0001f600"', '"\n"', '"\r"', '"\t"', '"\0"', '"\x1f"', '"', '"a'),
    *("[1,]", "[,1]", "[1 2]", "[1", "[1}", '{"a":1,}', "{,}", '{"a"}', '{"a" 1}', '{1:2}', "{a:1}"),
    *('{"a":1', '{"a":1]', '{"a":1 "b":2}', r'{"\ud800":1}', '{"\n":1}', '{"a":NaN}', "[[NaN]]"),
]  # fmt: skip


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_what_is_not_one_json_text_is_malformed(text: bytes) -> None:
    for way in (read, read_all):
        with pytest.raises(Malformed):
            way(text)


@pytest.mark.parametrize("value", BROKEN_VALUES)
def test_broken_json_is_malformed_wherever_it_stands(value: str) -> None:
    for text in (
        f'{{"jsonrpc":"2.0","method":"m","params":{{"a":{value}}}}}',
        f'{{"jsonrpc":"2.0","method":"m","params":{{"a":{{"b":[{value}]}}}}}}',
        f'{{"jsonrpc":"2.0","id":1,"result":{value}}}',
        f'{{"jsonrpc":"2.0","id":1,"error":{{"data":{value}}}}}',
        f'{{"x":{value},"jsonrpc":"2.0","method":"m"}}',
        f'[{{"jsonrpc":"2.0","id":1,"result":{value}}}]',
    ):
        with pytest.raises(Malformed):
            read_all(text.encode())


def test_a_fault_repeats_nothing_of_what_it_refuses() -> None:
    for text in (b'{"jsonrpc":"secret","method":7}', notification('{"a":"secret'), notification('["secret"]')):
        with pytest.raises((Malformed, InvalidRequest)) as refused:
            read(text)
        assert "secret" not in refused.value.message


# Whatever comes.

TOKENS = [
    *(b"{", b"}", b"[", b"]", b":", b",", b'"', b"\\", b"\\u", b"\\ud800", b"\n", b"\r", b" ", b"\0"),
    *(b"\xff", b"\xc3\xa9", b"1e5", b"NaN"),
    *(b'"jsonrpc":"2.0"', b'"id":1', b'"id":null', b'"method":"m"', b'"params":{}', b'"result":', b'"error":'),
    *(b"1" * 30, b"-", b"null", b"[" * 70, b"]" * 70, GOOD, b"," + GOOD),
]  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    text = bytearray(encode(draw(MESSAGES)))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        text[at : at + draw(st.integers(0, 3))] = draw(
            st.one_of(st.just(b""), st.sampled_from(TOKENS), st.binary(max_size=2))
        )
    return bytes(text)


@given(st.one_of(st.binary(max_size=40), st.lists(st.sampled_from(TOKENS), max_size=12).map(b"".join), mutated()))
def test_any_bytes_are_a_message_or_one_of_two_faults(text: bytes) -> None:
    try:
        read_all(text)
    except (Malformed, InvalidRequest):
        return
    json.loads(text.decode(), parse_constant=pytest.fail)


HOSTILE = st.sampled_from(
    ["null", "true", "0", "1", "1.5", '"m"', '"2.0"', "[]", "{}", '{"a":1}', "1e3", str(2**64), '""']
)
MEMBERS = st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "Method", "x"])


@given(st.lists(st.tuples(MEMBERS, HOSTILE), max_size=7))
def test_any_envelope_is_refused_or_goes_on_as_it_was_judged(members: list[tuple[str, str]]) -> None:
    pairs = [("jsonrpc", '"2.0"'), *members]
    text = "{" + ",".join(f'"{name}":{value}' for name, value in pairs) + "}"
    try:
        message = read(text.encode())
    except InvalidRequest:
        return
    judged = dict(pairs)
    if judged.get("params") == "null":
        del judged["params"]
    if isinstance(message, Failure):
        judged.setdefault("id", "null")
    written = json.loads(encode(message))
    known = ("jsonrpc", "id", "method", "params", "result", "error")
    if isinstance(message, Result | Failure):
        judged.pop("params", None)
    assert written == {name: json.loads(value) for name, value in judged.items() if name in known}
