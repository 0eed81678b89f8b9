"""Arguments that a tool wants repeated in headers: read from all pages of its server's list, and kept fresh."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.client import called
from tests.support.gateway import Gateway, config, entry, serving, stateless_entry
from tests.support.http import on_loop
from tests.support.stateless import CALL, StatelessClient, said

SERVERS = pytest.mark.parametrize("server", ["stage", "stateless", "shared-stage", "shared-stateless"])
LAST_PAGE = {"stage": "count", "stateless": "plain"}


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    brisk = {"stopTimeout": 0.3}
    servers = {
        "stage": entry(**brisk),
        "stateless": stateless_entry(**brisk),
        "shared-stage": entry(**brisk, isolation="shared"),
        "shared-stateless": stateless_entry(**brisk, isolation="shared"),
        "dying": stateless_entry("--mode", "dies_listing", "--file", str(tmp_path / "died"), **brisk),
        "mute": entry("--mode", "never_lists", **brisk),
    }
    with serving(config(servers, stateless={"idleTimeout": 1}), tmp_path) as gateway:
        yield gateway


async def status(client: StatelessClient, tool: str, value: str, header: str | None) -> int:
    headers = {} if header is None else {"Mcp-Param-Nonce": header}
    reply = await client.ask(CALL, called(tool, nonce=value), ident="x", headers=headers)
    body = await reply.json()
    assert body["id"] == "x"
    if reply.status == 400:
        assert body["error"]["code"] == -32020
    else:
        assert "result" in body, body
    return reply.status


@SERVERS
@on_loop
async def test_an_annotation_is_checked_from_the_moment_it_is_announced(gateway: Gateway, server: str) -> None:
    client = StatelessClient(gateway, server)
    first, last = "echo", LAST_PAGE[server.removeprefix("shared-")]
    for tool in (first, last):
        assert await status(client, tool, "a", None) == 200
        assert await client.tool("annotate", tool=tool) == "annotated"
        assert await status(client, tool, "a", None) == 400
        assert await status(client, tool, "a", "b") == 400
        assert await status(client, tool, "a", "a") == 200
        assert await status(client, tool, "ü", "=?base64?w7w=?=") == 200


@SERVERS
@on_loop
async def test_calls_in_one_moment_are_all_judged_by_one_reading(gateway: Gateway, server: str) -> None:
    client = StatelessClient(gateway, server, capabilities={})
    assert await client.tool("annotate", tool="echo") == "annotated"
    wanted = [(f"n{n}", f"n{n}" if n % 2 else None) for n in range(10)]
    statuses = await asyncio.gather(*(status(client, "echo", value, header) for value, header in wanted))
    assert statuses == [200 if header else 400 for _, header in wanted]
    lists = (await client.tool("received")).count("tools/list")
    assert lists <= 2 * (3 if server.endswith("stateless") else 2)


@on_loop
async def test_a_child_that_dies_while_its_tools_are_read_leaves_no_call_unjudged(gateway: Gateway) -> None:
    client = StatelessClient(gateway, "dying", capabilities={})
    died = await client.call(CALL, called("echo"))
    assert (died["error"]["code"], died["error"]["data"]["executed"]) == (-31002, "no")
    assert await client.tool("annotate", tool="plain") == "annotated"
    assert await status(client, "plain", "a", None) == 400


@on_loop
async def test_a_server_that_never_lists_its_tools_is_called_all_the_same(gateway: Gateway) -> None:
    client = StatelessClient(gateway, "mute")
    assert said(await client.call(CALL, called("echo", nonce="n"))) == "n"
    assert said(await client.call(CALL, called("echo", nonce="m"))) == "m"
