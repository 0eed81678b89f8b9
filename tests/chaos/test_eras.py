"""Which era a server speaks is found out whatever it does when it is asked, and found out again when it has changed."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.conftest import Connect
from tests.support.client import Client, called
from tests.support.gateway import Gateway, config, entry, eventually, serving, stateless_entry
from tests.support.http import on_loop
from tests.support.stateless import ACCEPTED, CALL, StatelessClient, answers, said

BRISK = {"stopTimeout": 0.3, "killTimeout": 0.3}
PROBE = 0.6
ANSWERS_TO_DISCOVER = ["hang", "exit", "garbage", "-32601", "-32602", "-32600", "-32000"]
DUAL = ("--mode", "dual")
pytestmark = pytest.mark.usefixtures("undisturbed")


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Says which era the server `changing` speaks when it starts."""
    return tmp_path_factory.mktemp("changing") / "era"


@pytest.fixture(scope="module")
def gateway(changing: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    servers = {
        "calm": entry(**BRISK),
        **{f"to{way}": entry("--discover", way, **BRISK) for way in ANSWERS_TO_DISCOVER},
        "modern": stateless_entry(**BRISK),
        "slow-modern": stateless_entry("--mode", "slow_start", "--n", str(2 * PROBE), **BRISK),
        "slow-legacy": entry("--mode", "slow_start", "--n", str(2 * PROBE), **BRISK),
        "silent": stateless_entry("--mode", "hangs_on_initialize", **BRISK),
        "leaving": stateless_entry("--mode", "exits_on_initialize", **BRISK),
        "refusing": entry("--mode", "refuses", **BRISK),
        "dead": entry("--mode", "exit_early", **BRISK),
        "changing": stateless_entry("--mode", "told", "--file", str(changing), **BRISK),
        "leaving-later": stateless_entry("--mode", "told", "--file", str(changing), "--discover", "exit", **BRISK),
        "dual": stateless_entry(*DUAL, **BRISK),
        "dual-as-legacy": stateless_entry(*DUAL, **BRISK),
        "dual-as-modern": stateless_entry(*DUAL, **BRISK),
        "modern-as-legacy": stateless_entry(**BRISK),
        "legacy-as-modern": entry(**BRISK),
    }
    for name, server in servers.items():
        server |= {"eraTimeout": PROBE, "startTimeout": 6}
        if "-as-" in name:
            server["era"] = name.rpartition("-")[2]
    content = config(servers, stateless={"idleTimeout": 0.4})
    with serving(content, tmp_path_factory.mktemp("eras")) as gateway:
        yield gateway


async def received(client: StatelessClient | Client) -> list[str]:
    """The methods that the child was sent."""
    return [json.loads(line).get("method") for line in json.loads(await client.tool("received"))]


def becomes(changing: Path, era: str) -> None:
    """From its next start on."""
    changing.write_text(era)


# A server of the handshake, whatever it does when it is asked for the other era.


@pytest.mark.parametrize("way", ANSWERS_TO_DISCOVER)
@on_loop
async def test_a_server_that_does_not_know_discover_is_greeted(gateway: Gateway, way: str) -> None:
    client = StatelessClient(gateway, f"to{way}")
    assert await client.tool("echo", nonce="n") == "n"
    asks = await client.asked("interview", rounds=[["form"]])
    told = json.loads(said(await client.retry(asks, answers(asks), "interview", rounds=[["form"]])))
    assert told["said"] == [{"form": ACCEPTED}]


@pytest.mark.parametrize("way", ANSWERS_TO_DISCOVER)
@on_loop
async def test_what_was_found_is_kept_and_no_later_child_is_asked(gateway: Gateway, way: str) -> None:
    client = StatelessClient(gateway, f"to{way}")
    pid = await client.tool("pid")
    assert eventually(lambda: int(pid) not in gateway.children(), 5)
    methods = await received(client)
    assert await client.tool("pid") != pid
    assert methods[:2] == ["initialize", "notifications/initialized"]
    assert "server/discover" not in methods


@on_loop
async def test_a_server_that_answers_without_a_handshake_is_greeted_all_the_same(gateway: Gateway) -> None:
    client = StatelessClient(gateway, "to-32601")
    listed = (await client.call("tools/list"))["result"]
    assert (listed["resultType"], listed["ttlMs"], listed["cacheScope"]) == ("complete", 0, "private")
    assert "initialize" in await received(client)


@on_loop
async def test_a_server_of_the_handshake_that_starts_slowly_is_found(gateway: Gateway) -> None:
    assert await StatelessClient(gateway, "slow-legacy").tool("echo", nonce="n") == "n"


# A stateless server.


@on_loop
async def test_a_stateless_server_is_asked_once_and_every_later_child_too(gateway: Gateway) -> None:
    client = StatelessClient(gateway, "modern")
    assert (await received(client))[0] == "server/discover"
    pid = int(await client.tool("pid"))
    assert eventually(lambda: pid not in gateway.children(), 5)
    assert (await received(client)).count("initialize") == 0


@pytest.mark.parametrize("server", ["silent", "leaving"])
@on_loop
async def test_a_stateless_server_that_bears_no_greeting_gets_none(gateway: Gateway, server: str) -> None:
    assert await StatelessClient(gateway, server).tool("echo", nonce="n") == "n"


@on_loop
async def test_a_stateless_server_that_starts_slower_than_it_is_given_is_found_all_the_same(gateway: Gateway) -> None:
    assert await StatelessClient(gateway, "slow-modern").tool("echo", nonce="n") == "n"


@pytest.mark.parametrize("server", ["modern", "dual"])
@on_loop
async def test_a_handshake_client_is_greeted_by_whatever_there_is(
    gateway: Gateway, connect: Connect, server: str
) -> None:
    client = await connect(server)
    assert await client.tool("echo", nonce="n") == "n"
    expected = ["initialize", "server/discover"] if server == "modern" else ["initialize", "notifications/initialized"]
    assert (await received(client))[:2] == expected
    later = await connect(server)
    assert (await received(later))[0] == ("server/discover" if server == "modern" else "initialize")


@on_loop
async def test_each_client_meets_a_server_of_both_eras_in_its_own(gateway: Gateway, connect: Connect) -> None:
    legacy, modern = await connect("dual"), StatelessClient(gateway, "dual")
    for _ in range(2):
        assert (await received(legacy))[0] == "initialize"
        assert (await received(modern))[0] == "server/discover"
    asks = await modern.asked("interview", rounds=[["form"]])
    assert asks["requestState"] == "[]"


# Neither, or not what was said.


@pytest.mark.parametrize("server", ["refusing", "dead", "legacy-as-modern", "modern-as-legacy"])
@on_loop
async def test_a_server_that_cannot_be_spoken_to_is_unavailable_and_is_not_left_running(
    gateway: Gateway, server: str
) -> None:
    before = set(gateway.children())
    reply = await StatelessClient(gateway, server).ask(CALL, called("echo"), ident="x")
    body = await reply.json()
    assert (reply.status, body["id"], body["error"]["code"]) == (200, "x", -31001), body
    assert body["error"]["data"]["executed"] == "no"
    assert body["error"]["data"]["server"] == server
    assert eventually(lambda: set(gateway.children()) <= before, 5)


@on_loop
async def test_the_setting_decides_which_era_a_server_of_both_is_spoken_to_in(
    gateway: Gateway, connect: Connect
) -> None:
    for server, first in (("dual-as-legacy", "initialize"), ("dual-as-modern", "server/discover")):
        legacy, modern = await connect(server), StatelessClient(gateway, server)
        assert (await received(legacy))[0] == first
        assert (await received(modern))[0] == first


# A server that changes.


@pytest.mark.parametrize("eras", [("legacy", "modern", "legacy"), ("modern", "legacy", "modern")])
@on_loop
async def test_a_server_that_changes_its_era_is_found_out_again_by_stateless_clients(
    gateway: Gateway, changing: Path, eras: tuple[str, ...]
) -> None:
    client = StatelessClient(gateway, "changing")
    for era in eras:
        becomes(changing, era)
        for _ in range(2):
            asks = await client.asked("interview", rounds=[["form"]])
            assert (asks["requestState"] == "[]") is (era == "modern")
            told = await client.retry(asks, answers(asks), "interview", rounds=[["form"]])
            assert json.loads(said(told))["said"] != []
        pid = int(await client.tool("pid"))
        assert eventually(lambda pid=pid: pid not in gateway.children(), 5)  # type: ignore[misc]


@pytest.mark.parametrize("eras", [("legacy", "modern", "legacy"), ("modern", "legacy", "modern")])
@on_loop
async def test_a_server_that_changes_its_era_is_found_out_again_by_handshake_clients(
    gateway: Gateway, connect: Connect, changing: Path, eras: tuple[str, ...]
) -> None:
    for era in eras:
        becomes(changing, era)
        for _ in range(2):
            client = await connect("changing")
            assert await client.tool("echo", nonce=era) == era
        assert (await received(client))[0] == ("initialize" if era == "legacy" else "server/discover")


@on_loop
async def test_a_server_that_has_changed_and_exits_on_discover_is_tried_so_once(
    gateway: Gateway, connect: Connect, changing: Path
) -> None:
    def started() -> int:
        return len([line for line in gateway.log_lines if "child started" in line and "leaving-later" in line])

    becomes(changing, "modern")
    assert await (await connect("leaving-later")).tool("echo", nonce="n") == "n"
    becomes(changing, "legacy")
    for expected in (2, 1):
        before = started()
        assert await (await connect("leaving-later")).tool("echo", nonce="n") == "n"
        assert eventually(lambda before=before: started() > before)  # type: ignore[misc]
        assert started() - before == expected
