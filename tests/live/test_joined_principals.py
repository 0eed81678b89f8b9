"""What each principal is told of many servers, and others are not."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import Client, called
from tests.support.gateway import OTHER_TOKEN, TOKEN, Gateway, serving
from tests.support.http import on_loop
from tests.support.reloading import reloaded
from tests.support.shelves import shelf, shelves
from tests.support.stateless import StatelessClient

KEPT = {"cacheTtl": 60, "cacheScope": "public"}
SERVERS = (
    ("books", shelf("books", "find", instructions="Ask for books.", settings={**KEPT, "tags": ["home"]})),
    ("films", shelf("films", "find", instructions="Ask for films.", settings={**KEPT, "tags": ["dev"]})),
)
POLICY = [{"subjects": ["one"], "allow": ["*"]}, {"subjects": ["other"], "allow": ["films"]}]
BOTH, FILMS = "# books\n\nAsk for books.\n\n# films\n\nAsk for films.", "# films\n\nAsk for films."


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with serving(shelves(*SERVERS, policy=POLICY), tmp_path_factory.mktemp("policy")) as gateway:
        yield gateway


@pytest.mark.parametrize(
    ("path", "token", "told"),
    [("/mcp", TOKEN, BOTH), ("/mcp", OTHER_TOKEN, FILMS), ("/mcp?tags=dev", TOKEN, FILMS)],
)
@on_loop
async def test_what_should_be_known_is_said_of_servers_that_are_seen(
    gateway: Gateway, path: str, token: str, told: str
) -> None:
    client = await Client(gateway, path, token).open()
    assert client.greeted["result"]["instructions"] == told
    discovered = await StatelessClient(gateway, path, token).call("server/discover")
    assert discovered["result"]["instructions"] == told


@on_loop
async def test_what_is_shown_to_one_is_not_kept_for_all(gateway: Gateway) -> None:
    client = StatelessClient(gateway, "/mcp", OTHER_TOKEN)
    for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "server/discover"):
        result = (await client.call(method))["result"]
        assert (result["ttlMs"], result["cacheScope"]) == (60_000, "private"), method


@on_loop
async def test_without_a_policy_it_is_as_the_servers_say(tmp_path: Path) -> None:
    with serving(shelves(*SERVERS), tmp_path) as gateway:
        result = (await StatelessClient(gateway, "/mcp").call("tools/list"))["result"]
        assert result["cacheScope"] == "public"


@on_loop
async def test_who_calls_while_servers_come_calls_nothing_that_is_not_its_own(tmp_path: Path) -> None:
    """`find` is the films' as long as books, which go first, are not read; a session that opens waits for them."""
    again: dict[str, Any] = {
        "naming": "none",
        "policy": POLICY,
        "watchInterval": 0.05,
        "sessions": {"withoutId": "implicit"},
    }
    again["catalog"] = {"read": "use", "listTimeout": 1}
    films, songs = SERVERS[1], ("songs", shelf("songs", "sing"))
    slow = ("books", shelf("books", "find", slow=2))
    with serving(shelves(films, songs, **again), tmp_path) as gateway:
        await reloaded(gateway, shelves(slow, films, songs, **again))
        await StatelessClient(gateway, "/mcp").call("tools/call", called("sing"))
        answer = await Client(gateway, "/mcp", OTHER_TOKEN).call("tools/call", called("find"))
        assert '"server": "books"' not in json.dumps(answer).replace("\\", "")
