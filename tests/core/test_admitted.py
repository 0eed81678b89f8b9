"""A request of which everything was read at the border goes to a child as one that is read where it is needed."""

import json
from itertools import count
from typing import Any

import pytest
from msgspec import Raw

from app.core.admission import admit
from app.core.effects import ToUpstream
from app.core.exchange import Exchange
from app.core.interview import Interview
from app.protocol import stateless
from app.protocol.jsonrpc import Request, RequestId
from tests.core.exchanges import CAPABILITIES, LIMITS, VERSION

HEADERS = {b"mcp-protocol-version": b"2026-07-28", b"mcp-method": b"tools/call", b"mcp-name": b"t"}
CARRIED = f'"{VERSION}":"2026-07-28","{CAPABILITIES}":{{}}'

PARAMS = {
    "nothing more": f'{{"name":"t","_meta":{{{CARRIED}}}}}',
    "arguments": f'{{"_meta":{{{CARRIED}}}, "name":"t", "arguments":{{"_meta":1,"a":[1.50]}}}}',
    "a token": f'{{"name":"t","_meta":{{{CARRIED},"progressToken":"p"}}}}',
    "a token of another kind": f'{{"name":"t","_meta":{{{CARRIED},"progressToken":[1]}}}}',
    "a token in other letters": f'{{"name":"t","_meta":{{{CARRIED},"ProgressToken":7}}}}',
    "a trace": f'{{"name":"t","_meta":{{{CARRIED},"traceparent":"00-1-2-01"}}}}',
    "other letters": f'{{"name":"t","_meta":{{{CARRIED}}},"_META":{{"progressToken":7}}}}',
    "twice": f'{{"name":"x","_meta":{{"progressToken":7}},"name":"t","_meta":{{{CARRIED},"k":1,"k":2}}}}',
    "a retry": f'{{"name":"t","inputResponses":{{"q":{{}}}},"requestState":"s","_meta":{{{CARRIED}}}}}',
    "more than is kept": f'{{"name":"t","_meta":{{{CARRIED},"k":"{"x" * 5000}"}}}}',
}


def call(params: str) -> Request:
    return Request(1, "tools/call", Raw(params.encode()))


def sent(core: Exchange) -> tuple[Any, RequestId | None]:
    """What the child gets, and the client's token."""
    [effect] = core.begin(1, 0.0, can_stream=True)
    assert isinstance(effect, ToUpstream)
    assert isinstance(effect.message, Request)
    assert effect.message.id == 100
    return json.loads(bytes(effect.message.params or b"null")), core._token


@pytest.mark.parametrize("params", PARAMS.values(), ids=PARAMS)
def test_a_child_of_the_same_era_gets_the_same(params: str) -> None:
    asked = call(params)
    assert sent(Exchange(admit(asked, HEADERS), LIMITS, count(100))) == sent(Exchange(asked, LIMITS, count(100)))


@pytest.mark.parametrize("params", PARAMS.values(), ids=PARAMS)
def test_a_child_of_the_handshake_gets_the_same(params: str) -> None:
    asked, carried = call(params), stateless.envelope(call(params))
    told, token = sent(Interview(admit(asked, HEADERS), carried, LIMITS, count(100), seal=str))
    assert (told, token) == sent(Interview(asked, carried, LIMITS, count(100), seal=str))
    assert told.keys() <= {"name", "arguments", "_meta"}


@pytest.mark.parametrize("params", PARAMS.values(), ids=PARAMS)
def test_its_answers_and_what_it_says_of_its_client_are_the_same(params: str) -> None:
    asked = call(params)
    admitted = admit(asked, HEADERS)
    assert stateless.answers(admitted) == stateless.answers(asked)
    assert admitted.meta.carried == stateless.envelope(asked)


def test_clients_that_declare_the_same_are_told_apart_by_nothing() -> None:
    def told(capabilities: str) -> bytes:
        meta = f'{{"{VERSION}":"2026-07-28","{CAPABILITIES}":{capabilities}}}'
        return stateless.read_meta({"_meta": Raw(meta.encode())}).told

    assert told('{"roots":{},"sampling":{}}') == told('{"sampling":{}, "roots":{}}')
    assert told('{"roots":{}}') != told('{"sampling":{}}')
