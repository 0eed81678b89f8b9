"""Bytes to messages and back: what is refused, and that nothing of a payload is lost."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from app.protocol import jsonrpc
from app.protocol.faults import InvalidRequest, Malformed, TimedOut
from app.protocol.jsonrpc import (
    Failure,
    Message,
    Notification,
    Request,
    Result,
    encode,
    failure,
    line,
    payload,
    read,
    read_all,
    result,
)
from tests.protocol.written import IDS, MESSAGES, METHODS, OBJECTS, SPACE, VALUES


def raw(text: str) -> Raw:
    return Raw(text.encode())


def request(ident: str) -> bytes:
    return f'{{"jsonrpc":"2.0","id":{ident},"method":"m"}}'.encode()


# What each kind of message is read as.

KINDS: dict[str, Message] = {
    '{"jsonrpc":"2.0","id":1,"method":"m"}': Request(1, "m"),
    '{"jsonrpc":"2.0","id":"1","method":"m"}': Request("1", "m"),
    '{"jsonrpc":"2.0","id":1,"method":"m","params":{}}': Request(1, "m", raw("{}")),
    '{"jsonrpc":"2.0","id":1,"method":"m","params":null}': Request(1, "m"),
    '{"jsonrpc":"2.0","method":"m"}': Notification("m"),
    '{"jsonrpc":"2.0","method":"m","params": null }': Notification("m"),
    '{"jsonrpc":"2.0","method":""}': Notification(""),
    '{"jsonrpc":"2.0","id":1,"result":{}}': Result(1, raw("{}")),
    '{"jsonrpc":"2.0","id":1,"result":null}': Result(1, raw("null")),
    '{"jsonrpc":"2.0","id":1,"result":[1.0]}': Result(1, raw("[1.0]")),
    '{"jsonrpc":"2.0","id":1,"error":{"code":1}}': Failure(1, raw('{"code":1}')),
    '{"jsonrpc":"2.0","id":null,"error":{}}': Failure(None, raw("{}")),
    '{"jsonrpc":"2.0","error":{}}': Failure(None, raw("{}")),
    '{"unknown":[1],"jsonrpc":"2.0","method":"m","more":{"id":7}}': Notification("m"),
    r'{"\u006asonrpc":"2.0","\u006dethod":"\u006d"}': Notification("m"),
    ' \r\n\t{ "jsonrpc" : "2.0" , "method" : "m" } \n': Notification("m"),
}


@pytest.mark.parametrize("text", KINDS)
def test_a_message_is_what_its_members_make_it(text: str) -> None:
    assert read(text.encode()) == KINDS[text]
    assert read_all(text.encode()) == KINDS[text]


@pytest.mark.parametrize(
    ("text", "ident"),
    [
        ("0", 0),
        ("-0", 0),
        ("-9223372036854775808", -(2**63)),
        ("18446744073709551615", 2**64 - 1),
        ('""', ""),
        ('"1"', "1"),
        (f'"{"x" * 256}"', "x" * 256),
        (f'"{"😀" * 256}"', "😀" * 256),
        (r'"\ud83d\ude00"', "😀"),
        (r'"a\u0000\n"', "a\0\n"),
    ],
)
def test_an_id_keeps_its_value_and_its_type(text: str, ident: int | str) -> None:
    message = read(request(text))
    assert message == Request(ident, "m")
    assert read(encode(message)) == message


# Who reads it after us sees what we judged.


@pytest.mark.parametrize(
    ("text", "judged"),
    [
        ('{"jsonrpc":"2.0","method":"a","method":"b"}', '{"jsonrpc":"2.0","method":"b"}'),
        ('{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}', '{"jsonrpc":"2.0","id":2,"method":"m"}'),
        ('{"jsonrpc":"1.0","jsonrpc":"2.0","method":"m"}', '{"jsonrpc":"2.0","method":"m"}'),
        (
            '{"jsonrpc":"2.0","method":"m","params":{"a":1},"params":{"a":2}}',
            '{"jsonrpc":"2.0","method":"m","params":{"a":2}}',
        ),
        ('{"jsonrpc":"2.0","method":"m","params":{},"params":null}', '{"jsonrpc":"2.0","method":"m"}'),
        ('{"jsonrpc":"2.0","method":"m","METHOD":"n","Params":{},"ID":1}', '{"jsonrpc":"2.0","method":"m"}'),
        (r'{"jsonrpc":"2.0","method":"a","\u006dethod":"b"}', '{"jsonrpc":"2.0","method":"b"}'),
        ('{"extra":1,"jsonrpc":"2.0","id":1,"result":{},"x":2}', '{"jsonrpc":"2.0","id":1,"result":{}}'),
    ],
)
def test_the_envelope_that_goes_on_has_the_members_that_were_read_and_no_others(text: str, judged: str) -> None:
    assert encode(read(text.encode())) == judged.encode()


@given(MESSAGES)
def test_a_message_written_is_read_as_itself(message: Message) -> None:
    assert read(encode(message)) == message
    assert json.loads(encode(message))["jsonrpc"] == "2.0"


@given(IDS, METHODS, OBJECTS, SPACE, SPACE)
def test_params_are_carried_byte_for_byte(ident: int | str, method: str, params: str, before: str, after: str) -> None:
    head = json.dumps({"jsonrpc": "2.0", "id": ident, "method": method})[:-1]
    message = read(f'{head},"params":{before}{params}{after}}}'.encode())
    assert message == Request(ident, method, raw(params))
    assert encode(message).endswith(b',"params":%b}' % params.encode())


@given(IDS, VALUES, SPACE, SPACE, st.sampled_from(["result", "error"]))
def test_answers_are_carried_byte_for_byte(ident: int | str, value: str, before: str, after: str, kind: str) -> None:
    text = f'{{"{kind}":{before}{value}{after},"id":{json.dumps(ident)},"jsonrpc":"2.0"}}'.encode()
    message = read(text)
    assert message == (Result if kind == "result" else Failure)(ident, raw(value))
    assert encode(message).endswith(f',"{kind}":{value}}}'.encode())


# Lines.


@given(MESSAGES, SPACE)
def test_a_line_has_no_line_break_in_it_and_says_the_same(message: Message, space: str) -> None:
    written = line(message)
    assert b"\n" not in written
    assert b"\r" not in written
    assert json.loads(written) == json.loads(encode(message))
    assert len(written) == len(encode(message))


def test_a_pretty_printed_payload_becomes_one_line() -> None:
    assert line(Result(1, raw('{\r\n  "a": "\\n",\n  "b": 1\r}'))) == (
        b'{"jsonrpc":"2.0","id":1,"result":{    "a": "\\n",   "b": 1 }}'
    )


def test_a_line_break_in_a_method_or_an_id_is_escaped() -> None:
    assert line(Request("a\n\r", "m\n\r")) == b'{"jsonrpc":"2.0","id":"a\\n\\r","method":"m\\n\\r"}'


def test_what_only_unicode_calls_a_line_break_is_payload() -> None:
    message = Result(1, raw('{"\u2028":"\u0085"}'))
    assert line(message) == encode(message)


def test_a_method_is_written_the_same_however_often_and_however_many_there_were() -> None:
    for round_ in range(2):
        for number in range(300):
            method = f'x"{number}'
            assert read(encode(Notification(method))) == Notification(method), round_
    assert len(jsonrpc._texts) <= 256  # of a client's inventions only so many are kept


GOOD = b'{"jsonrpc":"2.0","method":"m"}'

# Batches.


def test_a_batch_is_its_members_in_order() -> None:
    text = (
        ' [\n{"jsonrpc":"2.0","id":1,"method":"a"} , {"jsonrpc":"2.0","method":"b"},{"jsonrpc":"2.0","id":1,"error":7}]'
    )
    assert read_all(text.encode()) == [Request(1, "a"), Notification("b"), Failure(1, raw("7"))]


@pytest.mark.parametrize("text", [b"[]", b" [ ] ", b"\r\n[\t]\n"])
def test_an_empty_batch_is_read_as_one(text: bytes) -> None:
    assert read_all(text) == []


def test_where_one_message_is_due_a_batch_is_none() -> None:
    with pytest.raises(InvalidRequest):
        read(b"[%b]" % GOOD)


@pytest.mark.parametrize(
    "member", [b"1", b"null", b'"x"', b"[]", b"[%b]" % GOOD, b"{}", b'{"jsonrpc":"2.0","id":null,"method":"m"}']
)
def test_one_bad_member_refuses_a_batch(member: bytes) -> None:
    for batch in ([member], [GOOD, member], [member, GOOD]):
        with pytest.raises(InvalidRequest):
            read_all(b"[%b]" % b",".join(batch))


@pytest.mark.parametrize(
    "text", [b"[", b"[%b" % GOOD, b"[%b,]" % GOOD, b"[%b]]" % GOOD, b"[%b]x" % GOOD, b"[%b%b]" % (GOOD, GOOD)]
)
def test_a_broken_batch_is_malformed(text: bytes) -> None:
    with pytest.raises(Malformed):
        read_all(text)


@given(st.lists(MESSAGES, max_size=4), SPACE)
def test_a_batch_of_any_messages_is_read_as_they_are(messages: list[Message], space: str) -> None:
    comma = f"{space},{space}".encode()
    assert read_all(space.encode() + b"[%b]" % comma.join(map(encode, messages))) == messages


# What we make ourselves.


def test_a_result_of_our_own() -> None:
    assert result("a", {"b": [1, None]}) == Result("a", raw('{"b":[1,null]}'))


def test_a_fault_as_an_answer_says_who_where_and_whether_it_ran() -> None:
    fault = TimedOut("no answer", executed="unknown", details={"server": "time"})
    assert failure(7, fault) == Failure(
        7,
        payload(
            {
                "code": -31003,
                "message": "no answer",
                "data": {
                    "source": "gateway",
                    "reason": "timed_out",
                    "executed": "unknown",
                    "retryable": True,
                    "server": "time",
                },
            }
        ),
    )
    assert encode(failure(None, fault)).startswith(b'{"jsonrpc":"2.0","id":null,"error":{"code":-31003')
