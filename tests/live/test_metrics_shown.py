"""Which labels and reasons the numbers of the gateway have, and who may read them."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.telemetry.tally import METHODS, OTHER, OUTCOMES, SERVER_STATES
from tests.live.counted import counting
from tests.support.client import Client, called
from tests.support.gateway import OTHER_TOKEN, ROOT, TOKEN, Gateway, config, entry, serving
from tests.support.http import on_loop, request
from tests.support.metrics import shown, text_of
from tests.support.stateless import CALL, StatelessClient

PAGES = [(ROOT / f"docs/reference/{page}.md").read_text() for page in ("errors", "metrics")]


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with counting(tmp_path) as gateway:
        yield gateway


# Labels.


@on_loop
async def test_nothing_that_a_client_invents_becomes_a_label(gateway: Gateway) -> None:
    session, stateless = await Client(gateway).open(), StatelessClient(gateway)

    async def invent(count: int) -> None:
        await session.call(f"evil/{count}")
        await session.call("tools/call", called(f'evil-{count}"}} 1\nevil 2'))
        await stateless.call(f"evil/{count}")
        await stateless.call(CALL, called(f"evil-{count}"))
        reply = await request(gateway.port, "POST", f"/servers/evil-{count}/mcp", {"Mcp-Session-Id": f"evil-{count}"})
        assert reply.status == 404
        await stateless.post({"evil": count}, {"MCP-Protocol-Version": f"evil-{count}"})
        await request(gateway.port, "GET", "/metrics", {"Host": f"evil-{count}"}, token=f"evil-{count}")

    await invent(0)
    few = await text_of(gateway)
    for count in range(1, 40):
        await invent(count)
    many = await text_of(gateway)
    assert len(many.splitlines()) == len(few.splitlines())
    assert "evil" not in many
    assert TOKEN not in many
    expected = {
        "server": {"stage", "shared", "deaf", "gone", "/mcp", ""},
        "method": METHODS | {OTHER},
        "era": {"legacy", "modern"},
        "outcome": OUTCOMES,
        "state": set(SERVER_STATES),
    }
    for values in shown(many).values():
        for labels in values:
            for name, value in labels:
                assert value in expected.get(name, {value}), (name, value)


@on_loop
async def test_every_reason_that_is_told_is_in_the_reference(gateway: Gateway) -> None:
    await Client(gateway, "gone").open()
    client = await Client(gateway).open()
    await client.delete()
    await client.status()
    told = re.findall(r'reason="([^"]*)"', await text_of(gateway))
    assert len(told) >= 4
    assert [reason for reason in told if not any(f"`{reason}`" in page for page in PAGES)] == []


# Who may read them.


@pytest.mark.parametrize("token", [None, "nobody's", TOKEN[:-1]])
@on_loop
async def test_without_a_token_nobody_reads_them(gateway: Gateway, token: str | None) -> None:
    reply = await request(gateway.port, "GET", "/metrics", token=token)
    body = await reply.body()
    assert (reply.status, reply.headers["www-authenticate"]) == (401, "Bearer")
    assert b"stage" not in body
    assert b"viaduct_" not in body


@on_loop
async def test_whoever_has_a_token_reads_them_under_either_spelling(gateway: Gateway) -> None:
    for path, token in (("/metrics", TOKEN), ("/metrics/", OTHER_TOKEN)):
        reply = await request(gateway.port, "GET", path, token=token)
        assert (reply.status, reply.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert b'viaduct_sessions{server="stage"} 0.0' in await reply.body()


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("POST", 405), ("DELETE", 405), ("OPTIONS", 405)])
@on_loop
async def test_they_are_there_to_be_read(gateway: Gateway, method: str, status: int) -> None:
    reply = await request(gateway.port, method, "/metrics")
    assert reply.status == status
    assert status == 200 or reply.headers["allow"] == "GET, HEAD"


@on_loop
async def test_a_token_in_the_url_is_refused_here_too(gateway: Gateway) -> None:
    assert (await request(gateway.port, "GET", f"/metrics?token={TOKEN}", token=None)).status == 400


@pytest.mark.parametrize(("who", "status"), [("token", 401), ("open", 200), ("off", 404)])
def test_the_operator_says_who_may_read_them(who: str, status: int, tmp_path: Path) -> None:
    @on_loop
    async def check() -> None:
        assert (await request(gateway.port, "GET", "/metrics", token=None)).status == status

    with serving(config({"stage": entry()}, metrics=who), tmp_path) as gateway:
        check()
