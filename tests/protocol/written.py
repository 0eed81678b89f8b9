"""JSON as anybody might write it, and messages with such payloads: strategies for properties."""

import json

from hypothesis import strategies as st
from msgspec import Raw

from app.protocol.jsonrpc import Failure, Message, Notification, Request, Result

SPACE = st.sampled_from(["", "", "", " ", "\n", "\r\n", "\t", " \r ", "\n\n  "])
CHARACTERS = st.characters(exclude_categories=["Cs"])
NUMBERS = st.one_of(
    st.sampled_from("0 -0 1.0 1e5 1E+2 -0.0 1e-7 1.50 1e400 9007199254740993 18446744073709551616 0.1".split()),
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(json.dumps),
)
STRINGS = st.one_of(
    st.sampled_from(
        [r'"\""', r'"\\"', r'"\\\""', r'"[\\"', r'"]}\"[{"', r'"\u005b\n\/"', r'"\ud83d\ude00"', '"\u2028"']
    ),
    st.text(CHARACTERS, max_size=8).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.text(CHARACTERS, max_size=8).map(json.dumps),
)
SCALARS = st.one_of(st.sampled_from(["null", "true", "false"]), NUMBERS, STRINGS)


def arrays(members: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    member = st.builds("{}{}{}".format, SPACE, members, SPACE)
    return st.lists(member, max_size=4).map(",".join).map("[{}]".format)


def objects(members: st.SearchStrategy[str], names: st.SearchStrategy[str] = STRINGS) -> st.SearchStrategy[str]:
    member = st.builds("{}{}{}:{}{}{}".format, SPACE, names, SPACE, SPACE, members, SPACE)
    return st.lists(member, max_size=4).map(",".join).map("{{{}}}".format)


VALUES = st.recursive(SCALARS, lambda inner: st.one_of(arrays(inner), objects(inner)), max_leaves=10)
OBJECTS = objects(VALUES)

IDS = st.one_of(
    st.integers(-(2**63), 2**64 - 1),
    st.sampled_from([0, -(2**63), 2**63, 2**64 - 1]),
    st.text(CHARACTERS, max_size=12),
    st.sampled_from(["", "1", '"', "\n", "x" * 256]),
)
METHODS = st.one_of(st.sampled_from(["ping", "tools/call", "notifications/x"]), st.text(CHARACTERS, max_size=12))
VALUE_PAYLOADS = VALUES.map(str.encode).map(Raw)
PARAMS = st.none() | OBJECTS.map(str.encode).map(Raw)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(Request, IDS, METHODS, PARAMS),
    st.builds(Notification, METHODS, PARAMS),
    st.builds(Result, IDS, VALUE_PAYLOADS),
    st.builds(Failure, st.none() | IDS, VALUE_PAYLOADS),
)
