"""Child processes that do not start, or only later, or slowly: who waits for them hears why."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.conftest import Connect
from tests.support.client import Client, greeting
from tests.support.gateway import Gateway, config, entry, serving, stage
from tests.support.http import Reply, on_loop

BRISK = {"stopTimeout": 0.5, "killTimeout": 0.5}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("starting")
    servers = {
        "calm": entry(**BRISK),
        "exits": entry("--mode", "exit0", **BRISK),
        "fails": entry("--mode", "exit_early", **BRISK),
        "silent": entry("--mode", "never_greets", **BRISK, startTimeout=1),
        "prompting": entry("--mode", "prompts_operator", **BRISK, startTimeout=1),
        "refusing": entry("--mode", "refuses", **BRISK),
        "slow": entry("--mode", "slow_start", "--n", "1.5", **BRISK),
        "absent": {"command": str(folder / "absent")},
        "unlisted": {"command": "no-such-command-anywhere"},
        "forbidden": {"command": str(_file(folder / "forbidden", "#!/bin/sh\n", 0o644))},
        "formless": {"command": str(_file(folder / "formless", "\x00\x01\x02\x03", 0o755))},
        "uninterpreted": {"command": str(_file(folder / "uninterpreted", "#!/no/such/shell\n", 0o755))},
        "verbose": {"command": sys.executable, "args": ["x" * 200_000]},
        "lost": entry(cwd=str(folder / "nowhere")),
        "later": {"command": str(folder / "later"), **BRISK},
    }
    with serving(config(servers, streams={"keepAlive": 0.3}, restarts={"backoff": 0.02}), folder) as gateway:
        yield gateway


def _file(path: Path, content: str, mode: int) -> Path:
    path.write_text(content)
    path.chmod(mode)
    return path


async def greet(gateway: Gateway, server: str) -> tuple[Reply, Any]:
    """The response to initialize, and the message in it."""
    client = Client(gateway, server)
    reply = await client.post(greeting())
    return reply, await client.settle(reply, 0)


UNSTARTABLE = {
    "absent": "command_not_found",
    "unlisted": "command_not_found",
    "forbidden": "not_executable",
    "formless": "not_executable",
    "uninterpreted": "bad_interpreter",
    "verbose": "bad_argument",
    "lost": "bad_cwd",
}


@pytest.mark.parametrize("server", UNSTARTABLE)
@on_loop
async def test_a_server_that_cannot_be_started_says_why_and_the_others_serve(
    gateway: Gateway, connect: Connect, server: str
) -> None:
    reply, answer = await greet(gateway, server)
    assert reply.status == 200
    assert "mcp-session-id" not in reply.headers
    error = answer["error"]
    assert error["code"] == -31001
    data = error["data"]
    assert (data["reason"], data["executed"], data["server"]) == (UNSTARTABLE[server], "no", server)
    assert await (await connect()).tool("echo", nonce="fine") == "fine"


@on_loop
async def test_a_command_that_appears_later_is_found_without_a_restart(gateway: Gateway, connect: Connect) -> None:
    reply, _ = await greet(gateway, "later")
    assert reply.status == 200
    _file(gateway.folder / "later", f"#!/bin/sh\nexec {' '.join(stage())}\n", 0o755)
    assert await (await connect("later")).tool("echo", nonce="healed") == "healed"


@pytest.mark.parametrize(("server", "code", "stderr"), [("exits", 0, []), ("fails", 7, ["cannot find my settings"])])
@on_loop
async def test_a_server_that_ends_before_it_is_ready_is_told_with_its_exit_and_its_last_words(
    gateway: Gateway, undisturbed: list[Client], server: str, code: int, stderr: list[str]
) -> None:
    began = time.monotonic()
    reply, answer = await greet(gateway, server)
    assert time.monotonic() - began < 2
    assert reply.status == 200
    assert "mcp-session-id" not in reply.headers
    assert answer["error"]["code"] == -31001
    data = answer["error"]["data"]
    assert (data["reason"], data["executed"], data["exitCode"], data["stderr"]) == (
        "exited_before_ready",
        "no",
        code,
        stderr,
    )


@pytest.mark.parametrize(("server", "stderr"), [("silent", []), ("prompting", ["Ok to proceed? (y) "])])
@on_loop
async def test_a_server_that_does_not_get_ready_in_time_is_given_up_and_its_last_words_are_told(
    gateway: Gateway, undisturbed: list[Client], server: str, stderr: list[str]
) -> None:
    client = Client(gateway, server)
    reply = await client.post(greeting())
    client.session = reply.headers["mcp-session-id"]
    answer = await client.settle(reply, 0)
    assert answer["error"]["code"] == -31001
    assert answer["error"]["data"]["reason"] == "start_timed_out"
    assert answer["error"]["data"]["stderr"] == stderr
    assert await client.status() == 404


@on_loop
async def test_a_server_that_refuses_to_initialize_is_heard_in_its_own_words(
    gateway: Gateway, undisturbed: list[Client]
) -> None:
    reply, answer = await greet(gateway, "refusing")
    assert answer["error"] == {"code": -32602, "message": "unsupported protocol version"}
    assert "mcp-session-id" not in reply.headers


@on_loop
async def test_a_slow_start_goes_on_although_its_client_has_gone_and_keeps_the_connection_warm(
    gateway: Gateway, undisturbed: list[Client]
) -> None:
    client = Client(gateway, "slow")
    undisturbed.append(client)
    began = time.monotonic()
    reply = await client.post(greeting())
    client.session = reply.headers["mcp-session-id"]
    assert time.monotonic() - began < 1.2
    assert (await reply.anything()).retry is not None
    assert (await reply.anything()).comment is not None
    reply.drop()
    assert "result" in await client.call("tools/list")
