"""The file in which sessions outlive their gateway: torn, foreign, full, hanging, and read by strangers."""

import asyncio
import json
import resource
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.chaos.planting import program
from tests.chaos.test_survival import BRISK, CALL, CANARY, content, kept, kill
from tests.live.test_credentials import WithHeaders
from tests.support.client import Client, called, greeting
from tests.support.gateway import ROOT, TOKEN, Gateway, entry, eventually, serving
from tests.support.http import on_loop
from tests.support.metrics import number


@on_loop
async def test_the_file_tells_nobody_what_was_said_or_who_may_come_back(tmp_path: Path) -> None:
    with kept(tmp_path) as gateway:
        client = await Client(gateway).open()
        await client.call("resources/subscribe", {"uri": f"test://{CANARY}"})
        message = called("progress", n=2, interval=0.01, nonce=CANARY) | {"_meta": {"progressToken": CANARY}}
        reply = await client.ask(CALL, message, CANARY)
        assert CANARY in str([event.data async for event in reply.events()])
        kill(gateway)
    for path in (tmp_path / "sessions.db", tmp_path / "sessions.db-wal"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        data = path.read_bytes()
        for secret in (CANARY, str(client.session), TOKEN):
            assert secret.encode() not in data


def refusal(folder: Path) -> str:
    """What it says when it will not start."""
    path = folder / "viaduct.json"
    path.write_text(json.dumps(content(folder)))
    command = [sys.executable, "-m", "app", "serve", "--port", "0", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 78, done.stderr
    assert done.stdout == ""
    [line] = [line for line in done.stderr.splitlines() if line.startswith("viaduct: ")]
    return line


def test_a_torn_or_foreign_file_is_refused_in_one_sentence_and_left_as_it_is(tmp_path: Path) -> None:
    with kept(tmp_path) as gateway:
        asyncio.run(opened(gateway))
        assert gateway.stop() == 0
    file = tmp_path / "sessions.db"
    whole = file.read_bytes()
    for damage, sentence in (
        (whole[: len(whole) // 2], "is damaged"),
        (b"a letter to somebody" * 100, "is no file of Viaduct's"),
        (whole[:68] + b"\x00\x00\x00\x07" + whole[72:], "is another program's"),
        (whole[:60] + b"\x00\x00\x00\x63" + whole[64:], "is of another version"),
    ):
        file.write_bytes(damage)
        assert sentence in refusal(tmp_path)
        assert file.read_bytes() == damage


async def opened(gateway: Gateway) -> None:
    await Client(gateway).open()


def test_two_gateways_do_not_share_a_file(tmp_path: Path) -> None:
    with kept(tmp_path):
        assert "in use by another gateway" in refusal(tmp_path)


@on_loop
async def test_on_a_full_disk_clients_are_served_all_the_same_and_what_is_kept_is_made_up_for(tmp_path: Path) -> None:
    with kept(tmp_path, streams={"streamAfter": 0.05}) as gateway:
        client = await Client(gateway).open()
        resource.prlimit(gateway.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        stream = await client.listen()
        last = await stream.next_event()
        assert await client.tool("changed", what="tools") == "soon"
        assert "list_changed" in (await stream.next_message())["method"]
        fresh = await Client(gateway).open()
        assert await fresh.tool("echo", nonce="served") == "served"
        assert eventually(lambda: "the store cannot be written" in gateway.log, 3)
        resource.prlimit(gateway.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert eventually(lambda: "the store can be written again" in gateway.log, 5)
        kill(gateway)
    with kept(tmp_path) as again:
        client.port = fresh.port = again.port
        assert "list_changed" in (await (await client.listen(last.id)).next_message())["method"]
        assert await fresh.tool("echo", nonce="kept") == "kept"


@on_loop
async def test_on_a_full_disk_no_session_is_taken_up_for_its_ids_would_be_used_twice(tmp_path: Path) -> None:
    with kept(tmp_path) as gateway:
        client = await Client(gateway).open()
        kill(gateway)
    with kept(tmp_path) as again:
        client.port = again.port
        resource.prlimit(again.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        reply = await client.ask("ping")
        assert (reply.status, (await reply.json())["error"]["data"]["reason"]) == (503, "store")
        assert await number(again, "viaduct_store_failing") == 1
        resource.prlimit(again.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert await client.status() == 200


HANGING = """
    import os, time
    from app.stores.sqlite import SqliteStore
    write = SqliteStore._write
    def hang(self):
        while os.path.exists(os.environ["HANG"]):
            time.sleep(0.02)
        write(self)
    SqliteStore._write = hang
"""


@on_loop
async def test_a_disk_that_hangs_keeps_nobody_waiting_for_long_and_the_gateway_from_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hang = tmp_path / "hang"
    monkeypatch.setenv("HANG", str(hang))
    settings = content(tmp_path, storeTimeout=0.3, streams={"streamAfter": 0.05})
    with serving(settings, tmp_path, program=program(HANGING)) as gateway:
        client, other = await Client(gateway).open(), await Client(gateway).open()
        hang.touch()
        assert await client.tool("log", n=2) == "logged"
        assert (await other.delete()).status == 204
        assert await (await Client(gateway).open()).tool("echo", nonce="served") == "served"
        assert await number(gateway, "viaduct_store_failing") == 1
        began = time.monotonic()
        assert gateway.stop() == 0
        assert time.monotonic() - began < 5
        assert "the store does not answer" in gateway.log


# What one client may make us keep.


@on_loop
async def test_what_is_kept_of_a_client_is_bounded(tmp_path: Path) -> None:
    limits = {"subscriptions": 3, "subscriptionBytes": 10_000, "greeting": 5_000}
    with kept(tmp_path, limits=limits) as gateway:
        client = await Client(gateway).open()
        reply = await Client(gateway).post(greeting(capabilities={"experimental": {"x": "y" * 6000}}))
        assert (reply.status, (await reply.json())["error"]["data"]["reason"]) == (400, "limits.greeting")
        for uri in ("a:1", "a:2"):
            assert "result" in await client.call("resources/subscribe", {"uri": uri})
        too_long = await client.call("resources/subscribe", {"uri": "a:" + "3" * 10_000})
        assert too_long["error"]["data"]["reason"] == "limits.subscriptions"
        assert "result" in await client.call("resources/subscribe", {"uri": "a:3"})
        assert "error" in await client.call("resources/subscribe", {"uri": "a:4"})
        await client.call("resources/unsubscribe", {"uri": "a:1"})
        assert "result" in await client.call("resources/subscribe", {"uri": "a:4"})


def stored(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("sessions.db*"))


@on_loop
async def test_a_session_that_is_taken_up_gets_what_the_request_says_that_wakes_it(tmp_path: Path) -> None:
    """Headers are kept nowhere: with the session's id and token alone nobody gets a child with the key of before."""
    server = entry(**BRISK, env={"KEY": "${header:X-Key}", "WHO": "${claim:sub}"}, clientHeaders=["X-Key"])
    made = content(tmp_path)
    made["mcpServers"]["stage"] = server
    with serving(made, tmp_path) as gateway:
        clients = [WithHeaders(gateway, "stage", TOKEN, X_Key="of-before") for _ in range(2)]
        for client in clients:
            await client.open()
        assert [json.loads(await client.tool("env"))["KEY"] for client in clients] == ["of-before"] * 2
        kill(gateway)
    assert b"of-before" not in stored(tmp_path)
    with serving(made, tmp_path) as again:
        for client, key in zip(clients, ("of-now", "of-another"), strict=True):
            client.port = again.port
            told = client.more.pop("X_Key")
            refused = await client.ask("tools/call", called("env"))
            assert (refused.status, (await refused.json())["error"]["data"]["reason"]) == (400, "header_missing"), told
            client.more["X_Key"] = key
            assert {name: json.loads(await client.tool("env"))[name] for name in ("KEY", "WHO")} == {
                "KEY": key, "WHO": "one",
            }  # fmt: skip
