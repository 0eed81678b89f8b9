"""Another configuration in the file while clients are connected: which is refused, and how it comes to be read."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.reloadable import CONTENT, QUICK, as_it_was, environment, other, status
from tests.support.client import Client
from tests.support.gateway import Gateway, config, entry, eventually, serving
from tests.support.http import on_loop, request
from tests.support.reloading import has_reloaded, path_of, put, reloads, rewritten, text_of


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with serving(CONTENT, tmp_path_factory.mktemp("reload")) as gateway:
        yield gateway


@pytest.fixture
def gateway(running: Gateway) -> Iterator[Gateway]:
    with as_it_was(running) as gateway:
        yield gateway


# What is refused.


BROKEN = {
    "half a file": lambda text: text[: len(text) // 2],
    "nothing": lambda _: "",
    "an unknown key": lambda text: text.replace('"stopTimeout"', '"stopTimeuot"', 1),
    "another address": lambda text: text.replace('"drain"', '"listen": "127.0.0.2:1", "drain"'),
    "another store": lambda text: text.replace('"drain"', '"store": "sqlite:///tmp/x.db", "drain"'),
}


@pytest.mark.parametrize("wrong", BROKEN)
def test_a_bad_configuration_is_refused_and_the_one_before_serves_on(gateway: Gateway, wrong: str) -> None:
    async def run() -> None:
        client = await Client(gateway).open()
        pid, lines = await client.tool("pid"), len(gateway.log_lines)
        text = BROKEN[wrong](text_of(gateway, other(added=entry())))
        await rewritten(gateway, text, "refused")
        assert await client.tool("pid") == pid
        assert await status(gateway, "/servers/added/mcp") == 404
        put(path_of(gateway), text)
        await rewritten(gateway, text_of(gateway, other(added=entry(**QUICK))))
        assert await status(gateway, "/servers/added/mcp") == 405
        assert await client.tool("pid") == pid
        refusals = [line for line in gateway.log_lines[lines:] if "configuration refused" in line]
        assert len(refusals) == 1, refusals
        if wrong.startswith("another"):
            assert "viaduct." in refusals[0]
            assert "restart" in refusals[0]

    on_loop(run)()


# How it comes to be read.


@on_loop
async def test_a_signal_has_it_read_though_nothing_changed(gateway: Gateway) -> None:
    before = await reloads(gateway)
    os.kill(gateway.pid, signal.SIGHUP)
    await has_reloaded(gateway, before)
    assert await (await Client(gateway).open()).tool("echo", nonce="x") == "x"


def swapped(folder: Path, text: str, number: int) -> None:
    """As Kubernetes does it: the file is a link into a folder that is a link itself."""
    (folder / f"..{number}").mkdir()
    (folder / f"..{number}" / "viaduct.json").write_text(text)
    (folder / "..next").symlink_to(f"..{number}")
    (folder / "..next").rename(folder / "..data")


def test_links_are_followed_and_a_token_that_was_made_stays_good(tmp_path: Path) -> None:
    from tests.cli import viaduct

    text = '{"mcpServers": {%s}, "viaduct": {"watchInterval": 0.05}}'
    server = '"%s": {"command": "' + viaduct.WEATHER[0] + '", "args": ["-P", "-m", "app.demo.weather"]}'
    swapped(tmp_path, text % (server % "one"), 1)
    path = tmp_path / "viaduct.json"
    path.symlink_to("..data/viaduct.json")
    with viaduct.serving(tmp_path, "serve", "--port", "0", str(path)) as gateway:
        swapped(tmp_path, text % (server % "one" + ", " + server % "two"), 2)
        assert eventually(lambda: "configuration reloaded" in gateway.log.read_text(), 5), gateway.log.read_text()
        assert 'added=["two"]' in gateway.log.read_text().replace("\\", "")
        [token] = {word for word in gateway.banner.replace('"', " ").split() if word.startswith("vdt_")}
        port = int(re.findall(r"http://127.0.0.1:(\d+)", gateway.banner)[0])

        async def run() -> None:
            assert (await request(port, "GET", "/servers/two/mcp", token=token)).status == 405
            assert (await request(port, "GET", "/servers/two/mcp", token="vdt_other")).status == 401

        on_loop(run)()
        assert gateway.stop() == 0


def test_a_file_of_variables_is_looked_at_too(tmp_path: Path) -> None:
    variables = tmp_path / "variables"
    variables.write_text("REVISION=1\n")
    content = config({"stage": entry(envFile=str(variables), **QUICK)}, watchInterval=0.05)
    with serving(content, tmp_path) as gateway:

        async def run() -> None:
            client = await Client(gateway).open()
            assert (await environment(client))["REVISION"] == "1"
            before = await reloads(gateway)
            put(variables, "REVISION=2\n")
            await has_reloaded(gateway, before)
            assert (await environment(client))["REVISION"] == "2"

        on_loop(run)()
