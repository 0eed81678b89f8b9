"""What the wire takes for granted of uvicorn: an upgrade that changes it fails here, by name."""

import inspect
from collections.abc import Coroutine
from types import FunctionType
from unittest.mock import Mock

import pytest
import uvicorn
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from app.edge.wire_cycle import Cycle

PROTOCOL_METHODS = {
    "connection_made": ["transport"],
    "connection_lost": ["exc"],
    "data_received": ["data"],
    "eof_received": [],
    "pause_writing": [],
    "resume_writing": [],
    "shutdown": [],
    "on_message_begin": [],
    "on_url": ["url"],
    "on_header": ["name", "value"],
    "on_headers_complete": [],
    "on_body": ["body"],
    "on_message_complete": [],
    "on_response_complete": [],
    "_should_upgrade": [],
}
PROTOCOL_ATTRIBUTES = [
    "access_logger",
    "app",
    "app_state",
    "client",
    "config",
    "connections",
    "cycle",
    "flow",
    "headers",
    "logger",
    "loop",
    "parser",
    "pipeline",
    "root_path",
    "scheme",
    "server",
    "server_state",
    "tasks",
    "timeout_keep_alive",
    "transport",
]
CYCLE_ATTRIBUTES = [
    "body",
    "chunked_encoding",
    "disconnected",
    "keep_alive",
    "message_event",
    "more_body",
    "response_complete",
    "response_started",
    "waiting_for_100_continue",
]


@pytest.mark.parametrize("name", PROTOCOL_METHODS)
def test_the_protocol_has_the_methods_that_ours_replaces_or_calls(name: str) -> None:
    assert list(inspect.signature(getattr(HttpToolsProtocol, name)).parameters) == ["self", *PROTOCOL_METHODS[name]]


async def app(scope: object, receive: object, send: object) -> None: ...


@pytest.mark.parametrize("name", PROTOCOL_ATTRIBUTES)
def test_the_protocol_has_the_attributes_that_ours_uses(name: str) -> None:
    config = uvicorn.Config(app, log_config=None)
    protocol = HttpToolsProtocol(config, ServerState(), {}, _Loop())  # type: ignore[arg-type]  # it is only kept
    assert hasattr(protocol, name)


@pytest.fixture
def cycle() -> RequestResponseCycle:
    names = list(inspect.signature(RequestResponseCycle.__init__).parameters)[1:]
    return RequestResponseCycle(**dict.fromkeys(names))  # type: ignore[arg-type]  # they are only kept


@pytest.mark.parametrize("name", CYCLE_ATTRIBUTES)
def test_the_cycle_has_the_attributes_that_ours_uses(cycle: RequestResponseCycle, name: str) -> None:
    assert hasattr(cycle, name)


@pytest.mark.parametrize("method", [RequestResponseCycle.run_asgi, RequestResponseCycle.receive])
def test_ours_has_what_the_methods_use_that_it_keeps(cycle: RequestResponseCycle, method: FunctionType) -> None:
    """It is made without uvicorn's own constructor."""
    used = {name for name in method.__code__.co_names if hasattr(cycle, name)}
    ours = Cycle(Mock(run=Coroutine.close))
    ours.serve(app)
    assert [name for name in used - {"on_response"} if not hasattr(ours, name)] == []


@pytest.mark.parametrize("name", ["run_asgi", "receive", "send", "send_500_response"])
def test_the_cycle_has_the_methods_that_ours_replaces_or_calls(name: str) -> None:
    assert inspect.iscoroutinefunction(getattr(RequestResponseCycle, name))


@pytest.mark.parametrize("name", ["drain", "pause_reading", "resume_reading", "pause_writing", "resume_writing"])
def test_the_flow_control_has_the_methods_that_ours_calls(name: str) -> None:
    assert callable(getattr(FlowControl, name))


def test_the_flow_control_says_whether_it_reads_and_writes() -> None:
    flow = FlowControl(None)  # type: ignore[arg-type]  # it is only kept
    assert (flow.read_paused, flow.write_paused) == (False, False)


def test_the_server_counts_requests_and_knows_default_headers() -> None:
    state = ServerState()
    assert (state.total_requests, state.default_headers) == (0, [])


def test_the_status_lines_are_ready_made() -> None:
    assert STATUS_LINE[200] == b"HTTP/1.1 200 OK\r\n"


def test_the_parser_names_the_cause_that_a_callback_raised() -> None:
    class Callbacks:
        def on_headers_complete(self) -> None:
            raise LookupError("a cause")

    with pytest.raises(HttpParserError) as caught:
        HttpRequestParser(Callbacks()).feed_data(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert isinstance(caught.value.__context__, LookupError)


def test_the_parser_tells_where_an_offer_to_upgrade_ends() -> None:
    offer = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"
    with pytest.raises(HttpParserUpgrade) as caught:
        HttpRequestParser(object()).feed_data(offer + b"rest")
    assert caught.value.args == (len(offer),)


class _Loop: ...
