"""Many servers behind one URL, for clients of the handshake."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.choosing import entries, over_http
from tests.support.client import Client, called
from tests.support.gateway import Gateway, eventually, serving
from tests.support.http import on_loop
from tests.support.shelves import shelf, shelves

LIBRARY = shelves(
    (
        "books",
        shelf(
            "books",
            *("find", "pid", "ask", "links", "watch", "log", "progress", "exit", "state", "sleep", "查书", "a/b.c d"),
            prompts=["review", "blurb"],
            resources=["book://one", "shared://x"],
            templates=["book://{title}", "any://{a}"],
            instructions="Ask for books.",
        ),
    ),
    (
        "films",
        shelf(
            "films",
            *("find", "pid", "ask", "watch", "log", "change", "state"),
            after=["change", "fresh"],
            prompts=["review"],
            resources=["film://one", "shared://x"],
            templates=["film://{title}", "any://{b}"],
            instructions="Ask for films.",
            page=2,
        ),
    ),
    ("plain", shelf("plain", "pid", "echo", needs="sampling", more=["dream"])),
)


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with serving(LIBRARY, tmp_path) as gateway:
        yield gateway


async def opened(gateway: Gateway, path: str = "/mcp", **given: Any) -> Client:
    return await Client(gateway, path).open(**given)


async def listed(client: Client, method: str, key: str, name: str = "name") -> list[str]:
    found: list[str] = []
    cursor: dict[str, Any] = {}
    while True:
        result = (await client.call(method, cursor))["result"]
        found += [each[name] for each in result[key]]
        if "nextCursor" not in result:
            return found
        cursor = {"cursor": result["nextCursor"]}


@on_loop
async def test_all_tools_are_one_list_and_each_is_called_by_its_public_name(gateway: Gateway) -> None:
    client = await opened(gateway)
    tools = (await client.call("tools/list"))["result"]["tools"]
    names = [tool["name"] for tool in tools]
    assert names[:2] == ["books__find", "books__pid"]
    assert {"films__find", "plain__echo", "plain__dream"} <= set(names)
    by_title = {tool.get("title"): tool["name"] for tool in tools}
    for own in ("查书", "a/b.c d"):
        answer = await client.tool(by_title[own], value="x")
        assert f'"tool": "{own}"' in answer, answer
    assert '"server": "films", "tool": "find"' in await client.tool("films__find")
    unknown = await client.call("tools/call", called("find"))
    assert unknown["error"]["code"] == -32602, unknown


@on_loop
async def test_no_child_starts_before_it_is_needed_and_then_only_that_one(gateway: Gateway) -> None:
    client = await opened(gateway)
    await client.call("tools/list")
    assert eventually(lambda: not gateway.children()), "those that were asked what they offer are stopped"
    other = await opened(gateway)
    await other.call("tools/list")
    assert not gateway.children()
    pid = int(await other.tool("books__pid"))
    assert gateway.children() == [pid]
    assert int(await other.tool("books__pid")) == pid


@on_loop
async def test_it_introduces_itself_as_all_of_them(gateway: Gateway) -> None:
    greeted = (await opened(gateway)).greeted["result"]
    assert greeted["capabilities"] == {
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "completions": {},
        "logging": {},
    }
    assert greeted["instructions"] == "# books\n\nAsk for books.\n\n# films\n\nAsk for films."
    assert greeted["serverInfo"]["name"] == "viaduct"


@on_loop
async def test_prompts_and_completions_find_their_way(gateway: Gateway) -> None:
    client = await opened(gateway)
    names = await listed(client, "prompts/list", "prompts")
    assert names == ["books__review", "books__blurb", "films__review"]
    prompt = await client.call("prompts/get", {"name": "films__review"})
    assert prompt["result"]["messages"][0]["content"]["text"] == "review of films"
    argument = {"name": "topic", "value": ""}
    for reference, said in (
        ({"type": "ref/prompt", "name": "books__review"}, ["books", "review"]),
        ({"type": "ref/resource", "uri": "film://{title}"}, ["films", "film://{title}"]),
    ):
        completed = await client.call("completion/complete", {"ref": reference, "argument": argument})
        assert completed["result"]["completion"]["values"] == said


@on_loop
async def test_a_resource_keeps_its_uri_where_that_is_one_servers(gateway: Gateway) -> None:
    client = await opened(gateway)
    uris = await listed(client, "resources/list", "resources", "uri")
    assert uris == ["book://one", "viaduct://books/shared://x", "film://one", "viaduct://films/shared://x"]
    templates = await listed(client, "resources/templates/list", "resourceTemplates", "uriTemplate")
    assert templates[0] == "book://{title}"
    assert templates[1].startswith("viaduct://books/any://")
    for uri, text in (
        ("film://one", "film://one of films"),
        ("viaduct://films/shared://x", "shared://x of films"),
        ("book://never listed", "book://never listed of books"),
        ("viaduct://books/any://thing", "any://thing of books"),
    ):
        [contents] = (await client.call("resources/read", {"uri": uri}))["result"]["contents"]
        assert contents == {"uri": uri, "text": text}
    unknown = await client.call("resources/read", {"uri": "nobody://x"})
    assert unknown["error"]["code"] == -32602


@on_loop
async def test_a_link_in_a_result_leads_back_to_its_server(gateway: Gateway) -> None:
    client = await opened(gateway)
    for uri, public in (("book://one", "book://one"), ("nobody://x", "viaduct://books/nobody://x")):
        answer = await client.call("tools/call", called("books__links", uri=uri))
        assert answer["result"]["content"][0]["uri"] == public
        [contents] = (await client.call("resources/read", {"uri": public}))["result"]["contents"]
        assert contents["text"] == f"{uri} of books"


@on_loop
async def test_a_subscription_is_its_servers(gateway: Gateway) -> None:
    client = await opened(gateway)
    uri = "viaduct://films/shared://x"
    assert (await client.call("resources/subscribe", {"uri": uri}))["result"] == {}
    assert '"subscribed": ["shared://x"]' in await client.tool("films__state")
    reply = await client.ask("tools/call", called("films__watch", uri="shared://x"), 77)
    heard = [message async for message in reply.messages() if message]
    assert heard[0]["params"] == {"uri": uri}
    await client.call("resources/unsubscribe", {"uri": uri})
    assert '"subscribed": []' in await client.tool("films__state")


@on_loop
async def test_questions_of_two_servers_under_one_id_are_told_apart(gateway: Gateway) -> None:
    client = await opened(gateway)
    asked = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object"}}}
    replies = [await client.ask("tools/call", called(name, **asked), name) for name in ("books__ask", "films__ask")]
    streams = [reply.messages() for reply in replies]
    questions = [await anext(stream) for stream in streams]
    assert [question["method"] for question in questions] == ["elicitation/create"] * 2
    assert questions[0]["id"] != questions[1]["id"]
    for question, name in reversed(list(zip(questions, ("books", "films"), strict=True))):
        await client.answer(question["id"], {"action": "accept", "content": {"who": name}})
    for stream, name in zip(streams, ("books", "films"), strict=True):
        answer = await anext(stream)
        assert f'"who": "{name}"' in answer["result"]["content"][0]["text"]


@on_loop
async def test_progress_and_log_level_find_their_way(gateway: Gateway) -> None:
    client = await opened(gateway)
    await client.call("logging/setLevel", {"level": "warning"})
    params = {**called("books__progress"), "_meta": {"progressToken": "mine"}}
    reply = await client.ask("tools/call", params, 5)
    heard = [message async for message in reply.messages()]
    assert [message["params"]["progressToken"] for message in heard[:-1]] == ["mine", "mine"]
    for name in ("books", "films"):
        assert '"level": "warning"' in await client.tool(f"{name}__state")
    reply = await client.ask("tools/call", called("films__log", level="error"), 6)
    heard = [message async for message in reply.messages()]
    assert heard[0]["params"]["data"] == "from films"


@on_loop
async def test_a_changed_list_is_one_notification_and_then_the_new_list(gateway: Gateway) -> None:
    client = await opened(gateway)
    await client.call("tools/list")
    stream = await client.listen()
    assert stream.status == 200
    await client.tool("films__change")
    told = await anext(stream.messages())
    assert told["method"] == "notifications/tools/list_changed"
    names = await listed(client, "tools/list", "tools")
    assert [name for name in names if name.startswith("films")] == ["films__change", "films__fresh"]
    assert '"tool": "fresh"' in await client.tool("films__fresh")


@on_loop
async def test_a_client_sees_what_its_own_children_have_for_it(gateway: Gateway) -> None:
    """What the servers offer was read with all capabilities; a client that has none is offered less."""
    client = await opened(gateway, capabilities={})
    assert "plain__dream" in await listed(client, "tools/list", "tools")
    await client.tool("plain__echo")
    stream = await client.listen()
    told = await anext(stream.messages())
    assert told["method"] == "notifications/tools/list_changed"
    assert "plain__dream" not in await listed(client, "tools/list", "tools")


@on_loop
async def test_the_end_of_one_child_is_no_end_of_the_session(gateway: Gateway) -> None:
    client = await opened(gateway)
    pid = await client.tool("films__pid")
    answer = await client.call("tools/call", called("books__exit"))
    assert answer["error"]["code"] == -31002, answer
    assert answer["error"]["data"]["server"] == "books"
    assert await client.tool("films__pid") == pid
    assert '"tool": "find"' in await client.tool("books__find")


@on_loop
async def test_a_deleted_session_leaves_none_of_its_children(gateway: Gateway) -> None:
    client = await opened(gateway)
    for name in ("books__pid", "films__pid", "plain__pid"):
        await client.tool(name)
    assert len(gateway.children()) == 3
    assert (await client.delete()).status == 204
    assert eventually(lambda: not gateway.children())


@on_loop
async def test_each_server_has_the_time_that_its_own_settings_give_it(tmp_path: Path) -> None:
    content = shelves(
        ("hasty", shelf("hasty", "sleep", settings={"requestTimeout": 0.3})), ("calm", shelf("calm", "sleep"))
    )
    with serving(content, tmp_path) as gateway:
        client = await opened(gateway)
        assert '"server": "calm"' in await client.tool("calm__sleep", seconds=0.6)
        late = await client.call("tools/call", called("hasty__sleep", seconds=5))
        assert late["error"]["code"] == -31003
        assert late["error"]["data"]["server"] == "hasty"


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
