"""Tokens of every kind on the real gateway: who is let in, and what ends when a token does."""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.auth.tokens import hash_of
from tests.support.client import Client, called
from tests.support.gateway import TOKEN, Gateway, config, entry, eventually, serving, stateless_entry
from tests.support.http import Reply, connection, head, on_loop, read_reply, request, soon
from tests.support.issuer import OTHER_KEY, Issuer, compact, header, issuing
from tests.support.sse_client import SseClient
from tests.support.stateless import CALL, StatelessClient

PUBLIC = "https://mcp.example.com"
SPARE = "vdt_spare_token_that_can_be_taken_back"
CAPS: dict[str, Any] = {}
EXPIRED = 3.0
"""Seconds that a call may go on when its token has expired."""


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with issuing() as running:
        yield running


@pytest.fixture(scope="module")
def tokens_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("file") / "tokens.json"
    allow(path, spare=SPARE)
    return path


@pytest.fixture(scope="module")
def gateway(issuer: Issuer, tokens_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    servers = {"stage": entry(stopTimeout=0.5), "stateless": stateless_entry(stopTimeout=0.5)}
    content = config(servers, publicUrl=PUBLIC, streams={"retry": 0.05, "keepAlive": 0.2, "streamAfter": 0.1})
    content["viaduct"]["auth"] |= {
        "tokensFile": str(tokens_file),
        "jwt": [{"issuer": issuer.url, "leeway": 0}],
        "introspection": {
            "endpoint": f"{issuer.url}/introspect",
            "clientId": "viaduct",
            "clientSecret": "a-secret-of-ours",
            "leeway": 0,
            "pause": 0.3,
        },
        "scopes": ["mcp:read"],
        "keep": {"introspected": 0.5, "refused": 0.1},
        "checkInterval": 0.1,
    }
    content["viaduct"]["stateless"] = {"expiredTimeout": EXPIRED}
    content["viaduct"]["outbound"] = {"allow": ["127.0.0.0/8"]}
    with serving(content, tmp_path_factory.mktemp("tokens")) as gateway:
        yield gateway


@pytest.fixture(autouse=True)
def as_before(gateway: Gateway, issuer: Issuer, tokens_file: Path) -> Iterator[None]:
    yield
    issuer.status = 200
    issuer.active.clear()
    allow(tokens_file, spare=SPARE)
    headers = {"Authorization": f"Bearer {SPARE}"}
    assert eventually(lambda: httpx.get(f"{gateway.url}/metrics", headers=headers, trust_env=False).is_success, 2)


def allow(path: Path, **tokens: str) -> None:
    """Only these are in the file from now on, which takes the place of the one before."""
    entries = [{"name": name, "hash": hash_of(token)} for name, token in tokens.items()]
    path.with_suffix(".new").write_text(json.dumps({"tokens": entries}))
    path.with_suffix(".new").rename(path)


def here(issuer: Issuer, server: str = "stage", end: str = "mcp", **more: Any) -> str:
    return issuer.token(aud=f"{PUBLIC}/servers/{server}/{end}", **more)


def asked_about(issuer: Issuer, token: str) -> int:
    return sum(form["token"] == [token] for form in issuer.forms)


async def has_asked_about(issuer: Issuer, token: str, times: int) -> bool:
    return asked_about(issuer, token) >= times


async def has_asked(issuer: Issuer, before: int, status: Callable[[], Coroutine[Any, Any, int]]) -> bool:
    """Whether the issuer was asked again, while the client noticed nothing."""
    assert await status() == 200
    return len(issuer.asked) > before


async def is_let_in(client: Client) -> bool:
    return await client.status() == 200


async def is_shut_out(client: Client) -> bool:
    return await client.status() == 401


async def closed_after_retry(stream: Reply) -> float:
    """When the connection was closed."""
    events = [event async for event in stream.events()]
    assert events[-1].retry == 50
    assert not events[-1].data
    return time.time()


# Who is let in.


@on_loop
async def test_three_kinds_of_credential_are_served_at_once(gateway: Gateway, issuer: Issuer) -> None:
    issuer.active["opaque"] = {"sub": "eve", "aud": PUBLIC}
    for token in (TOKEN, SPARE, here(issuer), issuer.token(aud=PUBLIC), "opaque"):
        client = await Client(gateway, token=token).open()
        assert await client.tool("echo", nonce="x") == "x"


@on_loop
async def test_a_session_belongs_to_issuer_subject_and_client(gateway: Gateway, issuer: Issuer) -> None:
    client = await Client(gateway, token=here(issuer)).open()
    for stranger in (TOKEN, here(issuer, sub="bob"), here(issuer, client_id="other")):
        client.token = stranger
        assert await client.status() == 404
    client.token = here(issuer, scope="other", jti="another")
    assert await client.status() == 200


@on_loop
async def test_a_token_for_one_endpoint_is_none_for_another(gateway: Gateway, issuer: Issuer) -> None:
    token = here(issuer)
    assert (await Client(gateway, token=token).open()).session
    for path in ("/servers/stateless/mcp", "/servers/stage/sse", "/servers/stage/messages", "/metrics"):
        method = "POST" if path.endswith(("mcp", "messages")) else "GET"
        reply = await request(gateway.port, method, path, {"Content-Type": "application/json"}, token=token)
        assert reply.status == 401, path
        reply.close()


@pytest.mark.parametrize("name", ["malformed", "expired", "foreign", "unsigned", "forged", "unknown"])
@on_loop
async def test_every_bad_token_gets_the_same_answer_and_starts_nothing(
    gateway: Gateway, issuer: Issuer, name: str
) -> None:
    bad = {
        "malformed": "a.b.c",
        "expired": here(issuer, exp=int(time.time()) - 1),
        "foreign": issuer.token(aud="https://staging.example.com"),
        "unsigned": compact(header(alg="none"), issuer.claims(aud=PUBLIC)),
        "forged": compact(header(), issuer.claims(aud=PUBLIC), OTHER_KEY),
        "unknown": "nobody-knows-it",
    }[name]
    reply = await Client(gateway, token=bad).ask("ping")
    assert (reply.status, (await reply.json())["error"]["message"]) == (
        401, "send a valid token: Authorization: Bearer <token>",
    )  # fmt: skip
    assert reply.headers["www-authenticate"] == (
        'Bearer error="invalid_token", '
        f'resource_metadata="{PUBLIC}/.well-known/oauth-protected-resource/servers/stage/mcp", scope="mcp:read"'
    )
    assert bad not in gateway.log


@on_loop
async def test_on_one_connection_a_token_is_good_until_it_ends(gateway: Gateway, issuer: Issuer) -> None:
    """Its later requests do not pass through the parser, and from time to time the token must be asked for again."""
    issuer.active["short"] = {"sub": "eve", "aud": PUBLIC}
    token, body = "short", b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    fields = {"Content-Type": "application/json", "Accept": "application/json"}
    first = await request(gateway.port, "POST", "/servers/stage/mcp", fields, body, token)
    await first.rest()
    again = head(gateway.port, "POST", "/servers/stage/mcp", fields | {"Content-Length": str(len(body))}, token) + body

    async def status() -> int:
        first.writer.write(again)
        reply = await read_reply(first.reader, first.writer)
        await reply.rest()
        return reply.status

    async def is_refused() -> bool:
        return await status() == 401

    assert [await status() for _ in range(5)] == [200] * 5
    asked = len(issuer.asked)
    assert await soon(lambda: has_asked(issuer, asked, status))
    del issuer.active["short"]
    assert await soon(is_refused)


# What ends with a token.


@on_loop
async def test_an_expired_token_closes_its_streams_and_a_new_one_goes_on_with_them(
    gateway: Gateway, issuer: Issuer
) -> None:
    expiry = int(time.time()) + 2
    token = here(issuer, exp=expiry)
    client = await Client(gateway, token=token).open(CAPS)
    listening = await client.listen()
    call = await client.ask("tools/call", called("sleep", seconds=3, nonce="slept"), ident=7)
    first = await call.next_event()
    ended = await asyncio.gather(closed_after_retry(listening), closed_after_retry(call))
    assert all(-0.1 < at - expiry < 1 for at in ended)
    assert await client.status() == 401
    client.token = here(issuer)
    assert await client.status() == 200
    resumed = await client.listen(last=first.id)
    assert (await resumed.next_message())["id"] == 7


@on_loop
async def test_a_token_that_is_taken_back_is_refused_within_a_second_and_its_streams_close(
    gateway: Gateway, tokens_file: Path
) -> None:
    client = await Client(gateway, token=SPARE).open(CAPS)
    stream = await client.listen()
    call = await client.ask("tools/call", called("sleep", seconds=2, nonce="slept"), ident=7)
    first = await call.next_event()
    began = time.time()
    allow(tokens_file, another="something-else-entirely")
    closed = await asyncio.gather(closed_after_retry(stream), closed_after_retry(call))
    assert max(closed) - began < 1
    assert await client.status() == 401
    allow(tokens_file, spare="another-token-of-the-same-name")
    client.token = "another-token-of-the-same-name"
    assert await soon(lambda: is_let_in(client), 1.0)
    resumed = await client.listen(last=first.id)
    assert (await resumed.next_message())["id"] == 7


@on_loop
async def test_a_request_that_was_on_its_way_when_its_token_was_taken_back_is_refused(
    gateway: Gateway, tokens_file: Path
) -> None:
    client = await Client(gateway, token=SPARE).open(CAPS)
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": called("pid")}).encode()
    reader, writer = await connection(gateway.port)
    fields = client.headers() | {"Content-Length": str(len(body))}
    writer.write(head(gateway.port, "POST", client.path, fields, SPARE) + body[:10])
    await client.status()
    allow(tokens_file, another="something-else-entirely")
    assert await soon(lambda: is_shut_out(client), 1.0)
    writer.write(body[10:])
    reply = await read_reply(reader, writer)
    assert (reply.status, (await reply.json())["error"]["data"]["executed"]) == (401, "no")


@on_loop
async def test_a_token_that_its_issuer_ends_loses_its_streams_too(gateway: Gateway, issuer: Issuer) -> None:
    issuer.active["opaque"] = {"sub": "eve", "aud": PUBLIC}
    client = await Client(gateway, token="opaque").open(CAPS)
    stream = await client.listen()
    await stream.anything()
    issuer.status = 500
    beats = [await stream.anything() for _ in range(5)]  # Longer than a verdict is kept.
    assert all(event.comment is not None for event in beats)
    issuer.status = 200
    del issuer.active["opaque"]
    await closed_after_retry(stream)


@on_loop
async def test_a_token_of_which_its_issuer_says_something_new_each_time_keeps_its_streams(
    gateway: Gateway, issuer: Issuer
) -> None:
    eve = {"sub": "eve", "aud": PUBLIC}
    issuer.active["changing"] = {**eve, "expires_in": 600}
    client = await Client(gateway, token="changing").open(CAPS)
    stream = await client.listen()
    await stream.anything()
    for left in (500, 400, 300):
        issuer.active["changing"] = {**eve, "expires_in": left, "exp": int(time.time()) + 1000 - left}
        assert await soon(partial(has_asked, issuer, len(issuer.asked), client.status))
    events = [await stream.anything() for _ in range(3)]
    assert all(event.comment is not None for event in events)


@on_loop
async def test_a_stream_whose_request_came_slowly_ends_with_its_token_too(gateway: Gateway, issuer: Issuer) -> None:
    issuer.active["slow"] = issuer.active["other"] = {"sub": "eve", "aud": PUBLIC}
    other = await Client(gateway, token="other").open(CAPS)
    await other.listen()
    client = StatelessClient(gateway, "stateless", "slow")
    message = client.message("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    body = json.dumps(message).encode()
    fields = {**client.headers(message), "Content-Length": str(len(body))}
    reader, writer = await connection(gateway.port)
    writer.write(head(gateway.port, "POST", client.path, fields, "slow") + body[:1])
    assert await soon(partial(has_asked_about, issuer, "slow", 1))
    assert await soon(partial(has_asked_about, issuer, "other", asked_about(issuer, "other") + 2))  # So long that
    assert asked_about(issuer, "slow") == 1  # nobody knows this one any more.
    writer.write(body[1:])
    stream = await read_reply(reader, writer)
    assert stream.status == 200
    del issuer.active["slow"]
    assert [event async for event in stream.events()][-1].message["result"]


@on_loop
async def test_over_http_and_sse_the_stream_is_the_session_and_ends_with_the_token(
    gateway: Gateway, tokens_file: Path
) -> None:
    client = await SseClient(gateway, token=SPARE).open(CAPS)
    allow(tokens_file, another="something-else-entirely")
    await closed_after_retry(client.stream)


@on_loop
async def test_a_subscription_ends_with_its_result_and_a_call_that_was_let_in_may_finish(
    gateway: Gateway, issuer: Issuer
) -> None:
    token = here(issuer, "stateless", exp=int(time.time()) + 2)
    client = StatelessClient(gateway, "stateless", token, {})
    stream = await client.listen(toolsListChanged=True)
    call = await client.ask(CALL, called("sleep", seconds=3, nonce="slept"))
    messages = [message async for message in stream.messages()]
    assert messages[-1]["id"] == "listen"
    assert "result" in messages[-1]
    assert (await client.settle(call))["result"]["content"][0]["text"] == "slept"


@pytest.mark.parametrize("accept", ["application/json, text/event-stream", "application/json"])
@on_loop
async def test_a_call_whose_token_expired_is_cancelled_when_its_time_is_over(
    gateway: Gateway, issuer: Issuer, accept: str
) -> None:
    expiry = int(time.time()) + 2
    client = StatelessClient(gateway, "stateless", here(issuer, "stateless", exp=expiry), {})
    message = client.message(CALL, called("sleep", seconds=30, nonce="slept"))
    call = await client.post(message, {"Accept": accept})
    assert [message async for message in call.messages()] == []
    assert EXPIRED - 0.1 < time.time() - expiry < EXPIRED + 1


@pytest.mark.parametrize("is_again", [False, True])
@on_loop
async def test_a_call_of_who_takes_no_stream_ends_when_its_token_is_taken_back(
    gateway: Gateway, tokens_file: Path, *, is_again: bool
) -> None:
    client = StatelessClient(gateway, "stateless", SPARE, {})
    message = client.message(CALL, called("sleep", seconds=30, nonce="slept"))
    fields = {**client.headers(message), "Accept": "application/json"}
    body = json.dumps(message).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    if is_again:
        quick = json.dumps(client.message(CALL, called("sleep", seconds=0, nonce="slept"))).encode()
        for _ in range(2):
            fields_of = fields | {"Content-Length": str(len(quick))}
            writer.write(head(gateway.port, "POST", client.path, fields_of, SPARE) + quick)
            await (await read_reply(reader, writer)).rest()
    writer.write(head(gateway.port, "POST", client.path, fields | {"Content-Length": str(len(body))}, SPARE) + body)
    began = time.monotonic()
    allow(tokens_file, another="something-else-entirely")
    reply = await read_reply(reader, writer)
    assert reply.status == 200
    assert [message async for message in reply.messages()] == []
    assert time.monotonic() - began < 1.5
    reply.drop()


@on_loop
async def test_a_stateless_call_ends_when_its_token_is_taken_back(gateway: Gateway, tokens_file: Path) -> None:
    client = StatelessClient(gateway, "stateless", SPARE, {})
    call = await client.ask(CALL, called("sleep", seconds=30, nonce="slept"))
    began = time.monotonic()
    allow(tokens_file, another="something-else-entirely")
    assert [message async for message in call.messages()] == []
    assert time.monotonic() - began < 1


def test_no_token_and_no_secret_is_in_the_log(gateway: Gateway) -> None:
    for secret in (SPARE, "a-secret-of-ours", "eyJ", "opaque", "nobody-knows-it"):
        assert secret not in gateway.log
