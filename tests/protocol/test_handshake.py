"""A stateless server's results and errors as clients of the handshake revisions know them."""

import pytest
from msgspec import Raw

from app.protocol.handshake import known_error, known_result
from app.protocol.jsonrpc import Request, payload

CALL = Request(1, "tools/call", payload({"name": "t"}))
LIST = Request(1, "tools/list")
READ = Request(1, "resources/read", payload({"uri": "a"}))


def raw(text: str) -> Raw:
    return Raw(text.encode())


def test_a_schema_of_an_object_stays_and_any_other_goes() -> None:
    told = known_result(
        LIST,
        raw(
            '{"resultType":"complete","ttlMs":1,"nextCursor":"c","tools":[{"name":"a","outputSchema":{"type":"object"}},'
            '{"name":"b","outputSchema":{"type":"array"},"x":1.50},{"name":"c","outputSchema":{"type":["object"]}},'
            '{"name":"d","outputSchema":{"oneOf":[]}},{"name":"e"},{"name":"f","outputSchema":true}]}'
        ),
    )
    assert told == raw(
        '{"nextCursor":"c","tools":[{"name":"a","outputSchema":{"type":"object"}},{"name":"b","x":1.50},'
        '{"name":"c"},{"name":"d"},{"name":"e"},{"name":"f"}]}'
    )


@pytest.mark.parametrize(
    "body", ['{"x":1}', '{"tools":7}', '{"tools":[7]}', '{"content":7,"structuredContent":[]}', "[]", "7"]
)
@pytest.mark.parametrize("request_", [CALL, LIST])
def test_what_is_not_of_the_shape_that_we_know_passes(request_: Request, body: str) -> None:
    assert known_result(request_, raw(body)) == raw(body)


def test_structured_content_that_is_an_object_stays() -> None:
    body = raw('{"content":[],"structuredContent":{"n":1.50}}')
    assert known_result(CALL, body) == body


@pytest.mark.parametrize("value", ['[1.50,"ä"]', '"text"', "7", "null", "true"])
def test_structured_content_of_another_kind_is_there_as_text(value: str) -> None:
    told = known_result(CALL, raw(f'{{"content":[{{"type":"image"}}],"structuredContent": {value} }}'))
    text = payload({"type": "text", "text": value})
    assert told == raw(f'{{"content":[{{"type":"image"}},{bytes(text).decode()}]}}')


def test_structured_content_that_the_server_said_as_text_too_is_not_said_again() -> None:
    told = known_result(CALL, raw('{"content":[{"type":"text","text":"7"}],"structuredContent":7,"isError":false}'))
    assert told == raw('{"content":[{"type":"text","text":"7"}],"isError":false}')


def test_structured_content_means_something_in_the_result_of_a_tool_only() -> None:
    body = raw('{"structuredContent":7,"tools":[{"name":"b","outputSchema":{"type":"array"}}]}')
    assert known_result(READ, body) == body


@pytest.mark.parametrize(
    "error",
    [
        '{"code":-32602,"message":"m"}',
        '{"code":-32602,"message":"m","data":{"uri":"b"}}',
        '{"code":-32602,"message":"m","data":{"uri":7}}',
        '{"code":-32602,"message":"m","data":"a"}',
        '{"code":-32603,"message":"m","data":{"uri":"a"}}',
    ],
)
def test_an_error_that_does_not_say_that_the_resource_is_missing_stays_as_it_is(error: str) -> None:
    assert known_error(READ, raw(error)) == raw(error)


def test_a_missing_resource_has_a_code_of_its_own_where_it_is_read() -> None:
    error = raw('{"code":-32602,"message":"m","data":{"uri":"a","n":1.50}}')
    assert known_error(READ, error) == raw('{"code":-32002,"message":"m","data":{"uri":"a","n":1.50}}')
    assert known_error(CALL, error) == error
    assert known_error(Request(1, "resources/read"), raw('{"code":-32602,"data":{"uri":""}}')) == raw(
        '{"code":-32602,"data":{"uri":""}}'
    )
