"""Many servers behind one URL, for stateless clients (2026-07-28)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.test_joined import LIBRARY, listed
from tests.support.client import Client, called
from tests.support.gateway import Gateway, eventually, serving, stateless_entry
from tests.support.http import on_loop
from tests.support.shelves import shelf, shelves
from tests.support.stateless import LISTEN, StatelessClient, answers, methods_of, said


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with serving(LIBRARY, tmp_path) as gateway:
        yield gateway


def client_of(gateway: Gateway, path: str = "/mcp", **given: Any) -> StatelessClient:
    return StatelessClient(gateway, path, **given)


@on_loop
async def test_lists_are_answered_without_a_child(gateway: Gateway) -> None:
    client = client_of(gateway)
    answer = await client.call("tools/list")
    result = answer["result"]
    assert result["resultType"] == "complete"
    assert result["cacheScope"] == "private"
    assert result["ttlMs"] == 0
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "viaduct"
    assert [tool["name"] for tool in result["tools"]][:2] == ["books__find", "books__pid"]
    assert eventually(lambda: not gateway.children())
    uris = await listed(client, "resources/list", "resources", "uri")
    assert uris == ["book://one", "viaduct://books/shared://x", "film://one", "viaduct://films/shared://x"]
    assert not gateway.children()


@on_loop
async def test_it_tells_what_all_of_them_can(gateway: Gateway) -> None:
    result = (await client_of(gateway).call("server/discover"))["result"]
    assert result["capabilities"]["completions"] == {}
    assert result["capabilities"]["resources"] == {"listChanged": True, "subscribe": True}
    assert result["instructions"].startswith("# books\n\nAsk for books.")
    assert "2026-07-28" in result["supportedVersions"]


@on_loop
async def test_a_call_goes_to_the_server_whose_tool_it_is(gateway: Gateway) -> None:
    client = client_of(gateway)
    tools = (await client.call("tools/list"))["result"]["tools"]
    for tool in tools:
        if tool["name"].split("__")[-1] in ("find", "echo", "查书"):
            assert '"tool": ' in said(await client.call("tools/call", called(tool["name"], value="x")))
    assert '"server": "films", "tool": "find"' in said(await client.call("tools/call", called("films__find")))
    pid = said(await client.call("tools/call", called("plain__pid")))
    assert said(await client.call("tools/call", called("plain__pid"))) == pid
    answer = await client.call("tools/call", called("find"))
    assert answer["error"]["code"] == -32602
    assert (await client.call("no/such"))["error"]["code"] == -32601


@on_loop
async def test_a_call_before_anything_is_known_waits_for_that(gateway: Gateway) -> None:
    assert '"server": "films"' in said(await client_of(gateway).call("tools/call", called("films__find")))


@on_loop
async def test_prompts_resources_and_completions_find_their_way(gateway: Gateway) -> None:
    client = client_of(gateway)
    prompt = await client.call("prompts/get", {"name": "films__review"})
    assert prompt["result"]["messages"][0]["content"]["text"] == "review of films"
    uri = "viaduct://films/shared://x"
    [contents] = (await client.call("resources/read", {"uri": uri}))["result"]["contents"]
    assert contents == {"uri": uri, "text": "shared://x of films"}
    reference = {"type": "ref/prompt", "name": "books__review"}
    completed = await client.call("completion/complete", {"ref": reference, "argument": {"name": "t", "value": ""}})
    assert completed["result"]["completion"]["values"] == ["books", "review"]


@on_loop
async def test_a_question_is_answered_by_a_retry(gateway: Gateway) -> None:
    client = client_of(gateway)
    asked = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object"}}}
    params = called("films__ask", **asked)
    first = (await client.call("tools/call", params))["result"]
    assert methods_of(first) == ["elicitation/create"]
    retry = {**params, "inputResponses": answers(first), "requestState": first["requestState"]}
    assert "Ada" in said(await client.call("tools/call", retry))


@on_loop
async def test_a_subscription_hears_of_lists_and_resources_of_all(gateway: Gateway) -> None:
    client = client_of(gateway)
    await client.call("tools/list")
    uri = "viaduct://films/shared://x"
    wanted = {"toolsListChanged": True, "resourceSubscriptions": [uri, "book://one"]}
    reply = await client.ask(LISTEN, {"notifications": wanted}, "sub")
    stream = reply.messages()
    told = await anext(stream)
    assert told["method"] == "notifications/subscriptions/acknowledged"
    assert sorted(told["params"]["notifications"]["resourceSubscriptions"]) == ["book://one", uri]
    await client.call("tools/call", called("films__watch", uri="shared://x"))
    told = await anext(stream)
    assert told["method"] == "notifications/resources/updated"
    assert told["params"]["uri"] == uri
    assert told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "sub"


@on_loop
async def test_a_subscription_hears_of_the_rest_where_one_server_does_not_tell(tmp_path: Path) -> None:
    """One has no subscriptions, one ends, one cannot start any more."""
    greeted = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "mute", "version": "1"}}
    mute = {**greeted, "capabilities": {"resources": {}}}
    content = shelves(
        ("mute", shelf("mute", resources=["mute://a"], at={"initialize": mute})),
        ("fatal", shelf("fatal", resources=["fatal://a"], at={"resources/subscribe": "exit"})),
        ("gone", shelf("gone", resources=["gone://a"], at={"initialize": f"exit until {tmp_path / 'there'}"})),
        ("films", shelf("films", "watch", resources=["film://one"])),
    )
    (tmp_path / "there").touch()
    with serving(content, tmp_path) as gateway:
        client = client_of(gateway)
        assert len(await listed(client, "resources/list", "resources", "uri")) == 4
        assert eventually(lambda: not gateway.children())
        (tmp_path / "there").unlink()
        uris = [f"{server}://a" for server in ("mute", "fatal", "gone")]
        reply = await client.ask(LISTEN, {"notifications": {"resourceSubscriptions": [*uris, "film://one"]}}, "sub")
        stream = reply.messages()
        assert (await anext(stream))["params"]["notifications"] == {"resourceSubscriptions": ["film://one"]}
        await client.call("tools/call", called("films__watch", uri="film://one"))
        assert (await anext(stream))["params"]["uri"] == "film://one"


@on_loop
async def test_stateless_servers_are_joined_with_others(tmp_path: Path) -> None:
    content = shelves(("modern", stateless_entry(stopTimeout=0.5)), ("books", shelf("books", "find")))
    with serving(content, tmp_path) as gateway:
        for client in (client_of(gateway), await Client(gateway, "/mcp").open()):
            names = await listed(client, "tools/list", "tools")
            assert "books__find" in names
            assert "modern__echo" in names
            answer = await client.call("tools/call", called("modern__echo", nonce="hello"))
            assert "hello" in answer["result"]["content"][0]["text"]


@on_loop
async def test_who_listens_before_all_is_known_hears_first_that_it_is_heard(tmp_path: Path) -> None:
    content = shelves(("books", shelf("books", "find")), ("films", shelf("films", "find", slow=0.3)))
    with serving(content, tmp_path) as gateway:
        stream = await client_of(gateway).listen(toolsListChanged=True)  # Asserts that.
        stream.close()
