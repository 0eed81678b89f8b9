"""What a child gets of its client: its own and nobody else's, and never the bearer token."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import Client, called, greeting
from tests.support.gateway import OTHER_TOKEN as OTHER
from tests.support.gateway import TOKEN as ONE
from tests.support.gateway import Gateway, config, entry, eventually, serving
from tests.support.http import Reply, on_loop, request
from tests.support.policies import content
from tests.support.policies import entry as guarded
from tests.support.sse_client import SseClient
from tests.support.stateless import StatelessClient

ENV = {"KEY": "key=${header:X-Key}", "WHO": "${claim:sub}", "FILE": "${file:%s}", "MODE": "${header:X-Mode:-plain}"}
HEADERS = ["X-Key", "X-Mode"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("credentials")
    (folder / "secret").write_text("of-the-file\n")
    return folder


@pytest.fixture(scope="module")
def gateway(folder: Path) -> Iterator[Gateway]:
    env = {**ENV, "FILE": ENV["FILE"] % (folder / "secret")}
    servers = {
        "old": guarded(folder, "old", env=env, clientHeaders=HEADERS, stopTimeout=0.5),
        "new": guarded(folder, "new", "modern", env=env, clientHeaders=HEADERS, stopTimeout=0.5),
        "stage": entry(env={"KEY": "${header:X-Key}"}, clientHeaders=HEADERS, stopTimeout=0.5),
        "shared": guarded(folder, "shared", env={"FILE": ENV["FILE"] % (folder / "secret")}, isolation="shared"),
    }
    stateless = {"maxCapabilitySets": 2}
    with serving(config(servers, stateless=stateless, streams={"streamAfter": 2}), folder) as gateway:
        yield gateway


def seen(answer: Any) -> dict[str, str]:
    """What the child sees of its environment."""
    env = json.loads(answer["result"]["content"][0]["text"])
    return {name: env[name] for name in ENV if name in env}


class WithHeaders(Client):
    """Sends further headers with each request."""

    def __init__(self, *args: Any, **more: str) -> None:
        super().__init__(*args)
        self.more = more

    def headers(self) -> dict[str, str]:
        return super().headers() | {name.replace("_", "-"): value for name, value in self.more.items()}


ASK_ENV = called("look", env=True)


@pytest.mark.parametrize("server", ["old", "new"])
@on_loop
async def test_a_sessions_own_child_gets_what_its_client_sent(gateway: Gateway, server: str) -> None:
    one = await WithHeaders(gateway, server, ONE, X_Key="first", X_Mode="odd").open()
    two = await WithHeaders(gateway, server, ONE, X_Key="second").open()
    other = await WithHeaders(gateway, server, OTHER, X_Key="first").open()
    expected = [("first", "one", "odd"), ("second", "one", "plain"), ("first", "other", "plain")]
    for client, (key, who, mode) in zip((one, two, other, one), [*expected, expected[0]], strict=True):
        answer = await client.call("tools/call", ASK_ENV)
        assert seen(answer) == {"KEY": f"key={key}", "WHO": who, "FILE": "of-the-file", "MODE": mode}


@pytest.mark.parametrize("server", ["old", "new"])
@on_loop
async def test_a_child_in_place_of_another_gets_the_same(gateway: Gateway, server: str) -> None:
    one = await WithHeaders(gateway, "stage", ONE, X_Key=f"lasting-{server}").open()
    (await one.ask("tools/call", called("die"))).close()
    answer = await one.call("tools/call", called("env"))
    env = json.loads(answer["result"]["content"][0]["text"])
    assert env["KEY"] == f"lasting-{server}"


@on_loop
async def test_implicit_sessions_are_kept_apart_by_what_they_sent(gateway: Gateway) -> None:
    for key in ("a", "b", "a"):
        client = WithHeaders(gateway, "old", ONE, X_Key=key)
        assert seen(await client.call("tools/call", ASK_ENV))["KEY"] == f"key={key}"


@on_loop
async def test_a_stream_of_http_and_sse_gets_what_opened_it(gateway: Gateway, folder: Path) -> None:
    path = "/servers/old/sse"
    refused = await request(gateway.port, "GET", path, {"Accept": "text/event-stream"})
    assert (refused.status, (await refused.json())["error"]["data"]["reason"]) == (400, "header_missing")
    client = SseClient(gateway, path)
    stream = await request(gateway.port, "GET", path, {"Accept": "text/event-stream", "X-Key": "streamed"})
    client.stream, client.target = stream, f"/servers/old/{(await stream.next_event()).data}"
    await client.settle(await client.post(greeting("2024-11-05")), 0)
    assert seen(await client.call("tools/call", ASK_ENV))["KEY"] == "key=streamed"
    stream.drop()


async def stateless(gateway: Gateway, server: str, key: str | None, token: str = ONE, **arguments: Any) -> Reply:
    client = StatelessClient(gateway, server, token)
    message = client.message("tools/call", called("look", **(arguments or {"env": True})))
    return await client.post(message, {"X-Key": key} if key is not None else {})


@pytest.mark.parametrize("server", ["old", "new"])
@on_loop
async def test_stateless_requests_meet_only_their_own_on_a_child(gateway: Gateway, server: str) -> None:
    for key, token, who in [("a", ONE, "one"), ("b", ONE, "one"), ("a", OTHER, "other"), ("a", ONE, "one")]:
        told = seen(await (await stateless(gateway, server, key, token)).json())
        assert (told["KEY"], told["WHO"]) == (f"key={key}", who)


@on_loop
async def test_ever_other_credentials_do_not_make_ever_more_children(gateway: Gateway) -> None:
    await (await stateless(gateway, "old", "warm-up")).body()
    before = len(gateway.children())
    for n in range(6):
        assert seen(await (await stateless(gateway, "old", f"n{n}")).json())["KEY"] == f"key=n{n}"
    assert eventually(lambda: len(gateway.children()) <= before + 1)
    held = [await stateless(gateway, "old", f"held{n}", hangs=True) for n in range(2)]
    third = await stateless(gateway, "old", "third")
    error = (await third.json())["error"]
    assert (third.status, error["data"]["reason"]) == (503, "pool.credentials")
    for each in held:
        each.drop()


@on_loop
async def test_who_does_not_send_what_is_needed_is_told_what(gateway: Gateway) -> None:
    for reply in (
        await Client(gateway, "old").post(greeting()),
        await Client(gateway, "old").ask("tools/list"),
        await stateless(gateway, "old", None),
    ):
        error = (await reply.json())["error"]
        assert (reply.status, error["data"]["reason"]) == (400, "header_missing")
        assert "x-key" in error["message"]


@pytest.mark.parametrize(
    ("value", "reason"),
    [(ONE, "token_in_header"), (f"Bearer {ONE}", "token_in_header"), ("ü", "bad_header")],
)
@on_loop
async def test_the_bearer_token_reaches_no_child(gateway: Gateway, value: str, reason: str) -> None:
    reply = await Client(gateway, "old").post(greeting(), X_Key=value)
    assert (reply.status, (await reply.json())["error"]["data"]["reason"]) == (400, reason)


@on_loop
async def test_a_browser_is_told_that_it_may_send_what_the_server_is_given(gateway: Gateway) -> None:
    for server, names in (("stage", "x-key"), ("old", "x-key, x-mode")):
        fields = {"Origin": "http://localhost:6274", "Access-Control-Request-Method": "POST"}
        reply = await request(gateway.port, "OPTIONS", f"/servers/{server}/mcp", fields)
        assert reply.status == 204
        assert reply.headers["access-control-allow-headers"].endswith(f"last-event-id, {names}")


@on_loop
async def test_a_header_that_is_there_twice_is_refused(gateway: Gateway) -> None:
    fields = [("Content-Type", "application/json"), ("X-Key", "a"), ("x-key", "b")]
    reply = await request(gateway.port, "POST", "/servers/old/mcp", fields, json.dumps(greeting()).encode())
    assert (reply.status, (await reply.json())["error"]["data"]["reason"]) == (400, "duplicate_header")


@on_loop
async def test_a_file_is_read_at_each_start_and_for_shared_children_too(gateway: Gateway, folder: Path) -> None:
    shared = await Client(gateway, "shared").open()
    assert seen(await shared.call("tools/call", ASK_ENV)) == {"FILE": "of-the-file"}
    (folder / "secret").write_text("of-another")
    one = await WithHeaders(gateway, "old", ONE, X_Key="after").open()
    assert seen(await one.call("tools/call", ASK_ENV))["FILE"] == "of-another"
    (folder / "secret").unlink()
    refused = await WithHeaders(gateway, "old", ONE, X_Key="without").open()
    assert refused.greeted["error"]["data"]["reason"] == "secret_unreadable"
    (folder / "secret").write_text("of-the-file\n")
    again = await WithHeaders(gateway, "old", ONE, X_Key="without").open()
    assert "result" in again.greeted


@on_loop
async def test_bad_credentials_of_one_client_do_not_shut_a_server_for_all(tmp_path: Path) -> None:
    server = entry("--mode", "exits", env={"KEY": "${header:X-Key}"}, clientHeaders=HEADERS)
    server["command"], server["args"] = "/bin/sh", ["-c", f'test "$KEY" = good && exec {" ".join(_command())}; exit 3']
    with serving(config({"stage": server}), tmp_path) as gateway:
        for n in range(8):
            bad = await WithHeaders(gateway, "stage", ONE, X_Key=f"bad{n}").open()
            assert "error" in bad.greeted
        good = await WithHeaders(gateway, "stage", OTHER, X_Key="good").open()
        assert await good.tool("echo", nonce="well") == "well"


def _command() -> list[str]:
    made = entry()
    return [str(made["command"]), *map(str, made["args"])]  # type: ignore[call-overload]


# The canary: secrets of every kind, that occur nowhere.


@on_loop
async def test_no_secret_is_anywhere_in_logs_metrics_errors_or_audit(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("canary-of-the-file\n")
    (tmp_path / "talks.py").write_text(TALKS)
    made = content(tmp_path, audit={"path": str(tmp_path / "audit.jsonl")}, logLevel="debug", logFormat="json")
    made["viaduct"].pop("policy")
    made["viaduct"]["auth"]["tokens"] = config({})["viaduct"]["auth"]["tokens"]
    made["mcpServers"]["talks"] = {
        "command": "python3", "args": ["-I", "-S", str(tmp_path / "talks.py")],
        "env": {"KEY": "${header:X-Key}", "FILE": "${file:%s}" % (tmp_path / "secret"), "API_TOKEN": "canary-of-env"},
        "clientHeaders": ["X-Key"],
    }  # fmt: skip
    bodies: list[bytes] = []
    with serving(made, tmp_path) as gateway:
        one = WithHeaders(gateway, "talks", ONE, X_Key="canary-of-the-header")
        bodies.append(await (await one.post(greeting())).body())
        old = await Client(gateway, "old").open()
        for method, params in (
            ("tools/call", called("look", password="canary-argument", token=ONE)),
            ("resources/read", {"uri": "https://canary-user:canary-word@host/?key=canary-query"}),
            ("prompts/get", {"name": 1, "canary-key": 1}),
            ("tools/call", None),
        ):
            await (await old.ask(method, params)).body()
        for path in ("/servers/old/mcp?token=canary-in-query", "/canary-path", "/servers/canary-server/mcp"):
            reply = await request(gateway.port, "POST", path, {}, b"canary-body")
            bodies.append(await reply.body())
        bodies.append(await (await request(gateway.port, "POST", "/mcp", token="canary-wrong-token")).body())
        bodies.append(await (await stateless(gateway, "talks", "canary-of-the-header", n=1)).body())
        bodies.append(await (await request(gateway.port, "GET", "/metrics")).body())
        assert eventually(lambda: "talked" in gateway.log)
    told = b"\n".join([*bodies, gateway.log.encode(), (tmp_path / "audit.jsonl").read_bytes()]).decode()
    assert "canary" not in told
    assert ONE not in told
    assert "key is ***, file is ***, env is ***" in gateway.log


TALKS = """
import os, sys
e = os.environ
print(f"talked: key is {e['KEY']}, file is {e['FILE']}, env is {e['API_TOKEN']}", file=sys.stderr, flush=True)
sys.exit(3)
"""
