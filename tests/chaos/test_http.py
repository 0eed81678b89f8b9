"""Requests that are wrong, hostile, slow or merely odd."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.chaos.conftest import Connect
from tests.support.client import Client
from tests.support.gateway import OTHER_TOKEN, TOKEN, Gateway, config, entry, serving
from tests.support.http import ACCEPT, Reply, connection, head, on_loop, raw, read_reply, request

BODY = 1 << 20
MCP = "/servers/calm/mcp"
PATHS = [MCP, "/servers/calm/sse", "/servers/calm/messages"]
PING = b'{"jsonrpc":"2.0","id":"x","method":"ping"}'
JSON = {"Content-Type": "application/json", "Accept": ACCEPT}
BRISK = {"stopTimeout": 0.5, "killTimeout": 0.5}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    limits = {"body": BODY, "headerTimeout": 1, "bodyTimeout": 1}
    with serving(config({"calm": entry(**BRISK)}, limits=limits), tmp_path_factory.mktemp("http")) as gateway:
        yield gateway


async def refused(reply: Reply, status: int) -> Any:
    """The error of a refusal, which is JSON whatever was asked for."""
    body = await reply.body()
    assert reply.status == status, (reply.status, body)
    assert reply.headers["content-type"] == "application/json"
    return json.loads(body)["error"]


def with_params(params: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%b}' % params


def with_id(ident: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"method":"tools/list"}' % ident


HOSTILE = {
    "nothing": (b"", -32700),
    "white space": (b" \r\n ", -32700),
    "half an object": (PING[:-1], -32700),
    "single quotes": (b"{'jsonrpc':'2.0'}", -32700),
    "depth 100 000": (with_params(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"), -32700),
    "depth 65": (with_params(b'{"a":' * 64 + b"1" + b"}" * 64), -32700),
    "open brackets without end": (b"[" * 200_000, -32700),
    "NaN": (with_params(b'{"a":NaN}'), -32700),
    "Infinity": (with_params(b'{"a":[-Infinity]}'), -32700),
    "a lone surrogate": (with_params(b'{"a":"\\ud800"}'), -32700),
    "a lone surrogate as a key": (with_params(b'{"\\udc00":1}'), -32700),
    "invalid UTF-8": (with_params(b'{"a":"\xff"}'), -32700),
    "a surrogate in UTF-8": (with_params(b'{"a":"\xed\xa0\x80"}'), -32700),
    "an overlong slash": (with_params(b'{"a":"\xc0\xaf"}'), -32700),
    "UTF-16": (PING.decode().encode("utf-16"), -32700),
    "a byte order mark": (b"\xef\xbb\xbf" + PING, -32700),
    "trailing data": (PING + b"{}", -32700),
    "two lines": (PING + b"\n" + PING, -32700),
    "a NUL behind it": (PING + b"\0", -32700),
    "a raw control character": (with_params(b'{"a":"\x01"}'), -32700),
    "a comment": (b"/* hello */" + PING, -32700),
    "id null": (with_id(b"null"), -32600),
    "id true": (with_id(b"true"), -32600),
    "id fractional": (with_id(b"1.5"), -32600),
    "id 2^64": (with_id(b"%d" % 2**64), -32600),
    "id below -2^63": (with_id(b"%d" % (-(2**63) - 1)), -32600),
    "id 1e400": (with_id(b"1e400"), -32600),
    "id of 257 characters": (with_id(b'"%b"' % (b"x" * 257)), -32600),
    "id an array": (with_id(b"[1]"), -32600),
    "id an object": (with_id(b"{}"), -32600),
    "no jsonrpc": (b'{"id":1,"method":"tools/list"}', -32600),
    "jsonrpc 1.0": (b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}', -32600),
    "jsonrpc a number": (b'{"jsonrpc":2.0,"id":1,"method":"tools/list"}', -32600),
    "Method": (b'{"jsonrpc":"2.0","id":1,"Method":"tools/list"}', -32600),
    "method a number": (b'{"jsonrpc":"2.0","id":1,"method":1}', -32600),
    "params a number": (with_params(b"1"), -32600),
    "params an array": (with_params(b"[1]"), -32600),
    "a method and a result": (b'{"jsonrpc":"2.0","id":1,"method":"x","result":{}}', -32600),
    "a result and an error": (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}', -32600),
    "a result of nothing": (b'{"jsonrpc":"2.0","id":null,"result":{}}', -32600),
    "a number": (b"42", -32600),
    "a string": (b'"ping"', -32600),
    "null": (b"null", -32600),
    "an empty object": (b"{}", -32600),
}


@pytest.mark.parametrize("kind", HOSTILE)
@on_loop
async def test_hostile_json_is_refused_and_the_server_never_sees_it(
    gateway: Gateway, connect: Connect, kind: str
) -> None:
    client = await connect()
    body, code = HOSTILE[kind]
    error = await refused(await client.post(body), 400)
    assert error["code"] == code, error
    assert error["data"]["executed"] == "no"
    received = [json.loads(line)["method"] for line in json.loads(await client.tool("received"))]
    assert received == ["initialize", "notifications/initialized", "tools/call"]


@on_loop
async def test_of_a_key_written_twice_the_server_sees_the_one_that_we_judged(
    gateway: Gateway, connect: Connect
) -> None:
    client = await connect()
    answer = await (await client.post(b'{"jsonrpc":"2.0","id":1,"method":"no/such","id":2,"method":"ping"}')).json()
    lines = json.loads(await client.tool("received"))[2:-1]
    assert len(lines) == 1
    assert lines[0].count('"method"') == lines[0].count('"id"') == 1
    assert (answer["id"], "result" in answer) == (2, json.loads(lines[0])["method"] == "ping")


@on_loop
async def test_64_levels_are_not_too_deep(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    deep = b'{"a":' * 62 + b"{}" + b"}" * 62
    answer = await (await client.post(b'{"jsonrpc":"2.0","id":1,"method":"no/such","params":%b}' % deep)).json()
    assert answer["error"]["message"] == "unknown method no/such"


@pytest.mark.parametrize("member", [b'{"jsonrpc":"2.0","method":"x"}', b'{"jsonrpc":"2.0","id":1,"method":"ping"}'])
@on_loop
async def test_a_batch_of_very_many_is_refused_and_holds_up_nobody(
    gateway: Gateway, connect: Connect, member: bytes
) -> None:
    client = await connect(version="2025-03-26")
    lines = len(gateway.log_lines)
    many = (BODY - 10) // (len(member) + 1)
    await refused(await client.post(b"[%b]" % b",".join([member] * many)), 400)
    assert len(json.loads(await client.tool("received"))) == 3
    assert len(gateway.log_lines) - lines < 20


COSTLY = (b"{}", b"[[[[]]]]", b"1e5", b'"\\u00e9"', b'{"a":[{"b":{}}]}')


@pytest.mark.parametrize("member", COSTLY)
@on_loop
async def test_the_costliest_body_holds_up_nobody(gateway: Gateway, connect: Connect, member: bytes) -> None:
    client = await connect()
    many = b",".join([member] * ((BODY - 200) // (len(member) + 1)))
    for _ in range(3):
        body = b'{"jsonrpc":"2.0","id":1,"method":"no/such","params":{"a":[%b]}}' % many
        answer = await client.settle(await client.post(body), 1)
        assert answer["error"]["code"] == -32601


# Sizes and times.


def chunked(*chunks: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)


@on_loop
async def test_a_body_within_the_limit_passes_and_one_over_it_is_413(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    assert len(await client.tool("echo", nonce="x" * (BODY - 500))) == BODY - 500
    reply = await client.post(PING + b" " * BODY)
    error = await refused(reply, 413)
    assert error["code"] == -32600
    assert len(json.loads(await client.tool("received"))) == 4


OVERSIZED = {
    "declared": ([("Content-Length", str(BODY + 1))], b"", 413),
    "declared absurdly": ([("Content-Length", "99999999999")], b"{", 413),
    "chunked": ([("Transfer-Encoding", "chunked")], chunked(*[b" " * 65536] * 17), 413),
    "shorter than declared": ([("Content-Length", "100")], PING, 408),
    "chunked without end": ([("Transfer-Encoding", "chunked")], chunked(PING), 408),
}


@pytest.mark.parametrize("kind", OVERSIZED)
@on_loop
async def test_a_body_that_is_too_large_or_never_complete_is_refused_in_time(
    gateway: Gateway, connect: Connect, kind: str
) -> None:
    client = await connect()
    fields, body, status = OVERSIZED[kind]
    session = [("Mcp-Session-Id", str(client.session)), *JSON.items()]
    began = time.monotonic()
    reply = await raw(gateway.port, head(gateway.port, "POST", MCP, [*fields, *session]) + body)
    await refused(reply, status)
    assert time.monotonic() - began < 2.5
    assert len(json.loads(await client.tool("received"))) == 3


@on_loop
async def test_a_head_that_drips_in_is_cut_off_in_time(gateway: Gateway, undisturbed: list[Client]) -> None:
    reader, writer = await connection(gateway.port)
    began = time.monotonic()
    writer.write(b"POST /servers/calm/mcp HTTP/1.1\r\nHost: local")
    reply = await read_reply(reader, writer)
    await refused(reply, 408)
    assert 0.5 < time.monotonic() - began < 2.5


@pytest.mark.parametrize("size", [40_000, 300_000])
@on_loop
async def test_a_header_over_the_cap_is_refused(gateway: Gateway, undisturbed: list[Client], size: int) -> None:
    reply = await request(gateway.port, "POST", MCP, {**JSON, "X-Padding": "x" * size}, PING)
    await refused(reply, 431)


# What may be asked for, and in which form.

ACCEPTS = {
    "": "application/json",
    "*/*": "application/json",
    "application/json": "application/json",
    "application/*": "application/json",
    "text/event-stream": "text/event-stream",
    "text/*": "text/event-stream",
    "application/json, text/event-stream": "application/json",
    "text/event-stream;q=0.9, application/json;q=0.5": "application/json",
    "application/json;charset=utf-8 , TEXT/EVENT-STREAM": "application/json",
    "text/html, */*;q=0.1": "application/json",
}


@pytest.mark.parametrize("accept", ACCEPTS)
@on_loop
async def test_whatever_form_is_accepted_is_used(gateway: Gateway, connect: Connect, accept: str) -> None:
    client = await connect()
    reply = await client.post(PING, Accept=accept)
    assert reply.status == 200
    assert reply.headers["content-type"].split(";")[0] == ACCEPTS[accept]
    assert await client.settle(reply, "x") == {"jsonrpc": "2.0", "id": "x", "result": {}}


@pytest.mark.parametrize("accept", ["text/html", "image/*", "application/xml", "application/json;q=0"])
@on_loop
async def test_only_where_no_form_is_accepted_it_is_406(gateway: Gateway, connect: Connect, accept: str) -> None:
    await refused(await (await connect()).post(PING, Accept=accept), 406)


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "Application/JSON"])
@on_loop
async def test_json_is_taken(gateway: Gateway, connect: Connect, kind: str) -> None:
    reply = await (await connect()).post(PING, Content_Type=kind)
    assert reply.status == 200


@pytest.mark.parametrize("kind", ["", "text/plain", "application/jsonp", "application/x-www-form-urlencoded", "json"])
@on_loop
async def test_what_is_not_said_to_be_json_is_415(gateway: Gateway, connect: Connect, kind: str) -> None:
    await refused(await (await connect()).post(PING, Content_Type=kind), 415)


@pytest.mark.parametrize("coding", ["gzip", "br", "identity, gzip", "Gzip", "x\xe9"])
@on_loop
async def test_a_body_that_is_said_to_be_compressed_is_415(gateway: Gateway, connect: Connect, coding: str) -> None:
    client = await connect()
    await refused(await client.post(PING, Content_Encoding=coding), 415)
    sse = await request(
        gateway.port, "POST", "/servers/calm/messages?session_id=x", {**JSON, "Content-Encoding": coding}
    )
    await refused(sse, 415)
    assert (await client.post(PING, Content_Encoding="Identity")).status == 200


@pytest.mark.parametrize("method", ["PUT", "PATCH", "TRACE", "HEAD"])
@pytest.mark.parametrize("path", PATHS)
@on_loop
async def test_a_method_that_is_not_for_this_path_is_405_and_those_that_are_get_named(
    gateway: Gateway, undisturbed: list[Client], method: str, path: str
) -> None:
    reply = await request(gateway.port, method, path, JSON)
    assert reply.status == 405
    assert "POST" in reply.headers["allow"] or "GET" in reply.headers["allow"]


@pytest.mark.parametrize(("method", "path"), [("POST", "/servers/calm/sse"), ("GET", "/servers/calm/messages")])
@on_loop
async def test_the_two_paths_of_http_sse_take_one_method_each(
    gateway: Gateway, undisturbed: list[Client], method: str, path: str
) -> None:
    reply = await request(gateway.port, method, path, JSON)
    assert method not in reply.headers["allow"]
    await refused(reply, 405)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@on_loop
async def test_without_a_session_there_is_nothing_to_hear_or_to_end(
    gateway: Gateway, undisturbed: list[Client], method: str
) -> None:
    reply = await request(gateway.port, method, MCP, {"Accept": ACCEPT})
    assert "POST" in reply.headers["allow"]
    await refused(reply, 405)


@on_loop
async def test_a_notification_and_a_reply_get_an_empty_202(gateway: Gateway, connect: Connect) -> None:
    client = await connect()
    told = [
        b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}',
        b'{"jsonrpc":"2.0","id":5,"result":{}}',
        b'{"jsonrpc":"2.0","id":5,"error":{"code":-1,"message":"no"}}',
    ]
    for message in told:
        reply = await client.post(message)
        assert reply.status == 202
        assert "content-type" not in reply.headers
        assert await reply.body() == b""


# Versions.


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", ""])
@on_loop
async def test_any_known_version_may_be_named_whatever_was_negotiated(
    gateway: Gateway, connect: Connect, version: str
) -> None:
    client = await connect(version="2025-06-18")
    reply = await client.post(PING, MCP_Protocol_Version=version)
    assert reply.status == 200


@pytest.mark.parametrize("version", ["1900-01-01", "2099-01-01", "2025-06-18 ", "latest", "2025-11-25, 2025-06-18"])
@on_loop
async def test_an_unknown_version_is_400_but_never_on_initialize(
    gateway: Gateway, connect: Connect, version: str
) -> None:
    client = await connect()
    if version.strip() == version:
        await refused(await client.post(PING, MCP_Protocol_Version=version), 400)
        deleted = await request(gateway.port, "DELETE", MCP, {**client.headers(), "MCP-Protocol-Version": version})
        await refused(deleted, 400)
    fresh = Client(gateway, "calm")
    fresh.version = version
    await (await fresh.open()).delete()


@on_loop
async def test_a_stateless_request_is_refused_so_that_its_client_falls_back_to_initialize(
    gateway: Gateway, connect: Connect
) -> None:
    client = await connect()
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    modern = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}}
    for reply in (await client.post(modern), await client.post(PING, MCP_Protocol_Version="2026-07-28")):
        error = await refused(reply, 400)
        assert error["code"] not in (-32020, -32021, -32022)
    assert len(json.loads(await client.tool("received"))) == 3


@on_loop
async def test_a_request_that_can_be_read_in_two_ways_is_refused_and_the_server_never_sees_it(
    gateway: Gateway, connect: Connect
) -> None:
    client = await connect()
    base = [*client.headers().items(), ("Content-Length", str(len(PING)))]
    twice = [
        ("Host", "evil.com"),
        ("Authorization", f"Bearer {OTHER_TOKEN}"),
        ("Mcp-Session-Id", "other"),
        ("MCP-Protocol-Version", "2025-06-18"),
        ("Content-Type", "application/json"),
        ("Content-Length", "5"),
        ("Transfer-Encoding", "chunked"),
    ]
    usual = [("Host", f"127.0.0.1:{gateway.port}"), ("Authorization", f"Bearer {TOKEN}")]
    for name, value in twice:
        fields = [*usual, *base, (name, value)]
        await refused(await raw(gateway.port, head(gateway.port, "POST", MCP, fields) + PING), 400)
    smuggled = head(gateway.port, "POST", MCP, [*client.headers().items(), ("Transfer-Encoding", "chunked")])
    trailer = b"Authorization: Bearer wrong\r\nMcp-Session-Id: other\r\n\r\n"
    reply = await raw(gateway.port, smuggled + chunked(PING) + b"0\r\n" + trailer)
    assert reply.status in (200, 400)
    assert len(json.loads(await client.tool("received"))) <= 4
