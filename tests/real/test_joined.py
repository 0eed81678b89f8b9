"""Ten servers that people run behind one URL, and official clients of both eras that use every tool of them; meanwhile
one is killed, one never starts, and one changes its tools."""

import json
import os
import signal
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.conformance.served import gateway
from tests.real import installed
from tests.real.conftest import TOKEN, lay_files
from tests.real.driving import Findings, Step, drive, texts
from tests.real.installed import MCP1, SDK, VISITORS, Json
from tests.real.rounds import ELICIT, SAID, SAMPLE
from tests.support.gateway import eventually
from tests.support.shelves import shelf

pytestmark = [pytest.mark.registry, pytest.mark.slow]

OFFICIAL = ("everything", "filesystem", "memory", "time", "git", "thinking", "calc", "fetch", "sqlite", "excel")
WAYS = [(MCP1, "legacy"), (SDK, "legacy"), *((each.client, each.mode) for each in VISITORS if each.mode != "auto")]
by_way = pytest.mark.parametrize("number", range(len(WAYS)), ids=[f"{client}-{mode}" for client, mode in WAYS])
"""Which of the ways, and so which of the servers that change: each is changed once."""
NEVER = {"command": sys.executable, "args": ["-c", "raise SystemExit('there is no licence for this server')"]}
VICTIM = "server-memory"
ANSWERS = {ELICIT: {"action": "decline"}, SAMPLE: SAID}


@dataclass(frozen=True)
class Joined:
    port: int
    folder: Path

    def drive(self, number: int, *steps: Step) -> Findings:
        client, mode = WAYS[number]
        url = f"http://127.0.0.1:{self.port}/mcp"
        return drive(client, {"transport": "http", "mode": mode, "url": url, "token": TOKEN}, *steps, seconds=180)

    @property
    def log(self) -> str:
        return (self.folder / "viaduct.log").read_text()


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Joined]:
    installed.require()
    folder = tmp_path_factory.mktemp("joined")
    lay_files(folder)
    servers = installed.ten(folder) | {"never": NEVER}
    for number in range(len(WAYS)):
        changing = shelf("changing", "change", after=["change", "fresh"])
        servers[f"changing_{number}"] = changing | {"isolation": "shared"}
    catalog = {"listTimeout": 60, "pageSize": 50, "fresh": 0.1}
    settings = {"drain": 2, "catalog": catalog, "stateless": {"idleTimeout": 2}, "restarts": {"deaths": 2}}
    config = folder / "viaduct.json"
    config.write_text(json.dumps({"mcpServers": servers, "viaduct": settings}))
    with gateway(folder, "serve", str(config), "--port", "0", "--token", TOKEN) as port:
        yield Joined(port, folder)


@by_way
def test_every_tool_is_callable_by_its_public_name_while_one_server_is_killed(joined: Joined, number: int) -> None:
    tools = joined.drive(number, Step("tools", "tools"))["tools"]
    of_each = Counter(tool["name"].split("__")[0] for tool in tools)
    assert set(OFFICIAL) == {name for name in of_each if not name.startswith("changing")}
    assert sum(of_each.values()) > 100
    wanted = [tool for tool in tools if not tool["name"].startswith("changing")]
    again = [tool for tool in wanted if tool["name"].startswith("memory__")]
    first = [*again, *(tool for tool in wanted if tool not in again)]
    steps = [_attempt(tool["name"], tool) for tool in first]
    steps += [_attempt(f"{tool['name']} again", tool) for tool in again]
    with killing_once(joined, VICTIM, "server-everything") as killed:
        found = joined.drive(number, *steps)
    assert killed
    outcomes = {step.name: _outcome(found, step.name) for step in steps}
    assert {name: said for name, said in outcomes.items() if said not in ("result", "own error")} == {}
    assert Counter(outcomes.values())["result"] > 100


@by_way
def test_one_that_changes_its_tools_is_told_of_once_and_then_the_new_list_is_seen(joined: Joined, number: int) -> None:
    own = f"changing_{number}__"
    found = joined.drive(
        number,
        Step("before", "tools"),
        Step("change", "subscribe", {"lists": ["tools"], "tool": {"name": f"{own}change"}}),
        Step("after", "tools"),
        Step("fresh", "call", {"name": f"{own}fresh"}),
        Step("changes", "changes"),
    )
    assert found["change"]["updated"]["method"] == "notifications/tools/list_changed"
    before, after = ([tool["name"] for tool in found[name]] for name in ("before", "after"))
    place = before.index(f"{own}change") + 1
    assert after == [*before[:place], f"{own}fresh", *before[place:]]
    assert '"tool": "fresh"' in texts(found["fresh"])
    assert found["changes"] <= 1


def test_one_that_never_starts_is_absent_and_the_log_and_the_metrics_say_why(joined: Joined) -> None:
    assert not [tool for tool in joined.drive(0, Step("tools", "tools"))["tools"] if tool["name"].startswith("never")]
    [line, *_] = [line for line in joined.log.splitlines() if "lists could not be read" in line]
    assert "server=never reason=exited_before_ready" in line
    assert "there is no licence for this server" in joined.log
    assert _number(joined, "viaduct_server_unread", server="never") == 1
    assert eventually(lambda: _number(joined, "viaduct_server_state", server="never", state="failed") == 1)
    assert sum(_number(joined, "viaduct_server_unread", server=server) for server in OFFICIAL) == 0


def _attempt(name: str, tool: Json) -> Step:
    arguments = least(tool["inputSchema"], tool["inputSchema"])
    return Step(name, "attempt", {"name": tool["name"], "arguments": arguments, "answers": ANSWERS})


def _outcome(found: Findings, name: str) -> str:
    """What came of it: an answer of the server, or what somebody else said in its place."""
    said = found.by_step.get(name, {})
    if "found" not in said:
        return str(said.get("failed", "never tried"))[-600:]
    error = said["found"].get("error")
    if error is None:
        return "result"
    is_ours = (error.get("data") or {}).get("source") == "gateway" if isinstance(error.get("data"), dict) else False
    return json.dumps(error) if is_ours else "own error"


def least(schema: Json, root: Json) -> Any:
    """A value that fits the schema, with nothing in it that need not be there."""
    if "$ref" in schema:
        found: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        return least(found, root)
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if "enum" in schema:
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return least(schema[key][0], root)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            properties = schema.get("properties", {})
            return {name: least(properties.get(name, {}), root) for name in schema.get("required", ())}
        case "array":
            return [least(schema.get("items", {}), root)] * schema.get("minItems", 0)
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case "null":
            return None
        case _:
            return "x" * max(1, schema.get("minLength", 1))


@contextmanager
def killing_once(joined: Joined, victim: str, sign: str) -> Iterator[list[int]]:
    """While the block runs, kills the child that runs `victim`, once there is one that runs `sign`; who that was."""
    killed: list[int] = []
    is_over = threading.Event()

    def kill() -> None:
        while not is_over.wait(0.05):
            victims = _children(joined, victim)
            if victims and _children(joined, sign):
                os.kill(victims[0], signal.SIGKILL)
                killed.append(victims[0])
                return

    left = [*_children(joined, victim), *_children(joined, sign)]
    assert eventually(lambda: not any(map(_is_there, left))), "that of another client is still there"
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield killed
    finally:
        is_over.set()
        killer.join()


def _children(joined: Joined, program: str) -> list[int]:
    """Of this gateway: they work in its folder."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            is_it = program.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
            if is_it and os.readlink(f"/proc/{pid}/cwd") == str(joined.folder):
                found.append(int(pid))
        except OSError:
            continue
    return found


def _is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _number(joined: Joined, name: str, **labels: str) -> float:
    request = urllib.request.Request(
        f"http://127.0.0.1:{joined.port}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    with urllib.request.urlopen(request, timeout=10) as reply:
        families = text_string_to_metric_families(reply.read().decode())
    samples = (sample for family in families for sample in family.samples if sample.name == name)
    return sum(sample.value for sample in samples if sample.labels.items() >= labels.items())
