"""The little that is read of a payload, and that what is rewritten there leaves the rest alone."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.json import Decoder

from app.protocol import methods
from app.protocol.jsonrpc import Notification, Request, RequestId
from tests.protocol.written import IDS, SCALARS, SPACE, VALUES, objects

FIELDS: Decoder[dict[str, Raw]] = Decoder(dict[str, Raw])
UNREADABLE = ["null", "[]", "1", '"x"', "{}", '{"_meta":1}', '{"id":1}']


def raw(text: str) -> Raw:
    return Raw(text.encode())


def asking(params: str | None) -> Request:
    return Request(1, "m", None if params is None else raw(params))


def telling(params: str | None) -> Notification:
    return Notification("m", None if params is None else raw(params))


def with_token(token: str) -> Request:
    return asking(f'{{"_meta":{{"progressToken":{token}}}}}')


# What is read.


@pytest.mark.parametrize(
    ("written", "token"),
    [("0", 0), ("-1", -1), ('""', ""), ('"1"', "1"), ("1", 1), (str(2**70), 2**70), ('"😀"', "😀")],
)
def test_a_progress_token_is_a_string_or_an_integer(written: str, token: RequestId) -> None:
    assert methods.progress_token(with_token(written)) == token
    assert methods.reported_token(telling(f'{{"progressToken":{written},"progress":1}}')) == token


@pytest.mark.parametrize("written", ["null", "true", "1.5", "1.0", "1e5", "[]", "{}", "1" * 5000])
def test_anything_else_is_no_progress_token(written: str) -> None:
    assert methods.progress_token(with_token(written)) is None
    assert methods.reported_token(telling(f'{{"progressToken":{written}}}')) is None


@pytest.mark.parametrize("params", [None, "{}", '{"_meta":null}', '{"_meta":[]}', '{"_meta":1}', '{"_meta":{}}'])
def test_without_a_token_there_is_none(params: str | None) -> None:
    assert methods.progress_token(asking(params)) is None


@pytest.mark.parametrize(
    "params", ['{"_META":{"progressToken":1}}', '{"_meta":{"progresstoken":1}}', '{"progressToken":1}']
)
def test_a_token_under_another_name_is_none(params: str) -> None:
    assert methods.progress_token(asking(params)) is None


@pytest.mark.parametrize("ident", [0, -1, "", "1", 2**64 - 1])
def test_a_cancellation_names_a_request_with_its_type(ident: RequestId) -> None:
    named = methods.cancelled_id(telling(f'{{"requestId":{json.dumps(ident)}}}'))
    assert (named, type(named)) == (ident, type(ident))


@pytest.mark.parametrize("params", [None, *UNREADABLE, '{"requestId":null}', '{"requestId":true}', '{"requestId":1.0}'])
def test_an_unreadable_cancellation_names_nothing(params: str | None) -> None:
    assert methods.cancelled_id(telling(params)) is None


def test_a_greeting_is_a_version_and_what_the_client_can_do() -> None:
    said = methods.greeting(asking('{"protocolVersion":"2025-06-18","capabilities":{"roots":{},"x":1},"clientInfo":7}'))
    assert said == methods.Greeting("2025-06-18", {"roots": {}, "x": 1})


@pytest.mark.parametrize(
    "params", [None, *UNREADABLE, '{"protocolVersion":1}', '{"capabilities":[]}', '{"capabilities":null}']
)
def test_an_unreadable_greeting_declares_nothing(params: str | None) -> None:
    assert methods.greeting(asking(params)) == methods.Greeting()


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ('{"protocolVersion":"2025-06-18"}', "2025-06-18"),
        *((text, "") for text in [*UNREADABLE, '{"protocolVersion":1}']),
    ],
)
def test_the_greeted_version_is_the_servers_or_nothing(answer: str, version: str) -> None:
    assert methods.greeted_version(raw(answer)) == version


@pytest.mark.parametrize(
    ("params", "uri"),
    [(None, ""), ('{"uri":"file:///a"}', "file:///a"), ('{"uri":1}', ""), ("[]", ""), ('{"URI":"a"}', "")],
)
def test_a_uri_is_a_string_or_nothing(params: str | None, uri: str) -> None:
    assert methods.resource_uri(None if params is None else raw(params)) == uri


@pytest.mark.parametrize(
    ("params", "level"),
    [(None, ""), ('{"level":"info"}', "info"), ('{"level":1}', ""), ("[]", ""), ('{"Level":"info"}', "")],
)
def test_a_level_is_a_string_or_nothing(params: str | None, level: str) -> None:
    assert methods.log_level(None if params is None else raw(params)) == level


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ('{"code":-32601,"message":"x"}', -32601),
        ("{}", 0),
        ("null", 0),
        ('"x"', 0),
        ('{"code":"1"}', 0),
        ('{"code":1.5}', 0),
    ],
)
def test_an_error_code_is_an_integer_or_nothing(error: str, code: int) -> None:
    assert methods.error_code(raw(error)) == code


@pytest.mark.parametrize(
    ("params", "names"),
    [
        (f'{{"_meta":{{"{methods.VERSION_KEY}":"2026-07-28"}}}}', True),
        (f'{{"_meta":{{"{methods.VERSION_KEY}":null}}}}', True),
        (f'{{"_meta":{{"x":"{methods.VERSION_KEY}"}}}}', False),
        (f'{{"{methods.VERSION_KEY}":"2026-07-28"}}', False),
        ('{"_meta":{}}', False),
        ('{"_meta":[]}', False),
        ('{"_meta":null}', False),
        ("{}", False),
        (None, False),
    ],
)
def test_a_request_names_its_version_in_its_meta_and_nowhere_else(params: str | None, names: bool) -> None:
    assert methods.names_version(asking(params)) is names


# What is written.


def test_a_cancellation_of_ours() -> None:
    assert methods.cancellation(7, "late") == Notification(
        "notifications/cancelled", raw('{"requestId":7,"reason":"late"}')
    )


def test_a_replaced_token_leaves_every_other_byte_of_a_value_alone() -> None:
    asked = '{"z":1.0, "_meta" : {"b":1e5,"progressToken":"t","a":[ 1.50 ]},"a":{"y":18446744073709551616}}'
    told = '{"z":1.0,"_meta":{"b":1e5,"progressToken":101,"a":[ 1.50 ]},"a":{"y":18446744073709551616}}'
    assert methods.with_progress_token(asking(asked), 101) == asking(told)


def test_a_replaced_field_leaves_every_other_byte_of_a_value_alone() -> None:
    said = '{"progress":1.0,"progressToken":101,"total":1e5,"x":{"a": -0}}'
    told = '{"progress":1.0,"progressToken":"t","total":1e5,"x":{"a": -0}}'
    assert methods.with_field(telling(said), "progressToken", "t") == telling(told)


def test_a_field_that_was_not_there_is_added() -> None:
    assert methods.with_field(telling(None), "requestId", 7) == telling('{"requestId":7}')


def test_of_a_member_that_was_there_twice_only_ours_goes_on() -> None:
    asked = '{"_meta":{"progressToken":1},"_meta":{"progressToken":2,"progressToken":3}}'
    assert methods.progress_token(asking(asked)) == 3
    assert methods.with_progress_token(asking(asked), 101) == asking('{"_meta":{"progressToken":101}}')
    twice = telling('{"requestId":1,"REQUESTID":3,"requestId":2,"request\u0131d":4}')
    assert methods.with_field(twice, "requestId", 101) == telling('{"requestId":101,"request\u0131d":4}')


@pytest.mark.parametrize("token", [2**64 - 1, -(2**63), 2**70, "😀", '"\n'])
def test_whatever_could_be_read_as_a_token_can_be_written(token: RequestId) -> None:
    written = methods.with_field(telling('{"progressToken":1}'), "progressToken", token)
    assert methods.reported_token(written) == token


def test_the_greeting_under_another_version_is_otherwise_the_same() -> None:
    answer = '{"protocolVersion":"2025-11-25","capabilities":{"x":1.0},"serverInfo":{ "name":"a"},"future":1e5}'
    told = '{"protocolVersion":"2025-03-26","capabilities":{"x":1.0},"serverInfo":{ "name":"a"},"future":1e5}'
    assert methods.with_version(raw(answer), "2025-03-26") == raw(told)


@pytest.mark.parametrize("answer", ["null", "7", "[]", '"x"'])
def test_an_answer_to_initialize_that_is_no_object_goes_on_as_it_is(answer: str) -> None:
    assert methods.with_version(raw(answer), "2025-03-26") == raw(answer)


NAMES = st.one_of(
    st.sampled_from(
        ['"a"', '"Z"', r'"\u0062"', '"progress"', '"é"', '"_META"', '"requestid"', '"progresstoken"', '""']
    ),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4).map(json.dumps),
)


@st.composite
def with_member(draw: st.DrawFn, name: str, value: st.SearchStrategy[str]) -> str:
    """An object's text with that member somewhere among others."""
    rest = draw(objects(VALUES, NAMES))[1:-1]
    members = [rest] if rest.strip() else []
    members.insert(draw(st.integers(0, len(members))), f'{draw(SPACE)}"{name}"{draw(SPACE)}:{draw(SPACE)}{draw(value)}')
    return "{" + ",".join(members) + "}"


@given(with_member("requestId", SCALARS), IDS)
def test_replacing_a_field_touches_nothing_else(params: str, value: int | str) -> None:
    before = {name: told for name, told in FIELDS.decode(params).items() if name != "requestid"}
    told = methods.with_field(telling(params), "requestId", value)
    assert told.params is not None
    after = FIELDS.decode(told.params)
    assert list(after) == list(before)
    assert json.loads(bytes(after.pop("requestId"))) == value
    del before["requestId"]
    assert after == before


@given(with_member("_meta", with_member("progressToken", IDS.map(json.dumps))), IDS)
def test_replacing_the_progress_token_touches_nothing_else(params: str, token: int | str) -> None:
    asked = asking(params)
    before = FIELDS.decode(params)
    meta_before = FIELDS.decode(before["_meta"])
    told = methods.with_progress_token(asked, token)
    assert methods.progress_token(told) == token
    assert (told.id, told.method) == (asked.id, asked.method)
    assert told.params is not None
    after = FIELDS.decode(told.params)
    meta_after = FIELDS.decode(after["_meta"])
    assert (list(after), list(meta_after)) == (list(before), list(meta_before))
    for fields, own in (
        (before, "_meta"),
        (after, "_meta"),
        (meta_before, "progressToken"),
        (meta_after, "progressToken"),
    ):
        del fields[own]
    assert (after, meta_after) == (before, meta_before)


READERS: list[Callable[[str], object]] = [
    lambda text: methods.progress_token(asking(text)),
    lambda text: methods.names_version(asking(text)),
    lambda text: methods.greeting(asking(text)),
    lambda text: methods.cancelled_id(telling(text)),
    lambda text: methods.reported_token(telling(text)),
    lambda text: methods.greeted_version(raw(text)),
    lambda text: methods.with_version(raw(text), "2025-03-26"),
    lambda text: methods.resource_uri(raw(text)),
    lambda text: methods.log_level(raw(text)),
    lambda text: methods.error_code(raw(text)),
]
READ_NAMES = st.sampled_from(
    ['"_meta"', '"progressToken"', '"requestId"', '"protocolVersion"', '"capabilities"', '"uri"', '"level"', '"code"']
)


@given(st.one_of(VALUES, objects(st.one_of(VALUES, objects(VALUES, READ_NAMES)), READ_NAMES)))
def test_no_payload_makes_a_reader_stumble(text: str) -> None:
    for read in READERS:
        read(text)
