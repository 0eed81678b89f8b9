"""A policy, over every transport and in both eras: what one may not use one does not see, and its server never hears
of it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import Client, called, greeting
from tests.support.gateway import Gateway, serving
from tests.support.http import on_loop, request
from tests.support.policies import BUSY, GUEST, MEEK, OWNER, READER, WRITER, Asking, asking, content, heard
from tests.support.sse_client import SseClient
from tests.support.stateless import StatelessClient


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("policy")


@pytest.fixture(scope="module")
def gateway(folder: Path) -> Iterator[Gateway]:
    with serving(content(folder), folder) as gateway:
        yield gateway


WAYS = pytest.mark.parametrize(
    "way",
    [f"{kind} {server}" for kind in ("session", "implicit", "batch", "sse", "stateless") for server in ("old", "new")],
)


def names(answer: Any, key: str, name: str) -> list[str]:
    assert answer["result"]["nextCursor"] == "more", answer
    return [each[name] for each in answer["result"][key]]


# What is seen.


@WAYS
@on_loop
async def test_lists_hold_what_may_be_used(gateway: Gateway, way: str) -> None:
    reader, writer = await asking(way, gateway, READER), await asking(way, gateway, WRITER)
    assert names(await reader.call("tools/list"), "tools", "name") == ["look"]
    assert names(await reader.call("prompts/list"), "prompts", "name") == ["open"]
    assert names(await reader.call("resources/list"), "resources", "uri") == ["memo://open"]
    templates = await reader.call("resources/templates/list")
    assert names(templates, "resourceTemplates", "uriTemplate") == ["memo://open/{x}"]
    assert names(await writer.call("tools/list"), "tools", "name") == ["look", "edit", "plain"]
    assert names(await writer.call("resources/list"), "resources", "uri") == ["memo://open", "memo://secret"]


@WAYS
@on_loop
async def test_later_pages_are_sifted_too(gateway: Gateway, way: str) -> None:
    reader = await asking(way, gateway, READER)
    page = await reader.call("tools/list", {"cursor": "more"})
    assert [tool["name"] for tool in page["result"]["tools"]] == ["look"]
    assert "nextCursor" not in page["result"]


@WAYS
@on_loop
async def test_only_tools_that_say_that_they_only_read_are_there_for_who_may_only_read(
    gateway: Gateway, folder: Path, way: str
) -> None:
    meek = await asking(way, gateway, MEEK)
    assert names(await meek.call("tools/list"), "tools", "name") == ["look"]
    assert "result" in await meek.call("tools/call", called("look"))
    for name in ("edit", "plain", "delete_all", "unlisted"):
        answer = await meek.call("tools/call", called(name, tried=f"{way} {name}"))
        assert answer["error"]["code"] == -32602, answer
        assert f"{way} {name}" not in heard(folder, way)


# What is done.


@WAYS
@on_loop
async def test_what_is_allowed_is_served(gateway: Gateway, folder: Path, way: str) -> None:
    reader = await asking(way, gateway, READER)
    assert "result" in await reader.call("tools/call", called("look"))
    assert "result" in await reader.call("prompts/get", {"name": "open"})
    assert "result" in await reader.call("resources/read", {"uri": "memo://open"})
    assert "result" in await reader.call("completion/complete", {"ref": {"type": "ref/prompt", "name": "open"}})


DENIED = [
    ("tools/call", called("delete_all", tried="SECRET")),
    ("tools/call", {"name": 7, "arguments": {"tried": "SECRET"}}),
    ("completion/complete", {"ref": {"type": "ref/other", "name": "SECRET"}}),
    ("completion/complete", {"ref": "SECRET"}),
]


@pytest.mark.parametrize(("method", "params"), DENIED)
@WAYS
@on_loop
async def test_what_is_denied_is_like_what_does_not_exist(
    gateway: Gateway, folder: Path, way: str, method: str, params: dict[str, Any]
) -> None:
    writer = await asking(way, gateway, WRITER)
    answer = await writer.call(method, params) if not _is_refused_by_http(way, params) else None
    if answer is not None:
        assert (answer["error"]["code"], answer["error"]["data"]["executed"]) == (-32602, "no"), answer
    assert "SECRET" not in heard(folder, way)


def _is_refused_by_http(way: str, params: dict[str, Any]) -> bool:
    """A stateless request whose header cannot repeat its target."""
    return way.startswith("stateless") and params.get("name") == 7


@WAYS
@on_loop
async def test_methods_that_we_do_not_know_are_for_who_may_do_everything(
    gateway: Gateway, folder: Path, way: str
) -> None:
    writer, owner = await asking(way, gateway, WRITER), await asking(way, gateway, OWNER)
    answer = await writer.call("future/delete", {"tried": f"SECRET {way}"})
    assert answer["error"]["code"] == -32601
    assert f"SECRET {way}" not in heard(folder, way)
    assert "result" in await owner.call("future/delete", {"tried": f"OPEN {way}"})


STEPS = [
    ("tools/call", called("edit", tried="SECRET")),
    ("prompts/get", {"name": "secret", "SECRET": 1}),
    ("resources/read", {"uri": "memo://secret", "SECRET": 1}),
    ("resources/read", {"uri": "memo://%73ecret", "SECRET": 1}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "secret"}, "SECRET": 1}),
    ("completion/complete", {"ref": {"type": "ref/resource", "uri": "memo://secret/{x}"}, "SECRET": 1}),
]
OF_SESSIONS = [
    ("resources/subscribe", {"uri": "memo://secret", "SECRET": 1}),
    ("resources/unsubscribe", {"uri": "memo://secret", "SECRET": 1}),
]
OF_STATELESS = [
    ("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["memo://open", "memo://secret"]}})
]


@WAYS
@on_loop
async def test_what_a_further_scope_would_open_is_answered_with_that_scope(
    gateway: Gateway, folder: Path, way: str
) -> None:
    reader = await asking(way, gateway, READER)
    more = OF_STATELESS if way.startswith("stateless") else OF_SESSIONS
    for method, params in (*STEPS, *more):
        message = {"jsonrpc": "2.0", "id": 5, "method": method, "params": params}
        client = reader.client
        if way.startswith("stateless"):
            reply = await client.ask(method, params, ident=5)
        elif way.startswith("sse"):
            fields = {"Content-Type": "application/json"}
            reply = await request(client.port, "POST", client.target, fields, json.dumps(message).encode(), READER)
        else:
            reply = await client.post([message] if way.startswith("batch") else message)
        body = await reply.json()
        challenge = 'Bearer error="insufficient_scope", scope="read write"'
        assert (reply.status, reply.headers["www-authenticate"]) == (403, challenge), body
        assert body["error"]["data"]["reason"] == "insufficient_scope"
    assert "SECRET" not in heard(folder, way)
    assert "memo://secret" not in heard(folder, way)


SPELLINGS = [
    b'{"name":"look","name":"delete_all","arguments":{"tried":"SECRET"}}',
    b'{"name":"delete_all","name":"look","arguments":{}}',
    b'{"name":"look","Name":"delete_all","arguments":{}}',
    b'{"NAME":"delete_all","name":"look","arguments":{}}',
    b'{"name":"look","n\\u0061me":"delete_all","arguments":{"tried":"SECRET"}}',
    b'{"name":"delete\\u005fall","arguments":{"tried":"SECRET"}}',
]


@pytest.mark.parametrize("params", SPELLINGS)
@pytest.mark.parametrize("way", ["session old", "session new", "sse old"])
@on_loop
async def test_policy_and_server_read_the_same_name(gateway: Gateway, folder: Path, way: str, params: bytes) -> None:
    writer = await asking(way, gateway, WRITER)
    reply = await writer.client.post(b'{"jsonrpc":"2.0","id":"dup","method":"tools/call","params":' + params + b"}")
    if not isinstance(reply, int):
        await reply.body()
    await writer.call("tools/call", called("look", last=True))
    told = [json.loads(line) for line in heard(folder, way).splitlines() if '"tools/call"' in line]
    assert "delete_all" not in json.dumps(told)


@pytest.mark.parametrize("way", ["session old", "session new", "sse old"])
@on_loop
async def test_a_call_without_an_id_is_refused(gateway: Gateway, folder: Path, way: str) -> None:
    writer = await asking(way, gateway, WRITER)
    reply = await writer.client.post({"jsonrpc": "2.0", "method": "tools/call", "params": called("delete_all", n=1)})
    assert (reply if isinstance(reply, int) else reply.status) == 400
    await writer.call("tools/call", called("look"))
    assert "delete_all" not in heard(folder, way)


@on_loop
async def test_one_denied_call_of_a_batch_leaves_the_others_alone(gateway: Gateway) -> None:
    client = await Client(gateway, "old", WRITER).open(version="2025-03-26")
    batch = [{"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": called(name)}
             for n, name in enumerate(["look", "delete_all", "edit"])]  # fmt: skip
    answers = await (await client.post(batch)).json()
    assert sorted((each["id"], "result" in each) for each in answers) == [(0, True), (1, False), (2, True)]


@on_loop
async def test_news_of_a_resource_that_is_not_to_be_seen_is_not_told(gateway: Gateway) -> None:
    client = await SseClient(gateway, "/servers/old/sse", READER).open()
    await client.tool("look", updates=["memo://secret", "memo://open"])
    assert [each["params"]["uri"] for each in client.heard] == ["memo://open"]


# Servers, and who may come there at all.


ENDPOINTS = [("POST", "mcp"), ("GET", "mcp"), ("DELETE", "mcp"), ("GET", "sse"), ("POST", "messages?session_id=x")]


@pytest.mark.parametrize(("method", "end"), ENDPOINTS)
@pytest.mark.parametrize(
    ("secret", "server", "status"),
    [(READER, "closed", 404), (GUEST, "closed", 404), (GUEST, "old", 403), ("unknown", "old", 401), ("", "old", 401)],
)
@on_loop
async def test_every_way_to_a_server_is_closed_to_who_may_use_nothing_of_it(
    gateway: Gateway, folder: Path, method: str, end: str, secret: str, server: str, status: int
) -> None:
    fields = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    body = json.dumps(greeting()).encode() if method == "POST" else b""
    reply = await request(gateway.port, method, f"/servers/{server}/{end}", fields, body, secret)
    said = await reply.json()
    assert reply.status == status, said
    if status == 404:
        assert said["error"]["data"]["reason"] == "unknown_path"
    if status == 403:
        assert reply.headers["www-authenticate"] == 'Bearer error="insufficient_scope", scope="read"'
    assert not (folder / "closed").exists()


@on_loop
async def test_a_later_request_on_the_same_connection_is_judged_too(gateway: Gateway) -> None:
    """One head, many bodies: what is served without a task."""
    import asyncio

    client = StatelessClient(gateway, "old", WRITER)
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    for name, is_served in (("look", True), ("look", True), ("delete_all", False)):
        message = client.message("tools/call", called(name))
        body = json.dumps(message).encode()
        fields = {**client.headers(message), "Authorization": f"Bearer {WRITER}", "Host": "localhost",
                  "Content-Length": str(len(body))}  # fmt: skip
        head = "".join(f"{key}: {value}\r\n" for key, value in fields.items())
        writer.write(f"POST {client.path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        said = json.loads(await reader.readexactly(length))
        assert ("result" in said) == is_served
    writer.close()


# How often, and how many at once.


@pytest.mark.parametrize("way", ["session old", "stateless old", "stateless new", "sse old"])
@on_loop
async def test_a_principal_has_so_many_calls_in_a_minute(tmp_path: Path, way: str) -> None:
    with serving(content(tmp_path), tmp_path) as fresh:
        busy = await asking(way, fresh, BUSY)
        for _ in range(3):
            assert "result" in await busy.call("tools/call", called("look"))
        assert "result" in await busy.call("tools/list")
        statuses = await _refused(busy, called("look", tried="SECRET"))
        assert statuses == (429, True)
        assert "SECRET" not in heard(tmp_path, way)


@pytest.mark.parametrize("way", ["session old", "stateless old", "stateless new"])
@on_loop
async def test_a_principal_has_so_many_calls_at_once(tmp_path: Path, way: str) -> None:
    with serving(content(tmp_path, streams={"streamAfter": 0.2}), tmp_path) as fresh:
        busy = await asking(way, fresh, BUSY)
        hanging = await busy.client.ask("tools/call", called("look", hangs=True))
        assert await _refused(busy, called("look")) == (429, True)
        if way.startswith("stateless"):
            hanging.drop()
        else:
            await busy.client.tell("notifications/cancelled", {"requestId": 1})
        answer = {}
        for _ in range(100):  # The connection's end is heard in its own time.
            answer = await busy.call("tools/call", called("look"))
            if "result" in answer:
                break
        assert "result" in answer


async def _refused(busy: Asking, params: dict[str, Any]) -> tuple[int, bool]:
    client, message = busy.client, {"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": params}
    if busy.kind == "sse":
        fields = {"Content-Type": "application/json"}
        reply = await request(client.port, "POST", client.target, fields, json.dumps(message).encode(), BUSY)
    elif busy.kind == "stateless":
        reply = await client.ask("tools/call", params)
    else:
        reply = await client.post(message)
    body = await reply.json()
    assert body["error"]["data"]["reason"] == "policy_limit", body
    return reply.status, int(reply.headers["retry-after"]) >= 1
