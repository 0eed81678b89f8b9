"""The audit of the real gateway: what is in it when, and what happens when it cannot be written."""

import hashlib
import json
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.telemetry.audit_chain import verify
from tests.cli.viaduct import viaduct
from tests.support.client import Client, called
from tests.support.gateway import Gateway, eventually, serving
from tests.support.http import on_loop, request
from tests.support.policies import OWNER, READER, WRITER, asking, content, heard
from tests.support.sse_client import SseClient
from tests.support.stateless import StatelessClient

Record = dict[str, Any]


def audited(folder: Path, *, on_failure: str = "refuse", policy: bool = True, **viaduct: object) -> dict[str, Any]:
    path = viaduct.pop("path", str(folder / "audit.jsonl"))
    made = content(folder, audit={"path": path, "onFailure": on_failure}, **viaduct)
    if not policy:
        del made["viaduct"]["policy"]
    return made


def records(folder: Path, *events: str) -> list[Record]:
    lines = (folder / "audit.jsonl").read_text().splitlines()
    return [each for each in map(json.loads, lines) if not events or each["event"] in events]


def calls(folder: Path, method: str = "tools/call") -> list[Record]:
    return [each for each in records(folder, "call") if each["method"] == method]


def outcome(folder: Path, call: Record) -> Record:
    found = [each for each in records(folder, "outcome") if each["call"] == call["seq"]]
    assert len(found) == 1
    return found[0]


WAYS = pytest.mark.parametrize(
    "way", ["session old", "session new", "implicit old", "batch old", "sse old", "stateless old", "stateless new"]
)


@pytest.mark.parametrize("policy", [True, False], ids=["policy", "no policy"])
@WAYS
@on_loop
async def test_a_call_is_recorded_before_its_server_hears_of_it_and_then_what_came_of_it(
    tmp_path: Path, way: str, policy: bool
) -> None:
    with serving(audited(tmp_path, policy=policy), tmp_path) as gateway:
        writer = await asking(way, gateway, WRITER)
        params = called("look", n=1)
        assert "result" in await writer.call("tools/call", params)
        (call,) = calls(tmp_path)
        said = {name: call[name] for name in ("principal", "server", "target", "decision")}
        assert said == {"principal": "writer", "server": way.split(" ")[1], "target": "look", "decision": "allow"}
        arguments = json.dumps(params["arguments"]).encode()
        assert call["digest"] == hashlib.sha256(arguments).hexdigest()
        assert "arguments" not in call
        assert ("session" in call) != way.startswith("stateless")
        assert eventually(lambda: any(each["call"] == call["seq"] for each in records(tmp_path, "outcome")))
        ended = outcome(tmp_path, call)
        assert ended["outcome"] == "ok"
        assert ended["bytes"] > 20
        assert 0 < ended["ms"] < 60_000
    if not way.startswith("stateless"):
        states = [each["state"] for each in records(tmp_path, "session")]
        assert states[0] == "opened"
        assert states.count("opened") == states.count("ended")
    assert verify([tmp_path / "audit.jsonl"]).problems == []


@WAYS
@on_loop
async def test_a_denied_call_is_recorded_with_what_it_was_for(tmp_path: Path, way: str) -> None:
    with serving(audited(tmp_path), tmp_path) as gateway:
        writer = await asking(way, gateway, WRITER)
        assert "error" in await writer.call("tools/call", called("delete_all"))
        (refusal,) = records(tmp_path, "refusal")
        said = [refusal[name] for name in ("principal", "method", "target", "decision", "reason")]
        assert said == ["writer", "tools/call", "delete_all", "deny", "unknown_target"]
        assert calls(tmp_path) == []


@on_loop
async def test_refusals_of_http_are_recorded_too(tmp_path: Path) -> None:
    with serving(audited(tmp_path), tmp_path) as gateway:
        reader = await Client(gateway, "old", READER).open()
        await (await reader.ask("tools/call", called("edit"))).body()
        await (await request(gateway.port, "POST", "/servers/old/mcp?x=memo", {}, b"{}", "nobodys-token-here")).body()
        await (await request(gateway.port, "GET", "/secret/path", token=READER)).body()
        await (await request(gateway.port, "GET", "/servers/closed/mcp", token=READER)).body()
        await (await reader.post(b"{")).body()
        found = [
            (each["principal"], each["server"], each["reason"], each.get("target"), each["path"])
            for each in records(tmp_path, "refusal")
        ]
        assert found == [
            ("reader", "old", "insufficient_scope", "edit", "/servers/old/mcp"),
            (None, "old", "unauthorized", None, "/servers/old/mcp"),
            (None, None, "unknown_path", None, "unknown"),
            ("reader", "closed", "unknown_path", None, "/servers/closed/mcp"),
            ("reader", "old", "malformed", None, "/servers/old/mcp"),
        ]


@on_loop
async def test_cancelled_calls_and_dead_servers_have_an_outcome_too(tmp_path: Path) -> None:
    with serving(audited(tmp_path, streams={"streamAfter": 0.2}), tmp_path) as gateway:
        stateless = StatelessClient(gateway, "old", OWNER)
        hanging = await stateless.ask("tools/call", called("look", hangs=True))
        hanging.drop()
        sse = await SseClient(gateway, "/servers/old/sse", OWNER).open()
        await sse.ask("tools/call", called("look", hangs=True), ident=9)
        await sse.tell("notifications/cancelled", {"requestId": 9})
        session = await Client(gateway, "old", OWNER).open()
        waiting = await session.ask("tools/call", called("look", hangs=True))
        await (await session.delete()).body()
        waiting.drop()
        assert eventually(lambda: len(records(tmp_path, "outcome")) == len(records(tmp_path, "call")))
        found = [outcome(tmp_path, call)["outcome"] for call in calls(tmp_path)]
        assert found == ["unanswered", "unanswered", "shutting_down"]


@on_loop
async def test_arguments_are_shown_only_where_a_server_says_so_and_masked(tmp_path: Path) -> None:
    made = audited(tmp_path)
    made["mcpServers"]["old"] |= {"auditArguments": True, "auditMask": ["PassWord"]}
    with serving(made, tmp_path) as gateway:
        for server in ("old", "new"):
            client = await Client(gateway, server, OWNER).open()
            await client.tool("look", text="shown", deep=[{"password": "hidden", "n": 1}])
            await client.tool("look", text="x" * 9000)
        shown = [call.get("arguments", "absent") for call in calls(tmp_path)]
        assert shown == [{"text": "shown", "deep": [{"password": "***", "n": 1}]}, None, "absent", "absent"]
        assert "hidden" not in (tmp_path / "audit.jsonl").read_text()


@on_loop
async def test_uris_are_recorded_without_what_may_be_secret_in_them(tmp_path: Path) -> None:
    with serving(audited(tmp_path), tmp_path) as gateway:
        client = await Client(gateway, "old", OWNER).open()
        await client.call("resources/read", {"uri": "https://user:hidden@host/path?token=hidden#hidden"})
        (call,) = calls(tmp_path, "resources/read")
        assert call["target"] == "resources/https://host/path"
        assert "hidden" not in (tmp_path / "audit.jsonl").read_text()


# When it cannot be written (F82).


def fill(gateway: Gateway, folder: Path, room: int | None) -> None:
    """The disk is full but for so many bytes; with None it is not full any more."""
    size = (folder / "audit.jsonl").stat().st_size
    limit = resource.RLIM_INFINITY if room is None else size + room
    resource.prlimit(gateway.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))


@pytest.mark.parametrize("room", [0, 40])
@pytest.mark.parametrize("way", ["session old", "sse old", "stateless old", "stateless new"])
@on_loop
async def test_with_a_full_disk_no_server_hears_of_a_call(tmp_path: Path, way: str, room: int) -> None:
    with serving(audited(tmp_path), tmp_path) as gateway:
        owner = await asking(way, gateway, OWNER)
        assert "result" in await owner.call("tools/call", called("look"))
        fill(gateway, tmp_path, room)
        message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": called("look", tried="SECRET")}
        if way.startswith("sse"):
            fields = {"Content-Type": "application/json"}
            body = json.dumps(message).encode()
            reply = await request(gateway.port, "POST", owner.client.target, fields, body, OWNER)
        elif way.startswith("stateless"):
            reply = await owner.client.ask("tools/call", called("look", tried="SECRET"))
        else:
            reply = await owner.client.post(message)
        error = (await reply.json())["error"]
        assert (reply.status, error["code"], error["data"]["reason"]) == (503, -31007, "audit_failed")
        assert "retry-after" in reply.headers
        opening = await Client(gateway, "old", OWNER).post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        assert opening.status == 503
        opening.close()
        assert (await request(gateway.port, "GET", "/healthz", token=None)).status == 200
        fill(gateway, tmp_path, None)
        assert "result" in await owner.call("tools/call", called("look"))
        assert "SECRET" not in heard(tmp_path, way)
        assert verify([tmp_path / "audit.jsonl"]).problems == []
        assert records(tmp_path, "lost")
        assert eventually(lambda: gateway.log.count("the audit cannot be written") == 1, 3)


@on_loop
async def test_who_allows_it_goes_on_without_and_counts(tmp_path: Path) -> None:
    with serving(audited(tmp_path, on_failure="allow"), tmp_path) as gateway:
        owner = await asking("session old", gateway, OWNER)
        fill(gateway, tmp_path, 0)
        for _ in range(3):
            assert "result" in await owner.call("tools/call", called("look"))
        numbers = (await (await request(gateway.port, "GET", "/metrics", token=OWNER)).body()).decode()
        (line,) = [line for line in numbers.splitlines() if line.startswith("viaduct_audit_lost_total")]
        assert float(line.split(" ")[1]) >= 6
        fill(gateway, tmp_path, None)
        assert "result" in await owner.call("tools/call", called("look"))
        assert records(tmp_path, "lost")[0]["count"] >= 6
        assert verify([tmp_path / "audit.jsonl"]).problems == []


@on_loop
async def test_a_device_that_is_always_full_is_borne_where_that_is_allowed(tmp_path: Path) -> None:
    with serving(audited(tmp_path, on_failure="allow", path="/dev/full"), tmp_path) as gateway:
        owner = await asking("session old", gateway, OWNER)
        assert "result" in await owner.call("tools/call", called("look"))


@pytest.mark.parametrize("path", ["/dev/full", "/no/such/folder/audit"])
def test_without_an_audit_the_gateway_does_not_begin(tmp_path: Path, path: str) -> None:
    config = tmp_path / "viaduct.json"
    config.write_text(json.dumps(audited(tmp_path, path=path)))
    run = viaduct("serve", "--port", "0", str(config))
    assert run.returncode == 78
    assert "viaduct.audit.path" in run.stderr


# When the file is another (F83).


def renamed(path: Path) -> None:
    path.rename(path.with_suffix(".1"))


def removed(path: Path) -> None:
    path.unlink()


def read_only(path: Path) -> None:
    path.chmod(0o400)


@pytest.mark.parametrize("change", [renamed, removed, read_only])
@on_loop
async def test_calls_are_recorded_where_the_file_is_looked_for(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = tmp_path / "audit.jsonl"
    with serving(audited(tmp_path), tmp_path) as gateway:
        client = await Client(gateway, "old", OWNER).open()
        await client.tool("look", n=1)
        assert eventually(lambda: len(records(tmp_path, "outcome")) == len(records(tmp_path, "call")))
        change(path)
        await client.tool("look", n=2)
        assert eventually(lambda: bool(records(tmp_path, "outcome")))
        assert len(calls(tmp_path)) == (2 if change is read_only else 1)
    files = [path.with_suffix(".1"), path] if change is renamed else [path]
    run = viaduct("audit", "verify", *map(str, files))
    assert (run.returncode, run.stdout[:3]) == (0, "ok "), run.stdout


def test_verify_says_where_a_record_was_changed(tmp_path: Path) -> None:
    config = tmp_path / "viaduct.json"
    path = tmp_path / "audit.jsonl"
    with serving(audited(tmp_path), tmp_path):
        pass
    with serving(audited(tmp_path), tmp_path):
        pass
    assert viaduct("audit", "verify", str(path)).returncode == 0
    path.write_bytes(path.read_bytes().replace(b'"seq":1', b'"seq":8', 1))
    run = viaduct("audit", "verify", str(path))
    assert (run.returncode, run.stdout.splitlines()[0].split(" ")[0]) == (1, f"{path}:1:")
    assert viaduct("audit", "verify", str(config.with_name("none"))).returncode == 78
