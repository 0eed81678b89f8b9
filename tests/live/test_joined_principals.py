"""What each principal is told of many servers, and others are not."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.client import Client
from tests.support.gateway import OTHER_TOKEN, TOKEN, Gateway, serving
from tests.support.http import on_loop
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
