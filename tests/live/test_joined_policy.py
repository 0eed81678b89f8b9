"""What a policy shows of many servers: to each its own, everywhere, and the audit names the server that has it."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.choosing import GROUPS, Connect, by_search, entries, every_way, listed, over_http, over_sse, wrapped
from tests.support.client import called
from tests.support.gateway import OTHER_TOKEN, Gateway, serving
from tests.support.http import on_loop, request
from tests.support.shelves import shelves

POLICY = [
    {
        "subjects": ["one"],
        "allow": [
            *(f"books/{own}" for own in ("find", "state", "watch", "prompts/review", "resources/book://one")),
            "films",
        ],
        "deny": ["films/burn", "films/prompts/*"],
    },
    {"subjects": ["other"], "allow": ["plain", "films/find"]},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("policy")


@pytest.fixture(scope="module")
def guarded(folder: Path) -> Iterator[Gateway]:
    audit = {"path": str(folder / "audit.jsonl")}
    with serving(shelves(*entries(), policy=POLICY, audit=audit, groups=GROUPS), folder) as gateway:
        yield gateway


@every_way
@on_loop
async def test_each_principal_sees_what_is_its_own(guarded: Gateway, connect: Connect) -> None:
    one, other = await connect(guarded, ""), await connect(guarded, "", OTHER_TOKEN)
    assert await listed(one) == [
        *("look_up", "books__watch", "books__state"),
        *("films__find", "films__state", "films__watch"),
    ]
    assert await listed(other) == ["films__find", "plain__find", "plain__echo"]
    assert await listed(one, "prompts") == ["books__review"]
    assert await listed(other, "prompts") == []
    assert await listed(one, "resources") == ["book://one", "film://one"]
    assert await listed(other, "resources") == []
    assert await listed(other, "resourceTemplates") == []


def asked_of(books: str, uri: str) -> list[tuple[str, dict[str, Any]]]:
    """One request of each kind, of something of this name."""
    argument = {"name": "topic", "value": ""}
    return [
        ("tools/call", called(books)),
        ("prompts/get", {"name": books}),
        ("resources/read", {"uri": uri}),
        ("resources/subscribe", {"uri": uri}),
        ("resources/unsubscribe", {"uri": uri}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": books}, "argument": argument}),
        ("completion/complete", {"ref": {"type": "ref/resource", "uri": uri}, "argument": argument}),
    ]


@pytest.mark.parametrize("query", ["", "?mode=search"], ids=["list", "search"])
@every_way
@on_loop
async def test_what_one_may_not_use_is_answered_like_what_does_not_exist(
    guarded: Gateway, connect: Connect, query: str
) -> None:
    other = await connect(guarded, query, OTHER_TOKEN)
    named = [("look_up", "book://one"), ("films__state", "film://one"), ("books__review", "viaduct://books/book://one")]
    for name, uri in named:
        nothing = "x" * len(name), "zzzz" + uri[4:]
        for (method, params), (_, unknown) in zip(asked_of(name, uri), asked_of(*nothing), strict=True):
            refused = json.dumps((await other.call(method, params))["error"])
            missing = json.dumps((await other.call(method, unknown))["error"])
            assert refused.replace(name, nothing[0]).replace(uri, nothing[1]) == missing, (method, params)
    assert '"server": "films"' in await other.tool("films__find")


@every_way
@on_loop
async def test_a_call_of_a_call_is_none(tmp_path: Path, connect: Connect) -> None:
    """The audit would know it by the outer one."""
    path = tmp_path / "audit.jsonl"
    with serving(shelves(*entries(), audit={"path": str(path)}), tmp_path) as gateway:
        client = await connect(gateway, "?mode=search")
        answer = await client.call("tools/call", wrapped("call_tool", name="films__burn", arguments={}))
        assert answer["error"]["code"] == -32602
        assert answer["error"]["data"]["executed"] == "no"


@pytest.mark.parametrize("connect", [over_http, over_sse])
@on_loop
async def test_each_may_do_what_is_its_own(guarded: Gateway, connect: Connect) -> None:
    one = await connect(guarded, "")
    assert '"tool": "find"' in await one.tool("look_up")
    assert "result" in await one.call("prompts/get", {"name": "books__review"})
    assert "result" in await one.call("resources/read", {"uri": "film://one"})
    assert "result" in await one.call("resources/subscribe", {"uri": "book://one"})
    ref = {"type": "ref/prompt", "name": "books__review"}
    argument = {"name": "topic", "value": ""}
    assert "result" in await one.call("completion/complete", {"ref": ref, "argument": argument})
    assert "error" in await one.call("tools/call", called("films__burn"))
    assert "error" in await one.call("prompts/get", {"name": "films__review"})


@every_way
@on_loop
async def test_nobody_finds_or_calls_by_search_what_is_not_its_own(guarded: Gateway, connect: Connect) -> None:
    other = await connect(guarded, "?mode=search", OTHER_TOKEN)
    found = json.loads(await other.tool("find_tools", query="find burn state look books films plain", limit=50))
    assert {tool["name"] for tool in found["tools"]} <= {"films__find", "plain__find", "plain__echo"}
    assert found["tools"]
    assert '"server": "plain"' in await by_search(other, "plain__find")
    refused = await other.call("tools/call", wrapped("films__burn"))
    missing = await other.call("tools/call", wrapped("films__born"))
    assert json.dumps(refused["error"]).replace("burn", "born") == json.dumps(missing["error"])


@on_loop
async def test_who_may_use_nothing_of_a_group_finds_nothing_there(guarded: Gateway) -> None:
    assert (await request(guarded.port, "POST", "/servers/books/mcp", token=OTHER_TOKEN)).status == 404
    assert (await request(guarded.port, "POST", "/groups/nobody/mcp", token=OTHER_TOKEN)).status == 404


def records(folder: Path, event: str, since: int) -> list[dict[str, Any]]:
    lines = (folder / "audit.jsonl").read_text().splitlines()[since:]
    return [each for each in map(json.loads, lines) if each["event"] == event]


@every_way
@on_loop
async def test_the_audit_names_the_real_server_and_what_it_calls_its_own(
    guarded: Gateway, folder: Path, connect: Connect
) -> None:
    since = len((folder / "audit.jsonl").read_text().splitlines())
    one = await connect(guarded, "")
    await one.tool("look_up", value="x")
    await one.call("tools/call", called("films__burn"))
    await one.call("resources/read", {"uri": "film://one"})
    search = await connect(guarded, "?mode=search")
    await by_search(search, "films__find", value="y")
    wanted = ("principal", "server", "method", "target")
    calls = [each for each in records(folder, "call", since) if "target" in each]
    told = [[each[name] for name in wanted] for each in calls]
    assert told == [
        ["one", "books", "tools/call", "find"],
        ["one", "films", "resources/read", "resources/film://one"],
        ["one", "films", "tools/call", "find"],
    ]
    digest = hashlib.sha256(json.dumps({"value": "x"}).encode()).hexdigest()
    assert calls[0]["digest"] == digest
    [refused] = records(folder, "refusal", since)
    assert (refused["server"], refused["target"], refused["reason"]) == ("films", "burn", "unknown_target")
