"""Of a reply that is refused, the call that waits for it is still known."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.protocol.faults import ClientFault
from app.protocol.jsonrpc import read
from app.protocol.salvage import answered_id

DEEP = "[" * 65 + "]" * 65
DEEPEST = "[" * 5000 + "]" * 5000
FIRST = {
    "Python": '{{"jsonrpc":"2.0","id":{id},"result":{value}}}',
    "with spaces": ' {{ "jsonrpc" : "2.0" , "id" : {id} , "error" : {value} }} ',
    "id first": '{{"id":{id},"jsonrpc":"2.0","result":{value}}}',
}
LAST = {
    "TypeScript": '{{"result":{value},"jsonrpc":"2.0","id":{id}}}',
    "id last": '{{"jsonrpc":"2.0","error":{value},"id":{id}}}',
    "with more": '{{"jsonrpc":"2.0","id":{id},"more":1,"result":{value}}}',
}


def refused(text: bytes) -> bytes:
    with pytest.raises(ClientFault):
        read(text)
    return text


@pytest.mark.parametrize("order", FIRST.values(), ids=FIRST.keys())
@pytest.mark.parametrize("value", [DEEP, "[" * 5000 + "]" * 5000, '{"x":NaN}', '{"x":"'])
def test_the_id_is_read_where_it_stands_before_the_answer_whatever_that_is(order: str, value: str) -> None:
    assert answered_id(refused(order.format(id=17, value=value).encode())) == 17


@pytest.mark.parametrize("order", LAST.values(), ids=LAST.keys())
def test_the_id_is_read_behind_an_answer_that_is_too_deep(order: str) -> None:
    assert answered_id(refused(order.format(id=17, value=DEEP).encode())) == 17


def test_a_reply_that_is_not_utf8_has_its_id_too() -> None:
    assert answered_id(refused(b'{"jsonrpc":"2.0","id":3,"result":{"x":"\xff"}}')) == 3


@pytest.mark.parametrize(
    "text",
    [
        '{"jsonrpc":"2.0","id":5,"method":"sampling/createMessage","params":{"x":%s}}',
        '{"method":"x","params":{"x":%s},"jsonrpc":"2.0","id":5}',
        '{"jsonrpc":"2.0","id":"5","result":%s}',
        '{"jsonrpc":"2.0","id":5.0,"result":%s}',
        '{"jsonrpc":"2.0","id":null,"error":%s}',
        '{"jsonrpc":"2.0","method":"x","params":{"result":%s,"id":5}}',
        '{"jsonrpc":"2.0","result":{"x":%s,"id":5}',
        '{"jsonrpc":"2.0","result":%s,"a,\\"id\\":5}":1}',
        '[{"jsonrpc":"2.0","id":5,"result":%s}]',
        '{"result":' + "[" * 5000 + ',"jsonrpc":"2.0","id":5}%s',
        "nonsense %s",
    ],
)
def test_what_answers_no_call_of_ours_is_not_taken_for_an_answer(text: str) -> None:
    assert answered_id(refused((text % DEEP).encode())) is None


@given(st.integers(-(2**63), 2**63 - 1), st.text(), st.sampled_from(["result", "error"]), st.booleans())
def test_no_text_in_a_reply_is_taken_for_its_id(ident: int, text: str, kind: str, is_last: bool) -> None:
    envelope = {kind: {"text": text, "deep": json.loads(DEEP)}}
    members = {**envelope, "id": ident} if is_last else {"id": ident, **envelope}
    assert answered_id(refused(json.dumps({"jsonrpc": "2.0", **members}).encode())) == ident
