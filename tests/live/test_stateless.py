"""Clients of both eras on one URL: each request is judged by itself, and codes and statuses say what it lacks."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.client import Client, called, greeting
from tests.support.gateway import Gateway, config, entry, serving, stateless_entry
from tests.support.http import ACCEPT, Reply, on_loop, request
from tests.support.stateless import CALL, LISTEN, PREFIX, VERSION, StatelessClient, said


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    servers = {"stage": entry(stopTimeout=0.5), "stateless": stateless_entry(stopTimeout=0.5)}
    content = config(servers, streams={"streamAfter": 0.1, "keepAlive": 0.1})
    with serving(content, tmp_path_factory.mktemp("stateless")) as gateway:
        yield gateway


SERVERS = pytest.mark.parametrize("server", ["stage", "stateless"])
PLAIN = {"MCP-Protocol-Version": "", "Mcp-Method": "", "Mcp-Name": ""}


async def error(reply: Reply, status: int, ident: Any = "x") -> Any:
    """The error of a refusal, which names the request that it refuses."""
    body = await reply.json()
    assert (reply.status, reply.headers["content-type"]) == (status, "application/json"), body
    assert body["id"] == ident, body
    return body["error"]


# Which era.


@SERVERS
@on_loop
async def test_clients_of_both_eras_are_served_on_one_url_at_once(gateway: Gateway, server: str) -> None:
    legacy, modern = Client(gateway, server), StatelessClient(gateway, server)
    assert await modern.tool("echo", nonce="before") == "before"
    await legacy.open()
    for n in range(10):
        assert await modern.tool("echo", nonce=f"m{n}") == f"m{n}"
        assert await legacy.tool("echo", nonce=f"l{n}") == f"l{n}"
    await (await legacy.delete()).body()
    assert await modern.tool("echo", nonce="after") == "after"


@on_loop
async def test_the_header_alone_makes_a_request_stateless(gateway: Gateway) -> None:
    message = {"jsonrpc": "2.0", "id": "x", "method": "tools/list"}
    wrong = await error(await StatelessClient(gateway).post(message), 400)
    assert (wrong["code"], wrong["data"]["reason"]) == (-32602, "meta_missing")


@on_loop
async def test_the_body_alone_makes_a_request_stateless(gateway: Gateway) -> None:
    client = StatelessClient(gateway)
    wrong = await error(await client.ask("tools/list", ident="x", headers=PLAIN), 400)
    assert wrong["code"] == -32020


@on_loop
async def test_an_enveloped_initialize_is_a_method_that_was_removed(gateway: Gateway) -> None:
    client = StatelessClient(gateway)
    reply = await client.ask("initialize", greeting()["params"], ident="x")
    assert (await error(reply, 404))["code"] == -32601
    assert "mcp-session-id" not in reply.headers


@on_loop
async def test_initialize_without_an_envelope_opens_a_session_whatever_its_headers_say(gateway: Gateway) -> None:
    client = Client(gateway)
    reply = await client.post(greeting(), MCP_Protocol_Version=VERSION, Mcp_Method="initialize")
    assert (reply.status, "mcp-session-id" in reply.headers) == (200, True)
    assert (await client.settle(reply, 0))["result"]["protocolVersion"] == "2025-11-25"


@SERVERS
@on_loop
async def test_a_session_id_means_nothing_to_a_stateless_request(gateway: Gateway, server: str) -> None:
    legacy, modern = await Client(gateway, server).open(), StatelessClient(gateway, server)
    for ident in (legacy.session or "", "no-such-session"):
        reply = await modern.ask(CALL, called("pid"), headers={"Mcp-Session-Id": ident})
        assert (reply.status, "mcp-session-id" in reply.headers) == (200, False)
        assert said(await reply.json()) != await legacy.tool("pid")


@on_loop
async def test_no_answer_of_a_stateless_request_has_a_session_id(gateway: Gateway) -> None:
    client = StatelessClient(gateway)
    asked: list[tuple[str, dict[str, Any], dict[str, str]]] = [
        ("server/discover", {}, {}),
        (CALL, called("sleep", seconds=0.2), {}),
        (CALL, called("ask_form"), {}),
        (CALL, called("no such tool"), {}),
        ("future/none", {}, {}),
        ("tools/list", {}, {"Mcp-Method": ""}),
        (LISTEN, {"notifications": {}}, {}),
    ]
    for method, params, headers in asked:
        reply = await client.ask(method, params, headers=headers)
        assert "mcp-session-id" not in reply.headers
        reply.drop()


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@on_loop
async def test_there_is_nothing_to_get_or_delete_without_sessions(gateway: Gateway, method: str) -> None:
    legacy = await Client(gateway).open()
    headers = {"MCP-Protocol-Version": VERSION, "Mcp-Session-Id": legacy.session or "", "Accept": ACCEPT}
    reply = await request(gateway.port, method, legacy.path, headers)
    assert (reply.status, reply.headers["allow"]) == (405, "POST, OPTIONS")
    assert await legacy.status() == 200


# What is admitted.


@on_loop
async def test_a_batch_and_a_response_are_refused_and_a_notification_is_taken(gateway: Gateway) -> None:
    client = StatelessClient(gateway)
    batch = await client.post([client.message("tools/list", ident="x")])
    assert (await error(batch, 400, None))["code"] == -32600
    response = await client.post({"jsonrpc": "2.0", "id": "x", "result": {}})
    assert (await error(response, 400, None))["code"] == -32600
    for method in ("notifications/cancelled", "notifications/initialized", "notifications/unheard-of"):
        reply = await client.post({"jsonrpc": "2.0", "method": method, "params": {"requestId": 1}})
        assert (reply.status, await reply.body()) == (202, b"")


def _without(key: str) -> dict[str, Any]:
    message = StatelessClient(0).message("tools/list", ident="x")
    del message["params"]["_meta"][PREFIX + key]
    return message


def _with(key: str, value: object) -> dict[str, Any]:
    message = StatelessClient(0).message("tools/list", ident="x")
    message["params"]["_meta"][PREFIX + key] = value
    return message


LIST = _with("protocolVersion", VERSION)
ECHO = StatelessClient(0).message(CALL, called("echo"), "x")
READ = StatelessClient(0).message("resources/read", {"uri": "test://1"}, "x")

REFUSED: dict[str, tuple[dict[str, Any], dict[str, str], int, int]] = {
    "no protocol version": (_without("protocolVersion"), {}, 400, -32602),
    "a protocol version that is no text": (_with("protocolVersion", 1), {}, 400, -32602),
    "no capabilities": (_without("clientCapabilities"), {}, 400, -32602),
    "capabilities that are no object": (_with("clientCapabilities", []), {}, 400, -32602),
    "a log level that there is not": (_with("logLevel", "loud"), {}, 400, -32602),
    "meta before mirrors": (_without("clientCapabilities"), {"Mcp-Method": "other"}, 400, -32602),
    "no version header": (LIST, {"MCP-Protocol-Version": ""}, 400, -32020),
    "another version header": (LIST, {"MCP-Protocol-Version": "2025-11-25"}, 400, -32020),
    "no method header": (LIST, {"Mcp-Method": ""}, 400, -32020),
    "another method header": (LIST, {"Mcp-Method": "tools/call"}, 400, -32020),
    "a method header in another case": (LIST, {"Mcp-Method": "Tools/List"}, 400, -32020),
    "no name header": (ECHO, {"Mcp-Name": ""}, 400, -32020),
    "another name header": (ECHO, {"Mcp-Name": "pid"}, 400, -32020),
    "a method header that is not ASCII": (LIST, {"Mcp-Method": "tools/l\xefst"}, 400, -32020),
    "a name header that is not ASCII": (ECHO, {"Mcp-Name": "\xe9cho"}, 400, -32020),
    "another uri": (READ, {"Mcp-Name": "test://2"}, 400, -32020),
    "a revision that there is not": (
        _with("protocolVersion", "2030-01-01"),
        {"MCP-Protocol-Version": "2030-01-01"},
        400,
        -32022,
    ),
    "a revision with a handshake": (
        _with("protocolVersion", "2025-11-25"),
        {"MCP-Protocol-Version": "2025-11-25"},
        400,
        -32022,
    ),
    "a removed method": (StatelessClient(0).message("ping", ident="x"), {}, 404, -32601),
    "a method of nobody's": (StatelessClient(0).message("future/none", ident="x"), {}, 404, -32601),
}


@pytest.mark.parametrize("kind", REFUSED)
@SERVERS
@on_loop
async def test_what_is_refused_says_why_by_code_and_status(gateway: Gateway, server: str, kind: str) -> None:
    message, headers, status, code = REFUSED[kind]
    wrong = await error(await StatelessClient(gateway, server).post(message, headers), status)
    assert wrong["code"] == code
    if code == -32022:
        assert VERSION in wrong["data"]["supported"]
        assert wrong["data"]["requested"] == headers["MCP-Protocol-Version"]


@SERVERS
@on_loop
async def test_names_that_no_header_can_say_are_said_in_base64(gateway: Gateway, server: str) -> None:
    reply = await StatelessClient(gateway, server).ask(
        "resources/read", {"uri": "test://ü"}, headers={"Mcp-Name": "=?base64?dGVzdDovL8O8?="}
    )
    assert (await reply.json())["result"]["contents"][0]["uri"] == "test://ü"


# Which form the answer has.


@SERVERS
@on_loop
async def test_an_answer_that_comes_first_is_json_and_a_slow_one_a_stream_kept_alive(
    gateway: Gateway, server: str
) -> None:
    client = StatelessClient(gateway, server)
    await client.tool("pid")
    quick = await client.ask(CALL, called("echo", nonce="n"), ident="q")
    assert (quick.headers["content-type"], (await quick.json())["id"]) == ("application/json", "q")
    slow = await client.ask(CALL, called("sleep", seconds=0.5), ident="s")
    assert slow.headers["x-accel-buffering"] == "no"
    events = [event async for event in slow.events()]
    assert len([event for event in events if event.comment is not None]) >= 3
    assert [event.message["id"] for event in events if event.comment is None] == ["s"]
    assert all(event.id is None for event in events)


@SERVERS
@on_loop
async def test_what_comes_before_the_answer_makes_it_a_stream_at_once(gateway: Gateway, server: str) -> None:
    client = StatelessClient(gateway, server)
    reply = await client.ask(CALL, called("progress", n=3), ident="p", progressToken="mine")
    messages = [message async for message in reply.messages()]
    assert [message["params"]["progress"] for message in messages[:-1]] == [1, 2, 3]
    assert {message["params"]["progressToken"] for message in messages[:-1]} == {"mine"}
    assert (messages[-1]["id"], "result" in messages[-1]) == ("p", True)


@pytest.mark.parametrize(
    ("accept", "status", "kind"),
    [
        ("", 200, "application/json"),
        ("*/*", 200, "application/json"),
        ("application/json", 200, "application/json"),
        ("text/event-stream", 200, "text/event-stream"),
        ("text/html", 406, "application/json"),
    ],
)
@SERVERS
@on_loop
async def test_accept_is_read_leniently(gateway: Gateway, server: str, accept: str, status: int, kind: str) -> None:
    reply = await StatelessClient(gateway, server).ask("server/discover", headers={"Accept": accept})
    assert (reply.status, reply.headers["content-type"]) == (status, kind)
    await reply.body()


@SERVERS
@on_loop
async def test_who_takes_json_only_gets_the_answer_alone_however_long_it_takes(gateway: Gateway, server: str) -> None:
    client = StatelessClient(gateway, server)
    reply = await client.ask(
        CALL,
        called("progress", n=3, interval=0.1),
        ident="p",
        headers={"Accept": "application/json"},
        progressToken=1,
        logLevel="debug",
    )
    assert (await reply.json())["id"] == "p"
    asked = await client.ask(
        CALL, called("interview", rounds=[["form"]]), ident="a", headers={"Accept": "application/json"}
    )
    assert (await asked.json())["result"]["resultType"] == "input_required"


@SERVERS
@on_loop
async def test_a_subscription_needs_a_stream(gateway: Gateway, server: str) -> None:
    reply = await StatelessClient(gateway, server).ask(
        LISTEN, {"notifications": {"toolsListChanged": True}}, headers={"Accept": "application/json"}
    )
    assert reply.status == 406
    await reply.body()


@SERVERS
@on_loop
async def test_a_server_is_discovered_with_every_revision_that_is_served(gateway: Gateway, server: str) -> None:
    found = (await StatelessClient(gateway, server).call("server/discover"))["result"]
    assert found["resultType"] == "complete"
    assert VERSION in found["supportedVersions"]
    assert found["capabilities"]["resources"] == {"subscribe": True, "listChanged": True}
    assert found["_meta"][PREFIX + "serverInfo"]["name"] == ("stage" if server == "stage" else "stateless stage")
    assert (found["ttlMs"], found.get("cacheScope")) == ((0, "private") if server == "stage" else (5, None))


TWICE = {
    "a method": (LIST, "Mcp-Method", "tools/list"),
    "a name": (ECHO, "Mcp-Name", "echo"),
    "a name that says both": (StatelessClient(0).message(CALL, called("echo, echo"), "x"), "Mcp-Name", "echo"),
}


@pytest.mark.parametrize("kind", TWICE)
@SERVERS
@on_loop
async def test_a_mirror_that_is_there_twice_is_no_mirror(gateway: Gateway, server: str, kind: str) -> None:
    message, name, value = TWICE[kind]
    client = StatelessClient(gateway, server)
    fields = [*(client.headers(message) | {name: value}).items(), (name, value)]
    reply = await request(gateway.port, "POST", client.path, fields, json.dumps(message).encode())
    wrong = await error(reply, 400)
    assert wrong["code"] == -32020
