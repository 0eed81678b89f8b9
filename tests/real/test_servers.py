"""Servers that people run, doing what they are for, with every official client."""

from typing import Any

import pytest

from tests.real.conftest import Served
from tests.real.driving import Step, drive, texts
from tests.real.installed import CLIENT, CLIENTS, MCP2, Client

pytestmark = [pytest.mark.registry, pytest.mark.slow]

IN_SESSION = [(client, transport) for client in CLIENTS for transport in ("http", "sse")]
STATELESS = [(client, "stateless") for client in (MCP2, CLIENT)]
WAYS = [*IN_SESSION, *STATELESS]


def _call(name: str, tool: str, **arguments: Any) -> Step:
    return Step(name, "call", {"name": tool, "arguments": arguments})


def _by(ways: list[tuple[Client, str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("client", "transport"), ways, ids=[f"{client}-{way}" for client, way in ways])


every_client = _by(WAYS)


@every_client
def test_the_time_server_converts(served: Served, client: Client, transport: str) -> None:
    conversion = {"source_timezone": "Asia/Tokyo", "time": "12:30", "target_timezone": "Asia/Kolkata"}
    found = drive(
        client,
        served.job("time", transport),
        Step("lists", "lists"),
        _call("converted", "convert_time", **conversion),
        _call("refused", "get_current_time", timezone="Nowhere/Here"),
        _call("unknown", "no_such_tool"),
    )
    assert set(found["lists"]["tools"]) == {"get_current_time", "convert_time"}
    assert found["converted"]["structuredContent"]["time_difference"] == "-3.5h"
    assert "T09:00:00+05:30" in texts(found["converted"])
    assert found["refused"]["isError"] is True
    assert found["unknown"]["error"]["code"] == -32602


@every_client
def test_the_git_server_reads_the_repository(served: Served, client: Client, transport: str) -> None:
    repository = str(served.folder / "repository")
    found = drive(
        client,
        served.job("git", transport),
        _call("status", "git_status", repo_path=repository),
        _call("log", "git_log", repo_path=repository, max_count=1),
        _call("elsewhere", "git_status", repo_path=str(served.folder)),
    )
    assert "nothing to commit, working tree clean" in texts(found["status"])
    assert "Begin" in texts(found["log"])
    assert found["elsewhere"]["isError"] is True


@_by(IN_SESSION)
def test_the_filesystem_server_keeps_to_the_roots_of_the_client(served: Served, client: Client, transport: str) -> None:
    granted, outside = served.folder / "granted", served.folder / "files" / "note.txt"
    written = granted / f"{client}-{transport}.txt"
    text = "łąka 漢字\n" * 9000
    found = drive(
        client,
        served.job("filesystem", transport) | {"roots": [{"uri": granted.as_uri(), "name": "granted"}]},
        Step("allowed", "settle", {"tool": {"name": "list_allowed_directories"}, "text": str(granted)}),
        _call("written", "write_file", path=str(written), content=text),
        _call("read", "read_text_file", path=str(written)),
        _call("outside", "read_text_file", path=str(outside)),
    )
    assert texts(found["allowed"]) == f"Allowed directories:\n{granted}"
    assert written.read_text() == text
    assert texts(found["read"]) == text
    assert found["outside"]["isError"] is True


@_by(STATELESS)
def test_the_filesystem_server_serves_a_stateless_client(served: Served, client: Client, transport: str) -> None:
    note = served.folder / "files" / "note.txt"
    found = drive(
        client,
        served.job("filesystem", transport) | {"silent": True},
        Step("lists", "lists"),
        _call("read", "read_text_file", path=str(note)),
        _call("outside", "read_text_file", path=str(served.folder / "memory.jsonl")),
    )
    assert "list_allowed_directories" in found["lists"]["tools"]
    assert texts(found["read"]) == note.read_text()
    assert found["outside"]["isError"] is True


@_by(STATELESS)
def test_the_filesystem_server_knows_the_roots_of_a_stateless_client(
    served: Served, client: Client, transport: str
) -> None:
    granted = served.folder / "granted"
    found = drive(
        client,
        served.job("filesystem", transport) | {"roots": [{"uri": granted.as_uri(), "name": "granted"}]},
        Step("lists", "lists"),
        _call("allowed", "list_allowed_directories"),
    )
    assert texts(found["allowed"]) == f"Allowed directories:\n{granted}"


@every_client
def test_the_memory_server_remembers_and_tells_its_subscriber(served: Served, client: Client, transport: str) -> None:
    name = f"{client} over {transport}"
    entity = {"name": name, "entityType": "client", "observations": ["came through the gateway"]}
    graph = "memory://knowledge-graph"
    found = drive(
        client,
        served.job("memory", transport),
        Step(
            "created",
            "subscribe",
            {"uri": graph, "tool": {"name": "create_entities", "arguments": {"entities": [entity]}}},
        ),
        Step("graph", "read", {"uri": graph}),
        _call("opened", "open_nodes", names=[name]),
    )
    assert found["created"]["updated"]["params"] == {"uri": graph}
    assert name in found["graph"]["contents"][0]["text"]
    assert found["opened"]["structuredContent"]["entities"] == [entity]
