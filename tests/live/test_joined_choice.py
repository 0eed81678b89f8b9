"""What is shown of many servers, by configuration, by URL and by policy: everywhere they are, and to nobody else."""

import hashlib
import json
import signal
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import Client, called
from tests.support.gateway import OTHER_TOKEN, TOKEN, Gateway, eventually, serving
from tests.support.http import on_loop, request
from tests.support.shelves import shelf, shelves
from tests.support.sse_client import SseClient
from tests.support.stateless import StatelessClient

BOOKS = shelf(
    "books",
    *("find", "burn", "quiet", "watch", "state"),
    prompts=["review", "secret"],
    resources=["book://one", "book://secret"],
    templates=["book://{title}"],
    settings={
        "tags": ["home"],
        "tools": {
            "deny": ["burn", "resources/book://secret*"],
            "change": {
                "quiet": {"enabled": False},
                "find": {"name": "look_up", "title": "Look up", "description": "Looks books up."},
                "state": {"tags": ["dev"]},
                "prompts/secret": {"enabled": False},
            },
        },
    },
)
FILMS = shelf(
    "films",
    *("find", "burn", "state", "watch"),
    prompts=["review"],
    resources=["film://one"],
    settings={"tags": ["dev", "home"]},
)
PLAIN = shelf("plain", "find", "echo")
GROUPS = {
    "office": {"servers": ["films", "books"], "tools": {"deny": ["films/burn"]}},
    "dev": {"tags": ["dev"], "mode": "search"},
}

Listing = dict[str, list[str]]
METHODS = {
    "tools": ("tools/list", "name"),
    "prompts": ("prompts/list", "name"),
    "resources": ("resources/list", "uri"),
    "resourceTemplates": ("resources/templates/list", "uriTemplate"),
}


def entries() -> list[tuple[str, dict[str, Any]]]:
    return [(name, deepcopy(each)) for name, each in (("books", BOOKS), ("films", FILMS), ("plain", PLAIN))]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with serving(shelves(*entries(), groups=GROUPS), tmp_path_factory.mktemp("choice")) as gateway:
        yield gateway


async def over_http(gateway: Gateway, base: str, token: str = TOKEN) -> Client:
    path, _, query = base.partition("?")
    return await Client(gateway, f"{path}/mcp" + (f"?{query}" if query else ""), token).open()


async def over_sse(gateway: Gateway, base: str, token: str = TOKEN) -> SseClient:
    path, _, query = base.partition("?")
    return await SseClient(gateway, f"{path}/sse" + (f"?{query}" if query else ""), token).open()


async def stateless(gateway: Gateway, base: str, token: str = TOKEN) -> StatelessClient:
    path, _, query = base.partition("?")
    return StatelessClient(gateway, f"{path}/mcp" + (f"?{query}" if query else ""), token)


every_way = pytest.mark.parametrize("connect", [over_http, over_sse, stateless])
both = pytest.mark.parametrize("connect", [over_http, over_sse])
Connect = Callable[..., Any]


async def listed(client: Any, key: str = "tools") -> list[str]:
    method, name = METHODS[key]
    return [each[name] for each in (await client.call(method))["result"][key]]


def wrapped(tool: str, **arguments: Any) -> dict[str, Any]:
    """The parameters of a call of the tool that calls others."""
    return {"name": "call_tool", "arguments": {"name": tool, "arguments": arguments}}


async def by_search(client: Any, name: str, **arguments: Any) -> str:
    answer = await client.call("tools/call", wrapped(name, **arguments))
    assert "result" in answer, answer
    return str(answer["result"]["content"][0]["text"])


async def is_unknown(client: Any, tool: str) -> bool:
    answer = await client.call("tools/call", called(tool))
    return answer.get("error", {}).get("code") == -32602 and "unknown tool" in answer["error"]["message"]


@every_way
@on_loop
async def test_what_is_switched_off_denied_or_renamed_is_so_wherever_its_server_is(
    gateway: Gateway, connect: Connect
) -> None:
    for base, prefix in (("", "books__"), ("/groups/office", "books__"), ("/servers/books", "")):
        client = await connect(gateway, base)
        tools = (await client.call("tools/list"))["result"]["tools"]
        of_books = [tool["name"] for tool in tools if "books" in tool["description"]]
        assert of_books == ["look_up", f"{prefix}watch", f"{prefix}state"]
        [look_up] = [tool for tool in tools if tool["name"] == "look_up"]
        assert (look_up["title"], look_up["description"]) == ("Look up", "Looks books up.")
        assert '"tool": "find"' in await client.tool("look_up")
        for own in ("burn", "quiet", "find"):
            for name in {own, prefix + own, f"books__{own}"}:
                assert await is_unknown(client, name), (base, name)
        assert [name for name in await listed(client, "prompts") if "films" not in name] == [f"{prefix}review"]
        hidden = await client.call("prompts/get", {"name": f"{prefix}secret"})
        assert hidden["error"]["code"] == -32602
        assert "book://secret" not in await listed(client, "resources")
        for uri in ("book://secret", "book://secret/2", "viaduct://books/book://secret"):
            assert (await client.call("resources/read", {"uri": uri}))["error"]["code"] == -32602, (base, uri)
        assert "result" in await client.call("resources/read", {"uri": "book://one"})


@every_way
@on_loop
async def test_a_group_has_its_own_servers_in_its_own_order(gateway: Gateway, connect: Connect) -> None:
    client = await connect(gateway, "/groups/office")
    assert await listed(client) == [
        *("films__find", "films__state", "films__watch"),
        *("look_up", "books__watch", "books__state"),
    ]
    for outside in ("plain__find", "films__burn"):
        assert await is_unknown(client, outside)
    whole = await connect(gateway, "")
    assert {"plain__find", "films__burn"} <= set(await listed(whole))
    assert '"tool": "burn"' in await whole.tool("films__burn")


@every_way
@on_loop
async def test_a_url_chooses_by_tags(gateway: Gateway, connect: Connect) -> None:
    films = ["films__find", "films__burn", "films__state", "films__watch"]
    dev = await connect(gateway, "?tags=dev")
    assert await listed(dev) == ["books__state", *films]
    assert await is_unknown(dev, "look_up")
    assert await is_unknown(dev, "plain__find")
    assert '"server": "films"' in await dev.tool("films__find")
    either = await connect(gateway, "?tags=home,dev")
    assert await listed(either) == ["look_up", "books__watch", "books__state", *films]
    group = await connect(gateway, "/groups/office?tags=dev")
    assert await listed(group) == ["films__find", "films__state", "films__watch", "books__state"]


@pytest.mark.parametrize("path", ["/mcp", "/sse", "/groups/office/mcp", "/groups/office/sse"])
@on_loop
async def test_tags_that_nothing_has_are_refused(gateway: Gateway, path: str) -> None:
    for query in ("tags=nowhere", "tags=", "tags=dev,nowhere", "mode=neither"):
        method = "GET" if path.endswith("sse") else "POST"
        reply = await request(gateway.port, method, f"{path}?{query}", {"Accept": "text/event-stream"})
        assert reply.status == 400, await reply.body()
        assert (await reply.json())["error"]["data"]["reason"] == "bad_query"


@pytest.mark.parametrize("path", ["/groups/nobody/mcp", "/groups/nobody/sse", "/groups/mcp", "/groups/office"])
@on_loop
async def test_a_group_that_is_not_there_is_no_path(gateway: Gateway, path: str) -> None:
    reply = await request(gateway.port, "POST", path, {"Content-Type": "application/json"}, b"{}")
    assert reply.status == 404
    assert (await reply.json())["error"]["data"]["reason"] == "unknown_path"


@every_way
@on_loop
async def test_in_search_mode_two_tools_find_and_call_what_the_group_has_and_nothing_else(
    gateway: Gateway, connect: Connect
) -> None:
    client = await connect(gateway, "/groups/dev")
    assert await listed(client) == ["find_tools", "call_tool"]
    found = json.loads(await client.tool("find_tools", query="find of films", limit=20))["tools"]
    assert found[0]["name"] == "films__find"
    films = {f"films__{own}" for own in ("find", "burn", "state", "watch")}
    assert {tool["name"] for tool in found} <= {"books__state", *films}
    assert '"server": "films", "tool": "find"' in await by_search(client, "films__find")
    assert '"server": "films", "tool": "find"' in await client.tool("films__find")
    for hidden in ("look_up", "plain__find", "books__burn", "find_tools", "call_tool"):
        answer = await client.call("tools/call", wrapped(hidden))
        assert answer["error"]["code"] == -32602, hidden
    whole = await connect(gateway, "?mode=search")
    assert '"tool": "find"' in await by_search(whole, "look_up")
    assert await listed(await connect(gateway, "/groups/dev?mode=list")) != ["find_tools", "call_tool"]


# A session outlives its gateway.


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
@on_loop
async def test_what_a_session_was_told_is_told_again_to_the_servers_whose_it_is(
    tmp_path: Path, how: signal.Signals
) -> None:
    kept = shelves(*entries(), store=f"sqlite://{tmp_path}/sessions.db")
    with serving(kept, tmp_path) as gateway:
        client = await over_http(gateway, "")
        await client.call("logging/setLevel", {"level": "error"})
        for uri in ("book://one", "film://one", "book://two"):
            assert (await client.call("resources/subscribe", {"uri": uri}))["result"] == {}
        await client.call("resources/unsubscribe", {"uri": "book://two"})
        if how is signal.SIGTERM:
            assert gateway.stop() == 0
        else:
            gateway.process.kill()
            gateway.process.wait(5)
            assert eventually(lambda: not gateway.children(), 3)
    with serving(kept, tmp_path) as again:
        client.port = again.port
        for server in ("books", "films"):
            state = json.loads(await client.tool(f"{server}__state"))
            assert state["level"] == "error"
            assert state["subscribed"] == [f"{server.removesuffix('s')}://one"]
        reply = await client.ask("tools/call", called("films__watch", uri="film://one"), 9)
        heard = [message async for message in reply.messages() if message]
        assert heard[0] == {
            "jsonrpc": "2.0",
            "method": "notifications/resources/updated",
            "params": {"uri": "film://one"},
        }


# A policy.

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


@both
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
